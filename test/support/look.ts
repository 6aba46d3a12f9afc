/** What tests of the whole runtime look at: stored rows by path, what a model was sent, and what its tools returned. */
import { waitUntil } from "../../src/testing/wait-until.ts";
import type { RuntimeEvent } from "../../src/protocol/events.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import type { MailRecord } from "../../src/protocol/mail.ts";
import type { RunRecord } from "../../src/protocol/run.ts";
import type { Caller } from "../../src/protocol/tool.ts";
import type { TranscriptItem } from "../../src/protocol/transcript.ts";
import type { TransferRecord } from "../../src/protocol/transfer.ts";
import type { WorkRecord } from "../../src/protocol/work.ts";
import type { StoreView } from "../../src/store/port.ts";
import type { Harness } from "./harness.ts";

export interface ToolOutput {
  readonly output: JsonObject;
  readonly isError: boolean;
}

export class Look {
  readonly #h: Harness;

  constructor(h: Harness) {
    this.#h = h;
  }

  view<T>(plan: (view: StoreView) => T): Promise<T> {
    return this.#h.store.read(plan);
  }

  /** All mail of an agent, oldest first. */
  async mail(path: string): Promise<readonly MailRecord[]> {
    const agent = await this.#h.tree.agent(path);
    return (await agent.mail({ limit: 1000 })).rows;
  }

  async runs(path: string): Promise<readonly RunRecord[]> {
    const agent = await this.#h.tree.agent(path);
    return (await agent.runs({ limit: 1000 })).rows;
  }

  async items(path: string): Promise<readonly TranscriptItem[]> {
    return (await this.#h.tree.agent(path)).transcript();
  }

  /** Works of the tree, of one executor where it is named; oldest first. */
  async works(executor?: string): Promise<readonly WorkRecord[]> {
    const { rows } = await this.#h.tree.works({ limit: 1000 });
    return executor === undefined ? rows : rows.filter((work) => work.executorPath === executor);
  }

  /** The only work of an executor. */
  async work(executor: string): Promise<WorkRecord> {
    const works = await this.works(executor);
    if (works.length !== 1) throw new Error(`${executor} has ${works.length} works.`);
    return works[0]!;
  }

  async transfers(type?: TransferRecord["type"]): Promise<readonly TransferRecord[]> {
    const { rows } = await this.view((view) => view.transfers(this.#h.tree.id, { limit: 1000 }));
    return type === undefined ? rows : rows.filter((transfer) => transfer.type === type);
  }

  async events(type?: RuntimeEvent["type"], path?: string): Promise<readonly RuntimeEvent[]> {
    const all: RuntimeEvent[] = [];
    for (let page: readonly RuntimeEvent[]; ;) {
      page = await this.#h.tree.log(all.at(-1)?.seq ?? 0, 500);
      all.push(...page);
      if (page.length < 500) break;
    }
    return all.filter(
      (event) => (type === undefined || event.type === type) && (path === undefined || event.path === path),
    );
  }

  /** Outputs of an agent's calls of a tool, in the order of the calls. */
  async outputs(path: string, tool: string): Promise<readonly ToolOutput[]> {
    const items = await this.items(path);
    const calls = items.flatMap((item) =>
      item.kind === "assistant"
        ? item.parts.flatMap((part) => (part.type === "tool_call" && part.name === tool ? [part.callId] : []))
        : [],
    );
    return calls.flatMap((callId) => {
      const item = items.find((one) => one.kind === "tool_result" && one.callId === callId);
      return item?.kind === "tool_result"
        ? [{ output: item.output as JsonObject, isError: item.isError }]
        : [];
    });
  }

  /** Texts of one request's user messages: input, mail and notes, oldest first; only those since the last answer. */
  inputs(path: string, request: number): readonly string[] {
    const { messages } = this.#h.provider.requests(path).at(request)!;
    const from = messages.findLastIndex(({ role }) => role === "assistant") + 1;
    return messages.slice(from).flatMap((message) => (message.role === "user" ? [message.text] : []));
  }

  /** An agent as the runtime knows it in its current run. */
  async caller(path: string, callId: string | null = null): Promise<Extract<Caller, { kind: "agent" }>> {
    const record = await (await this.#h.tree.agent(path)).record();
    return { kind: "agent", threadId: record.threadId, runId: record.currentRun, step: 1, callId };
  }

  /** The kind of an agent's status; null while nobody is at the path. */
  async status(path: string): Promise<string | null> {
    const agent = await this.#h.tree.agent(path).catch(() => null);
    return agent === null ? null : (await agent.status()).kind;
  }

  until(description: string, condition: () => Promise<boolean> | boolean): Promise<void> {
    return waitUntil(description, condition, { dump: () => ({ gates: this.#h.provider.gates.occupied() }) });
  }

  /** Counts the tree, with everything that a refused call might leave behind. */
  snapshot(): Promise<JsonObject> {
    const id = this.#h.tree.id;
    return this.view((view) => {
      const all = { limit: 10_000 };
      const agents = view.agents(id, "/root", { ...all, closed: true }).rows;
      return JSON.parse(
        JSON.stringify({
          tree: view.tree(id),
          agents,
          mailboxes: agents.map((agent) => view.mailbox(agent.threadId)),
          mail: agents.map((agent) => view.mailOf(agent.threadId, all).rows),
          works: view.works(id, all).rows,
          transfers: view.transfers(id, all).rows,
          events: view.lastEvent(id),
        }),
      ) as JsonObject;
    });
  }
}

export function look(h: Harness): Look {
  return new Look(h);
}

/** A field of an output, or of its details, as text. */
export function textAt(fields: JsonObject | ToolOutput, key: string): string {
  const value = "isError" in fields ? (fields as ToolOutput).output[key] : (fields as JsonObject)[key];
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}

export function detailsOf({ output }: ToolOutput): JsonObject {
  return (output["details"] ?? {}) as JsonObject;
}
