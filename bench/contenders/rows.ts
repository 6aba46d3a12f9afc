/**
 * The floor for what is durable: the least rows that hold the same facts, in `node:sqlite`, with prepared statements and one
 * transaction a tick. No limits, no events, no ids checked for being known, nobody told.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface RowsOptions {
  readonly synchronous: "normal" | "full";
  /** Pages of the log before a commit copies them back. */
  readonly checkpointPages?: number;
}

const SCHEMA = `
  CREATE TABLE threads (id TEXT PRIMARY KEY, parent TEXT, path TEXT, status TEXT, result TEXT) STRICT;
  CREATE TABLE mail (number INTEGER PRIMARY KEY, recipient TEXT, sender TEXT, mode TEXT, created INTEGER,
    delivered INTEGER NOT NULL DEFAULT 0, body TEXT) STRICT;
  CREATE INDEX mail_unread ON mail (recipient, number) WHERE delivered = 0;
  CREATE TABLE items (number INTEGER PRIMARY KEY, thread TEXT, body TEXT) STRICT;
  CREATE INDEX items_thread ON items (thread, number);
  CREATE TABLE sessions (id TEXT PRIMARY KEY, status TEXT, body TEXT) STRICT;
`;

/** A file with the bare tables, gone when it is disposed of. */
export class Rows implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "coppice-bench-"));
  readonly database: DatabaseSync;
  #waiting: { readonly run: () => void; readonly done: () => void }[] = [];

  constructor(options: RowsOptions) {
    this.database = new DatabaseSync(join(this.folder, "rows.db"));
    this.database.exec(
      `PRAGMA journal_mode = WAL; PRAGMA synchronous = ${options.synchronous}; PRAGMA cache_size = -16000;
       PRAGMA wal_autocheckpoint = ${options.checkpointPages ?? 10_000}; ${SCHEMA}`,
    );
  }

  statement(sql: string): (...values: SQLInputValue[]) => void {
    const statement = this.database.prepare(sql);
    return (...values) => void statement.run(...values);
  }

  /** Runs in the next tick's transaction and resolves when that is committed. */
  nextTick(run: () => void): Promise<void> {
    return new Promise((done) => {
      this.#waiting.push({ run, done });
      if (this.#waiting.length === 1) setImmediate(() => this.#commit());
    });
  }

  transaction(run: () => void): void {
    this.database.exec("BEGIN IMMEDIATE");
    run();
    this.database.exec("COMMIT");
  }

  #commit(): void {
    const group = this.#waiting;
    this.#waiting = [];
    this.transaction(() => {
      for (const { run } of group) run();
    });
    for (const { done } of group) done();
  }

  [Symbol.dispose](): void {
    this.database.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
