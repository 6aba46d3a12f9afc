/**
 * One turn of a provider's own loop, event by event: what it says and does is stored, calls of our tools are carried out,
 * questions wait for their answer, and mail is put in where the provider takes it (RUN-5).
 *
 * - E1 Events are heard all the time. Requests are taken as they come, also beside others that are open; what the turn says
 *   and does meanwhile is held back until the calls of the step have their results.
 * - E2 What takes its time runs beside the events, as a job: a tool of ours, an answer, input that is put in. A provider that
 *   does not answer holds nothing up; with the end of the turn all of it is over.
 * - E3 Events of other turns are let go: they were stopped, or nobody here asked for them.
 */
import { RejectedError, TransientError } from "../protocol/errors.ts";
import type { NativeEvent, NativeItem, NativeRequest } from "../protocol/native-events.ts";
import type { StepUsage } from "../protocol/provider-events.ts";
import { openCalls } from "../protocol/transcript.ts";
import { hasNative, nativeCall } from "../providers/native-call.ts";
import { isName, namedTurn } from "../providers/native-names.ts";
import { Ears, unlessAborted } from "./ears.ts";
import { isProviderFailure } from "./native-failure.ts";
import type { HeldEvent, NativeConversation, OpenTurn } from "./native-conversation.ts";
import { turnWords } from "./native-input.ts";
import type { AssistantBody, Call, Preview, ResultBody, RunPorts } from "./ports.ts";
import { askedCall, callIdOf, recordedCall, requestIdOf } from "./native-calls.ts";
import { Response } from "./response.ts";
import type { Session } from "./session.ts";
import { TurnCalls } from "./turn-calls.ts";
import { TurnJobs } from "./turn-jobs.ts";

type Terminal = Extract<NativeEvent, { type: "turn.terminal" }>;

export type TurnOver = Pick<Terminal, "outcome" | "turn" | "usage" | "error">;

const IGNORE = (): void => undefined;

/** Follows a turn until it is over, or waits. @throws what the provider fails with, and the signal's reason. */
export async function followTurn(
  session: Session,
  native: NativeConversation,
  turn: OpenTurn,
  ports: RunPorts,
  signal: AbortSignal,
): Promise<TurnOver | "waits"> {
  const reader = new TurnReader(session, native, turn, ports, signal);
  try {
    return await reader.read();
  } finally {
    reader.end();
  }
}

class TurnReader {
  readonly #session: Session;
  readonly #native: NativeConversation;
  readonly #turn: OpenTurn;
  readonly #ports: RunPorts;
  readonly #signal: AbortSignal;
  /** Of the step that is under way. */
  #preview: Preview | null = null;
  readonly #jobs: TurnJobs;
  readonly #calls: TurnCalls;
  #steering = false;
  constructor(
    session: Session,
    native: NativeConversation,
    turn: OpenTurn,
    ports: RunPorts,
    signal: AbortSignal,
  ) {
    this.#session = session;
    this.#native = native;
    this.#turn = turn;
    this.#ports = ports;
    this.#signal = signal;
    this.#jobs = new TurnJobs(signal);
    this.#calls = new TurnCalls({ session, native, turn, ports, jobs: this.#jobs });
  }

