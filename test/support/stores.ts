/** The stores that tests run on: each opened empty, cleaned up after. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createMemoryStore } from "../../src/store/memory.ts";
import type { Store } from "../../src/store/port.ts";
import { openSqliteStore, type SqliteStoreOptions } from "../../src/store/sqlite.ts";
import type { SetClock, StoreSubject } from "../../src/testing/store-harness.ts";

export const stores = {
  memory: openMemorySubject,
  sqlite: (clock: SetClock) => openSqliteSubject(clock),
  "sqlite, exclusive": (clock: SetClock) => openSqliteSubject(clock, { exclusive: true }),
} as const;
export type StoreName = keyof typeof stores;
export const storeNames = Object.keys(stores) as StoreName[];

async function openMemorySubject(clock: SetClock): Promise<StoreSubject> {
  const store = createMemoryStore({ clock, deepFreeze: true });
  return {
    store,
    damageMail: (id) => store.damageMail(id),
    damageRow: (table, id) => store.damageRow(table, id),
    cleanup: () => store.close(),
  };
}

async function openSqliteSubject(
  clock: SetClock,
  options: Partial<SqliteStoreOptions> = {},
): Promise<StoreSubject> {
  const folder = makeFolder();
  const path = join(folder.path, "store.db");
  const open = (): Promise<Store> => openSqliteStore({ path, clock, synchronous: "normal", ...options });
  let store = await open();
  const damage = (table: string, id: string): void => {
    if (options.exclusive === true) throw new Error("The file is held for one connection.");
    damageRow(path, table, id);
  };
  return {
    store,
    damageMail: (id) => damage("mail", id),
    damageRow: damage,
    async reopen() {
      await store.close();
      store = await open();
      return store;
    },
    async cleanup() {
      await store.close();
      folder[Symbol.dispose]();
    },
  };
}

export function makeFolder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), "coppice-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** Cuts off the stored text of a row, as a fault of the disk would. */
export function damageRow(path: string, table: string, id: string): void {
  using other = openRaw(path);
  const damaged = other.database
    .prepare(`UPDATE ${table} SET body = substr(body, 1, 40) WHERE id = ?`)
    .run(id);
  if (damaged.changes !== 1) throw new Error(`There is no row ${id} in ${table}.`);
}

/** A second connection, behind the store's back. */
export function openRaw(path: string): Disposable & { readonly database: DatabaseSync } {
  const database = new DatabaseSync(path);
  return {
    database,
    [Symbol.dispose]: () => {
      if (database.isOpen) database.close();
    },
  };
}
