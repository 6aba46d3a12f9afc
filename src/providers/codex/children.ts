/**
 * Codex's own agents below the turn under way: they are shown, never gone on with here (lineage C8.1). Each is a thread on the same
 * connection, whose words and calls are none of its parent's.
 *
 * - K1 They live within the turn: with its end those that are at work are stopped, since no run would answer for what they use.
 * - K2 What they use is used by the turn, and what they ask for is asked for by it.
 */
import type { Json } from "../../protocol/json.ts";
import type { NativeEvent } from "../../protocol/native-events.ts";
import { JsonRpcFault } from "../json-rpc-message.ts";
import type { Told } from "../turn-told.ts";
import type { CodexListener, CodexServer } from "./server.ts";
import { activityOf, failureOf, itemsOf, refOf, usedSince } from "./translate.ts";
import type { CodexItem, CodexNotification, CodexRequest, CodexUsage } from "./wire.ts";

interface Child {
  /** Its place among Codex's agents: what it was told to do is not told here. */
  readonly path: string;
  turnId: string | null;
  atWork: boolean;
  text: string;
  used: CodexUsage | null;
}

export interface CodexChildrenOptions {
  readonly server: Pick<CodexServer, "ask" | "leave" | "listen">;
  readonly tell: (event: Told<NativeEvent>) => void;
  /** What one of them asks for. */
  readonly asked: (request: CodexRequest) => Promise<Json>;
}

export class CodexChildren implements CodexListener {
  readonly #options: CodexChildrenOptions;
  readonly #children = new Map<string, Child>();

  constructor(options: CodexChildrenOptions) {
    this.#options = options;
  }

  /** An item of the turn, or of one of them: one that tells of an agent makes it known. */
  found(item: CodexItem): void {
    const activity = activityOf(item);
    if (activity === null || this.#children.has(activity.agentThreadId)) return;
    const { agentThreadId, agentPath, kind } = activity;
    const child: Child = { path: agentPath, turnId: null, atWork: false, text: "", used: null };
    this.#children.set(agentThreadId, child);
    this.#options.server.listen(agentThreadId, this);
    if (kind === "started") this.#begins(agentThreadId, child);
  }

  heard(event: CodexNotification): void {
    const child = this.#children.get(event.threadId);
    if (child === undefined) return;
    if (event.method !== "turn/completed") {
      this.#begins(event.threadId, child);
      child.turnId = "turn" in event ? event.turn.id : event.turnId;
    }
    switch (event.method) {
      case "item/completed":
        for (const item of itemsOf(event.item)) if (item.kind === "text") child.text = item.text;
        return this.found(event.item);
      case "thread/tokenUsage/updated": {
        const { total, last } = event.tokenUsage;
        const usage = child.used === null ? usedSince(last, null) : usedSince(total, child.used);
        child.used = total;
        if (usage !== null) this.#options.tell({ type: "usage", usage });
        return;
      }
      case "turn/completed": {
        const { status, error } = event.turn;
        if (status === "failed" && error !== null && error !== undefined)
          child.text = failureOf(error).message;
        return this.#ends(event.threadId, child, status === "inProgress" ? "interrupted" : status);
      }
      default:
    }
  }

  /** Tools of the tree are the agent's own, and of none below it. */
  asked(request: CodexRequest): Promise<Json> {
    if (request.method !== "item/tool/call") return this.#options.asked(request);
    return Promise.reject(new JsonRpcFault(-32000, "agents of Codex's own have no tools of the tree"));
  }

  /** The turn is told, and ends them. */
  lost(): void {}

  end(): void {
    const { server } = this.#options;
    for (const [threadId, child] of this.#children) {
      server.leave(threadId, this);
      const { turnId, atWork } = child;
      if (!atWork) continue;
      this.#ends(threadId, child, "interrupted");
      if (turnId !== null) server.ask("turn/interrupt", { threadId, turnId }).catch(() => undefined);
    }
    this.#children.clear();
  }

  #begins(threadId: string, child: Child): void {
    if (child.atWork) return;
    child.atWork = true;
    child.text = "";
    this.#options.tell({ type: "child.started", child: refOf(threadId), prompt: child.path });
  }

  #ends(threadId: string, child: Child, outcome: "completed" | "failed" | "interrupted"): void {
    child.atWork = false;
    child.turnId = null;
    this.#options.tell({ type: "child.terminal", child: refOf(threadId), outcome, text: child.text });
  }
}
