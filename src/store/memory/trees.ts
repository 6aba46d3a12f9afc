/** What belongs to a tree and its owner, in memory: lease, receipts, commands, process groups. */
import type { CommandRecord, ReceiptRecord } from "../../protocol/command.ts";
import type { TreeId } from "../../protocol/ids.ts";
import type { LeaseRow, TreeRows } from "../backend.ts";
import { leaseState } from "../leases.ts";
import type { ProcessGroup } from "../port.ts";
import type { Journal } from "./journal.ts";
import { type Freeze, type Index, Table } from "./table.ts";

export interface MemoryTrees {
  readonly rows: TreeRows;
  readonly commands: Table<CommandRecord>;
  /** By tree. */
  readonly pending: Index<CommandRecord>;
}

export function treeRows(
  journal: Journal,
  freeze: Freeze,
  now: () => number,
  otherBusyTrees: () => Iterable<string>,
  hasArrivals: (tree: TreeId) => boolean,
): MemoryTrees {
  const leases = new Table<LeaseRow>(journal, freeze, ({ treeId }) => treeId);
  const receipts = new Table<ReceiptRecord>(journal, freeze, ({ treeId, key }) => `${treeId} ${key}`);
  const commands = new Table<CommandRecord>(journal, freeze, ({ id }) => id);
  const pending = commands.index(({ state, treeId }) => (state === "pending" ? treeId : null));
  const groupName = (tree: TreeId, pgid: number): string => `${tree} ${pgid}`;
  const groups = new Table<ProcessGroup>(journal, freeze, ({ treeId, pgid }) => groupName(treeId, pgid));
  const groupsOf = groups.index(({ treeId }) => treeId);

  return {
    commands,
    pending,
    rows: {
      now,
      lease(id) {
        const row = leases.get(id);
        return row === undefined ? undefined : leaseState(row, now());
      },
      leaseRow: (id) => leases.get(id),
      putLease: (row) => void leases.put(row),
      receipt: (tree, key) => receipts.get(`${tree} ${key}`),
      putReceipt: (record) => void receipts.put(record),
      command: (id) => commands.get(id),
      pendingCommands: (tree) => pending.get(tree),
      putCommand: (record) => void commands.put(record),
      withInbox: (trees) => trees.filter((tree) => hasArrivals(tree) || pending.has(tree)),
      processGroups: (tree) => groupsOf.get(tree),
      putProcessGroup: (record) => void groups.put(record),
      removeProcessGroup: (tree, pgid) => groups.remove(groupName(tree, pgid)),
      busyTrees: () => [...new Set([...pending.keys(), ...otherBusyTrees()])] as TreeId[],
    },
  };
}
