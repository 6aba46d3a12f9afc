/**
 * Merging a fork back into the thread that it was forked from (lineage C7): one pending transfer. Its text is built when the
 * target's next run starts, and goes in with that run's message.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { RunId } from "../protocol/ids.ts";
import type { TransferRecord } from "../protocol/transfer.ts";
import { runsBroughtBack } from "../control/start-texts.ts";
import { startingRun } from "../control/runs.ts";
import { supersedeTransfer } from "../control/transfer-moves.ts";
import { readerOf } from "../control/thread-reader.ts";
import type { Transaction } from "../control/transaction.ts";
import { mergeBackPoints } from "../lineage/merge-back.ts";
import { mergeBackTransfer } from "../lineage/transfer.ts";
import { requireThread } from "./thread-view.ts";

export interface MergeBackRequest {
  readonly fork: string;
  readonly target: string;
  /** A completed run of the fork; null for its latest stable point. */
  readonly run: RunId | null;
  readonly createdBy: TransferRecord["createdBy"];
}

/** A merge-back that was asked for. */
export type MergedBack = TransferRecord & {
  /** The conversation that the target is in was told all of it before: nothing comes of this (C7.6). */
  readonly nothingNew: boolean;
};

/** @throws RejectedError `MERGE_BACK_NOT_A_FORK`, `MERGE_BACK_SOURCE_UNSTABLE`, `THREAD_INVARIANT_VIOLATION`, `THREAD_CLOSED`, `THREAD_ARCHIVED`. */
export function mergeBack(tx: Transaction, request: MergeBackRequest): MergedBack {
  const fork = requireThread(tx.store, request.fork);
  const target = tx.agent(requireThread(tx.store, request.target).threadId);
  if (fork.thread === null || target.thread === null) {
    throw new RejectedError(
      "MERGE_BACK_NOT_A_FORK",
      `${fork.threadId} is no fork of ${target.threadId}; merge a fork into the thread it was forked from.`,
      { fork: fork.threadId, target: target.threadId },
    );
  }
  if (target.state !== "open") {
    throw new RejectedError(
      target.state === "closed" ? "THREAD_CLOSED" : "THREAD_ARCHIVED",
      `${target.threadId} is ${target.state} and has no run that could take it in; fork it to go on.`,
      { threadId: target.threadId, state: target.state },
    );
  }
  if (target.thread.continuity === "projected-only") {
    throw new RejectedError(
      "THREAD_INVARIANT_VIOLATION",
      `${target.threadId} is projected-only: each run opens on its pinned context, and no text would ever be told; pin there what the fork has found.`,
      { threadId: target.threadId, continuity: target.thread.continuity },
    );
  }
  const points = mergeBackPoints(
    { facts: fork.thread, reader: readerOf(tx.store, fork) },
    target.threadId,
    request.run,
  );
  const transfer = mergeBackTransfer({
    id: tx.id("xfr"),
    treeId: tx.treeId,
    source: fork.threadId,
    target: target.threadId,
    ...points,
    sourceProvider: tx.store.runAt(fork.threadId, points.sourcePoint.ordinal)?.provider ?? null,
    targetProvider: null,
    createdBy: request.createdBy,
    at: tx.now,
  });
  // A run that is about to begin may have sent the older one already; where it has not, its successor's start tells them apart.
  const older = startingRun(tx, target.threadId) === null ? tx.store.pendingTransfersTo(target.threadId) : [];
  for (const { id, type, sourceThreadId } of older)
    if (type === "merge_back" && sourceThreadId === fork.threadId) supersedeTransfer(tx, id, transfer.id);
  tx.store.putTransfer(transfer);
  // A `continue` that was planned before this is planned anew.
  const written = tx.putAgent(target, {});
  const { id, type } = transfer;
  tx.emit(
    "transfer.created",
    written,
    {},
    { transferId: id, type, target: target.path, fork: fork.threadId },
  );
  const active = target.thread.activeProviderThreadId;
  const inside = active === null ? undefined : tx.store.providerThread(active);
  const runs = runsBroughtBack(tx.store, fork, points.sourcePoint, inside ?? null);
  return { ...transfer, nothingNew: runs.length === 0 };
}
