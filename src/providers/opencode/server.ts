/**
 * A server of OpenCode, which serves all conversations of a tree: one of ours, started with the first session and ended with the
 * last (RUN-5, REC-4), or one that somebody else runs, which is left as it was.
 *
 * - S1 What it says of a conversation goes to the session that has it, and to no other.
 * - S2 Without its events nothing is known of it: when they end it is gone, and all its sessions with it; the next one starts
 *   another, or finds it again.
 */
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/ids.ts";
import { type LineProcess, startLineProcess } from "../../platform/line-process.ts";
import type { StartProcess } from "../../platform/process.ts";
import { CoppiceError, TransientError } from "../../protocol/errors.ts";
import type { ProviderError } from "../json-rpc.ts";
import { OpenCodeClient, USER } from "./client.ts";
import { eventOf, type OpenCodeEvent } from "./wire.ts";

export interface OpenCodeServerOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly random: Random;
  readonly deadlineMs: number;
}

export interface ExternalServer {
  /** Its origin. */
  readonly url: string;
  readonly password: string | null;
}

/** Who has a conversation and hears what happens in it. */
export interface OpenCodeListener {
  heard(event: OpenCodeEvent): void;
  /** The server is gone. */
  lost(error: ProviderError): void;
}

const LISTENING = /listening on (http:\/\/127\.0\.0\.1:\d+)/;
const PASSWORD_BYTES = 32;
/** For a server to let go of what it holds, before it is left or killed. */
export const GRACE_MS = 2_000;

export class OpenCodeServer {
  readonly client: OpenCodeClient;
  readonly #program: LineProcess | null;
  readonly #listeners = new Map<string, OpenCodeListener>();
  readonly #lifetime = new AbortController();
  #ended = false;
  /** Set when it is gone. */
  fault: ProviderError | null = null;

  private constructor(client: OpenCodeClient, program: LineProcess | null) {
    this.client = client;
    this.#program = program;
  }

  /** @throws what starting it fails with, and `PROVIDER_PROTOCOL` for one that speaks another language. */
  static async start(options: OpenCodeServerOptions, start: StartProcess): Promise<OpenCodeServer> {
    const { command, args, env, clock, random, deadlineMs } = options;
    const password = Buffer.from(random.bytes(PASSWORD_BYTES)).toString("base64url");
    const program = await startLineProcess(
      {
        command,
        args: [...args, "serve", "--hostname", "127.0.0.1", "--port", "0"],
        env: { ...env, OPENCODE_SERVER_USERNAME: USER, OPENCODE_SERVER_PASSWORD: password },
      },
      { clock, start },
    );
    try {
      const url = await addressOf(program, clock, deadlineMs);
      const client = new OpenCodeClient({ url, password, clock, deadlineMs });
      return await new OpenCodeServer(client, program).#meet();
    } catch (error) {
      await program.end({ graceMs: 0 });
      throw error;
    }
  }

  /** One that runs already. @throws what reaching it fails with. */
  static connect(
    { url, password }: ExternalServer,
    { clock, deadlineMs }: Pick<OpenCodeServerOptions, "clock" | "deadlineMs">,
  ): Promise<OpenCodeServer> {
    return new OpenCodeServer(new OpenCodeClient({ url, password, clock, deadlineMs }), null).#meet();
  }

  /** Its address where conversations are bound to it: one of ours has another each time. */
  get boundTo(): string | null {
    return this.#program === null ? this.client.url : null;
  }

  listen(sessionId: string, listener: OpenCodeListener): void {
    this.#listeners.set(sessionId, listener);
  }

  leave(sessionId: string, listener: OpenCodeListener): void {
    if (this.#listeners.get(sessionId) === listener) this.#listeners.delete(sessionId);
  }

  async end(): Promise<void> {
    this.#ended = true;
    if (this.#program !== null && this.fault === null)
      // It does not mind the end of its input, and is told to give back what it holds before it is killed.
      await this.client
        .ask("nothing", { method: "POST", path: "/global/dispose", limitMs: GRACE_MS })
        .catch(() => undefined);
    this.#lifetime.abort();
    await this.#program?.end({ graceMs: 0 });
  }

  async #meet(): Promise<this> {
    try {
      const events = await this.client.events(this.#lifetime.signal);
      const { version } = await this.client.ask("health", { path: "/global/health" });
      this.client.version = version;
      void this.#follow(events);
      return this;
    } catch (error) {
      // Its events would go on to come.
      this.#lifetime.abort();
      throw error;
    }
  }

  async #follow(events: AsyncIterable<string>): Promise<void> {
    let why: unknown = null;
    try {
      for await (const line of events) this.#heard(line);
    } catch (error) {
      why = error;
    }
    if (this.#ended) return;
    const isProtocol = CoppiceError.is(why) && why.code === "PROVIDER_PROTOCOL";
    this.fault = isProtocol ? (why as ProviderError) : await this.#goneBecause();
    for (const listener of this.#listeners.values()) listener.lost(this.fault);
    this.#listeners.clear();
    this.#lifetime.abort();
    await this.#program?.end({ graceMs: 0 });
  }

  #heard(line: string): void {
    try {
      const event = eventOf(line);
      if (event !== null) this.#listeners.get(event.sessionId)?.heard(event.read());
    } catch (error) {
      if (CoppiceError.is(error)) throw error;
      throw this.client.otherForm("an event", String(error));
    }
  }

  async #goneBecause(): Promise<ProviderError> {
    const program = this.#program;
    if (program === null)
      return new TransientError("PROVIDER_UNREACHABLE", "OpenCode's server has closed its events.", {});
    const { code, signal } = await program.end({ graceMs: 0 });
    const stderr = program.stderrTail().trim();
    return new TransientError(
      "PROVIDER_UNREACHABLE",
      `OpenCode's server has ended (${signal ?? code}): ${stderr}`,
      { code, signal, stderr },
    );
  }
}

/** What it says after that is of no interest, and is read so that it can say it. Its lines end with why it has ended. */
async function addressOf(program: LineProcess, clock: Clock, deadlineMs: number): Promise<string> {
  const found = Promise.withResolvers<string>();
  const timer = clock.setTimer(deadlineMs, () =>
    found.reject(
      new TransientError("PROVIDER_STALLED", "OpenCode's server did not say in time where it listens.", {
        deadlineMs,
      }),
    ),
  );
  const read = async (): Promise<void> => {
    for await (const line of program.lines) {
      const [, url] = LISTENING.exec(line) ?? [];
      if (url !== undefined) found.resolve(url);
    }
  };
  read().catch((error: unknown) => found.reject(error));
  try {
    return await found.promise;
  } finally {
    timer.cancel();
  }
}
