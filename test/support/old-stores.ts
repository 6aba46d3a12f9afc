/** Files as earlier versions left them. */
import type { DatabaseSync } from "node:sqlite";

/** Indexes by the version that added them, with their columns where these are as new. */
const ADDED: readonly (readonly [version: number, table: string, name: string, column?: "old"])[] = [
  [9, "agents", "worked_in", "old"],
  [8, "waits", "threads"],
  [7, "works", "result_mail"],
  [6, "runs", "history"],
  [6, "transfers", "taken"],
  [6, "transfers", "doubt"],
  [6, "provider_threads", "native"],
];

/** Takes back what versions after this one have added. */
export function backTo(version: number, database: DatabaseSync): void {
  for (const [since, table, name, column] of ADDED) {
    if (since <= version) continue;
    database.exec(`DROP INDEX ${table}_${name}`);
    if (column !== "old") database.exec(`ALTER TABLE ${table} DROP COLUMN ${name}`);
  }
  database.exec(`PRAGMA user_version = ${version}`);
}
