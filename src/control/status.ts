/** Status of an agent, derived from run, work and mail, never stored (runtime.md, "Words of state"). */
import type { AgentRecord, AgentStatus, CodexStatus } from "../protocol/agent.ts";
import type { StoreView } from "../store/port.ts";

/** What only memory knows: the order of the queue. */
export interface QueuePositions {
  /** 1 for the next to be admitted; 0 when it does not wait. */
  position?: (threadId: AgentRecord["threadId"]) => number;
}

export function statusOf(view: StoreView, agent: AgentRecord, queue: QueuePositions = {}): AgentStatus {
  if (agent.state !== "open") return { kind: "closed" };
  const run = agent.currentRun === null ? undefined : view.run(agent.currentRun);
  if (run !== undefined) {
    switch (run.status) {
      case "queued":
      case "starting":
        return { kind: "starting" };
      case "waiting":
        if (agent.openRequests > 0) return { kind: "awaiting_approval" };
        return { kind: "waiting", on: waitingOn(view, agent) };
      default:
        return { kind: "running" };
    }
  }
  if (!agent.hostDriven && view.mailbox(agent.threadId).triggers > 0) {
    return { kind: "queued", position: queue.position?.(agent.threadId) ?? 0 };
  }
  if (view.openWorksOf(agent.threadId).some((work) => work.state === "awaiting_children")) {
    return { kind: "awaiting_children" };
  }
  return { kind: "idle", last: agent.lastOutcome?.status ?? null };
}

function waitingOn(view: StoreView, agent: AgentRecord): string[] {
  return view
    .openWaitsOf(agent.threadId)
    .flatMap((wait) =>
      wait.works.length === 0 ? ["mail"] : wait.works.map((id) => view.work(id)?.executorPath ?? id),
    );
}

/** The same for the `codex` profile (agents.md 42, 43). `loaded` is residency: it shows unloaded agents as not found. */
export function codexStatus(view: StoreView, agent: AgentRecord): CodexStatus {
  if (agent.state !== "open") return "shutdown";
  if (agent.currentRun !== null) return "running";
  const triggers = view.mailbox(agent.threadId).triggers > 0;
  const last = agent.lastOutcome;
  if (last === null) return triggers ? "running" : agent.runs === 0 ? "pending_init" : "interrupted";
  if (triggers) return "running";
  if (last.status === "completed") return { completed: last.text === "" ? null : last.text };
  if (last.status === "failed") return { errored: last.text };
  return "interrupted";
}
