/** Activities for those who watch: attached to the run that asked, even if it has ended; one per work (OBS-5). */
import type { AgentRecord } from "../protocol/agent.ts";
import type { EventType } from "../protocol/events.ts";
import type { WorkRecord } from "../protocol/work.ts";
import type { Acting } from "./caller.ts";
import type { Touched } from "./interrupt.ts";
import type { Transaction } from "./transaction.ts";

type Kind = "started" | "interacted" | "interrupted";

/** Says on the caller's thread what it has done to another agent. Nothing for a user's or a library's call. */
export function activity(
  tx: Transaction,
  acting: Acting,
  kind: Kind,
  target: AgentRecord,
  work: Pick<WorkRecord, "id"> | null,
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

/** Says of each agent that an interrupt has touched which works of it have ended thereby. */
export function interruptedActivities(tx: Transaction, acting: Acting, touched: readonly Touched[]): void {
  for (const { threadId } of touched) {
    const works = [...tx.effects.worksEnded].flatMap(([id, executor]) =>
      executor === threadId ? { id } : [],
    );
    for (const work of works.length === 0 ? [null] : works) {
      activity(tx, acting, "interrupted", tx.agent(threadId), work);
    }
  }
}

/**
 * A work ended completed: said on the run that asked for it. Where a result is the run's, so is this, and a run that serves
 * requests of several runs says nothing (agents.md 58).
 */
export function completedActivity(tx: Transaction, work: WorkRecord): void {
  if (work.requester.kind !== "agent" || work.outcome?.ending !== "completed") return;
  if (tx.profile.results === "per_run" && !standsForRun(tx, work)) return;
  tx.emit(
    "activity.completed",
    tx.agent(work.requester.threadId),
    { runId: work.originRunId, workId: work.id },
    {
      agent: work.executorPath,
    },
  );
}

/** The first of the works that one run has served, all of them asked for by one run. */
function standsForRun(tx: Transaction, work: WorkRecord): boolean {
  const runId = work.outcome!.runId;
  const serves = runId === null ? [] : (tx.store.run(runId)?.serves ?? []);
  const origins = new Set(serves.map((id) => tx.store.work(id)?.originRunId ?? null));
  return serves[0] === work.id && origins.size === 1;
}
