/**
 * One process of Claude Code, which serves one conversation: what is said to it, and what it tells until it ends. With it ends
 * what it was started for; another is started for the next turn.
 */
import type { Clock } from "../../platform/clock.ts";
import type { StartProcess } from "../../platform/process.ts";
import { CoppiceError, describeError, RejectedError, TransientError } from "../../protocol/errors.ts";
import { Feed } from "../feed.ts";
import type { ProviderError } from "../json-rpc.ts";
import { ClaudeProcess } from "./process.ts";
import type { ClaudeQuery, ClaudeSdk } from "./sdk.ts";
import { type ClaudeMessage, messageOf } from "./wire.ts";

export interface ClaudeProgramOptions {
  readonly sdk: ClaudeSdk;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The program, where it is not the one that came with the SDK. */
  readonly executable: string | null;
  readonly startProcess: StartProcess;
  readonly clock: Clock;
  /** Milliseconds until it has to be ready, and to end in. */
  readonly deadlineMs: number;
  readonly graceMs: number;
}

export interface ClaudeListener {
  heard(message: ClaudeMessage): void;
  /** It was ready, it is gone, and was not ended. */
  lost(error: ProviderError): void;
}

interface Said {
  readonly id: string;
  readonly content: string | readonly { readonly type: "text"; readonly text: string }[];
  /** False for what is kept and not answered. */
  readonly asks?: boolean;
}

export class ClaudeProgram {
  readonly #input = new Feed<object>();
  readonly #query: ClaudeQuery;
  readonly #listener: ClaudeListener;
  readonly #clock: Clock;
  readonly #deadlineMs: number;
  #process: ClaudeProcess | null = null;
  #fault: ProviderError | null = null;
  #isReady = false;
  #ending = false;
  /** Resolves with why it is gone; null when it was ended. Never rejects. */
  readonly over: Promise<ProviderError | null>;

  /** @throws RejectedError `PROVIDER_UNAVAILABLE` when the SDK has no program to start. */
  constructor(
    options: ClaudeProgramOptions,
    settings: Readonly<Record<string, unknown>>,
    listener: ClaudeListener,
  ) {
    const { sdk, env, executable, startProcess: start, clock, deadlineMs, graceMs } = options;
    this.#listener = listener;
    this.#clock = clock;
    this.#deadlineMs = deadlineMs;
    try {
      this.#query = sdk.query({
        prompt: this.#input as AsyncIterable<never>,
        options: {
          ...settings,
          env,
          ...(executable === null ? {} : { pathToClaudeCodeExecutable: executable }),
          spawnClaudeCodeProcess: (spec: Spawned) => {
            const { command, args, cwd } = spec;
            const given = { command, args, ...(cwd === undefined ? {} : { cwd }), env: spec.env };
            this.#process = new ClaudeProcess(given, { clock, start, graceMs });
            return this.#process;
          },
        },
      });
    } catch (error) {
      throw unavailable(error);
    }
    this.over = this.#follow();
  }

  /** Until then its end is told to whoever waits here. @throws why it does not run; what `inTime` throws. */
  async ready(signal?: AbortSignal): Promise<void> {
    // Why it does not run is told by its end.
    await this.inTime(
      this.#query.initializationResult().catch(() => this.over),
      signal,
    );
    if (this.#fault !== null) throw this.#fault;
    this.#isReady = true;
  }

  /** What it is waited for with, for as long as it lives. @throws what ended it, `PROVIDER_STALLED`, or the signal's reason. */
  async inTime<T>(answer: Promise<T>, signal?: AbortSignal): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = this.#clock.setTimer(this.#deadlineMs, () =>
      reject(new TransientError("PROVIDER_STALLED", "Claude has not answered in time.", {})),
    );
    const aborted = (): void => reject(signal?.reason);
    signal?.addEventListener("abort", aborted);
    const gone = this.over.then((fault) => Promise.reject(fault ?? ended()));
    try {
      signal?.throwIfAborted();
      return await Promise.race([gone, answer, late]);
    } finally {
      timer.cancel();
      signal?.removeEventListener("abort", aborted);
      for (const unheard of [gone, late, answer]) unheard.catch(() => undefined);
    }
  }

  say({ id, content, asks = true }: Said): void {
    this.#input.push({
      type: "user",
      uuid: id,
      message: { role: "user", content },
      parent_tool_use_id: null,
      ...(asks ? {} : { shouldQuery: false, isSynthetic: true }),
    });
  }

  /** Stops the turn under way; what was put into it and not read yet goes with it. */
  async interrupt(): Promise<void> {
    await this.#query.interrupt({ cancelQueued: true });
  }

  /** Resolves when it and its group have ended. */
  async end(): Promise<void> {
    this.#ending = true;
    this.#input.end();
    await this.#process?.end();
    this.#query.close();
    await this.over;
  }

  async #follow(): Promise<ProviderError | null> {
    let fault: ProviderError | null = null;
    try {
      for await (const given of this.#query) {
        const message = messageOf(given);
        if (message !== null && !this.#ending) this.#listener.heard(message);
      }
    } catch (error) {
      // An end after a turn that has failed or was stopped throws what the turn has told.
      fault = faultOf(error);
    }
    const process = this.#process;
    // It is of no use without anybody who listens.
    if (fault !== null) process?.kill();
    await process?.ended;
    if (this.#ending) return null;
    this.#fault = process?.fault ?? fault ?? ended();
    if (this.#isReady) this.#listener.lost(this.#fault);
    return this.#fault;
  }
}

interface Spawned {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

function faultOf(error: unknown): ProviderError {
  if (error instanceof RejectedError || error instanceof TransientError) return error;
  const name = (error as Error | null)?.name;
  if (name === "ZodError")
    return new RejectedError(
      "PROVIDER_PROTOCOL",
      `Claude said something in another form than this version of the adapter knows: ${describeError(error)}`,
      {},
      error,
    );
  if (name === "ReferenceError") return unavailable(error);
  return new TransientError("PROVIDER_UNREACHABLE", `Claude: ${describeError(error)}`, {}, { cause: error });
}

function unavailable(error: unknown): ProviderError {
  if (CoppiceError.is(error)) return error as ProviderError;
  return new RejectedError(
    "PROVIDER_UNAVAILABLE",
    `Claude cannot be started: ${describeError(error)} Run: npm install @anthropic-ai/claude-agent-sdk, with its optional packages.`,
    {},
    error,
  );
}

function ended(): TransientError {
  return new TransientError("PROVIDER_UNREACHABLE", "Claude has ended.", {});
}
