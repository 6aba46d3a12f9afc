/** Rows that cannot be read: kept aside as they are, and told by the columns beside their bodies (MBX-10, REC-1). */
import type { RunId, ThreadId } from "../../protocol/ids.ts";
import type { BackendTx } from "../backend.ts";
import { isUnreadable } from "../corrupt-row.ts";
import type { BrokenRow, MendableTable } from "../port.ts";
import type { Connection, Statement } from "./connection.ts";

type Readers = Pick<BackendTx, "run" | "wait" | "request" | "command">;

export function setAsideRows(connection: Connection, readers: Readers): Pick<BackendTx, "setAside"> {
  const ofTable = (
    table: MendableTable,
    runId: string,
    thread = "thread",
    open = "open",
  ): { keep: Statement; columns: Statement } => ({
    keep: connection.statement(
      `INSERT INTO unreadable_bodies (id, body) SELECT id, body FROM ${table} WHERE id = ? ON CONFLICT DO NOTHING`,
    ),
    columns: connection.statement(
      `SELECT threads.id, ${runId}, ${open} FROM ${table} JOIN threads ON number = ${thread} WHERE ${table}.id = ?`,
    ),
  });
  const tables = {
    runs: { ...ofTable("runs", "NULL"), read: readers.run as (id: string) => unknown },
    waits: { ...ofTable("waits", "run_id"), read: readers.wait as (id: string) => unknown },
    requests: { ...ofTable("requests", "NULL"), read: readers.request as (id: string) => unknown },
    commands: {
      ...ofTable("commands", "NULL", "tree", "pending"),
      read: readers.command as (id: string) => unknown,
    },
  };
  // What a wait was on stands in edges, which the record that stands in for it does not know of.
  const unlink = connection.statement("DELETE FROM wait_works WHERE wait_id = ?");

  return {
    setAside(table, id): BrokenRow | undefined {
      const { read, keep, columns } = tables[table];
      if (!isUnreadable(() => read(id))) return undefined;
      keep.run(id);
      if (table === "waits") unlink.run(id);
      const [threadId, runId, open] = columns.get(id)! as [ThreadId, RunId | null, number];
      return { threadId, runId, open: open === 1 };
    },
  };
}
