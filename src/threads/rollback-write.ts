/**
 * A rollback as it is written (lineage C9.3 to C9.8), all of it in one commit: runs, works, what was told of them, the
 * provider's conversations, the pinned context and the message for the user to change.
 */
import type { AgentRecord, LastOutcome } from "../protocol/agent.ts";
import type { RunId } from "../protocol/ids.ts";
import type { NativeThread } from "../protocol/native-events.ts";
import { type OrdinalRange, unite } from "../protocol/ordinals.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { SnapshotRecord } from "../protocol/snapshot.ts";
import type { RunOutcome, ThreadFacts } from "../protocol/thread.ts";
import { lastOutcomeOf } from "../control/settle.ts";
import { askForkAgain, supersedeTransfer } from "../control/transfer-moves.ts";
import { contextOf, putContext } from "../control/thread-context.ts";
import { readerOf } from "../control/thread-reader.ts";
import { must, type Transaction } from "../control/transaction.ts";
import type { ProviderThreadStep } from "../lineage/rollback-native.ts";
import type { RollbackPlan } from "../lineage/rollback-plan.ts";
import { reprojectSnapshot, verifySnapshot } from "../lineage/snapshot.ts";
import { retainedUpTo } from "../lineage/thread-reader.ts";
import { supersedeHandoff } from "../lineage/handoff-record.ts";
import { releaseWorks } from "./rollback-works.ts";
import type { ThreadAgent } from "./verbs.ts";

/** `native` is what the provider has answered, where it was asked and agreed. */
export function writeRollback(
  tx: Transaction,
  before: ThreadAgent,
  plan: RollbackPlan,
  native: NativeThread | null,
): void {
  const { threadId } = before;
  const at = timeOf(tx, before);
  const taken = takeRunsBack(tx, before, plan.rolledBack, at);
  releaseWorks(tx, before, taken);
  for (const id of plan.handoffs)
    tx.store.putHandoff(supersedeHandoff(must(tx.store.handoff(id), "handoff", id), tx.now));
  for (const id of plan.transfers) supersedeTransfer(tx, id);
  for (const step of plan.providerThreads) writeStep(tx, step, native);
  const { draft, snapshot } = plan;
  if (draft !== null) tx.store.putDraft({ threadId, ...draft, createdAt: tx.now, clearedAt: null });
  // Works have been ended since it was read.
  const agent = { ...tx.agent(threadId), thread: before.thread };
  const rolledBack = unite(before.thread.rolledBack, plan.rolledBack);
  const thread: ThreadFacts = {
    ...projectAgain(tx, agent, snapshot.retained, snapshot.supersedes),
    rolledBack,
    lastRollback: { at, runs: plan.rolledBack, of: agent.runs, undone: false },
    activeProviderThreadId: plan.activeProviderThreadId,
  };
  const after = tx.putAgent(agent, { thread, lastOutcome: lastOutcomeAt(tx, { ...agent, thread }) });
  // What the fork was given goes into its next first run again (C9.8).
  if (plan.rearm !== null) askForkAgain(tx, must(tx.store.transfer(plan.rearm), "transfer", plan.rearm));
  tx.emit(
    "thread.rolled_back",
    after,
    {},
    {
      target: plan.target,
      runs: rangesOf(plan.rolledBack),
      providerThreads: plan.providerThreads
        .filter(({ action }) => action !== "untouched")
        .map(({ id, action }) => ({ id, action })),
    },
  );
}

export function rangesOf(ranges: readonly OrdinalRange[]): number[][] {
  return ranges.map(([from, to]) => [from, to]);
}

/** After every fork and every child that was taken of it: such a one tells of what was taken back later, and not of what was before (C9.9). */
function timeOf(tx: Transaction, { threadId, thread }: ThreadAgent): number {
  const taken = tx.store.lastTakenOf(threadId);
  return Math.max(tx.now, thread.lastRollback?.at ?? 0, taken === null ? 0 : taken + 1);
}

/** Their mail goes with them (MBX-7); how they had ended stays readable. */
function takeRunsBack(
  tx: Transaction,
  { threadId }: AgentRecord,
  ranges: readonly OrdinalRange[],
  at: number,
): ReadonlySet<RunId> {
  const taken = new Set<RunId>();
  for (const run of runsIn(tx, threadId, ranges)) {
    tx.store.putRun({ ...run, status: "rolled_back", rolledBack: { at, from: run.status as RunOutcome } });
    for (const mail of tx.store.mailOfRun(run.id, "settled"))
      tx.store.putMail({ ...mail, state: "superseded" });
    taken.add(run.id);
  }
  return taken;
}

export function* runsIn(
  tx: Transaction,
  threadId: AgentRecord["threadId"],
  ranges: readonly OrdinalRange[],
): Generator<RunRecord> {
  for (const [from, to] of ranges) {
    for (let ordinal = from; ordinal <= to; ordinal += 1) {
      const run = tx.store.runAt(threadId, ordinal);
      if (run !== undefined) yield run;
    }
  }
}

function writeStep(tx: Transaction, step: ProviderThreadStep, native: NativeThread | null): void {
  if (step.action === "untouched") return;
  const record = must(tx.store.providerThread(step.id), "provider thread", step.id);
  if (step.action === "divergent") {
    tx.store.putProviderThread({ ...record, continuity: "divergent", updatedAt: tx.now });
    return;
  }
  const { nativeRunOrdinals, handoffIds } = step;
  // Going back to its start may have given it another name.
  const asked = native === null ? {} : { nativeThreadRef: native.ref, nativeHeadRef: native.head };
  tx.store.putProviderThread({
    ...record,
    ...asked,
    nativeRunOrdinals,
    handoffIds,
    updatedAt: tx.now,
  });
}

/** The context of the thread is what it was at an earlier revision, as a new one (C9.7). */
export function projectAgain(
  tx: Transaction,
  agent: ThreadAgent,
  retained: number,
  supersedes: readonly OrdinalRange[],
): ThreadFacts {
  const { threadId, thread } = agent;
  const newest = thread.currentContext?.revision ?? 0;
  if (newest === 0) return thread;
  const projected = reprojectSnapshot({
    base: contextAt(tx, agent, retained),
    threadId,
    revision: newest + 1,
    title: thread.title,
    supersedes,
    messages: { from: Math.min(1, thread.messages), to: thread.messages },
    createdAt: tx.now,
    limits: tx.context.lineage,
  });
  return putContext(tx, thread, projected);
}

/** What an earlier revision said; at 0 what the thread inherits, if anything. */
function contextAt(tx: Transaction, agent: ThreadAgent, revision: number): SnapshotRecord | null {
  if (revision === 0) return contextOf(tx, { ...agent, thread: { ...agent.thread, currentContext: null } });
  const { threadId } = agent;
  const record = tx.store.snapshot(threadId, revision);
  return verifySnapshot(record, { threadId, revision, digest: record?.digest ?? "" });
}

/** How the last of the runs that are left had ended; null where none is. */
export function lastOutcomeAt(tx: Transaction, agent: ThreadAgent): LastOutcome | null {
  for (const [from, to] of retainedUpTo(readerOf(tx.store, agent), agent.runs).toReversed()) {
    for (let ordinal = to; ordinal >= from; ordinal -= 1) {
      const run = tx.store.runAt(agent.threadId, ordinal);
      if (run !== undefined) return { ...lastOutcomeOf(tx, run, run.text), at: run.completedAt ?? tx.now };
    }
  }
  return null;
}
