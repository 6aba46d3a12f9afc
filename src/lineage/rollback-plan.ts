/**
 * What a rollback takes back, and what follows from it for handoffs, transfers, provider threads and the snapshot
 * (lineage C9). The caller asks the provider, and stores the plan when it has agreed (C9.10).
 *
 * - Q1 Runs after the target are taken back, whatever their end; those that were before stay as they are. So a rollback
 *   of a rollback is one like any other, and one that takes nothing back changes nothing.
 * - Q2 A provider thread that went through such a run knows too much. The active one is rolled back where it can be,
 *   as is each of ours, and what was told in those turns is no longer in it; every other one is never resumed again (C2.7).
 * - Q3 Records keep what they say: a handoff is superseded when it tells of a run that was taken back, or when what it
 *   brought from another thread has to be brought again.
 */
import type { HandoffId, ProviderThreadId, RunId, TransferId } from "../protocol/ids.ts";
import { holdsOrdinal, type OrdinalRange, overlap, without } from "../protocol/ordinals.ts";
import type { ForkDraft } from "../protocol/thread.ts";
import type { TransferRecord } from "../protocol/transfer.ts";
import { type ProviderThreadStep, stepOf } from "./rollback-native.ts";
import { requireTarget, type RollbackFacts } from "./rollback-target.ts";
import { retainedUpTo, type ThreadReader } from "./thread-reader.ts";

export interface RollbackPlan {
  /** The last run that stays. */
  readonly target: number;
  /** Runs that become `rolled_back` now. */
  readonly rolledBack: readonly OrdinalRange[];
  /** The message that was taken back, for the user to change. */
  readonly draft: Pick<ForkDraft, "text" | "sourceMessageId"> | null;
  readonly handoffs: readonly HandoffId[];
  readonly transfers: readonly TransferId[];
  readonly providerThreads: readonly ProviderThreadStep[];
  /** Null where the next run begins on another one. */
  readonly activeProviderThreadId: ProviderThreadId | null;
  /** The fork transfer whose context was taken back with its run: a new one with the same source point (C9.8). */
  readonly rearm: TransferId | null;
  /** The next revision of the snapshot is projected from this one, and says that it supersedes those (C9.7). */
  readonly snapshot: { readonly retained: number; readonly supersedes: readonly OrdinalRange[] };
}

/**
 * @throws RejectedError `ROLLBACK_ACTIVE_RUN`, `ROLLBACK_TARGET_INVALID`, `ROLLBACK_PROVIDER_CHANGED`; and where the
 * provider's own rollback is demanded, `ROLLBACK_NATIVE_UNSUPPORTED` or `ROLLBACK_TURN_UNAVAILABLE`.
 */
export function planRollback(facts: RollbackFacts): RollbackPlan {
  const { reader } = facts;
  const { target, draft } = requireTarget(facts);
  const rolledBack = without(target < reader.runs ? [[target + 1, reader.runs]] : [], reader.rolledBack);
  const wasTakenBack = (runId: RunId | null): boolean => {
    const run = runId === null ? undefined : reader.run(runId);
    return run !== undefined && run.threadId === reader.threadId && holdsOrdinal(rolledBack, run.ordinal);
  };
  const transfers = facts.transfers.filter((transfer) => restsOn(transfer, reader, rolledBack));
  const rearm = facts.transfers.findLast(
    ({ type, status, resolution, targetRunId }) =>
      type === "fork" && status === "consumed" && resolution !== null && wasTakenBack(targetRunId),
  );
  const handoffs = facts.handoffs.filter(({ status, ...handoff }) => {
    if (status !== "ready") return false;
    if (handoff.sourceThreadId === reader.threadId && overlap(handoff.coveredRuns, rolledBack)) return true;
    const transfer = facts.transfers.find(({ id }) => id === handoff.transferId);
    if (transfer === undefined) return false;
    if (handoff.deliveredAt === null) return transfers.includes(transfer);
    // Brought from another thread into a run that is taken back: it is asked for again (C7.8), or comes again (C9.8).
    const foreign = transfer.type === "merge_back" || transfer.type === "fork";
    return foreign && wasTakenBack(handoff.targetRunId);
  });
  const steps = facts.providerThreads.map((record) => stepOf(record, rolledBack, facts, wasTakenBack));
  const lost = steps.some(({ id, action }) => id === facts.activeProviderThreadId && action === "divergent");
  return {
    target,
    rolledBack,
    draft,
    handoffs: handoffs.map(({ id }) => id),
    transfers: transfers.map(({ id }) => id),
    providerThreads: steps,
    activeProviderThreadId: lost ? null : facts.activeProviderThreadId,
    rearm: rearm?.id ?? null,
    snapshot: snapshotOf(facts, target, rolledBack),
  };
}

/** A switch or a merge-back that nobody has taken in, and that is about runs that are gone (C9.4); forks are not (C9.9). */
function restsOn(
  { type, status, targetThreadId, sourcePoint, basePoint }: TransferRecord,
  { threadId }: ThreadReader,
  rolledBack: readonly OrdinalRange[],
): boolean {
  if (targetThreadId !== threadId || (type !== "provider_handoff" && type !== "merge_back")) return false;
  if (status !== "pending" && status !== "resolved_native" && status !== "resolved_portable") return false;
  return [sourcePoint, basePoint].some(
    (point) => point !== null && point.threadId === threadId && holdsOrdinal(rolledBack, point.ordinal),
  );
}

function snapshotOf(
  { reader, revision }: RollbackFacts,
  target: number,
  rolledBack: readonly OrdinalRange[],
): RollbackPlan["snapshot"] {
  if (rolledBack.length === 0) return { retained: revision, supersedes: [] };
  const retained = revisionAt(reader, target);
  return {
    retained,
    supersedes: revision > retained ? [[retained + 1, revision]] : [],
  };
}

/** The revision that the newest run which stays was projected into; 0 before the first. */
function revisionAt(reader: ThreadReader, target: number): number {
  for (const [from, to] of retainedUpTo(reader, target).toReversed()) {
    for (let ordinal = to; ordinal >= from; ordinal -= 1) {
      const revision = reader.runAt(ordinal)?.nextContextRevision;
      if (revision !== null && revision !== undefined) return revision;
    }
  }
  return 0;
}
