/**
 * A peer that speaks JSON-RPC, one message a line, as coding agents do: requests both ways, and notifications.
 *
 * - J1 A line that is no message ends the peer and its program. An answer that nobody waits for is no fault: it may be late.
 * - J2 Every request ends: with its answer, its deadline, its signal, or the program's end.
 * - J3 What it is told is handed on in the order of the lines. Whoever awaits an answer has gone on before the next line is
 *   read, so that what an answer names is known when it is spoken of.
 */
import { clip } from "../platform/check.ts";
import type { Clock } from "../platform/clock.ts";
import type { LineProcess } from "../platform/line-process.ts";
import { CoppiceError, describeError, RejectedError, TransientError } from "../protocol/errors.ts";
import type { Json, JsonObject } from "../protocol/json.ts";
import { JsonRpcFault, JsonRpcRefusal, type Message, parseMessage } from "./json-rpc-message.ts";

/** The kinds of error that may leave an adapter (port.ts P2). */
export type ProviderError = RejectedError | TransientError;

export interface JsonRpcOptions {
  readonly program: Pick<LineProcess, "lines" | "write" | "end">;
  readonly clock: Clock;
  /** Names the other side in errors. */
  readonly name: string;
  /** Whether messages bear `"jsonrpc": "2.0"`, which some want and others do not know. */
  readonly versioned: boolean;
  /** A message that it cannot make sense of it throws, which ends the peer. */
  readonly onNotification: (method: string, params: Json) => void;
  /** Its value is the answer. @throws JsonRpcFault for the error that is to be the answer. */
  readonly onRequest: (method: string, params: Json) => Promise<Json>;
}

export interface RequestOptions {
  /** Milliseconds until it is given up; null to wait as long as the program lives. */
  readonly deadlineMs: number | null;
  /** Gives it up; the other side is told nothing. */
  readonly signal?: AbortSignal;
}

interface Pending {
  readonly method: string;
  readonly resolve: (result: Json) => void;
  readonly reject: (reason: unknown) => void;
}

export class JsonRpcPeer {
  /** Resolves when it is over: null when that was wanted, else what ended it. Never rejects. */
  readonly over: Promise<ProviderError | null>;
  readonly #options: JsonRpcOptions;
  readonly #pending = new Map<number, Pending>();
  readonly #resolveOver: (fault: ProviderError | null) => void;
  #lastId = 0;
  #fault: ProviderError | null = null;

  constructor(options: JsonRpcOptions) {
    this.#options = options;
    const { promise, resolve } = Promise.withResolvers<ProviderError | null>();
    this.over = promise;
    this.#resolveOver = resolve;
    void this.#listen();
  }

  /**
   * Asks, and resolves with the answer.
   * @throws JsonRpcRefusal when the answer is an error; TransientError `PROVIDER_STALLED` at the deadline; the signal's
   * reason; what ended the program.
   */
  request(method: string, params: JsonObject, { deadlineMs, signal }: RequestOptions): Promise<Json> {
    if (this.#fault !== null) return Promise.reject(this.#fault);
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    const { clock, name } = this.#options;
    const id = (this.#lastId += 1);
    return new Promise((resolve, reject) => {
      const timer =
        deadlineMs === null ? null : clock.setTimer(deadlineMs, () => settle(() => reject(stalled())));
      const stalled = (): ProviderError =>
        new TransientError("PROVIDER_STALLED", `${name} did not answer ${method} in ${deadlineMs} ms.`, {
          method,
          deadlineMs,
        });
      const onAbort = (): void => settle(() => reject(signal!.reason as Error));
      const settle = (how: () => void): void => {
        this.#pending.delete(id);
        timer?.cancel();
        signal?.removeEventListener("abort", onAbort);
        how();
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#pending.set(id, {
        method,
        resolve: (result) => settle(() => resolve(result)),
        reject: (reason) => settle(() => reject(reason)),
      });
      this.#say({ id, method, params });
    });
  }

  /** Resolves when there is room for more. @throws what ended the program. */
  async notify(method: string, params?: JsonObject): Promise<void> {
    if (this.#fault !== null) throw this.#fault;
    await this.#send(params === undefined ? { method } : { method, params });
  }

  /** Ends the program, which has so long to end by itself. What is still asked for rejects. */
  async end(options: { readonly graceMs: number }): Promise<void> {
    const { name, program } = this.#options;
    this.#finish(new TransientError("PROVIDER_UNREACHABLE", `${name} was ended.`), null);
    await program.end(options);
  }

  async #listen(): Promise<void> {
    const { program, name, clock } = this.#options;
    try {
      for await (const line of program.lines) {
        if (this.#fault !== null) continue;
        if (line.trim() === "") continue;
        const message = parseMessage(name, line);
        this.#hear(message);
        if (message.kind === "result" || message.kind === "error")
          await new Promise<void>((resolve) => clock.defer(resolve));
      }
      this.#finish(new TransientError("PROVIDER_UNREACHABLE", `${name} has ended.`), null);
    } catch (error) {
      const fault = this.#asProviderError(error);
      this.#finish(fault, fault);
      await program.end({ graceMs: 0 });
    }
  }

  #hear(message: Message): void {
    switch (message.kind) {
      case "notification":
        this.#options.onNotification(message.method, message.params);
        return;
      case "request":
        void this.#answer(message);
        return;
      case "result":
        this.#waiting(message.id)?.resolve(message.result);
        return;
      case "error": {
        const waiting = this.#waiting(message.id);
        waiting?.reject(new JsonRpcRefusal(this.#options.name, waiting.method, message));
      }
    }
  }

  #waiting(id: string | number | null): Pending | undefined {
    return typeof id === "number" ? this.#pending.get(id) : undefined;
  }

  async #answer({ id, method, params }: Extract<Message, { kind: "request" }>): Promise<void> {
    try {
      this.#say({ id, result: await this.#options.onRequest(method, params) });
    } catch (error) {
      this.#say({ id, error: faultOf(error) });
    }
  }

  /** For those who learn of a program that has gone in another way. */
  #say(message: JsonObject): void {
    if (this.#fault === null) this.#send(message).catch(() => undefined);
  }

  #send(message: JsonObject): Promise<void> {
    const { program, versioned } = this.#options;
    return program.write(JSON.stringify(versioned ? { jsonrpc: "2.0", ...message } : message));
  }

  /** Only the first end counts. */
  #finish(fault: ProviderError, told: ProviderError | null): void {
    if (this.#fault !== null) return;
    this.#fault = fault;
    for (const { reject } of this.#pending.values()) reject(fault);
    this.#resolveOver(told);
  }

  #asProviderError(error: unknown): ProviderError {
    if (CoppiceError.is(error) && (error instanceof RejectedError || error instanceof TransientError))
      return error;
    return new RejectedError(
      "PROVIDER_PROTOCOL",
      `${this.#options.name} said what could not be understood: ${clip(describeError(error))}`,
      {},
      error,
    );
  }
}

function faultOf(error: unknown): JsonObject {
  const { code, message } =
    error instanceof JsonRpcFault ? error : { code: -32603, message: describeError(error) };
  return { code, message };
}
