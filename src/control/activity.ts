/** Activities for those who watch: attached to the run that asked, even if it has ended; one per work (OBS-5). */
import type { AgentRecord } from "../protocol/agent.ts";
import type { EventType } from "../protocol/events.ts";
import type { WorkRecord } from "../protocol/work.ts";
import type { Acting } from "./caller.ts";
import type { Transaction } from "./transaction.ts";

type Kind = "started" | "interacted" | "interrupted";

/** Says on the caller's thread what it has done to another agent. Nothing for a user's or a library's call. */
export function activity(
  tx: Transaction,
  acting: Acting,
  kind: Kind,
  target: AgentRecord,
  work: WorkRecord | null,
): void {
  if (acting.agent === null) return;
  tx.emit(
    `activity.${kind}` satisfies EventType,
    acting.agent,
    { runId: acting.run?.id ?? null, workId: work?.id ?? null },
    {
      agent: target.path,
    },
  );
}

/** A work ended completed: said on the run that asked for it. */
export function completedActivity(tx: Transaction, work: WorkRecord): void {
  if (work.requester.kind !== "agent" || work.outcome?.ending !== "completed") return;
  tx.emit(
    "activity.completed",
    tx.agent(work.requester.threadId),
    { runId: work.originRunId, workId: work.id },
    {
      agent: work.executorPath,
    },
  );
}
