/** A runtime on a file that cannot be written: each call says what is wrong and what to do, nothing is half done, and it goes on. */
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import type { Runtime } from "../../src/runtime/runtime.ts";
import { openSqliteStore, type SqliteStoreOptions } from "../../src/store/sqlite.ts";
import { everything } from "../support/everything.ts";
import { makeFolder, openRaw } from "../support/stores.ts";

async function on(path: string, options: Partial<SqliteStoreOptions> = {}): Promise<Runtime> {
  const store = await openSqliteStore({ path, busyTimeoutMs: 0, ...options });
  const runtime = await createRuntime({
    store,
    providers: { scripted: scripted({ "*": [repeat(say("ok"))] }) },
  });
  onTestFinished(async () => {
    await runtime.close().catch(() => undefined);
    await store.close();
  });
  return runtime;
}

/** A file with a thread that nobody owns. */
async function filled(): Promise<{ readonly path: string; readonly thread: string }> {
  const folder = makeFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const path = join(folder.path, "store.db");
  const runtime = await on(path);
  const { id } = await runtime.threads.create({ title: "one" });
  await runtime.close();
  return { path, thread: id };
}

const WRITES: readonly ((runtime: Runtime, thread: string) => Promise<unknown>)[] = [
  (runtime) => runtime.openTree({ title: "new" }),
  (runtime, id) => runtime.openTree({ id }),
  (runtime) => runtime.threads.create({ title: "new" }),
  (runtime, id) => runtime.threads.rename(id, "other"),
  (runtime, id) => runtime.threads.continue(id, "x".repeat(100_000)),
];

test("REC-3 read-only, it is read, and every write is refused with what to do", async () => {
  const { path, thread } = await filled();
  const runtime = await on(path, { readOnly: true });
  const before = await everything(runtime.store);
  for (const write of WRITES) {
    await expect(write(runtime, thread)).rejects.toMatchObject({
      code: "STORE_IO",
      message: expect.stringMatching(/for reading only.*open it with the right to write/),
    });
  }
  expect(await runtime.threads.get(thread)).toMatchObject({ title: "one" });
  expect(await everything(runtime.store)).toEqual(before);
});

test("REC-3 locked by another connection, every write is refused, and works when the lock is gone", async () => {
  const { path, thread } = await filled();
  const runtime = await on(path);
  const before = await everything(runtime.store);
  using other = openRaw(path);
  other.database.exec("BEGIN EXCLUSIVE");
  for (const write of WRITES) {
    await expect(write(runtime, thread)).rejects.toMatchObject({
      code: "STORE_BUSY",
      message: expect.stringMatching(/try again, or close the process that holds it/),
    });
  }
  other.database.exec("ROLLBACK");
  expect(await everything(runtime.store)).toEqual(before);
  expect(await runtime.threads.rename(thread, "other")).toMatchObject({ title: "other" });
});

test("REC-3 full, what has no room is refused and nothing of it stored; what has room is", async () => {
  const { path, thread } = await filled();
  using other = openRaw(path);
  const pages = Number(Object.values(other.database.prepare("PRAGMA page_count").get()!)[0]);
  const runtime = await on(path, { maxPageCount: pages + 8 });
  const before = await runtime.threads.get(thread);
  await expect(runtime.threads.continue(thread, "x".repeat(100_000))).rejects.toMatchObject({
    code: "STORE_FULL",
    message: expect.stringMatching(/nothing was stored. Free some space and try again/),
  });
  expect(await runtime.threads.get(thread)).toEqual(before);
  expect(await runtime.threads.rename(thread, "other")).toMatchObject({ title: "other" });
});
