/**
 * The store in one SQLite file, for one process or several on one machine. A group of commits is one transaction, run
 * without an `await` from its begin to its end; reads have a snapshot of their own.
 *
 * - Q1 When a transaction fails as a whole, every promise of its group rejects with the typed error and nothing of it is
 *   stored; later groups are not affected (REC-3).
 * - Q2 SQLite is never asked to wait: a locked file is tried again by the group commit, with the event loop running.
 * - Q3 Nothing is stored in a file that the path does not lead to any more.
 */
import type { DatabaseSync } from "node:sqlite";
import { z } from "zod";
import type { CallOptions } from "../platform/abortable.ts";
import { check, clockSchema, optionsOf, signalSchema } from "../platform/check.ts";
import { type Clock, delay, systemClock } from "../platform/clock.ts";
import { TransientError } from "../protocol/errors.ts";
import type { Backend, BackendTx, GroupContext, Operation } from "./backend.ts";
import { isBusy } from "./group-commit.ts";
import type { Store } from "./port.ts";
import { agentRows } from "./sqlite/agents.ts";
import { Connection } from "./sqlite/connection.ts";
import { endsTransaction, storeError } from "./sqlite/errors.ts";
import { type FileOptions, openFile, watchFile } from "./sqlite/file.ts";
import { logRows } from "./sqlite/logs.ts";
import { mailRows } from "./sqlite/mail.ts";
import { openRows } from "./sqlite/open-rows.ts";
import { threadRows } from "./sqlite/thread-rows.ts";
import { setAsideRows } from "./sqlite/set-aside.ts";
import { ThreadNumbers } from "./sqlite/thread-numbers.ts";
import { transferRows } from "./sqlite/transfers.ts";
import { treeRows } from "./sqlite/trees.ts";
import { waitRows } from "./sqlite/waits.ts";
import { workRows } from "./sqlite/work.ts";
import { createStore } from "./store.ts";

/** What `openSqliteStore` takes. */
export interface SqliteStoreOptions extends CallOptions {
  /** The file; it and its folder are made when they are missing. */
  readonly path: string;
  /** `full` (default): a commit survives a power cut. `normal`: the last ones may not, and commits are several times faster. */
  readonly synchronous?: "full" | "normal";
  /** Holds the file for this process alone; others are refused with `STORE_BUSY`. */
  readonly exclusive?: boolean;
  readonly readOnly?: boolean;
  /** Largest size of the file in pages of 4 KiB. */
  readonly maxPageCount?: number;
  /** How long a lock of another connection is waited for. Default 5 s. */
  readonly busyTimeoutMs?: number;
  readonly clock?: Clock;
}

const DEFAULT_BUSY_TIMEOUT_MS = 5_000;
const OPEN_PAUSE_MS = 20;

const optionsSchema = optionsOf<SqliteStoreOptions>({
  path: z.string().min(1),
  synchronous: z.enum(["full", "normal"]).optional(),
  exclusive: z.boolean().optional(),
  readOnly: z.boolean().optional(),
  maxPageCount: z.number().int().min(1).optional(),
  busyTimeoutMs: z.number().min(0).optional(),
  clock: clockSchema.optional(),
  signal: signalSchema.optional(),
});

