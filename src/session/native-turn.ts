/**
 * One turn of a provider's own loop, event by event: what it says and does is stored, calls of our tools are carried out,
 * questions wait for their answer, and mail is put in where the provider takes it (RUN-5).
 *
 * - E1 One thing after the other: as long as a call is open, what comes after it is held back.
 * - E2 Events of other turns are let go: they were stopped, or nobody here asked for them.
 */
import { CoppiceError, TransientError } from "../protocol/errors.ts";
import type { NativeEvent, NativeItem, NativeRequest } from "../protocol/native-events.ts";
import { openCalls } from "../protocol/transcript.ts";
import { hasNative, nativeCall } from "../providers/native-call.ts";
import { isName, namedTurn } from "../providers/native-names.ts";
import { Ears } from "./ears.ts";
import { isProviderFailure } from "./native-failure.ts";
import type { NativeConversation, OpenTurn } from "./native-conversation.ts";
import { turnWords } from "./native-input.ts";
import type { AssistantBody, Call, NextInput, Preview, ResultBody, RunPorts } from "./ports.ts";
import { answerOf, askedCall, recordedCall, resultOf } from "./native-calls.ts";
import { Response } from "./response.ts";
import type { Session } from "./session.ts";
import { executeTool } from "./tool-call.ts";

export type TurnOver = Pick<
  Extract<NativeEvent, { type: "turn.terminal" }>,
  "outcome" | "turn" | "usage" | "error"
>;

/** Follows a turn until it is over, or waits. @throws what the provider fails with, and the signal's reason. */
export function followTurn(
  session: Session,
  native: NativeConversation,
  turn: OpenTurn,
  ports: RunPorts,
  signal: AbortSignal,
): Promise<TurnOver | "waits"> {
  return new TurnReader(session, native, turn, ports, signal).read();
}

