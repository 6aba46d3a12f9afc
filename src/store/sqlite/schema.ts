/**
 * Whose file it is, and how it is brought to the current version. `application_id` says that a file is ours,
 * `user_version` how far it was migrated. A file of a newer version, or of somebody else, is left as it is.
 */
import type { DatabaseSync } from "node:sqlite";
import { RejectedError } from "../../protocol/errors.ts";
import { MIGRATIONS } from "./migrations.ts";

/** "copp" as a number. */
export const APPLICATION_ID = 0x63_6f_70_70;

export const SCHEMA_VERSION = MIGRATIONS.length;

/** Whose file it is, read without changing it. @throws RejectedError `STORE_CORRUPT`, `STORE_VERSION` */
export function inspectFile(database: DatabaseSync, path: string): "empty" | "current" | "older" {
  const application = numberOf(database, "SELECT application_id FROM pragma_application_id");
  const version = numberOf(database, "SELECT user_version FROM pragma_user_version");
  if (application !== APPLICATION_ID) {
    const objects = numberOf(database, "SELECT COUNT(*) FROM sqlite_schema");
    if (application === 0 && version === 0 && objects === 0) return "empty";
    throw new RejectedError(
      "STORE_CORRUPT",
      `The file ${path} is a database of another program and was left as it is; give the store a file of its own.`,
      { path, applicationId: application },
    );
  }
  if (version > SCHEMA_VERSION) {
    throw new RejectedError(
      "STORE_VERSION",
      `The store ${path} has version ${version} and this program knows versions up to ${SCHEMA_VERSION}; ` +
        "it was left as it is. Update Coppice, or use another store.",
      { path, version, known: SCHEMA_VERSION },
    );
  }
  return version === SCHEMA_VERSION ? "current" : "older";
}

/** Brings a file to the current version in one transaction; another process may be doing the same. */
export function migrate(database: DatabaseSync, path: string): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    if (inspectFile(database, path) !== "current") {
      const version = numberOf(database, "SELECT user_version FROM pragma_user_version");
      for (const migration of MIGRATIONS.slice(version)) database.exec(migration);
      database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`);
    }
    database.exec("COMMIT");
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

function numberOf(database: DatabaseSync, sql: string): number {
  return Object.values(database.prepare(sql).get() ?? {})[0] as number;
}
