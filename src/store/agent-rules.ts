/** What every store holds an agent's record to, beside the one that it replaces (lineage C11.3). */
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadFacts } from "../protocol/thread.ts";

/**
 * The revision is the next one, what was closed is not opened again, a thread's descent stands, and its context never goes
 * back. A first record, and one from before threads, is held to less.
 * @throws RejectedError `THREAD_REVISION_CONFLICT`, `THREAD_INVARIANT_VIOLATION`
 */
export function requireAgent(previous: AgentRecord | undefined, next: AgentRecord): void {
  if (previous === undefined) return;
  const { threadId, revision } = next;
  if (revision !== previous.revision + 1) {
    throw new RejectedError(
      "THREAD_REVISION_CONFLICT",
      `The record of ${threadId} is at revision ${previous.revision}; ${revision} cannot follow.`,
      { threadId, revision: previous.revision, given: revision },
    );
  }
  const fault = faultOf(previous, next);
  if (fault === null) return;
  throw new RejectedError("THREAD_INVARIANT_VIOLATION", `The thread ${threadId} ${fault}.`, { threadId });
}

function faultOf(previous: AgentRecord, next: AgentRecord): string | null {
  if (previous.state !== "open" && next.state === "open") return `was ${previous.state} and would be open`;
  const [before, after] = [previous.thread, next.thread];
  if (before === null || after === null) return null;
  if (descentOf(before) !== descentOf(after)) return "would have another descent";
  const [from, to] = [before.currentContext?.revision ?? 0, after.currentContext?.revision ?? 0];
  return to < from ? `would go back from context revision ${from} to ${to}` : null;
}

function descentOf({ agentId, lineage, forkedFrom }: ThreadFacts): string {
  const { parentThreadId, relationshipToParent, rootThreadId } = lineage;
  return `${agentId} ${parentThreadId} ${relationshipToParent} ${rootThreadId} ${forkedFrom?.transferId}`;
}