  async read(): Promise<TurnOver | "waits"> {
    for (;;) {
      const { done } = this.#jobs;
      this.#jobs.throwIfFailed();
      const open = this.#turn.accepted && !this.#turn.cut ? await this.#calls.settle() : [];
      if (
        open.length > 0 &&
        this.#jobs.size === 0 &&
        !this.#native.source.ready &&
        done === this.#jobs.done
      ) {
        if (await this.#suspend()) return "waits";
        continue;
      }
      if (open.length === 0 && this.#turn.accepted) this.#steer();
      const held = open.length === 0 ? this.#turn.held.shift() : undefined;
      const event = held ?? (await this.#next(open, done));
      if (event === "again") continue;
      if (event === "cut") this.#cut();
      else if (event.type === "turn.terminal") return await this.#close(event);
      else if (open.length > 0 && isHeld(event)) this.#turn.held.push(event);
      else await this.#take(event);
    }
  }

  end(): void {
    this.#jobs.end().catch(IGNORE);
    this.#preview?.end();
  }

  /** The next event of the turn; `again` when there is something to look at, `cut` when the time of the run is used up. */
  async #next(open: readonly Call[], done: number): Promise<NativeEvent | "again" | "cut"> {
    const turn = this.#turn;
    if (this.#jobs.done !== done) return "again";
    using ears = new Ears(this.#signal);
    const again = (): "again" => "again";
    const others: Promise<NativeEvent | "again" | "cut">[] = [ears.aborted, this.#jobs.next().then(again)];
    if (!turn.accepted) others.push(turn.refused);
    if (!turn.wrapUp && !turn.cut) others.push(ears.heard(this.#ports.timeUp, "cut"));
    const { native } = this.#ports;
    if (this.#calls.waiting && !turn.cut) others.push(native.callEnded(open, ears.over).then(again));
    if (open.length === 0 && this.#steers() && turn.accepted && !turn.cut && !this.#steering)
      others.push(native.mailAfter(turn.seen, ears.over).then(again));
    const { source } = this.#native;
    const event = await Promise.race([source.next(), ...others]);
    if (event === "again" || event === "cut") return event;
    source.take();
    if (event === null) {
      throw new TransientError(
        "PROVIDER_UNREACHABLE",
        "the provider's events ended in the middle of a turn.",
        {},
      );
    }
    return event.key === turn.key ? event : "again";
  }

  async #take(event: Exclude<NativeEvent, { type: "turn.terminal" }>): Promise<void> {
    if (!this.#turn.accepted && !event.type.startsWith("child.")) await this.#accept(event);
    switch (event.type) {
      case "turn.accepted":
      case "turn.started":
        this.#turn.ref ??= namedTurn(event.turn);
        return;
      case "child.started":
      case "child.terminal":
        if (this.#turn.accepted && isName(event.child)) await this.#ports.native.child(event);
        return;
      case "usage":
        await this.#ports.native.used(event.usage);
        this.#turn.reported = true;
        this.#signal.throwIfAborted();
        return;
      case "withdrawn":
        this.#turn.asked.delete(callIdOf(event.request, this.#turn.key));
        await this.#ports.native.withdraw(requestIdOf(event.request, this.#turn.key));
        this.#signal.throwIfAborted();
        return;
      case "request":
        if (!this.#turn.cut) await this.#request(event.request);
        return;
      default:
        if (!this.#turn.cut) await this.#say(event.type === "delta" ? event : event.item);
    }
  }

  /** The end: nothing is waited for any more, and what was held back is of the turn all the same. */
  async #close(event: Terminal): Promise<TurnOver> {
    await this.#jobs.end();
    this.#signal.throwIfAborted();
    const turn = this.#turn;
    if (!turn.accepted) await this.#accept(event);
    if (!turn.cut && openCalls(this.#session.items).length > 0)
      await this.#ports.native.closeCalls("the provider ended its turn without waiting for this");
    for (const held of turn.held.splice(0)) await this.#take(held);
    this.#signal.throwIfAborted();
    if (event.usage !== null) turn.step.take({ type: "usage", usage: event.usage });
    return {
      ...event,
      turn: namedTurn(event.turn),
      usage: turn.step.usage ?? (turn.reported ? NOTHING_USED : null),
    };
  }

  /** Nothing of the turn is kept before its acceptance is: mail is `delivered` here and not before (MBX-7). */
  async #accept(event: NativeEvent): Promise<void> {
    const turn = this.#turn;
    if (event.type === "turn.accepted" || event.type === "turn.started") turn.ref ??= namedTurn(event.turn);
    const native = this.#native;
    await this.#ports.accepted(turn.input, {
      thread: turn.thread,
      turn: turn.ref,
      unsure: native.unsure,
    });
    turn.accepted = true;
    native.unused = null;
    native.doubtful = false;
    native.unsure = 0;
    this.#told();
    this.#signal.throwIfAborted();
  }

  #told(): void {
    this.#native.told = this.#session.items.length;
  }

  async #say(item: NativeItem | { readonly type: "delta"; readonly text: string }): Promise<void> {
    if ("kind" in item && (item.kind === "tool" || item.kind === "file_change")) return this.#theirs(item);
    const turn = this.#turn;
    const reasoning = "kind" in item && item.kind === "reasoning";
    // A text that is whole was not the answer when another follows.
    if (turn.wholeText && !reasoning) await this.#record("intermediate", []);
    if (!("kind" in item)) return this.#show(turn.step.take({ type: "text", text: item.text }));
    const streamed = turn.step.text() !== "";
    turn.step.take({ type: "part", part: { type: item.kind, text: item.text } });
    if (reasoning) return;
    turn.wholeText = true;
    this.#show(streamed ? null : item.text);
  }

  #show(text: string | null): void {
    this.#session.partialText = this.#turn.step.text();
    if (text === null) return;
    this.#preview ??= this.#ports.preview();
    this.#preview.push(text);
  }

  /** A call that the provider has carried out itself: recorded with its result in one commit. */
  async #theirs(item: Extract<NativeItem, { kind: "tool" | "file_change" }>): Promise<void> {
    const { part, result } = recordedCall(item);
    this.#turn.step.take({ type: "part", part });
    await this.#record("tools", [result]);
  }

  async #request(request: NativeRequest): Promise<void> {
    const part = askedCall(request, this.#turn.key);
    const { asked, known } = this.#turn;
    if (known.has(part.callId)) {
      throw new RejectedError(
        "PROVIDER_PROTOCOL",
        "two requests of one turn have one name; the adapter of the provider has to be mended.",
        { name: request.ref.nativeId },
      );
    }
    known.add(part.callId);
    asked.set(part.callId, request);
    this.#turn.step.take({ type: "part", part });
    if (openCalls(this.#session.items).length === 0) return this.#record("tools", []);
    // What it has said meanwhile is held back, so the call is all that there is.
    const body = this.#stepBody("tools");
    await this.#ports.native.join(body);
    this.#told();
    this.#signal.throwIfAborted();
  }

  /** Stores the step so far. Where a limit of the run is reached with it, the turn is cut off. */
  async #record(phase: AssistantBody["phase"], results: readonly ResultBody[]): Promise<void> {
    const recorded = await this.#ports.native.record(this.#stepBody(phase), results);
    this.#told();
    this.#signal.throwIfAborted();
    if (recorded === "over" && !this.#turn.wrapUp) this.#cut();
  }

  /** What it has said since the step before, which is a step now. */
  #stepBody(phase: AssistantBody["phase"]): AssistantBody {
    this.#preview?.end();
    this.#preview = null;
    const { model } = this.#session.run!;
    const parts = this.#turn.step.parts();
    this.#turn.step = new Response();
    this.#turn.wholeText = false;
    this.#session.partialText = "";
    return { kind: "assistant", phase, parts, model, inherited: false };
  }

  /** Its end is waited for; nothing of it is stored any more, and the run gets its last step (RUN-3). */
  #cut(): void {
    if (this.#turn.cut) return;
    this.#turn.cut = true;
    const { ref } = this.#turn.thread.thread;
    this.#native.session.interruptTurn(ref, this.#turn.key).catch(() => undefined);
  }

  /** Nothing but waits and questions is open: true when the run waits with them. */
  async #suspend(): Promise<boolean> {
    if (!(await this.#ports.suspend())) return false;
    const { native } = this.#ports;
    this.#native.source.next().then(
      () => native.wake(),
      () => native.wake(),
    );
    return true;
  }

  #steers(): boolean {
    return hasNative(this.#native.session, "steerTurn");
  }

  /** Puts mail that has come into the turn; what the provider does not take there waits for the next one (MBX-5). */
  #steer(): void {
    const turn = this.#turn;
    const newest = this.#ports.native.newestMail();
    if (!this.#steers() || turn.cut || this.#steering || newest <= turn.seen) return;
    turn.seen = newest;
    this.#steering = true;
    this.#jobs.run(async () => {
      try {
        await this.#putIn(turn);
      } finally {
        this.#steering = false;
      }
    });
  }

  async #putIn({ thread, key }: OpenTurn): Promise<void> {
    const input = await this.#ports.nextInput();
    this.#jobs.until.throwIfAborted();
    if (input.bodies.length === 0) return;
    const { session } = this.#native;
    const words = turnWords(input.bodies, session.negotiated.context.channels);
    const steered = nativeCall(session, "steerTurn")({ thread: thread.thread.ref, key, ...words });
    try {
      await unlessAborted(steered, this.#jobs.until);
    } catch (error) {
      // It may have been read all the same.
      this.#native.doubtful ||= this.#jobs.until.aborted;
      if (isProviderFailure(error)) return;
      throw error;
    }
    await this.#ports.accepted(input);
    this.#told();
  }
}

function isHeld(event: NativeEvent): event is HeldEvent {
  return event.type === "delta" || event.type === "item";
}

const NOTHING_USED: StepUsage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0 };
