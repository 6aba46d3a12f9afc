/**
 * One `codex app-server` that serves all threads of a tree: started with the first session, ended with the last (RUN-5, REC-4).
 *
 * - S1 What it says of a thread goes to the session that has it. What it asks for a thread that nobody has is refused.
 * - S2 With the server all its sessions are over; the next session starts another.
 */
import { type Clock, within } from "../../platform/clock.ts";
import { startLineProcess } from "../../platform/line-process.ts";
import type { StartProcess } from "../../platform/process.ts";
import { RejectedError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { JsonRpcFault } from "../json-rpc-message.ts";
import { JsonRpcPeer, type ProviderError } from "../json-rpc.ts";
import {
  ANSWERS,
  type CodexMethod,
  type CodexNotification,
  type CodexRequest,
  notificationOf,
  requestOf,
} from "./wire.ts";
import type { z } from "zod";

export interface CodexServerOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Milliseconds that an answer may take, beside those for which there is no limit. */
  readonly deadlineMs: number;
  readonly graceMs: number;
}

/** Who has a thread: hears what happens in it, and answers what it asks. */
export interface CodexListener {
  heard(event: CodexNotification): void;
  asked(request: CodexRequest): Promise<Json>;
  /** The server is gone. */
  lost(error: ProviderError): void;
}

export class CodexServer {
  readonly #peer: JsonRpcPeer;
  readonly #options: CodexServerOptions;
  readonly #listeners = new Map<string, CodexListener>();
  /** Set when it is gone. */
  fault: ProviderError | null = null;

  private constructor(peer: JsonRpcPeer, options: CodexServerOptions) {
    this.#peer = peer;
    this.#options = options;
  }

  /** @throws what starting it fails with, and `PROVIDER_PROTOCOL` for one that speaks another language. */
  static async start(options: CodexServerOptions, start: StartProcess): Promise<CodexServer> {
    const { command, args, env, clock } = options;
    const program = await startLineProcess({ command, args: [...args, "app-server"], env }, { clock, start });
    const { promise, resolve } = Promise.withResolvers<CodexServer>();
    const peer = new JsonRpcPeer({
      program,
      clock,
      name: "Codex",
      versioned: false,
      onNotification: (method, params) => void promise.then((server) => server.#heard(method, params)),
      onRequest: (method, params) => promise.then((server) => server.#asked(method, params)),
    });
    const server = new CodexServer(peer, options);
    resolve(server);
    void peer.over.then((fault) => server.#over(fault));
    try {
      await server.ask("initialize", {
        clientInfo: { name: "coppice", title: "Coppice", version: "1" },
        capabilities: { experimentalApi: true, requestAttestation: false },
      });
      await peer.notify("initialized");
      return server;
    } catch (error) {
      await server.end();
      throw error;
    }
  }

  /** `limit: "none"` for what takes as long as it takes, such as a fork. @throws JsonRpcRefusal, or what ended the server. */
  async ask<M extends CodexMethod>(
    method: M,
    params: JsonObject,
    { signal, limit }: { readonly signal?: AbortSignal; readonly limit?: "none" } = {},
  ): Promise<z.output<(typeof ANSWERS)[M]>> {
    const deadlineMs = limit === "none" ? null : this.#options.deadlineMs;
    const answer = await this.#peer.request(method, params, {
      deadlineMs,
      ...(signal === undefined ? {} : { signal }),
    });
    const parsed = ANSWERS[method].safeParse(answer);
    if (parsed.success) return parsed.data as z.output<(typeof ANSWERS)[M]>;
    throw new RejectedError(
      "PROVIDER_PROTOCOL",
      `Codex answered ${method} in another form than this version of the adapter knows: ${parsed.error.issues[0]?.path.join(".") ?? ""}`,
      { method, reason: "version_unsupported" },
    );
  }

  /** Waits for that no longer than the grace time, however it ends. */
  inTime(what: Promise<unknown>): Promise<void> {
    return within(this.#options.clock, this.#options.graceMs, what);
  }

  listen(threadId: string, listener: CodexListener): void {
    this.#listeners.set(threadId, listener);
  }

  /** Sessions of other threads are not concerned. */
  leave(threadId: string, listener: CodexListener): void {
    if (this.#listeners.get(threadId) === listener) this.#listeners.delete(threadId);
  }

  end(): Promise<void> {
    return this.#peer.end({ graceMs: this.#options.graceMs });
  }

  #heard(method: string, params: Json): void {
    const event = notificationOf(method, params);
    if (event !== null) this.#listeners.get(event.threadId)?.heard(event);
  }

  async #asked(method: string, params: Json): Promise<Json> {
    const request = requestOf(method, params);
    const listener = request === null ? undefined : this.#listeners.get(request.threadId);
    if (request === null || listener === undefined) throw JsonRpcFault.unknownMethod(method);
    return listener.asked(request);
  }

  #over(fault: ProviderError | null): void {
    if (fault === null) return;
    this.fault = fault;
    for (const listener of this.#listeners.values()) listener.lost(fault);
    this.#listeners.clear();
  }
}
