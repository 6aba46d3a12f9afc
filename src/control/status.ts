/** Status of an agent, derived from run, work and mail, never stored (runtime.md, "Words of state"). */
import type { AgentRecord, AgentStatus, CodexStatus } from "../protocol/agent.ts";
import type { RunRecord } from "../protocol/run.ts";
import { OUTSIDE_CALL } from "../protocol/wait.ts";
import type { StoreView } from "../store/port.ts";
import { spentScope } from "./spent-scope.ts";

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
        if (!isHeld(run)) return { kind: "running" };
        if (agent.openRequests > 0 && !waitsOutside(view, run)) return { kind: "awaiting_approval" };
        return { kind: "waiting", on: waitingOn(view, agent) };
    }
  }
  if (startsRun(view, agent)) {
    return { kind: "queued", position: queue.position?.(agent.threadId) ?? 0 };
  }
  if (view.openWorksOf(agent.threadId).some((work) => work.state === "awaiting_children")) {
    return { kind: "awaiting_children" };
  }
  return { kind: "idle", last: agent.lastOutcome?.status ?? null };
}

/** Trigger-turn mail is pending, and no budget that is spent keeps it from starting a run (BUD-2). */
export function startsRun(
  view: StoreView,
  { treeId, threadId, path, state, hostDriven }: AgentRecord,
): boolean {
  if (state !== "open" || hostDriven || view.mailbox(threadId).triggers === 0) return false;
  return spentScope(view.tree(treeId)!.exhausted, path) === null;
}

/** A run that is driven, and whose provider stands in a call by the agent's token that waits (WAI-5, EXE-4). */
export function isHeld({ permitLent }: RunRecord): boolean {
  return permitLent === true;
}

/** For its run, that is: a call from outside waits for its own by itself. */
export function hasToWait(view: StoreView, threadId: AgentRecord["threadId"]): boolean {
  return (
    view.openWaitsOf(threadId).some(({ callId }) => callId !== OUTSIDE_CALL) ||
    view.openRequestsOf(threadId).some(({ outside }) => outside !== true)
  );
}

function waitsOutside(view: StoreView, { threadId }: RunRecord): boolean {
  return view.openWaitsOf(threadId).some(({ callId }) => callId === OUTSIDE_CALL);
}

function waitingOn(view: StoreView, agent: AgentRecord): string[] {
  return view.openWaitsOf(agent.threadId).flatMap(({ threads, works }): readonly string[] => {
    if (threads !== undefined) return threads;
    return works.length === 0 ? ["mail"] : works.map((id) => view.work(id)?.executorPath ?? id);
  });
}

/** What the reference's words ask of memory. */
export interface Residents {
  /** Loaded, or on its way there. */
  readonly resident: (threadId: AgentRecord["threadId"]) => boolean;
  /** It has had a run since it was loaded. */
  readonly ran: (threadId: AgentRecord["threadId"]) => boolean;
}

/**
 * The same for the `codex` profile (agents.md 37, 41 to 43): whoever is not loaded is not found, save the root, and one
 * that is parked in a wait.
 */
export function codexStatus(view: StoreView, agent: AgentRecord, memory: Residents): CodexStatus {
  if (agent.state !== "open") return "shutdown";
  const loaded = agent.parent === null || agent.currentRun !== null || memory.resident(agent.threadId);
  if (!loaded) return "not_found";
  if (agent.currentRun !== null || startsRun(view, agent)) return "running";
  const last = agent.lastOutcome;
  if (last === null || !memory.ran(agent.threadId)) return "pending_init";
  if (last.status === "completed") return { completed: last.text === "" ? null : last.text };
  if (last.status === "failed") return { errored: last.text };
  return "interrupted";
}
