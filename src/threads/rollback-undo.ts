/**
 * The undo of a thread's newest rollback, as long as no run has started since. What moves one way stays where it is: works
 * that were ended, texts that were superseded, conversations that a provider has rolled back or that were given up. What
 * those do not know any more is a gap like any other, and is told with the next run.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { ProviderThreadId, RunId } from "../protocol/ids.ts";
import { addOrdinal, without } from "../protocol/ordinals.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { RollbackRecord, ThreadFacts } from "../protocol/thread.ts";
import { allOf } from "../control/family.ts";
import { supersedeTransfer } from "../control/transfer-moves.ts";
import type { Transaction } from "../control/transaction.ts";
import { undoableRollback } from "../lineage/rollback-target.ts";
import { lastOutcomeAt, projectAgain, rangesOf, runsIn } from "./rollback-write.ts";
import { requireOpenThread, type ThreadAgent, threadOf } from "./verbs.ts";

/** @throws RejectedError `ROLLBACK_ACTIVE_RUN`, `ROLLBACK_TARGET_INVALID` when there is nothing that could be undone. */
export function undoRollback(tx: Transaction, id: string): ThreadAgent {
  const agent = threadOf(tx, id);
  requireOpenThread(agent);
  const last = requireUndoable(agent);
  const { threadId, thread } = agent;
  const restored: RunRecord[] = [];
  for (const run of runsIn(tx, threadId, last.runs)) {
    if (run.rolledBack === null) continue;
    const again: RunRecord = { ...run, status: run.rolledBack.from, rolledBack: null };
    tx.store.putRun(again);
    restored.push(again);
  }
  const ids = new Set(restored.map((run) => run.id));
  teachAgain(tx, agent, restored);
  disarm(tx, agent, ids);
  clearDraft(tx, agent, ids);
  const newest = thread.currentContext?.revision ?? 0;
  const projected = projectAgain(tx, agent, newest - 1, [[newest, newest]]);
  const next: ThreadFacts = {
    ...projected,
    rolledBack: without(thread.rolledBack, last.runs),
    lastRollback: { ...last, undone: true },
  };
  const after = tx.putAgent(agent, {
    thread: next,
    lastOutcome: lastOutcomeAt(tx, { ...agent, thread: next }),
  });
  tx.emit("thread.restored", after, {}, { runs: rangesOf(last.runs) });
  return { ...after, thread: next };
}

function requireUndoable({ threadId, thread, runs, currentRun }: ThreadAgent): RollbackRecord {
  const undoable = undoableRollback(thread, runs);
  if (undoable !== null) return undoable;
  const { lastRollback: last } = thread;
  if (currentRun !== null) {
    throw new RejectedError(
      "ROLLBACK_ACTIVE_RUN",
      `${currentRun} has started in ${threadId} since it was rolled back, which cannot be undone any more.`,
      { threadId, runId: currentRun },
    );
  }
  const why =
    last === null
      ? "was never rolled back"
      : last.undone
        ? "has no rollback that is not undone already"
        : `has had run ${runs} since it was rolled back`;
  throw new RejectedError(
    "ROLLBACK_TARGET_INVALID",
    `${threadId} ${why}; fork it at the run that you want to go on from.`,
    { threadId, runs, undone: last?.undone ?? null },
  );
}

/**
 * Where the loop is ours the conversation is the transcript, and the runs are in it again. A run that was told of others by
 * a text that is void by now is a gap, with all that came after it there: they are told together, and nothing twice.
 */
function teachAgain(tx: Transaction, agent: ThreadAgent, runs: readonly RunRecord[]): void {
  const handoffs = [...allOf((page) => tx.store.handoffsOf(agent.threadId, page))];
  const untaught = new Set<ProviderThreadId>();
  for (const run of runs) {
    const record = ourConversation(tx, run.providerThreadId);
    if (record === null || run.acceptedAt === null) continue;
    const told = handoffs.filter(
      ({ id, targetRunId, deliveredAt }) =>
        targetRunId === run.id && deliveredAt !== null && !record.handoffIds.includes(id),
    );
    const isVoid = told.some(
      ({ sourceThreadId, status }) => sourceThreadId === agent.threadId && status === "superseded",
    );
    if (isVoid) untaught.add(record.id);
    if (untaught.has(record.id)) continue;
    tx.store.putProviderThread({
      ...record,
      nativeRunOrdinals: addOrdinal(record.nativeRunOrdinals, run.ordinal),
      handoffIds: [...record.handoffIds, ...told.map(({ id }) => id)],
      updatedAt: tx.now,
    });
  }
}

function ourConversation(tx: Transaction, id: ProviderThreadId | null) {
  const record = id === null ? undefined : tx.store.providerThread(id);
  if (record === undefined || record.continuity === "divergent") return null;
  // A conversation of the provider's own has a name there. Its adapter may not be here to be asked.
  return record.nativeThreadRef === null ? record : null;
}

/** A fork that was to be given its context once more has it again. */
function disarm(tx: Transaction, { threadId }: ThreadAgent, restored: ReadonlySet<RunId>): void {
  const had = [...allOf((page) => tx.store.transfersOf(threadId, page))].some(
    ({ type, targetThreadId, targetRunId, resolution }) =>
      type === "fork" &&
      targetThreadId === threadId &&
      resolution !== null &&
      targetRunId !== null &&
      restored.has(targetRunId),
  );
  if (!had) return;
  for (const { id, type } of tx.store.pendingTransfersTo(threadId))
    if (type === "fork") supersedeTransfer(tx, id);
}

function clearDraft(tx: Transaction, { threadId }: ThreadAgent, restored: ReadonlySet<RunId>): void {
  const draft = tx.store.draft(threadId);
  if (draft === undefined || draft.clearedAt !== null || draft.sourceMessageId === null) return;
  const runId = tx.store.mail(draft.sourceMessageId)?.runId ?? null;
  if (runId !== null && restored.has(runId)) tx.store.putDraft({ ...draft, clearedAt: tx.now });
}
