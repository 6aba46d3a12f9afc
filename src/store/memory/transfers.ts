/** Transfers, handoffs and artifacts in memory. */
import type { ArtifactRecord, HandoffRecord, TransferRecord } from "../../protocol/transfer.ts";
import type { TransferRows } from "../backend.ts";
import { isPending } from "../pending-transfer.ts";
import type { Journal } from "./journal.ts";
import { type Freeze, pageOf, Table } from "./table.ts";

export function transferRows(journal: Journal, freeze: Freeze): TransferRows {
  const transfers = new Table<TransferRecord>(journal, freeze, ({ id }) => id);
  const ofTree = transfers.index(({ treeId }) => treeId);
  const ofWork = transfers.index(({ workId, type }) => (workId === null ? null : `${workId} ${type}`));
  const pendingTo = transfers.index((one) => (isPending(one) ? one.targetThreadId : null));
  const handoffs = new Table<HandoffRecord>(journal, freeze, ({ id }) => id);
  const artifacts = new Table<ArtifactRecord>(journal, freeze, ({ id }) => id);

  return {
    transfer: (id) => transfers.get(id),
    transferOfWork: (work, type) => ofWork.get(`${work} ${type}`).at(-1),
    transfers: (tree, page) => pageOf(ofTree.get(tree), page, ({ id }) => id),
    pendingTransfersTo: (id) => pendingTo.get(id),
    handoff: (id) => handoffs.get(id),
    artifact: (id) => artifacts.get(id),
    putTransfer: (record) => void transfers.put(record),
    putHandoff: (record) => void handoffs.put(record),
    putArtifact: (record) => void artifacts.put(record),
  };
}
