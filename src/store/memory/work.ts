/** Works and runs in memory. */
import { isWithin } from "../../protocol/agent-path.ts";
import type { MailId } from "../../protocol/ids.ts";
import type { RunRecord } from "../../protocol/run.ts";
import { isSettled } from "../../protocol/run.ts";
import { HISTORY_LEVELS } from "../../protocol/thread.ts";
import type { WorkRecord } from "../../protocol/work.ts";
import type { WorkRows } from "../backend.ts";
import type { Journal } from "./journal.ts";
import { type Freeze, type Index, Table } from "./table.ts";

export interface MemoryWork {
  readonly rows: WorkRows;
  readonly works: Table<WorkRecord>;
  readonly runs: Table<RunRecord>;
  /** Runs that are not settled, by tree. */
  readonly openRuns: Index<RunRecord>;
}

export function workRows(journal: Journal, freeze: Freeze, isUnread: (mail: MailId) => boolean): MemoryWork {
  const works = new Table<WorkRecord>(journal, freeze, ({ id }) => id);
  const worksOfTree = works.paged(({ treeId }) => treeId);
  const openOf = works.index(({ state, executor }) => (state === "ended" ? null : executor));
  const openAskedBy = works.index((work) => (work.state === "ended" ? null : askerOf(work)));
  const begunOf = works.index(({ state, begunAt, treeId }) =>
    state === "ended" || begunAt === null ? null : treeId,
  );
  const byExecutor = works.index(({ executor }) => executor);
  const byParent = works.index(({ parents }) => parents);
  const pendingOf = works.index((work) => (work.resultPending ? askerOf(work) : null));
  const runs = new Table<RunRecord>(journal, freeze, ({ id }) => id);
  const runsOfThread = runs.paged(({ threadId }) => threadId);
  const runAt = runs.index(({ threadId, ordinal }) => `${threadId} ${ordinal}`);
  const openRuns = runs.index((run) => (isSettled(run) ? null : run.treeId));
  const collected = runs.index(({ history, threadId }) =>
    history === null ? null : `${threadId} ${history.level}`,
  );

  return {
    rows: {
      work: (id) => works.get(id),
      works: (tree, page) => worksOfTree.readablePage(tree, page, "oldest first"),
      openWorksOf: (executor) => openOf.get(executor),
      openWorksAskedBy: (requester) => openAskedBy.get(requester),
      oldestBegun: (tree, under) => {
        let oldest: number | null = null;
        for (const { executorPath, begunAt } of begunOf.stored(tree))
          if (isWithin(executorPath, under)) oldest = Math.min(oldest ?? Infinity, begunAt!);
        return oldest;
      },
      latestWork: (executor, requester) => {
        const latest = byExecutor
          .stored(executor)
          .findLast((work) => requester === undefined || askerOf(work) === requester);
        return latest && works.get(latest.id);
      },
      worksUnder: (id) => byParent.readable(id),
      strandedResults: (requester) =>
        pendingOf
          .readable(requester)
          .filter(({ resultMailId }) => resultMailId !== null && !isUnread(resultMailId)),
      run: (id) => runs.get(id),
      runsOf: (id, page) => runsOfThread.page(id, page, "oldest first"),
      runAt: (id, ordinal) => runAt.first(`${id} ${ordinal}`),
      openRuns: (tree) => openRuns.get(tree),
      worstHistory: (id) =>
        HISTORY_LEVELS.findLast((level) => collected.first(`${id} ${level}`) !== undefined) ?? null,
      putWork: (record) => void works.put(record),
      putRun: (record) => void runs.put(record),
    },
    works,
    runs,
    openRuns,
  };
}

function askerOf({ requester }: WorkRecord): string | null {
  return requester.kind === "agent" ? requester.threadId : null;
}
