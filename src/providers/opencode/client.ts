/**
 * The HTTP interface of a server of OpenCode: requests, each with an end, and its events.
 *
 * - H1 An answer in another form than is known is `PROVIDER_PROTOCOL`, and so is an event.
 * - H2 Nobody who is on this machine by chance may use a server of ours: it is started with a password that only we know.
 * - H3 Each request has a connection of its own: the next server of ours listens where the last one did (on 4096, if that is free),
 *   and a connection that was kept for that one would be reset.
 */
import type { z } from "zod";
import type { Clock } from "../../platform/clock.ts";
import { linesOf } from "../../platform/lines.ts";
import { redact } from "../../platform/redact.ts";
import { CoppiceError, describeError, RejectedError, TransientError } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type { ProviderError } from "../json-rpc.ts";
import { ANSWERS, type OpenCodeAnswer } from "./wire.ts";

export interface OpenCodeAccess {
  /** Its origin. */
  readonly url: string;
  /** Null where it wants none. */
  readonly password: string | null;
  readonly clock: Clock;
  /**
   * Milliseconds that an answer may take, beside those that have a limit of their own. Node's `fetch` waits five minutes for the
   * beginning of one, whatever is said here.
   */
  readonly deadlineMs: number;
}

export interface OpenCodeCall {
  readonly method?: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  /** The folder whose settings, servers of tools and state are meant. */
  readonly directory?: string;
  readonly body?: JsonObject;
  /** Gives it up; the server is told by the end of the connection. */
  readonly signal?: AbortSignal;
  /** Null for what has no deadline of ours, such as a fork: it ends after five minutes with that of Node's `fetch`. */
  readonly limitMs?: number | null;
}

export const USER = "opencode";
/** As the longest line of a program. */
const MAXIMUM_LINE_BYTES = 32 * 1024 * 1024;
const SHOWN_CHARACTERS = 300;

export class OpenCodeClient {
  readonly #access: OpenCodeAccess;
  /** Of the server; null until it has said it. */
  version: string | null = null;

  constructor(access: OpenCodeAccess) {
    this.#access = access;
  }

  get url(): string {
    return this.#access.url;
  }

  /**
   * @throws RejectedError `PROVIDER_REFUSED` with its `status`, `PROVIDER_UNAVAILABLE` when it wants a password, and
   * `PROVIDER_PROTOCOL`.
   * @throws TransientError `PROVIDER_WRITER_BUSY` when a turn is in the way, `PROVIDER_STALLED`, and `PROVIDER_UNREACHABLE`.
   */
  async ask<A extends OpenCodeAnswer>(answer: A, call: OpenCodeCall): Promise<z.output<(typeof ANSWERS)[A]>> {
    const said = await this.#send(call);
    const parsed = ANSWERS[answer].safeParse(said);
    if (parsed.success) return parsed.data as z.output<(typeof ANSWERS)[A]>;
    throw this.otherForm(call.path, parsed.error.issues[0]?.path.join("."));
  }

  /** For what it says in another form than is known. */
  otherForm(what: string, where = ""): RejectedError {
    const { version } = this;
    return new RejectedError(
      "PROVIDER_PROTOCOL",
      `OpenCode ${version ?? "of an unknown version"} said ${what} in another form than this version of the adapter knows: ${where.slice(0, SHOWN_CHARACTERS)}`,
      { what, version, reason: "version_unsupported" },
    );
  }

  /** Data of its events, which it has to begin in time; ends with the server, or with `signal`. */
  events(signal: AbortSignal): Promise<AsyncIterable<string>> {
    const path = "/global/event";
    return this.#inTime({ path, signal }, async (either) => {
      const response = await this.#fetch(path, { headers: this.#headers(), signal: either });
      if (!response.ok || response.body === null) throw refusal(path, response.status, "");
      return dataOf(linesOf(response.body, MAXIMUM_LINE_BYTES));
    });
  }

  #send(call: OpenCodeCall): Promise<unknown> {
    const { method = "GET", path, directory, body } = call;
    return this.#inTime(call, async (signal) => {
      const query = directory === undefined ? "" : `?${new URLSearchParams({ directory }).toString()}`;
      const response = await this.#fetch(`${path}${query}`, {
        method,
        headers: this.#headers(),
        signal,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (!response.ok) throw refusal(path, response.status, text);
      return text === "" ? null : this.#parse(path, text);
    });
  }

  async #inTime<T>(
    { path, signal, limitMs = this.#access.deadlineMs }: OpenCodeCall,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const late = new AbortController();
    const reason = new TransientError("PROVIDER_STALLED", `OpenCode did not answer ${path} in time.`, {
      path,
      limitMs,
    });
    const timer = limitMs === null ? null : this.#access.clock.setTimer(limitMs, () => late.abort(reason));
    try {
      return await work(signal === undefined ? late.signal : AbortSignal.any([late.signal, signal]));
    } catch (error) {
      if (signal?.aborted === true || CoppiceError.is(error)) throw error;
      throw late.signal.aborted ? reason : unreachable(error);
    } finally {
      timer?.cancel();
    }
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    try {
      // Its password goes nowhere else.
      return await fetch(`${this.#access.url}${path}`, { ...init, redirect: "error" });
    } catch (error) {
      if (init.signal?.aborted === true) throw init.signal.reason;
      throw unreachable(error);
    }
  }

  #parse(path: string, text: string): unknown {
    try {
      return JSON.parse(text);
    } catch {
      throw this.otherForm(path);
    }
  }

  #headers(): Record<string, string> {
    const { password } = this.#access;
    const key = Buffer.from(`${USER}:${password ?? ""}`).toString("base64");
    return {
      connection: "close",
      "content-type": "application/json",
      ...(password === null ? {} : { authorization: `Basic ${key}` }),
    };
  }
}

async function* dataOf(lines: AsyncIterable<string>): AsyncGenerator<string, void, undefined> {
  for await (const line of lines) if (line.startsWith("data:")) yield line.slice("data:".length);
}

function unreachable(error: unknown): TransientError {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return new TransientError(
    "PROVIDER_UNREACHABLE",
    `OpenCode's server cannot be reached: ${describeError(cause)}`,
    {},
    { cause: error },
  );
}

function refusal(path: string, status: number, body: string): ProviderError {
  const said = redact(body).slice(0, SHOWN_CHARACTERS);
  const text = `OpenCode refused ${path} with ${status}: ${said}`;
  const details: JsonObject = { path, status };
  if (status === 401 || status === 403)
    return new RejectedError(
      "PROVIDER_UNAVAILABLE",
      "OpenCode's server wants a password; give the one of its OPENCODE_SERVER_PASSWORD.",
      details,
    );
  if (status === 409) return new TransientError("PROVIDER_WRITER_BUSY", text, details);
  if (status >= 500) return new TransientError("PROVIDER_UNREACHABLE", text, details);
  return new RejectedError("PROVIDER_REFUSED", text, details);
}
