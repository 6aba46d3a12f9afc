/**
 * The schema and its migrations. `application_id` says that a file is ours, `user_version` how far it was migrated. A
 * file of a newer version, or of somebody else, is left as it is.
 *
 * Bodies stand in rowid tables: a clustered key would split their pages at every insert. Partial indexes hold only what
 * is unread, open or pending, so that they stay small for the life of a tree. Threads and trees have numbers
 * (`threads.ts`).
 */
import type { DatabaseSync } from "node:sqlite";
import { RejectedError } from "../../protocol/errors.ts";

/** "copp" as a number. */
export const APPLICATION_ID = 0x63_6f_70_70;

const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE threads (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE) STRICT;
  CREATE TABLE trees (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
  CREATE TABLE leases (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;

  CREATE TABLE agents (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL, tree INTEGER NOT NULL, path TEXT NOT NULL, parent INTEGER,
    token TEXT NOT NULL, open INTEGER NOT NULL, input INTEGER NOT NULL, cached INTEGER NOT NULL,
    output INTEGER NOT NULL, reasoning INTEGER NOT NULL, cost REAL, complete INTEGER NOT NULL, body TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX agents_path ON agents (tree, path);
  CREATE INDEX agents_token ON agents (token);
  CREATE INDEX agents_parent ON agents (parent) WHERE parent IS NOT NULL;

  CREATE TABLE mail (
    id TEXT PRIMARY KEY, tree INTEGER NOT NULL, box INTEGER NOT NULL, seq INTEGER NOT NULL,
    unread INTEGER NOT NULL, ready INTEGER NOT NULL, arrival INTEGER NOT NULL, bytes INTEGER NOT NULL,
    created_at REAL NOT NULL, author_key TEXT, run_id TEXT, body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX mail_box ON mail (box, unread, seq);
  CREATE INDEX mail_ready ON mail (tree) WHERE ready = 1;
  CREATE INDEX mail_arrival ON mail (tree) WHERE arrival = 1;
  CREATE INDEX mail_run ON mail (run_id) WHERE run_id IS NOT NULL;
  CREATE UNIQUE INDEX mail_key ON mail (author_key) WHERE author_key IS NOT NULL;
  CREATE TABLE mailboxes (
    box INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, unread INTEGER NOT NULL, unread_bytes INTEGER NOT NULL,
    triggers INTEGER NOT NULL, reserved_messages INTEGER NOT NULL, reserved_bytes INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE unreadable_bodies (id TEXT PRIMARY KEY, body ANY) STRICT;

  CREATE TABLE works (
    id TEXT PRIMARY KEY, tree INTEGER NOT NULL, executor INTEGER NOT NULL, requester INTEGER, open INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX works_tree ON works (tree);
  CREATE INDEX works_executor ON works (executor);
  CREATE INDEX works_open ON works (executor) WHERE open = 1;
  CREATE INDEX works_asked ON works (requester) WHERE open = 1;
  CREATE TABLE work_parents (parent TEXT NOT NULL, work_id TEXT NOT NULL, PRIMARY KEY (parent, work_id))
    STRICT, WITHOUT ROWID;

  CREATE TABLE runs (
    id TEXT PRIMARY KEY, tree INTEGER NOT NULL, thread INTEGER NOT NULL, open INTEGER NOT NULL, body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX runs_thread ON runs (thread);
  CREATE INDEX runs_open ON runs (tree) WHERE open = 1;

  CREATE TABLE items (thread INTEGER NOT NULL, position INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
  CREATE UNIQUE INDEX items_position ON items (thread, position);
  CREATE TABLE events (tree INTEGER NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
  CREATE UNIQUE INDEX events_seq ON events (tree, seq);

  CREATE TABLE waits (
    id TEXT PRIMARY KEY, tree INTEGER NOT NULL, thread INTEGER NOT NULL, run_id TEXT NOT NULL,
    open INTEGER NOT NULL, deadline REAL NOT NULL, body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX waits_run ON waits (run_id);
  CREATE INDEX waits_open ON waits (thread) WHERE open = 1;
  CREATE INDEX waits_deadline ON waits (tree, deadline) WHERE open = 1;
  CREATE TABLE wait_works (work_id TEXT NOT NULL, wait_id TEXT NOT NULL, PRIMARY KEY (work_id, wait_id))
    STRICT, WITHOUT ROWID;
  CREATE TABLE requests (id TEXT PRIMARY KEY, thread INTEGER NOT NULL, open INTEGER NOT NULL, body TEXT NOT NULL)
    STRICT;
  CREATE INDEX requests_open ON requests (thread) WHERE open = 1;

  CREATE TABLE transfers (
    id TEXT PRIMARY KEY, tree INTEGER NOT NULL, work_id TEXT, type TEXT NOT NULL, target INTEGER NOT NULL,
    pending INTEGER NOT NULL, body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX transfers_tree ON transfers (tree);
  CREATE INDEX transfers_work ON transfers (work_id, type) WHERE work_id IS NOT NULL;
  CREATE INDEX transfers_pending ON transfers (target) WHERE pending = 1;
  CREATE TABLE handoffs (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
  CREATE TABLE artifacts (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;

  CREATE TABLE receipts (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
  CREATE TABLE commands (id TEXT PRIMARY KEY, tree INTEGER NOT NULL, pending INTEGER NOT NULL, body TEXT NOT NULL)
    STRICT;
  CREATE INDEX commands_pending ON commands (tree) WHERE pending = 1;
  CREATE TABLE process_groups (id TEXT PRIMARY KEY, tree INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
  CREATE INDEX process_groups_tree ON process_groups (tree);
  `,
];

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
