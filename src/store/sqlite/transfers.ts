/** Transfers, handoffs and artifacts. */
import type { ArtifactRecord, HandoffRecord, TransferRecord } from "../../protocol/transfer.ts";
import type { TransferRows } from "../backend.ts";
import { isPending } from "../pending-transfer.ts";
import type { Connection } from "./connection.ts";
import { Table } from "./table.ts";
import type { Threads } from "./threads.ts";

export function transferRows(connection: Connection, threads: Threads): TransferRows {
  const transfers = new Table<TransferRecord>(connection, {
    name: "transfers",
    idOf: ({ id }) => id,
    fixed: {
      tree: ({ treeId }) => threads.number(treeId),
      work_id: ({ workId }) => workId,
      type: ({ type }) => type,
      target: ({ targetThreadId }) => threads.number(targetThreadId),
    },
    moving: { pending: (one) => (isPending(one) ? 1 : 0) },
  });
  const handoffs = new Table<HandoffRecord>(connection, { name: "handoffs", idOf: ({ id }) => id });
  const artifacts = new Table<ArtifactRecord>(connection, { name: "artifacts", idOf: ({ id }) => id });
  const ofTree = transfers.pages("tree = ?", "oldest first");
  const ofWork = transfers.list("WHERE work_id = ? AND type = ? ORDER BY rowid DESC LIMIT 1");
  const pendingTo = transfers.list("WHERE target = ? AND pending = 1 ORDER BY rowid");

  return {
    transfer: (id) => transfers.get(id),
    transferOfWork: (work, type) => ofWork(work, type)[0],
    transfers: (tree, page) => ofTree(page, threads.find(tree)),
    pendingTransfersTo: (id) => pendingTo(threads.find(id)),
    handoff: (id) => handoffs.get(id),
    artifact: (id) => artifacts.get(id),
    putTransfer: (record) => transfers.put(record),
    putHandoff: (record) => handoffs.put(record),
    putArtifact: (record) => artifacts.put(record),
  };
}