/**
 * Opens the store in a file, such as `openSqliteStore({ path: "./agents.db" })`.
 * @throws RejectedError `INVALID_ARGUMENT`, `STORE_CORRUPT`, `STORE_VERSION`; TransientError `STORE_BUSY`, `STORE_IO`.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  check("openSqliteStore", optionsSchema, options);
  const { path, clock = systemClock, busyTimeoutMs = DEFAULT_BUSY_TIMEOUT_MS, signal } = options;
  signal?.throwIfAborted();
  const file = {
    path,
    synchronous: options.synchronous ?? "full",
    exclusive: options.exclusive ?? false,
    readOnly: options.readOnly ?? false,
    maxPageCount: options.maxPageCount ?? null,
  };
  const startedAt = clock.monotonic();
  for (;;) {
    try {
      return createStore(openBackend(file, clock), { clock, busyTimeoutMs, reusable: false });
    } catch (error) {
      const mapped = fileError(error, path);
      if (!isBusy(mapped) || clock.monotonic() - startedAt >= busyTimeoutMs) throw mapped;
      await delay(clock, OPEN_PAUSE_MS, signal);
    }
  }
}

function openBackend(file: FileOptions, clock: Clock): Backend {
  const database = openFile(file);
  try {
    return sqliteBackend(database, file.path, clock);
  } catch (error) {
    database.close();
    throw error;
  }
}

function sqliteBackend(database: DatabaseSync, path: string, clock: Clock): Backend {
  const connection = new Connection(database, path);
  const requireSameFile = watchFile(path);
  const context: GroupContext = { tree: null, told: new Set() };
  const now = (): number => clock.now();
  const threads = new ThreadNumbers(connection);
  const agents = agentRows(connection, threads);
  const work = workRows(connection, threads);
  const waits = waitRows(connection, threads);
  const trees = treeRows(connection, threads, now);
  const tx: BackendTx = {
    ...agents,
    ...mailRows(connection, threads, context, now, agents.agent),
    ...work,
    ...waits,
    ...setAsideRows(connection, threads, { ...agents, ...work, ...waits, ...trees }),
    ...openRows(connection, threads),
    ...transferRows(connection, threads),
    ...threadRows(connection, threads),
    ...logRows(connection, threads),
    ...trees,
  };

  /** Runs one operation; throws when what it did cannot be undone alone. */
  function attempt(operation: Operation, guarded: boolean): void {
    context.tree = operation.tree;
    connection.startPlan(guarded);
    try {
      const value = operation.run(tx);
      connection.endPlan();
      operation.outcome = { value };
    } catch (error) {
      if (!connection.undoPlan()) throw connection.fault ?? error;
      operation.outcome = { error: storeError(error, path) };
    }
  }

  /**
   * A lone operation needs no savepoint, since rolling back the transaction is rolling back the plan. The store's own
   * operations (`send` and the like) do not throw once they have written, and go without one until they do.
   */
  function attemptAll(operations: readonly Operation[], isEnough: () => boolean, guardAll = false): number {
    connection.begin();
    const shared = operations.length > 1;
    let ran = 0;
    for (const operation of operations) {
      attempt(operation, shared && (guardAll || operation.tree !== null));
      ran += 1;
      if (isEnough()) break;
    }
    connection.commit();
    return ran;
  }

  function retryGuarded(operations: readonly Operation[], isEnough: () => boolean): number {
    try {
      return attemptAll(operations, isEnough, true);
    } catch (error) {
      connection.rollback();
      throw storeError(error, path);
    }
  }

  return {
    kind: "sqlite",
    name: path,
    context,
    transact(operations, isEnough) {
      requireSameFile();
      try {
        return attemptAll(operations, isEnough);
      } catch (error) {
        connection.rollback();
        if (operations.length === 1 || endsTransaction(error)) throw storeError(error, path);
        return retryGuarded(operations, isEnough);
      }
    },
    read(plan) {
      try {
        connection.beginSnapshot();
        return plan(tx);
      } catch (error) {
        throw storeError(error, path);
      } finally {
        connection.endSnapshot();
      }
    },
    foreignVersion() {
      try {
        return connection.foreignVersion();
      } catch (error) {
        throw storeError(error, path);
      }
    },
    close: () => database.close(),
  };
}

/** Errors of the file system have no result code of SQLite. */
function fileError(error: unknown, path: string): unknown {
  if (error instanceof Error && "syscall" in error) {
    return new TransientError(
      "STORE_IO",
      `The store ${path} cannot be opened: ${error.message}. Check the folder and its rights, or give another path.`,
      { path },
      { cause: error },
    );
  }
  return storeError(error, path);
}
