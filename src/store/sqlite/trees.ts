/** What belongs to a tree and its owner: lease, receipts, commands, process groups. */
import type { CommandRecord, ReceiptRecord } from "../../protocol/command.ts";
import type { TreeId } from "../../protocol/ids.ts";
import type { LeaseRow, TreeRows } from "../backend.ts";
import { leaseState } from "../leases.ts";
import type { ProcessGroup } from "../port.ts";
import type { Connection } from "./connection.ts";
import { Table } from "./table.ts";
import type { ThreadNumbers } from "./thread-numbers.ts";

export function treeRows(connection: Connection, threads: ThreadNumbers, now: () => number): TreeRows {
  const leases = new Table<LeaseRow>(connection, { name: "leases", idOf: ({ treeId }) => treeId });
  const receipts = new Table<ReceiptRecord>(connection, {
    name: "receipts",
    idOf: ({ treeId, key }) => `${treeId} ${key}`,
  });
  const commands = new Table<CommandRecord>(connection, {
    name: "commands",
    idOf: ({ id }) => id,
    fixed: { tree: ({ treeId }) => threads.number(treeId) },
    moving: { pending: ({ state }) => (state === "pending" ? 1 : 0) },
    isWhole: (command) =>
      typeof command.treeId === "string" &&
      typeof command.state === "string" &&
      (command.verb === null || typeof command.verb === "string") &&
      typeof command.arguments === "object" &&
      command.arguments !== null,
  });
  const groupName = (tree: TreeId, pgid: number): string => `${tree} ${pgid}`;
  const groups = new Table<ProcessGroup>(connection, {
    name: "process_groups",
    idOf: ({ treeId, pgid }) => groupName(treeId, pgid),
    fixed: { tree: ({ treeId }) => threads.number(treeId) },
  });
  const pending = commands.list("WHERE tree = ? AND pending = 1 ORDER BY rowid");
  const arrival = connection.statement("SELECT 1 FROM mail WHERE tree = ? AND arrival = 1 LIMIT 1");
  const command = connection.statement("SELECT 1 FROM commands WHERE tree = ? AND pending = 1 LIMIT 1");
  const groupsOf = groups.readable("WHERE tree = ? ORDER BY rowid");
  const removeGroup = connection.statement("DELETE FROM process_groups WHERE id = ?");
  const busy = connection.statement(
    `SELECT id FROM threads WHERE number IN (
       SELECT tree FROM mail WHERE ready = 1
       UNION SELECT tree FROM commands WHERE pending = 1
       UNION SELECT tree FROM runs WHERE open = 1)`,
  );

  return {
    now,
    lease(id) {
      const row = leases.get(id);
      return row === undefined ? undefined : leaseState(row, now());
    },
    leaseRow: (id) => leases.get(id),
    putLease: (row) => leases.put(row),
    receipt: (tree, key) => receipts.get(`${tree} ${key}`),
    putReceipt: (record) => receipts.put(record),
    command: (id) => commands.get(id),
    pendingCommands: (tree) => pending(threads.find(tree)),
    putCommand: (record) => commands.put(record),
    withInbox: (trees) =>
      trees.filter((tree) => {
        const number = threads.find(tree);
        return arrival.get(number) !== undefined || command.get(number) !== undefined;
      }),
    processGroups: (tree) => groupsOf(threads.find(tree)),
    putProcessGroup: (record) => groups.put(record),
    removeProcessGroup: (tree, pgid) => void removeGroup.run(groupName(tree, pgid)),
    busyTrees: () => busy.all().map((row) => row[0] as TreeId),
  };
}
