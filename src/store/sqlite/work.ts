/** Works and runs. Which works lie under a work stands in a table of edges, written with the work. */
import { isSettled, type RunRecord } from "../../protocol/run.ts";
import { HISTORY_LEVELS } from "../../protocol/thread.ts";
import type { WorkRecord } from "../../protocol/work.ts";
import type { WorkRows } from "../backend.ts";
import { unlessCorrupt } from "../corrupt-row.ts";
import type { Connection } from "./connection.ts";
import { endOf } from "./paths.ts";
import { Table } from "./table.ts";
import type { ThreadNumbers } from "./thread-numbers.ts";

export function workRows(connection: Connection, threads: ThreadNumbers): WorkRows {
  const works = new Table<WorkRecord>(connection, {
    name: "works",
    idOf: ({ id }) => id,
    fixed: {
      tree: ({ treeId }) => threads.number(treeId),
      executor: ({ executor }) => threads.number(executor),
      requester: ({ requester }) => (requester.kind === "agent" ? threads.number(requester.threadId) : null),
    },
    moving: {
      open: ({ state }) => (state === "ended" ? 0 : 1),
      begun: ({ state, begunAt }) => (state === "ended" ? null : begunAt),
      result_mail: ({ resultPending, resultMailId }) => (resultPending ? resultMailId : null),
    },
  });
  const runs = new Table<RunRecord>(connection, {
    name: "runs",
    idOf: ({ id }) => id,
    fixed: {
      tree: ({ treeId }) => threads.number(treeId),
      thread: ({ threadId }) => threads.number(threadId),
      ordinal: ({ ordinal }) => ordinal,
    },
    moving: {
      open: (run) => (isSettled(run) ? 0 : 1),
      history: ({ history }) => (history === null ? null : HISTORY_LEVELS.indexOf(history.level)),
    },
    isWhole: (run) =>
      typeof run.threadId === "string" &&
      typeof run.status === "string" &&
      typeof run.steps === "number" &&
      typeof run.firstItem === "number" &&
      Array.isArray(run.causes) &&
      Array.isArray(run.serves) &&
      Array.isArray(run.nativeTurns) &&
      typeof run.usage?.inputTokens === "number",
  });
  const ofTree = works.readablePages("tree = ?", "oldest first");
  const openOf = works.list("WHERE executor = ? AND open = 1 ORDER BY rowid");
  const openAskedBy = works.list("WHERE requester = ? AND open = 1 ORDER BY rowid");
  // In this order: of the whole tree the first is the one, of a subtree few stand before it.
  const oldestBegun = connection.statement(
    `SELECT begun FROM works CROSS JOIN agents ON number = executor
      WHERE works.tree = ? AND begun IS NOT NULL AND path >= ? AND path < ? ORDER BY begun LIMIT 1`,
  );
  const latest = works.list("WHERE executor = ? ORDER BY rowid DESC LIMIT 1");
  const latestAskedBy = works.list("WHERE executor = ? AND requester = ? ORDER BY rowid DESC LIMIT 1");
  const under = works.readable("JOIN work_parents ON work_id = id WHERE parent = ? ORDER BY works.rowid");
  const stranded = works.readable(
    `LEFT JOIN mail ON mail.id = result_mail
      WHERE requester = ? AND result_mail IS NOT NULL AND ifnull(unread, 0) = 0 ORDER BY works.rowid`,
  );
  const linkParent = connection.statement("INSERT INTO work_parents (parent, work_id) VALUES (?, ?)");
  const unlinkParents = connection.statement("DELETE FROM work_parents WHERE parent = ? AND work_id = ?");
  const ofThread = runs.pages("thread = ?", "oldest first");
  const at = runs.list("WHERE thread = ? AND ordinal = ? ORDER BY rowid LIMIT 1");
  const openRuns = runs.list("WHERE tree = ? AND open = 1 ORDER BY rowid");
  const worst = connection.statement(
    "SELECT max(history) FROM runs WHERE thread = ? AND history IS NOT NULL",
  );

  return {
    work: (id) => works.get(id),
    works: (tree, page) => ofTree(page, threads.find(tree)),
    openWorksOf: (executor) => openOf(threads.find(executor)),
    openWorksAskedBy: (requester) => openAskedBy(threads.find(requester)),
    oldestBegun: (tree, under) =>
      (oldestBegun.get(threads.find(tree), under, endOf(under))?.[0] ?? null) as number | null,
    latestWork: (executor, requester) =>
      (requester === undefined
        ? latest(threads.find(executor))
        : latestAskedBy(threads.find(executor), threads.find(requester))
      )[0],
    worksUnder: (id) => under(id),
    strandedResults: (requester) => stranded(threads.find(requester)),
    run: (id) => runs.get(id),
    runsOf: (id, page) => ofThread(page, threads.find(id)),
    runAt: (id, ordinal) => at(threads.find(id), ordinal)[0],
    openRuns: (tree) => openRuns(threads.find(tree)),
    worstHistory: (id) => HISTORY_LEVELS[(worst.get(threads.find(id))?.[0] ?? -1) as number] ?? null,
    putWork(record) {
      // Of one that was set aside, no edges are left.
      const parents = unlessCorrupt(() => works.get(record.id)?.parents, undefined) ?? [];
      works.put(record);
      for (const parent of parents)
        if (!record.parents.includes(parent)) unlinkParents.run(parent, record.id);
      for (const parent of record.parents) if (!parents.includes(parent)) linkParent.run(parent, record.id);
    },
    putRun: (record) => runs.put(record),
  };
}
