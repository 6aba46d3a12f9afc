/**
 * One connection and its statements. Owns what spans them: the savepoint of the running plan, the first fault of a
 * transaction, and the caches that are true for as long as nobody else writes.
 *
 * - C1 A savepoint is opened by the first write of a plan that shares its transaction, and by nothing else: most plans
 *   that throw have written nothing.
 * - C2 After a fault of SQLite itself nothing more is written in that transaction; SQLite may have ended it already.
 * - C3 Caches are emptied when another connection has written, and when anything that may have been written was rolled back.
 */
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from "node:sqlite";
import { InvariantError } from "../../protocol/errors.ts";
import { endsTransaction } from "./errors.ts";

export type Row = readonly SQLOutputValue[];

/** What a cache takes part in. `flush` writes what it holds back, before a savepoint and before a commit. */
export interface Cache {
  clear(): void;
  flush?(): void;
}

export class Connection {
  readonly database: DatabaseSync;
  readonly path: string;
  readonly #caches: Cache[] = [];
  readonly #savepoint: StatementSync;
  readonly #release: StatementSync;
  readonly #rollbackTo: StatementSync;
  readonly #dataVersion: StatementSync;
  readonly #begin: StatementSync;
  readonly #snapshot: StatementSync;
  readonly #commit: StatementSync;
  readonly #rollback: StatementSync;
  #cachedVersion = -1;
  #wantsSavepoint = false;
  #hasSavepoint = false;
  #wrote = false;
  #writable = false;
  #fault: unknown = null;

  constructor(database: DatabaseSync, path: string) {
    this.database = database;
    this.path = path;
    this.#savepoint = database.prepare("SAVEPOINT plan");
    this.#release = database.prepare("RELEASE plan");
    this.#rollbackTo = database.prepare("ROLLBACK TO plan");
    this.#begin = database.prepare("BEGIN IMMEDIATE");
    this.#snapshot = database.prepare("BEGIN");
    this.#commit = database.prepare("COMMIT");
    this.#rollback = database.prepare("ROLLBACK");
    this.#dataVersion = database.prepare("PRAGMA data_version");
    this.#dataVersion.setReturnArrays(true);
  }

  statement(sql: string): Statement {
    return new Statement(this, this.database.prepare(sql));
  }

  join<C extends Cache>(cache: C): C {
    this.#caches.push(cache);
    return cache;
  }

  foreignVersion(): number {
    return (this.#dataVersion.get() as unknown as [number])[0];
  }

  begin(): void {
    this.#begin.run();
    this.#fault = null;
    this.#wrote = false;
    this.#writable = true;
    this.#refresh();
  }

  /** Begins a transaction that only reads. */
  beginSnapshot(): void {
    this.#snapshot.run();
    this.#refresh();
  }

  commit(): void {
    this.#wantsSavepoint = false;
    for (const cache of this.#caches) cache.flush?.();
    if (this.#fault !== null) throw this.#fault;
    this.#writable = false;
    this.#commit.run();
  }

  /** Also of a read that failed: nothing was written, so what is cached is as true as before. */
  endSnapshot(): void {
    if (this.database.isTransaction) this.#rollback.run();
  }

  rollback(): void {
    this.#clearCaches();
    this.#hasSavepoint = false;
    this.#writable = false;
    if (this.database.isTransaction) this.#rollback.run();
  }

  startPlan(shared: boolean): void {
    this.#wantsSavepoint = shared;
    this.#wrote = false;
  }

  endPlan(): void {
    if (this.#fault !== null) throw this.#fault;
    if (this.#hasSavepoint) this.#release.run();
    this.#hasSavepoint = false;
  }

  /** Undoes the running plan alone; false when only the whole transaction can be rolled back. */
  undoPlan(): boolean {
    if (this.#fault !== null) return false;
    if (!this.#wrote) return true;
    if (!this.#hasSavepoint) return false;
    this.#clearCaches();
    this.#rollbackTo.run();
    this.endPlan();
    return true;
  }

  /** Must be called before a plan's first change, also of what is only written at the commit. */
  beforeWrite(): void {
    if (this.#fault !== null) throw this.#fault;
    if (!this.#writable) throw outsideOfPlan();
    if (this.#wantsSavepoint) {
      this.#wantsSavepoint = false;
      for (const cache of this.#caches) cache.flush?.();
      this.#savepoint.run();
      this.#hasSavepoint = true;
    }
    this.#wrote = true;
  }

  /** What SQLite itself could not do in this transaction. */
  get fault(): unknown {
    return this.#fault;
  }

  /** Remembers what SQLite itself could not do. */
  failed(error: unknown): void {
    if (endsTransaction(error)) this.#fault ??= error;
  }

  #refresh(): void {
    const version = this.foreignVersion();
    if (version === this.#cachedVersion) return;
    this.#clearCaches();
    this.#cachedVersion = version;
  }

  #clearCaches(): void {
    for (const cache of this.#caches) cache.clear();
  }
}

/** A write that would not be part of any transaction. */
function outsideOfPlan(): InvariantError {
  return new InvariantError(
    "A record was written outside of a commit's plan; a view and an ended plan only read.",
  );
}

/** A statement prepared once. Rows come as arrays of columns. */
export class Statement {
  readonly #connection: Connection;
  readonly #statement: StatementSync;

  constructor(connection: Connection, statement: StatementSync) {
    statement.setReturnArrays(true);
    this.#connection = connection;
    this.#statement = statement;
  }

  get(...values: SQLInputValue[]): Row | undefined {
    return this.#statement.get(...values) as unknown as Row | undefined;
  }

  all(...values: SQLInputValue[]): readonly Row[] {
    return this.#statement.all(...values) as unknown as readonly Row[];
  }

  /** Writes, and answers how many rows it changed. */
  run(...values: SQLInputValue[]): number {
    this.#connection.beforeWrite();
    try {
      return this.#statement.run(...values).changes as number;
    } catch (error) {
      this.#connection.failed(error);
      throw error;
    }
  }
}
