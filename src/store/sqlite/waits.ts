/** Waits and runtime requests. Edges from works to open waits go when the wait ends, so that they stay few. */
import type { RuntimeRequestRecord, WaitRecord } from "../../protocol/wait.ts";
import type { WaitRows } from "../backend.ts";
import { requireOwnRequest } from "../request-rules.ts";
import type { Connection } from "./connection.ts";
import { Table } from "./table.ts";
import type { ThreadNumbers } from "./thread-numbers.ts";

export function waitRows(connection: Connection, threads: ThreadNumbers): WaitRows {
  const waits = new Table<WaitRecord>(connection, {
    name: "waits",
    idOf: ({ id }) => id,
    fixed: {
      tree: ({ treeId }) => threads.number(treeId),
      thread: ({ threadId }) => threads.number(threadId),
      run_id: ({ runId }) => runId,
      threads: (wait) => (wait.threads === undefined ? 0 : 1),
    },
    moving: { open: ({ end }) => (end === null ? 1 : 0), deadline: ({ deadlineAt }) => deadlineAt },
    isWhole: (wait) =>
      typeof wait.threadId === "string" &&
      typeof wait.runId === "string" &&
      typeof wait.callId === "string" &&
      typeof wait.step === "number" &&
      Array.isArray(wait.works) &&
      Array.isArray(wait.agents),
  });
  const requests = new Table<RuntimeRequestRecord>(connection, {
    name: "requests",
    idOf: ({ id }) => id,
    fixed: { thread: ({ threadId }) => threads.number(threadId) },
    moving: { open: ({ status }) => (status === "pending" ? 1 : 0) },
    isWhole: (request) =>
      typeof request.threadId === "string" &&
      typeof request.runId === "string" &&
      typeof request.callId === "string" &&
      typeof request.status === "string",
  });
  const openOf = waits.list("WHERE thread = ? AND open = 1 ORDER BY rowid");
  const ofRun = waits.list("WHERE run_id = ? ORDER BY rowid");
  const on = waits.list("JOIN wait_works ON wait_id = id WHERE work_id = ? ORDER BY waits.rowid");
  const due = waits.list("WHERE tree = ? AND open = 1 AND deadline <= ? ORDER BY deadline, rowid LIMIT ?");
  const onThreads = waits.list("WHERE tree = ? AND open = 1 AND threads = 1 ORDER BY rowid");
  const next = connection.statement("SELECT MIN(deadline) FROM waits WHERE tree = ? AND open = 1");
  const link = connection.statement(
    "INSERT INTO wait_works (work_id, wait_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
  );
  const unlink = connection.statement("DELETE FROM wait_works WHERE work_id = ? AND wait_id = ?");
  const openRequests = requests.list("WHERE thread = ? AND open = 1 ORDER BY rowid");

  return {
    wait: (id) => waits.get(id),
    openWaitsOf: (id) => openOf(threads.find(id)),
    waitsOfRun: (id) => ofRun(id),
    openWaitsOn: (work) => on(work),
    nextDeadline: (tree) => next.get(threads.find(tree))![0] as number | null,
    dueWaits: (tree, at, limit) => due(threads.find(tree), at, limit),
    openThreadWaits: (tree) => onThreads(threads.find(tree)),
    request: (id) => requests.get(id),
    openRequestsOf: (id) => openRequests(threads.find(id)),
    putWait(record) {
      waits.put(record);
      const edge = record.end === null ? link : unlink;
      for (const work of record.works) edge.run(work, record.id);
    },
    putRequest(record) {
      requireOwnRequest(record, () => requests.get(record.id));
      requests.put(record);
    },
  };
}
