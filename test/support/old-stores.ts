/** Files as earlier versions left them. */
import type { DatabaseSync } from "node:sqlite";

/** Takes back what version 6 has added. */
export function backToFive(database: DatabaseSync): void {
  for (const [table, column] of [
    ["runs", "history"],
    ["transfers", "taken"],
    ["transfers", "doubt"],
    ["provider_threads", "native"],
  ])
    database.exec(`DROP INDEX ${table}_${column}; ALTER TABLE ${table} DROP COLUMN ${column}`);
  database.exec("PRAGMA user_version = 5");
}
