/** Names of what is under way in a tree, from columns alone: no body is read. */
import type { BackendTx } from "../backend.ts";
import type { OpenRow } from "../port.ts";
import type { Connection } from "./connection.ts";
import type { ThreadNumbers } from "./thread-numbers.ts";

export function openRows(connection: Connection, threads: ThreadNumbers): Pick<BackendTx, "openRows"> {
  const named = (
    [
      ["runs", "runs JOIN threads ON number = thread WHERE tree = ? AND open = 1"],
      ["waits", "waits JOIN threads ON number = thread WHERE tree = ? AND open = 1"],
      // A question is of a run that is not settled.
      [
        "requests",
        `runs JOIN requests ON requests.thread = runs.thread AND requests.open = 1
           JOIN threads ON number = runs.thread WHERE runs.tree = ? AND runs.open = 1`,
      ],
      ["commands", "commands JOIN threads ON number = tree WHERE tree = ? AND pending = 1"],
    ] as const
  ).map(([table, from]) => ({
    table,
    rows: connection.statement(`SELECT ${table}.id, threads.id FROM ${from} ORDER BY ${table}.rowid`),
  }));
  return {
    openRows(tree) {
      const number = threads.find(tree);
      return named.flatMap(({ table, rows }) =>
        rows.all(number).map(([id, threadId]) => ({ table, id, threadId }) as OpenRow),
      );
    },
  };
}
