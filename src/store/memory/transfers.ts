/** Transfers, handoffs and artifacts in memory. */
import type { ArtifactRecord, HandoffRecord, TransferRecord } from "../../protocol/transfer.ts";
import type { TransferRows } from "../backend.ts";
import { isInDoubt, isPending, isTaken, requireTransfer } from "../transfer-rules.ts";
import type { Journal } from "./journal.ts";
import { type Freeze, Table } from "./table.ts";

export function transferRows(journal: Journal, freeze: Freeze): TransferRows {
  const transfers = new Table<TransferRecord>(journal, freeze, ({ id }) => id);
  const ofTree = transfers.paged(({ treeId }) => treeId);
  const ofWork = transfers.index(({ workId, type }) => (workId === null ? null : `${workId} ${type}`));
  const ofThread = transfers.paged((one) => [one.sourceThreadId, one.targetThreadId]);
  const pendingTo = transfers.index((one) => (isPending(one) ? one.targetThreadId : null));
  const inDoubt = transfers.index((one) => (isInDoubt(one) ? "" : null));
  const takenOf = transfers.index((one) => (isTaken(one) ? one.sourceThreadId : null));
  const handoffs = new Table<HandoffRecord>(journal, freeze, ({ id }) => id);
  const handoffsOf = handoffs.paged(({ threadId }) => threadId);
  const artifacts = new Table<ArtifactRecord>(journal, freeze, ({ id }) => id);

  return {
    transfer: (id) => transfers.get(id),
    transferOfWork: (work, type) => ofWork.get(`${work} ${type}`).at(-1),
    transfers: (tree, page) => ofTree.page(tree, page, "oldest first"),
    transfersOf: (id, page) => ofThread.page(id, page, "oldest first"),
    pendingTransfersTo: (id) => pendingTo.get(id),
    forksInDoubt: () => inDoubt.get(""),
    lastTakenOf(id) {
      let last: number | null = null;
      for (const { createdAt } of takenOf.each(id)) last = Math.max(last ?? createdAt, createdAt);
      return last;
    },
    handoff: (id) => handoffs.get(id),
    handoffsOf: (id, page) => handoffsOf.page(id, page, "oldest first"),
    artifact: (id) => artifacts.get(id),
    putTransfer(record) {
      requireTransfer(record);
      transfers.put(record);
    },
    putHandoff: (record) => void handoffs.put(record),
    putArtifact: (record) => void artifacts.put(record),
  };
}
