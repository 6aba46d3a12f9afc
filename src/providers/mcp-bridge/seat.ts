/**
 * The place of one agent at the bridge: its tools, the turn that its program is in, and the calls of that turn.
 *
 * - S1 Whoever shows its token is the agent; it is in one turn or in none, and calls belong to that turn (SEC-1).
 * - S2 A call that is made again, under its vendor's id or after it was put off, is the same call: it has one effect and one
 *   answer, and whoever asks again gets that.
 * - S3 No call is held longer than programs wait for one. It is put off then, and goes on meanwhile (WAI-7).
 * - S4 With the turn all of its calls are over.
 */
import type { Clock } from "../../platform/clock.ts";
import { RejectedError } from "../../protocol/errors.ts";
import type { Json } from "../../protocol/json.ts";
import type { NativeAnswer, NativeRequest } from "../../protocol/native-events.ts";
import type { NativeRef } from "../../protocol/provider-thread.ts";
import type { ToolSpec } from "../../protocol/tool.ts";

/** The name under which programs list our tools. */
export const SERVER_NAME = "coppice";

export type ToolRequest = Extract<NativeRequest, { kind: "tool" }>;

/** A call as it came. */
export interface BridgeCall {
  readonly name: string;
  /** The arguments as JSON text. */
  readonly input: string;
  /** What its vendor calls it, or how it is told of progress; null when it has no name. */
  readonly key: string | null;
}

export interface ToolAnswer {
  readonly output: Json;
  readonly isError: boolean;
}

export interface SeatOptions {
  readonly clock: Clock;
  readonly tools: readonly ToolSpec[];
  /** The driver of those who ask for its tools. */
  readonly driver: string;
  /** Milliseconds that one call is held at most. */
  readonly holdMs: number;
}

export class BridgeSeat {
  readonly tools: readonly ToolSpec[];
  readonly #options: SeatOptions;
  #ask: ((request: ToolRequest) => void) | null = null;
  readonly #calls = new Map<string, HeldCall>();
  #asked = 0;

  constructor(options: SeatOptions) {
    this.#options = options;
    this.tools = options.tools;
  }

  /** From now on what is called is asked of this turn. */
  beginTurn(ask: (request: ToolRequest) => void): void {
    this.endTurn();
    this.#ask = ask;
  }

  endTurn(): void {
    this.#ask = null;
    for (const call of this.#calls.values()) call.end();
    this.#calls.clear();
  }

  /**
   * Resolves when the program has the answer, which may be when it asks for it again.
   * @throws RejectedError `REQUEST_NOT_RESUMABLE` when nobody waits for it, or does not any more.
   */
  async respond(request: NativeRef, answer: NativeAnswer): Promise<void> {
    const call = this.#calls.get(request.nativeId);
    const taken =
      call !== undefined &&
      (await call.answer(
        answer.kind === "tool" ? answer : { output: "cancelled: nobody answers any more", isError: true },
      ));
    if (taken) return;
    throw new RejectedError("REQUEST_NOT_RESUMABLE", `nothing waits for an answer to ${request.nativeId}.`, {
      id: request.nativeId,
    });
  }

  /** The answer to a call; a refusal is one, too. @throws the signal's reason: the caller has gone. */
  async call(made: BridgeCall, signal: AbortSignal): Promise<ToolAnswer> {
    signal.throwIfAborted();
    if (this.#ask === null) return refusal("no turn of this agent is under way, so it can call nothing.");
    if (!this.tools.some(({ name }) => name === made.name)) {
      const names = this.tools.map(({ name }) => name).join(", ");
      return refusal(`there is no tool ${made.name}; there are: ${names}.`);
    }
    const known = [...this.#calls.values()].find((call) => call.isSame(made));
    return (known ?? this.#begin(made, this.#ask)).wait(signal, this.#options);
  }

  #begin(made: BridgeCall, ask: (request: ToolRequest) => void): HeldCall {
    const id = `mcp_${(this.#asked += 1)}`;
    const call = new HeldCall(made);
    this.#calls.set(id, call);
    ask({
      kind: "tool",
      ref: { driver: this.#options.driver, nativeId: id, strength: "strong" },
      callId: id,
      name: made.name,
      input: made.input,
    });
    return call;
  }
}

const OVER: ToolAnswer = { output: "cancelled: the turn is over", isError: true };

/** One call of a turn, and those of its program who wait for its answer. */
class HeldCall {
  readonly #made: BridgeCall;
  readonly #answered = Promise.withResolvers<ToolAnswer>();
  /** False when the turn has ended before anybody has taken it. */
  readonly #taken = Promise.withResolvers<boolean>();
  /** Somebody was told to ask again. */
  #putOff = false;
  #over = false;

  constructor(made: BridgeCall) {
    this.#made = made;
  }

  isSame({ name, input, key }: BridgeCall): boolean {
    const made = this.#made;
    return made.name === name && made.input === input && (this.#putOff || (key !== null && made.key === key));
  }

  /** True when it was taken. */
  answer(answer: ToolAnswer): Promise<boolean> {
    if (this.#over) return Promise.resolve(false);
    this.#over = true;
    this.#answered.resolve(answer);
    return this.#taken.promise;
  }

  end(): void {
    this.#over = true;
    this.#answered.resolve(OVER);
    this.#taken.resolve(false);
  }

  async wait(signal: AbortSignal, { clock, holdMs }: SeatOptions): Promise<ToolAnswer> {
    this.#putOff = false;
    const later = Promise.withResolvers<null>();
    const timer = clock.setTimer(holdMs, () => later.resolve(null));
    const gone = (): void => later.reject(signal.reason as Error);
    signal.addEventListener("abort", gone, { once: true });
    try {
      const answer = await Promise.race([this.#answered.promise, later.promise]);
      this.#putOff = answer === null;
      if (answer === null) return notYet(this.#made.name);
      this.#taken.resolve(true);
      return answer;
    } finally {
      timer.cancel();
      signal.removeEventListener("abort", gone);
    }
  }
}

function notYet(name: string): ToolAnswer {
  const message = `It is not finished, and goes on. Call ${name} again with the same arguments to get its result; nothing is done twice.`;
  return { output: { still_running: true, message }, isError: false };
}

function refusal(why: string): ToolAnswer {
  return { output: { error: why }, isError: true };
}
