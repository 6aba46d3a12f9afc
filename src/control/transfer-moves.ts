/** Moves of stored transfers that several plans make: each is told as an event (lineage C2.5). */
import type { AgentRecord } from "../protocol/agent.ts";
import type { RunId, TransferId } from "../protocol/ids.ts";
import type { ForkStrategy } from "../protocol/thread.ts";
import type { TransferRecord } from "../protocol/transfer.ts";
import { supersedeHandoff } from "../lineage/handoff-record.ts";
import { forkTransfer, handoffOf, supersede } from "../lineage/transfer.ts";
import type { Transaction } from "./transaction.ts";

/** In place of a fork's transfer that was resolved for an attempt which nobody accepted, and not in the way it is now (C2.5). */
export function forkAnew(tx: Transaction, given: TransferRecord): TransferRecord {
  const again = askForkAgain(tx, given);
  supersedeTransfer(tx, given.id, again.id);
  return again;
}

/** What a fork was to be given, or was given and has lost, is to come with its next run. */
export function askForkAgain(tx: Transaction, given: TransferRecord): TransferRecord {
  const { treeId, sourceThreadId, targetThreadId, sourcePoint, sourceProvider, sourceOutcome, createdBy } =
    given;
  const fresh = forkTransfer({
    id: tx.id("xfr"),
    treeId,
    source: sourceThreadId,
    target: targetThreadId,
    sourcePoint,
    sourceProvider,
    targetProvider: null,
    at: tx.now,
    strategy: given.requestedStrategy as ForkStrategy,
    sourceOutcome,
    carries: true,
    createdBy,
  });
  // A fork that may have been made is still looked for, and its siblings are still told of it (C5.19).
  const again: TransferRecord = { ...fresh, intent: given.intent };
  tx.store.putTransfer(again);
  const target = tx.agent(given.targetThreadId);
  const told = { transferId: again.id, type: again.type, target: target.path, again: given.id };
  tx.emit("transfer.created", target, {}, told);
  return again;
}

export function supersedeTransfer(tx: Transaction, id: TransferId, by: TransferId | null = null): void {
  const transfer = tx.store.transfer(id)!;
  dropText(tx, transfer);
  const moved = supersede(transfer, tx.now, by);
  tx.store.putTransfer(moved);
  tellMoved(tx, tx.agent(moved.targetThreadId), moved, null);
}

/** The text that is ready for a transfer is not sent any more. */
export function dropText(tx: Transaction, transfer: TransferRecord): void {
  const before = handoffOf(transfer);
  const handoff = before === null ? undefined : tx.store.handoff(before);
  if (handoff?.status === "ready") tx.store.putHandoff(supersedeHandoff(handoff, tx.now));
}

export function tellMoved(
  tx: Transaction,
  target: AgentRecord,
  { id, status }: TransferRecord,
  runId: RunId | null,
): void {
  tx.emit("transfer.moved", target, { runId }, { transferId: id, status });
}
