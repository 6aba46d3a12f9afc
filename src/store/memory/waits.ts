/** Waits and runtime requests in memory. */
import type { TreeId } from "../../protocol/ids.ts";
import type { RuntimeRequestRecord, WaitRecord } from "../../protocol/wait.ts";
import type { WaitRows } from "../backend.ts";
import { requireOwnRequest } from "../request-rules.ts";
import { Deadlines } from "./deadlines.ts";
import type { Journal } from "./journal.ts";
import { type Freeze, type Index, Table } from "./table.ts";

export interface MemoryWaits {
  readonly rows: WaitRows;
  readonly waits: Table<WaitRecord>;
  readonly requests: Table<RuntimeRequestRecord>;
  /** By tree. */
  readonly openWaits: Index<WaitRecord>;
  /** By thread. */
  readonly openRequests: Index<RuntimeRequestRecord>;
}

export function waitRows(journal: Journal, freeze: Freeze): MemoryWaits {
  const waits = new Table<WaitRecord>(journal, freeze, ({ id }) => id);
  const whileOpen = <K>(wait: WaitRecord, key: K): K | null => (wait.end === null ? key : null);
  const openOf = waits.index((wait) => whileOpen(wait, wait.threadId));
  const openWaits = waits.index((wait) => whileOpen(wait, wait.treeId));
  const openOn = waits.index((wait) => whileOpen(wait, wait.works));
  const onThreads = waits.index((wait) => (wait.threads === undefined ? null : whileOpen(wait, wait.treeId)));
  const byRun = waits.index(({ runId }) => runId);
  const deadlines = new Map<TreeId, Deadlines>();
  const requests = new Table<RuntimeRequestRecord>(journal, freeze, ({ id }) => id);
  const openRequests = requests.index(({ status, threadId }) => (status === "pending" ? threadId : null));

  const isOpen = (id: string, at: number): boolean => {
    const wait = waits.damaged(id) ?? waits.get(id);
    return wait !== undefined && wait.end === null && wait.deadlineAt === at;
  };

  function arm(wait: WaitRecord): void {
    const heap = deadlines.get(wait.treeId) ?? new Deadlines();
    deadlines.set(wait.treeId, heap);
    heap.add(wait.deadlineAt, wait.id);
  }

  const rows: WaitRows = {
    wait: (id) => waits.get(id),
    openWaitsOf: (id) => openOf.get(id),
    waitsOfRun: (id) => byRun.get(id),
    openWaitsOn: (work) => openOn.get(work),
    nextDeadline: (tree) => deadlines.get(tree)?.earliest(isOpen) ?? null,
    dueWaits: (tree, at, limit) =>
      openWaits
        .get(tree)
        .filter(({ deadlineAt }) => deadlineAt <= at)
        .sort((a, b) => a.deadlineAt - b.deadlineAt)
        .slice(0, limit),
    openThreadWaits: (tree) => onThreads.get(tree),
    request: (id) => requests.get(id),
    openRequestsOf: (id) => openRequests.get(id),
    putWait(record) {
      const before = waits.put(record);
      if (record.end === null && before?.deadlineAt !== record.deadlineAt) arm(record);
      // The heap forgets ended waits as it is read; one that is open again after a rollback must be in it.
      if (before !== undefined && before.end === null) journal.record(() => arm(before));
    },
    putRequest(record) {
      requireOwnRequest(record, () => requests.get(record.id));
      requests.put(record);
    },
  };
  return { rows, waits, requests, openWaits, openRequests };
}
