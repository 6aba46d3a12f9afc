/** Transfers, handoffs and artifacts. */
import type { ArtifactRecord, HandoffRecord, TransferRecord } from "../../protocol/transfer.ts";
import type { TransferRows } from "../backend.ts";
import { unknownCursor } from "../cursor.ts";
import { isInDoubt, isPending, isTaken, requireTransfer } from "../transfer-rules.ts";
import type { Connection } from "./connection.ts";
import { Table } from "./table.ts";
import type { ThreadNumbers } from "./thread-numbers.ts";

export function transferRows(connection: Connection, threads: ThreadNumbers): TransferRows {
  const transfers = new Table<TransferRecord>(connection, {
    name: "transfers",
    idOf: ({ id }) => id,
    fixed: {
      tree: ({ treeId }) => threads.number(treeId),
      work_id: ({ workId }) => workId,
      type: ({ type }) => type,
      source: ({ sourceThreadId }) => threads.number(sourceThreadId),
      target: ({ targetThreadId }) => threads.number(targetThreadId),
      taken: (one) => (isTaken(one) ? one.createdAt : null),
    },
    moving: { pending: (one) => (isPending(one) ? 1 : 0), doubt: (one) => (isInDoubt(one) ? 1 : 0) },
  });
  const handoffs = new Table<HandoffRecord>(connection, {
    name: "handoffs",
    idOf: ({ id }) => id,
    fixed: { thread: ({ threadId }) => threads.number(threadId) },
  });
  const artifacts = new Table<ArtifactRecord>(connection, { name: "artifacts", idOf: ({ id }) => id });
  const ofTree = transfers.pages("tree = ?", "oldest first");
  const ofWork = transfers.list("WHERE work_id = ? AND type = ? ORDER BY rowid DESC LIMIT 1");
  // Two indexes merged by age, so that a page costs what it returns.
  const ofThread = connection.statement(
    `SELECT id, body, rowid AS place FROM transfers WHERE source = ?1 AND rowid > ?2
      UNION ALL
     SELECT id, body, rowid FROM transfers WHERE target = ?1 AND source <> ?1 AND rowid > ?2
      ORDER BY place LIMIT ?3`,
  );
  const placeOf = connection.statement("SELECT rowid FROM transfers WHERE id = ?");
  const pendingTo = transfers.list("WHERE target = ? AND pending = 1 ORDER BY rowid");
  const inDoubt = transfers.list("WHERE doubt = 1 ORDER BY rowid");
  const lastTaken = connection.statement(
    "SELECT max(taken) FROM transfers WHERE source = ? AND taken IS NOT NULL",
  );
  const handoffsOf = handoffs.pages("thread = ?", "oldest first");

  return {
    transfer: (id) => transfers.get(id),
    transferOfWork: (work, type) => ofWork(work, type)[0],
    transfers: (tree, page) => ofTree(page, threads.find(tree)),
    transfersOf(id, { after = null, limit }) {
      const place = after === null ? 0 : (placeOf.get(after)?.[0] as number | undefined);
      if (place === undefined) throw unknownCursor(after!);
      const rows = ofThread.all(threads.find(id), place, limit + 1);
      return transfers.page(rows, limit);
    },
    pendingTransfersTo: (id) => pendingTo(threads.find(id)),
    forksInDoubt: () => inDoubt(),
    lastTakenOf: (id) => (lastTaken.get(threads.find(id))?.[0] ?? null) as number | null,
    handoff: (id) => handoffs.get(id),
    handoffsOf: (id, page) => handoffsOf(page, threads.find(id)),
    artifact: (id) => artifacts.get(id),
    putTransfer(record) {
      requireTransfer(record);
      transfers.put(record);
    },
    putHandoff: (record) => handoffs.put(record),
    putArtifact: (record) => artifacts.put(record),
  };
}
