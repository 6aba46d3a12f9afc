/**
 * Opening a file: rights, inspection, settings, migration, in this order. A file that is refused is left as it was.
 *
 * - F1 SQLite wants to make its log beside a file even to read it. Where that cannot be and no log is there, nobody has the
 *   file open for writing, and it is read as it stands.
 */
import {
  accessSync,
  type BigIntStats,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  statSync,
} from "node:fs";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { DatabaseSync } from "node:sqlite";
import { TransientError } from "../../protocol/errors.ts";
import { inspectFile, migrate } from "./schema.ts";

export interface FileOptions {
  readonly path: string;
  readonly synchronous: "full" | "normal";
  readonly exclusive: boolean;
  readonly readOnly: boolean;
  readonly maxPageCount: number | null;
}

/** Pages of the log before a commit copies them back: the default makes one commit in forty slow. */
const CHECKPOINT_PAGES = 10_000;
const CACHE_KIB = 16_000;

export function openFile(options: FileOptions): DatabaseSync {
  const { path, readOnly } = options;
  if (!readOnly) {
    createPrivately(path);
    requireWritable(path);
  }
  const place = readOnly ? readablePlace(path) : path;
  const database = new DatabaseSync(place, { readOnly, timeout: 0, enableForeignKeyConstraints: false });
  try {
    // Before anything else looks at the file: it decides how the log is opened.
    if (options.exclusive) database.exec("PRAGMA locking_mode = EXCLUSIVE");
    const found = inspectFile(database, path);
    if (readOnly) {
      if (found !== "current") throw notReady(path);
    } else {
      restrict(path);
      database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${options.synchronous}`);
      database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
      if (options.maxPageCount !== null) database.exec(`PRAGMA max_page_count = ${options.maxPageCount}`);
      // In exclusive mode this transaction also takes the lock, so that a second opener fails now and not later.
      if (found !== "current" || options.exclusive) migrate(database, path);
    }
    database.exec(`PRAGMA cache_size = -${CACHE_KIB}; PRAGMA temp_store = MEMORY`);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** SQLite gives its log files the rights of the database, which it would create readable for everybody (SEC-3). */
function createPrivately(path: string): void {
  makeFolder(dirname(path));
  if (!existsSync(path)) closeSync(openSync(path, "a", 0o600));
}

/** Step by step: Node's own recursion never ends below folders in which nothing can be made, such as `/proc`. */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it meanwhile.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** SQLite's own words for this name neither the file nor the reason. */
function requireWritable(path: string): void {
  for (const [place, what] of [
    [path, "the file"],
    [dirname(path), "its folder, where SQLite keeps the log of the file,"],
  ] as const) {
    const obstacle = obstacleTo(place);
    if (obstacle === null) continue;
    throw new TransientError(
      "STORE_IO",
      `The store ${path} can be read but not written: ${what} ${obstacle}. Make it writable, or use a copy elsewhere.`,
      { path, place },
    );
  }
}

const OBSTACLES: Readonly<Record<string, string>> = {
  EROFS: "is on a file system that is mounted read-only",
  EACCES: "may not be written by this user",
  EPERM: "is marked as immutable",
};

/** What keeps this process from writing to a place. */
function obstacleTo(place: string): string | null {
  try {
    accessSync(place, constants.W_OK);
    return null;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    return OBSTACLES[code] ?? `cannot be written (${code})`;
  }
}

/** @throws TransientError for a file whose log has to be read with it, and cannot be. */
function readablePlace(path: string): string | URL {
  const obstacle = obstacleTo(dirname(path));
  if (obstacle === null || existsSync(`${path}-shm`) || !existsSync(path)) return path;
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false });
  if (log !== undefined && log.size > 0) {
    throw new TransientError(
      "STORE_IO",
      `The store ${path} was not closed, and its log ${path}-wal cannot be read because the folder ${obstacle}. ` +
        "Copy both files to a folder that can be written, and read them there.",
      { path },
    );
  }
  const url = pathToFileURL(path);
  url.searchParams.set("immutable", "1");
  return url;
}

function restrict(path: string): void {
  if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600);
}

/**
 * A check that the path still leads to the file that was opened. SQLite goes on with a file that has been removed or
 * replaced, and what is acknowledged then is gone with the process (MBX-1).
 */
export function watchFile(path: string): () => void {
  const opened = statOf(path);
  return () => {
    const now = statOf(path);
    if (now !== undefined && now.ino === opened?.ino && now.dev === opened.dev) return;
    throw new TransientError(
      "STORE_IO",
      `The store ${path} was ${now === undefined ? "removed" : "replaced"} while it was open; nothing was stored. Put the file back, or open the store again.`,
      { path },
    );
  };
}

function statOf(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}

function notReady(path: string): TransientError {
  return new TransientError(
    "STORE_IO",
    `The store ${path} has no tables of this version yet; open it once for writing, then for reading.`,
    { path },
  );
}
