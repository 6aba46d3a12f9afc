/**
 * The calls and questions of a turn of a provider's own loop: tools of ours are carried out, what has ended is taken in, and
 * the provider is given its results, each beside the others.
 */
import { CoppiceError } from "../protocol/errors.ts";
import type { NativeRequest } from "../protocol/native-events.ts";
import { openCalls } from "../protocol/transcript.ts";
import { hasNative } from "../providers/native-call.ts";
import { unlessAborted } from "./ears.ts";
import { answerOf, resultOf } from "./native-calls.ts";
import type { NativeConversation, OpenTurn } from "./native-conversation.ts";
import type { Call, NextInput, ResultBody, RunPorts } from "./ports.ts";
import type { Session } from "./session.ts";
import { executeTool } from "./tool-call.ts";
import type { TurnJobs } from "./turn-jobs.ts";

export class TurnCalls {
  readonly #session: Session;
  readonly #native: NativeConversation;
  readonly #turn: OpenTurn;
  readonly #ports: RunPorts;
  readonly #jobs: TurnJobs;
  /** A wait or a question is among the calls that are open. */
  waiting = false;

  constructor(of: {
    readonly session: Session;
    readonly native: NativeConversation;
    readonly turn: OpenTurn;
    readonly ports: RunPorts;
    readonly jobs: TurnJobs;
  }) {
    this.#session = of.session;
    this.#native = of.native;
    this.#turn = of.turn;
    this.#ports = of.ports;
    this.#jobs = of.jobs;
  }

  /** Takes in what has ended, answers it, and begins what is new. Resolves with what is open then. */
  async settle(): Promise<readonly Call[]> {
    const open = openCalls(this.#session.items);
    const waiting = open.length === 0 ? NONE : await this.#ports.collect(open);
    this.waiting = waiting.size > 0;
    this.#jobs.until.throwIfAborted();
    this.#answer();
    const { started } = this.#turn;
    const left = open.length === 0 ? open : openCalls(this.#session.items);
    for (const call of left) {
      if (call.type !== "tool_call" || waiting.has(call.callId) || started.has(call.callId)) continue;
      started.add(call.callId);
      this.#jobs.run(() => this.#carryOut(call));
    }
    return left;
  }

  async #carryOut(call: Extract<Call, { type: "tool_call" }>): Promise<void> {
    const outcome = await unlessAborted(
      executeTool(this.#session, this.#ports, this.#jobs.until, call),
      this.#jobs.until,
    );
    if (this.#turn.cut) return;
    if (outcome.kind === "waiting") {
      // One that waited for an approval is made again.
      this.#turn.started.delete(call.callId);
      return;
    }
    await this.#ports.toolReturned(resultOf(call.callId, call.name, outcome.output, outcome.isError));
  }

  /** Gives the provider the results that are stored and that it waits for. */
  #answer(): void {
    const { asked } = this.#turn;
    if (asked.size === 0) return;
    for (const [callId, request] of asked) {
      const item = this.#session.items.findLast(
        (one): one is typeof one & ResultBody => one.kind === "tool_result" && one.callId === callId,
      );
      if (item === undefined) continue;
      asked.delete(callId);
      this.#jobs.run(() => this.#respond(request, item));
    }
  }

  /** What a wait has handed out is `delivered` when the provider has its output, and else comes again (WAI-3). */
  async #respond(request: NativeRequest, item: ResultBody): Promise<void> {
    const notice = hasNative(this.#native.session, "steerTurn")
      ? null
      : await this.#ports.native.unreadNotice();
    try {
      const answer = answerOf(request, item, notice);
      await unlessAborted(this.#native.session.respond(request.ref, answer), this.#jobs.until);
    } catch (error) {
      for (const id of item.mailIds) this.#native.unheard.add(id);
      // The turn has not waited for it; what became of the turn is told by its events.
      if (CoppiceError.is(error) && error.code === "REQUEST_NOT_RESUMABLE") return;
      throw error;
    }
    if (item.mailIds.length > 0) await this.#ports.accepted({ ...NOTHING, handed: item.mailIds });
  }
}

const NONE: ReadonlySet<string> = new Set();

const NOTHING: NextInput = {
  mail: [],
  stubs: [],
  leftOut: [],
  bodies: [],
  handed: [],
  modeHint: null,
};
