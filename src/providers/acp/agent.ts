/**
 * A program that speaks ACP, as its client sees it: started for one agent, asked, and ended with it (RUN-5, REC-4).
 *
 * - A1 Nothing of this machine is offered to it: no files, no terminals.
 * - A2 What it cannot do at its start is told with the command by which one sees why.
 */
import type { Clock } from "../../platform/clock.ts";
import { startLineProcess } from "../../platform/line-process.ts";
import type { StartProcess } from "../../platform/process.ts";
import { CoppiceError, RejectedError, TransientError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { JsonRpcFault, JsonRpcRefusal } from "../json-rpc-message.ts";
import { JsonRpcPeer, type ProviderError } from "../json-rpc.ts";
import { type AcpAbilities, abilitiesOf } from "./capabilities.ts";
import { refusalOf } from "./translate.ts";
import {
  ACP_VERSION,
  type AcpInitialized,
  type AcpMethod,
  type AcpPermission,
  type AcpUpdate,
  ANSWERS,
  PERMISSION,
  updateOf,
} from "./wire.ts";
import type { z } from "zod";

export interface AcpAgentOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly clock: Clock;
  /** Milliseconds that an answer may take, beside those for which there is no limit. */
  readonly deadlineMs: number;
  readonly graceMs: number;
}

/** Whose program it is. */
export interface AcpListener {
  heard(sessionId: string, update: AcpUpdate): void;
  asked(permission: AcpPermission): Promise<Json>;
  /** It is gone. */
  lost(error: ProviderError): void;
}

export class AcpAgent {
  readonly #options: AcpAgentOptions;
  readonly #peer: JsonRpcPeer;
  #abilities: AcpAbilities = { resumes: null, http: false };

  private constructor(peer: JsonRpcPeer, options: AcpAgentOptions) {
    this.#peer = peer;
    this.#options = options;
  }

  get abilities(): AcpAbilities {
    return this.#abilities;
  }

  /** What it is called in errors. */
  get name(): string {
    return this.#options.command;
  }

  /** @throws what starting it fails with, and `PROVIDER_PROTOCOL` for one that speaks another version. */
  static async start(
    options: AcpAgentOptions,
    start: StartProcess,
    listener: AcpListener,
  ): Promise<AcpAgent> {
    try {
      return await AcpAgent.#start(options, start, listener);
    } catch (error) {
      throw withTheCommand(error, options);
    }
  }

  static async #start(
    options: AcpAgentOptions,
    start: StartProcess,
    listener: AcpListener,
  ): Promise<AcpAgent> {
    const { command, args, env, cwd, clock } = options;
    const program = await startLineProcess({ command, args, env, cwd }, { clock, start });
    const peer = new JsonRpcPeer({
      program,
      clock,
      name: command,
      versioned: true,
      onNotification(method, params) {
        const told = updateOf(method, params);
        if (told !== null) listener.heard(told.sessionId, told.update);
      },
      onRequest(method, params) {
        if (method !== "session/request_permission")
          return Promise.reject(JsonRpcFault.unknownMethod(method));
        return listener.asked(PERMISSION.parse(params));
      },
    });
    const agent = new AcpAgent(peer, options);
    try {
      agent.#met(
        await agent.ask("initialize", {
          protocolVersion: ACP_VERSION,
          clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
          clientInfo: { name: "coppice", title: "Coppice", version: "1" },
        }),
      );
    } catch (error) {
      await agent.end();
      throw error;
    }
    void peer.over.then((fault) => fault === null || listener.lost(fault));
    return agent;
  }

  /** `limit: "none"` for a turn. @throws what it refuses with, or what ended it. */
  async ask<M extends AcpMethod>(
    method: M,
    params: JsonObject,
    { limit }: { readonly limit?: "none" } = {},
  ): Promise<z.output<(typeof ANSWERS)[M]>> {
    const { deadlineMs } = this.#options;
    let answer: Json;
    try {
      answer = await this.#peer.request(method, params, { deadlineMs: limit === "none" ? null : deadlineMs });
    } catch (error) {
      throw error instanceof JsonRpcRefusal ? refusalOf(this.name, error) : error;
    }
    const parsed = ANSWERS[method].safeParse(answer);
    if (parsed.success) return parsed.data as z.output<(typeof ANSWERS)[M]>;
    throw new RejectedError(
      "PROVIDER_PROTOCOL",
      `${this.name} answered ${method} in another form than ACP ${ACP_VERSION} has: ${parsed.error.issues[0]?.path.join(".") ?? ""}`,
      { method, reason: OTHER_VERSION },
    );
  }

  async notify(method: "session/cancel", params: JsonObject): Promise<void> {
    await this.#peer.notify(method, params);
  }

  end(): Promise<void> {
    return this.#peer.end({ graceMs: this.#options.graceMs });
  }

  #met(initialized: AcpInitialized): void {
    const { protocolVersion, agentInfo } = initialized;
    if (protocolVersion !== ACP_VERSION)
      throw new RejectedError(
        "PROVIDER_PROTOCOL",
        `${agentInfo?.name ?? this.name} speaks version ${protocolVersion} of ACP, and version ${ACP_VERSION} is spoken here; install one that does.`,
        { protocolVersion, reason: OTHER_VERSION },
      );
    this.#abilities = abilitiesOf(initialized);
  }
}

/** Why an agent cannot be loaded (RES-8). */
const OTHER_VERSION = "version_unsupported";

function withTheCommand(error: unknown, { command, args }: AcpAgentOptions): unknown {
  if (!CoppiceError.is(error)) return error;
  const text = `${error.message} To see what it says, run: ${[command, ...args].join(" ")}`;
  const details = { ...error.details, run: [command, ...args] };
  if (error instanceof RejectedError) return new RejectedError(error.code, text, details, error);
  if (error instanceof TransientError)
    return new TransientError(error.code, text, details, {
      cause: error,
      retryAfterMs: error.retryAfterMs,
    });
  return error;
}
