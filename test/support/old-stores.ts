/** Files as earlier versions left them. */
import type { DatabaseSync } from "node:sqlite";

/** Columns, and their indexes, by the version that added them. */
const ADDED: readonly (readonly [version: number, table: string, column: string])[] = [
  [8, "waits", "threads"],
  [7, "works", "result_mail"],
  [6, "runs", "history"],
  [6, "transfers", "taken"],
  [6, "transfers", "doubt"],
  [6, "provider_threads", "native"],
];

/** Takes back what versions after this one have added. */
export function backTo(version: number, database: DatabaseSync): void {
  for (const [since, table, column] of ADDED)
    if (since > version)
      database.exec(`DROP INDEX ${table}_${column}; ALTER TABLE ${table} DROP COLUMN ${column}`);
  database.exec(`PRAGMA user_version = ${version}`);
}
