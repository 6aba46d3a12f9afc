/** What is asked of a server of OpenCode for one folder: its conversations, and the servers of tools that are listed there. */
import { TransientError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { NativeRef } from "../../protocol/provider-thread.ts";
import type { OpenCodeCall, OpenCodeClient } from "./client.ts";
import { type OpenCodeTurnSaid, turnsOf } from "./history.ts";
import type { OpenCodeRule } from "./policy.ts";
import type { OpenCodeRecord } from "./wire.ts";

/** A server of tools: where it is, and what shows whose it is. */
interface ToolServer {
  readonly name: string;
  readonly url: string;
  readonly token: string;
  /** Milliseconds that a call may last. */
  readonly timeoutMs: number;
}

/** Each throws what the client does. */
export class OpenCodeDirectoryClient {
  readonly #client: OpenCodeClient;
  readonly #directory: string;

  constructor(client: OpenCodeClient, directory: string) {
    this.#client = client;
    this.#directory = directory;
  }

  /** That its settings name there; null when they name none. */
  async defaultModel(): Promise<string | null> {
    const { model } = await this.#client.ask("settings", this.#at("/config"));
    return model ?? null;
  }

  create(title: string, rules: readonly OpenCodeRule[]): Promise<OpenCodeRecord> {
    const body = { title, permission: json(rules) };
    return this.#client.ask("session", { ...this.#at("/session", "POST"), body });
  }

  find(thread: NativeRef): Promise<OpenCodeRecord> {
    return this.#client.ask("session", this.#at(pathOf(thread)));
  }

  /** Behind those that the conversation has: the last that fits holds. */
  async addRules(thread: NativeRef, rules: readonly OpenCodeRule[]): Promise<void> {
    const body = { permission: json(rules) };
    await this.#client.ask("session", { ...this.#at(pathOf(thread), "PATCH"), body });
  }

  /** `before`: the first message that it leaves out. */
  fork(source: NativeRef, before: string | null, signal?: AbortSignal): Promise<OpenCodeRecord> {
    return this.#client.ask("session", {
      ...this.#at(`${pathOf(source)}/fork`, "POST"),
      body: before === null ? {} : { messageID: before },
      limitMs: null,
      ...(signal === undefined ? {} : { signal }),
    });
  }

  async turnsOf(thread: NativeRef): Promise<readonly OpenCodeTurnSaid[]> {
    return turnsOf(await this.#client.ask("messages", this.#at(`${pathOf(thread)}/message`)));
  }

  removeMessage(thread: NativeRef, id: string): Promise<unknown> {
    return this.#client.ask("nothing", this.#at(`${pathOf(thread)}/message/${id}`, "DELETE"));
  }

  async isBusy({ nativeId }: NativeRef): Promise<boolean> {
    const statuses = await this.#client.ask("statuses", this.#at("/session/status"));
    return (statuses[nativeId]?.type ?? "idle") !== "idle";
  }

  prompt(thread: NativeRef, body: JsonObject): Promise<unknown> {
    return this.post(`${pathOf(thread)}/prompt_async`, body);
  }

  abort(thread: NativeRef, limitMs?: number): Promise<unknown> {
    return this.post(`${pathOf(thread)}/abort`, {}, limitMs);
  }

  post(path: string, body: JsonObject, limitMs?: number): Promise<unknown> {
    const limit = limitMs === undefined ? {} : { limitMs };
    return this.#client.ask("nothing", { ...this.#at(path, "POST"), body, ...limit });
  }

  /** Lists a server of tools. @throws TransientError `PROVIDER_UNREACHABLE` when OpenCode does not get to it. */
  async offer({ name, url, token, timeoutMs }: ToolServer): Promise<void> {
    const headers = { Authorization: `Bearer ${token}` };
    const servers = await this.#client.ask("servers", {
      ...this.#at("/mcp", "POST"),
      body: { name, config: { type: "remote", url, headers, oauth: false, timeout: timeoutMs } },
    });
    const { status, error } = servers[name] ?? { status: "missing" };
    if (status === "connected") return;
    throw new TransientError(
      "PROVIDER_UNREACHABLE",
      `OpenCode did not get to the tools of the tree (${status}): ${error ?? ""}`,
      { status },
    );
  }

  withdraw(name: string, limitMs: number): Promise<unknown> {
    return this.post(`/mcp/${name}/disconnect`, {}, limitMs);
  }

  #at(path: string, method: OpenCodeCall["method"] = "GET"): OpenCodeCall {
    return { path, method, directory: this.#directory };
  }
}

function pathOf({ nativeId }: NativeRef): string {
  return `/session/${encodeURIComponent(nativeId)}`;
}

function json(rules: readonly OpenCodeRule[]): Json {
  return rules.map((rule) => ({ ...rule }));
}
