/** The result of a work whose asking run was rolled back, brought in at the user's wish (lineage C8.9, C9.2). */
import { RejectedError } from "../protocol/errors.ts";
import type { TransferRecord } from "../protocol/transfer.ts";
import { sendKeptResult } from "../control/results.ts";
import { must, type Transaction } from "../control/transaction.ts";

/**
 * Puts it into the mailbox of whoever was owed it, where the next run finds it; it starts none.
 * @throws RejectedError `SOURCE_POINT_NOT_FOUND`; `TRANSFER_STATE_INVALID` for one that is not kept back.
 */
export function inject(tx: Transaction, id: string): TransferRecord {
  const transfer = tx.store.transfer(id as TransferRecord["id"]);
  if (transfer === undefined || transfer.treeId !== tx.treeId) throw unknownTransfer(id);
  if (transfer.type !== "subagent_result" || !transfer.staleBase) {
    throw new RejectedError(
      "TRANSFER_STATE_INVALID",
      `${transfer.id} (${transfer.type}, ${transfer.status}) is not kept back by a rollback, so there is nothing to bring in.`,
      { transferId: transfer.id, type: transfer.type, status: transfer.status },
    );
  }
  const work = must(tx.store.work(transfer.workId!), "work", transfer.workId!);
  tx.store.putWork(sendKeptResult(tx, work));
  const released: TransferRecord = { ...transfer, staleBase: false, updatedAt: tx.now };
  tx.store.putTransfer(released);
  tx.emit(
    "transfer.moved",
    tx.agent(transfer.targetThreadId),
    { workId: work.id },
    { transferId: transfer.id, status: transfer.status, injected: true },
  );
  return released;
}

export function unknownTransfer(id: string): RejectedError {
  return new RejectedError(
    "SOURCE_POINT_NOT_FOUND",
    `no transfer \`${id.slice(0, 80)}\` is in this store; list the transfers of the thread.`,
    { transferId: id.slice(0, 80) },
  );
}
