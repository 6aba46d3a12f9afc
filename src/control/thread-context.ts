/**
 * The pinned context of a thread around its runs: what a run opens on is part of its policy (lineage C1.4), and its settle
 * is projected in the same commit (C12). Plans of a transaction.
 *
 * - T1 A run opens only on what matches its digest; what was tampered with opens nothing (C11.11).
 * - T2 Records from before threads have no binding and are projected into nothing (C17.6).
 */
import { canonicalJson } from "../platform/canonical-json.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import type { ThreadBinding } from "../protocol/binding.ts";
import { CoppiceError } from "../protocol/errors.ts";
import type { RunId } from "../protocol/ids.ts";
import { addOrdinal } from "../protocol/ordinals.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { SnapshotRecord } from "../protocol/snapshot.ts";
import type { ContextReference, RunOutcome, ThreadFacts } from "../protocol/thread.ts";
import type { Projection } from "../lineage/compact-snapshot.ts";
import { EMPTY_CONTEXT, makeCheckpoint, projectSnapshot, verifySnapshot } from "../lineage/snapshot.ts";
import { outcomeOf } from "../lineage/thread-reader.ts";
import type { StoreView } from "../store/port.ts";
import { workspaceAtSettle } from "./captures.ts";
import type { Look, Transaction } from "./transaction.ts";
import { unlessCorrupt } from "../store/corrupt-row.ts";

/** What the next run of a thread opens on, verified. @throws RejectedError `THREAD_CONTEXT_TAMPERED`. */
export function bindingOf(look: Look, agent: AgentRecord): ThreadBinding | null {
  const { thread, threadId } = agent;
  if (thread === null) return null;
  const { revision, digest } = thread.currentContext ?? EMPTY_CONTEXT;
  const inherits = revision === 0 ? (thread.forkedFrom?.context ?? null) : null;
  contextOf(look, agent);
  return {
    id: threadId,
    contextRevision: revision,
    contextDigest: digest,
    ...(inherits === null ? {} : { inherited: inherits }),
  };
}

/** The snapshot that a thread stands on: its own newest, else the one that it inherits, else none. */
export function contextOf({ store }: Pick<Look, "store">, agent: AgentRecord): SnapshotRecord | null {
  const { threadId, thread } = agent;
  const own = thread?.currentContext ?? null;
  const at = own === null ? (thread?.forkedFrom?.context ?? null) : { ...own, threadId };
  return at === null || at.revision === 0 ? null : snapshotAt(store, at);
}

/** @throws RejectedError `THREAD_CONTEXT_TAMPERED`; so also for a row that cannot be read at all. */
export function snapshotAt(
  view: StoreView,
  at: ContextReference & Pick<AgentRecord, "threadId">,
): SnapshotRecord {
  return verifySnapshot(
    unlessCorrupt(() => view.snapshot(at.threadId, at.revision), undefined),
    at,
  );
}

/** The binding of the run that has asked for this one, byte for byte (C8.4). */
export function delegatedFrom(look: Look, parentRun: RunId | null): ThreadBinding | null {
  return parentRun === null ? null : (look.store.run(parentRun)?.binding ?? null);
}

export interface Projected {
  readonly run: Pick<RunRecord, "checkpoint" | "nextContextRevision">;
  readonly thread: ThreadFacts | null;
}

/** Checkpoint and next snapshot of a run that is being settled (C1.18, C12.1). */
export function projectRun(
  tx: Transaction,
  agent: AgentRecord,
  run: RunRecord,
  settled: { readonly outcome: RunOutcome; readonly reason: string | null },
): Projected {
  const { thread } = agent;
  if (thread === null) return { run: { checkpoint: null, nextContextRevision: null }, thread };
  const checkpoint = makeCheckpoint(run.id, run.pins, workspaceAtSettle(tx.context, agent, run));
  const voided = run.acceptedAt === null ? addOrdinal(thread.voided, run.ordinal) : thread.voided;
  const base = untampered(tx, agent, run);
  if (base === "tampered")
    return { run: { checkpoint, nextContextRevision: null }, thread: { ...thread, voided } };
  const projected = projectOn(tx, { ...agent, thread }, base, { ...run, checkpoint }, settled);
  return { run: { checkpoint, ...projected.run }, thread: { ...projected.thread, voided } };
}

/**
 * What could not be projected when its run was settled, because its base was not as it had been sealed, is once that is: no
 * run opens over it, and no revision is lost (C12.7, C14.6). The agent as it is then.
 * @throws RejectedError `THREAD_CONTEXT_TAMPERED`.
 */
export function projectPending(tx: Transaction, given: AgentRecord): AgentRecord {
  const { threadId, runs } = given;
  const pending: RunRecord[] = [];
  for (let ordinal = runs; ordinal > 0; ordinal -= 1) {
    const run = tx.store.runAt(threadId, ordinal);
    if (run?.nextContextRevision !== null || run.binding?.id !== threadId || outcomeOf(run) === null) break;
    pending.unshift(run);
  }
  let agent = given;
  for (const run of pending) {
    if (agent.thread === null) break;
    const settled = { outcome: outcomeOf(run)!, reason: run.reason };
    const base = contextOf(tx, agent);
    const projected = projectOn(tx, { ...agent, thread: agent.thread }, base, run, settled);
    tx.store.putRun({ ...run, ...projected.run });
    agent = tx.putAgent(agent, { thread: projected.thread });
  }
  return agent;
}

function projectOn(
  tx: Transaction,
  { threadId, thread }: AgentRecord & { readonly thread: ThreadFacts },
  base: SnapshotRecord | null,
  run: RunRecord,
  settled: { readonly outcome: RunOutcome; readonly reason: string | null },
): { readonly run: Pick<RunRecord, "nextContextRevision">; readonly thread: ThreadFacts } {
  const revision = (thread.currentContext ?? EMPTY_CONTEXT).revision + 1;
  const projected = projectSnapshot({
    base,
    threadId,
    revision,
    title: thread.title,
    run,
    previous: tx.store.runAt(threadId, run.ordinal - 1)?.id ?? null,
    checkpoint: run.checkpoint,
    ...settled,
    messages: { from: Math.min(1, thread.messages), to: thread.messages },
    createdAt: tx.now,
    limits: tx.context.lineage,
  });
  return { run: { nextContextRevision: revision }, thread: putContext(tx, thread, projected) };
}

/** A new revision is the context of the thread, and what was left out of it is counted. */
export function putContext(
  tx: Transaction,
  thread: ThreadFacts,
  { snapshot, compaction }: Projection,
): ThreadFacts {
  tx.store.putSnapshot(snapshot);
  if (compaction !== null) tx.store.putCompaction(compaction);
  return {
    ...thread,
    currentContext: { revision: snapshot.revision, digest: snapshot.digest },
    compactions: thread.compactions + (compaction === null ? 0 : 1),
  };
}

/** What was tampered with under a run does not keep it from ending; nothing is built on it, and the next run is refused. */
function untampered(
  tx: Transaction,
  agent: AgentRecord,
  { binding }: RunRecord,
): SnapshotRecord | null | "tampered" {
  try {
    // What was opened for another thread, or on another context, is not projected into this one (C17.5).
    if (binding !== null && canonicalJson(binding) !== canonicalJson(bindingOf(tx, agent))) return "tampered";
    return contextOf(tx, agent);
  } catch (error) {
    if (CoppiceError.is(error) && error.code === "THREAD_CONTEXT_TAMPERED") return "tampered";
    throw error;
  }
}