class TurnReader {
  readonly #session: Session;
  readonly #native: NativeConversation;
  readonly #turn: OpenTurn;
  readonly #ports: RunPorts;
  readonly #signal: AbortSignal;
  /** Of the step that is under way. */
  #preview: Preview | null = null;

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
  }

  async read(): Promise<TurnOver | "waits"> {
    for (;;) {
      if (this.#turn.accepted) {
        const over = await this.#settleCalls();
        if (over !== null) return over;
        await this.#steer();
      }
      const event = this.#turn.held.shift() ?? (await this.#next());
      if (event === "mail") continue;
      if (event === "cut") this.#cut();
      else {
        const over = await this.#take(event);
        if (over !== null) return over;
      }
    }
  }

  /** The next event of the turn; `mail` when there is some to be put in, `cut` when the time of the run is used up. */
  async #next(): Promise<NativeEvent | "mail" | "cut"> {
    const turn = this.#turn;
    for (;;) {
      using ears = new Ears(this.#signal);
      const others: Promise<NativeEvent | "mail" | "cut" | null>[] = [ears.aborted];
      if (!turn.accepted) others.push(turn.refused);
      if (!turn.wrapUp && !turn.cut) others.push(ears.heard(this.#ports.timeUp, "cut"));
      if (this.#steers() && turn.accepted && !turn.cut)
        others.push(this.#ports.native.mailAfter(turn.seen, ears.over).then(() => "mail"));
      const event = await this.#withSource(others);
      if (event === "mail" || event === "cut" || event.key === turn.key) return event;
    }
  }

  async #withSource(
    others: readonly Promise<NativeEvent | "mail" | "cut" | null>[],
  ): Promise<NativeEvent | "mail" | "cut"> {
    const { source } = this.#native;
    const event = await Promise.race([source.next(), ...others]);
    if (event === "mail" || event === "cut") return event;
    source.take();
    if (event !== null) return event;
    throw new TransientError(
      "PROVIDER_UNREACHABLE",
      "the provider's events ended in the middle of a turn.",
      {},
    );
  }

  async #take(event: NativeEvent): Promise<TurnOver | null> {
    if (!this.#turn.accepted && !event.type.startsWith("child.")) await this.#accept(event);
    switch (event.type) {
      case "turn.accepted":
      case "turn.started":
        this.#turn.ref ??= namedTurn(event.turn);
        return null;
      case "turn.terminal":
        this.#preview?.end();
        this.#preview = null;
        if (event.usage !== null) this.#turn.step.take({ type: "usage", usage: event.usage });
        return { ...event, turn: namedTurn(event.turn), usage: this.#turn.step.usage };
      case "child.started":
      case "child.terminal":
        if (this.#turn.accepted && isName(event.child)) await this.#ports.native.child(event);
        return null;
      default:
        if (!this.#turn.cut) await this.#store(event);
        return null;
    }
  }

  /** Nothing of the turn is kept before its acceptance is: mail is `delivered` here and not before (MBX-7). */
  async #accept(event: NativeEvent): Promise<void> {
    const turn = this.#turn;
    if (event.type === "turn.accepted" || event.type === "turn.started") turn.ref ??= namedTurn(event.turn);
    await this.#ports.accepted(turn.input, { thread: turn.thread, turn: turn.ref });
    turn.accepted = true;
    this.#native.unused = null;
    this.#told();
    this.#signal.throwIfAborted();
  }

  #told(): void {
    this.#native.told = this.#session.items.length;
  }

  async #store(event: Extract<NativeEvent, { type: "delta" | "item" | "request" }>): Promise<void> {
    if (event.type === "request") return this.#request(event.request);
    const item = event.type === "delta" ? event : event.item;
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
    this.#turn.step.take({ type: "part", part });
    this.#turn.asked.set(part.callId, request);
    await this.#record("tools", []);
  }

  /** Stores the step so far. Where a limit of the run is reached with it, the turn is cut off. */
  async #record(phase: AssistantBody["phase"], results: readonly ResultBody[]): Promise<void> {
    this.#preview?.end();
    this.#preview = null;
    const { model } = this.#session.run!;
    const parts = this.#turn.step.parts();
    this.#turn.step = new Response();
    this.#turn.wholeText = false;
    this.#session.partialText = "";
    const body: AssistantBody = { kind: "assistant", phase, parts, model, inherited: false };
    const recorded = await this.#ports.native.record(body, results);
    this.#told();
    this.#signal.throwIfAborted();
    if (recorded === "over" && !this.#turn.wrapUp) this.#cut();
  }

  /** Its end is waited for; nothing of it is stored any more, and the run gets its last step (RUN-3). */
  #cut(): void {
    if (this.#turn.cut) return;
    this.#turn.cut = true;
    const { ref } = this.#turn.thread.thread;
    this.#native.session.interruptTurn(ref, this.#turn.key).catch(() => undefined);
  }

  /** Carries out what is asked of us and answers what has an answer; null when nothing is open any more. */
  async #settleCalls(): Promise<TurnOver | "waits" | null> {
    const { started } = this.#turn;
    for (;;) {
      const open = openCalls(this.#session.items);
      if (open.length === 0 || this.#turn.cut) return null;
      const waiting = await this.#ports.collect(open);
      this.#signal.throwIfAborted();
      await this.#respond();
      const left = openCalls(this.#session.items);
      const fresh = left.find(
        (call) => call.type === "tool_call" && !waiting.has(call.callId) && !started.has(call.callId),
      );
      if (fresh !== undefined) {
        started.add(fresh.callId);
        await this.#carryOut(fresh);
        await this.#respond();
        continue;
      }
      if (left.length === 0) continue;
      const over = await this.#wait();
      if (over !== null) return over;
    }
  }

  async #carryOut(call: Call): Promise<void> {
    if (call.type !== "tool_call") return;
    const outcome = this.#turn.wrapUp
      ? { kind: "result" as const, output: LAST_TURN, isError: true }
      : await executeTool(this.#session, this.#ports, this.#signal, call);
    this.#signal.throwIfAborted();
    if (outcome.kind === "waiting") {
      // One that waited for an approval is made again.
      this.#turn.started.delete(call.callId);
      return;
    }
    await this.#ports.toolReturned(resultOf(call.callId, call.name, outcome.output, outcome.isError));
    this.#signal.throwIfAborted();
  }

  /** Gives the provider the results that are stored and that it waits for. */
  async #respond(): Promise<void> {
    const { asked } = this.#turn;
    for (const [callId, request] of asked) {
      const item = this.#session.items.findLast(
        (one): one is typeof one & ResultBody => one.kind === "tool_result" && one.callId === callId,
      );
      if (item === undefined) continue;
      asked.delete(callId);
      const answer = answerOf(request, item, this.#steers() ? null : await this.#ports.native.unreadNotice());
      await this.#native.session.respond(request.ref, answer).catch((error: unknown) => {
        // The turn has not waited for it; what became of the turn is told by its events.
        if (!CoppiceError.is(error) || error.code !== "REQUEST_NOT_RESUMABLE") throw error;
      });
      this.#signal.throwIfAborted();
      if (item.mailIds.length > 0) await this.#handOver();
    }
    this.#told();
  }

  /** Results that a wait has handed out are `delivered` when the provider has its output (WAI-3). */
  async #handOver(): Promise<void> {
    const { handed } = await this.#ports.nextInput();
    if (handed.length > 0) await this.#ports.accepted({ ...NOTHING, handed });
  }

  /** Nothing but waits and questions is open: the run waits, unless the turn has something to say first. */
  async #wait(): Promise<TurnOver | "waits" | null> {
    const { source } = this.#native;
    if (source.ready) {
      const event = await this.#withSource([]);
      if (typeof event === "string" || event.key !== this.#turn.key) return null;
      if (event.type === "turn.terminal") return this.#take(event);
      this.#turn.held.push(event);
      return null;
    }
    if (!(await this.#ports.suspend())) return null;
    const { native } = this.#ports;
    source.next().then(
      () => native.wake(),
      () => native.wake(),
    );
    return "waits";
  }

  #steers(): boolean {
    return hasNative(this.#native.session, "steerTurn");
  }

  /** Puts mail that has come into the turn; what the provider does not take there waits for the next one (MBX-5). */
  async #steer(): Promise<void> {
    const turn = this.#turn;
    const newest = this.#ports.native.newestMail();
    if (!this.#steers() || turn.cut || newest <= turn.seen) return;
    turn.seen = newest;
    const input = await this.#ports.nextInput();
    this.#signal.throwIfAborted();
    if (input.bodies.length === 0) return;
    const { session } = this.#native;
    const words = turnWords(input.bodies, session.negotiated.context.channels);
    try {
      await nativeCall(session, "steerTurn")({ thread: turn.thread.thread.ref, key: turn.key, ...words });
    } catch (error) {
      this.#signal.throwIfAborted();
      if (isProviderFailure(error)) return;
      throw error;
    }
    this.#signal.throwIfAborted();
    await this.#ports.accepted(input);
    this.#told();
  }
}

const NOTHING: NextInput = {
  mail: [],
  stubs: [],
  leftOut: [],
  bodies: [],
  handed: [],
  modeHint: null,
};

const LAST_TURN = "This is the last turn of this run and no tools can be called: say what you have.";
