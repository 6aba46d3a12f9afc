/** Files of an earlier version with rows that are JSON and of another form: they open, and such a row costs nobody else. */
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import type { Store } from "../../src/store/port.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { claimTree } from "../../src/testing/store-harness.ts";
import { sampleProviderThread, sampleTransfer } from "../../src/testing/store-records-threads.ts";
import { sampleAgent, sampleId, sampleRun, sampleTree, sampleWork } from "../../src/testing/store-records.ts";
import { backTo } from "../support/old-stores.ts";
import { makeFolder, openRaw } from "../support/stores.ts";

const tree = sampleId("thread", "tree");
const TOKENS = { path: "/root", budget: "tokens" } as const;
const turnRef = (nativeId: string) => ({ driver: "d", nativeId, strength: "strong" as const });
const runId = (ordinal: number) => sampleRun(tree, tree, ordinal).id;
const workId = (n: number) => sampleWork(tree, tree, n).id;
const conversation = (name: string) => sampleId("pth", name);

async function open(path: string): Promise<Store> {
  const store = await openSqliteStore({ path });
  onTestFinished(() => store.close());
  return store;
}

/** A file as version 3 left it: two works that were begun, two runs in each of two conversations; then `spoil`. */
async function oldFile(spoil: (database: DatabaseSync) => void): Promise<string> {
  const folder = makeFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const path = join(folder.path, "store.db");
  const store = await openSqliteStore({ path });
  const lease = await claimTree(store, tree, 1);
  await store.commit(lease, (tx) => {
    tx.putTree(sampleTree(tree));
    tx.putAgent(sampleAgent(tree, tree, "/root"));
    for (const n of [1, 2])
      tx.putWork(sampleWork(tree, tree, n, { state: "running", runsServed: 1, createdAt: 60 + n }));
    for (const ordinal of [1, 2, 3, 4]) {
      const providerThreadId = conversation(ordinal <= 2 ? "a" : "b");
      tx.putRun(sampleRun(tree, tree, ordinal, { ordinal, providerThreadId }));
    }
    tx.putProviderThread(sampleProviderThread(tree, tree, "a", { nativeRunOrdinals: [[1, 2]] }));
    tx.putProviderThread(sampleProviderThread(tree, tree, "b", { nativeRunOrdinals: [[3, 4]] }));
    tx.putTransfer(sampleTransfer(tree, tree, "fork", { type: "fork" }));
  });
  await store.close();
  using raw = openRaw(path);
  const { database } = raw;
  backTo(5, database);
  database.exec(`
    UPDATE runs SET body = json_remove(body, '$.nativeTurns');
    UPDATE works SET body = json_remove(body, '$.begunAt');
    DROP INDEX works_begun; ALTER TABLE works DROP COLUMN begun; PRAGMA user_version = 3`);
  const exhausted = JSON.stringify([{ path: "/root", budget: "wallClock" }, TOKENS]);
  database.prepare("UPDATE trees SET body = json_set(body, '$.exhausted', json(?))").run(exhausted);
  const put = database.prepare(
    "UPDATE provider_threads SET body = json_set(body, '$.turns', json(?)) WHERE id = ?",
  );
  const turns = (...ordinals: readonly number[]): string =>
    JSON.stringify(ordinals.map((ordinal) => ({ ordinal, ref: turnRef(`t${ordinal}`) })));
  put.run(turns(1, 2), conversation("a"));
  put.run(turns(3, 4), conversation("b"));
  spoil(database);
  return path;
}

const set = (table: string, id: string, body: string) => (database: DatabaseSync) =>
  void database.prepare(`UPDATE ${table} SET body = ${body} WHERE id = ?`).run(id);
const turnsOf = (store: Store, ordinal: number) =>
  store.read((view) => view.runAt(tree, ordinal)!.nativeTurns);

test.for([
  ["a number", "5"],
  ["a text", `'"abc"'`],
  ["a list", "'[1]'"],
  ["cut off", "substr(body, 1, 9)"],
])("REC-1 REC-3 rows whose body is %s stay as they are, and no other is touched by it", async ([, body]) => {
  const path = await oldFile((database) => {
    set("runs", runId(1), body!)(database);
    set("works", workId(1), body!)(database);
    set("provider_threads", conversation("b"), body!)(database);
  });
  const store = await open(path);
  await store.read((view) => {
    expect(view.work(workId(2))).toMatchObject({ begunAt: 62 });
    expect(view.oldestBegun(tree, "/root")).toBe(62);
    expect(view.tree(tree)?.exhausted).toEqual([TOKENS]);
  });
  expect(await turnsOf(store, 2)).toEqual([turnRef("t2")]);
  expect(await turnsOf(store, 3)).toEqual([]);
  for (const table of ["runs", "works", "provider_threads"]) {
    const id = { runs: runId(1), works: workId(1), provider_threads: conversation("b") }[table]!;
    await expect(
      store.read((view) => {
        if (table === "runs") return view.run(runId(1));
        return table === "works" ? view.work(workId(1)) : view.providerThread(conversation("b"));
      }),
    ).rejects.toMatchObject({ code: "STORE_CORRUPT", details: { table, id } });
  }
});

test("REC-1 REC-3 a tree whose body is no object stays as it is", async () => {
  for (const body of ["5", `'"abc"'`, "'[1]'", "substr(body, 1, 9)"]) {
    const store = await open(await oldFile(set("trees", tree, body)));
    await expect(store.read((view) => view.tree(tree))).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    expect(await turnsOf(store, 1)).toEqual([turnRef("t1")]);
  }
});

test.for([`'x'`, `json('{}')`, `json('null')`, `json('[1]')`, `json('true')`])(
  "REC-1 REC-3 a work that was made at %s keeps no file from being opened, and no clock",
  async (at) => {
    const store = await open(await oldFile(set("works", workId(1), `json_set(body, '$.createdAt', ${at})`)));
    expect(await store.read((view) => view.oldestBegun(tree, "/root"))).toBe(62);
  },
);

test("REC-1 REC-3 what is no spent budget in the list of a tree is left out; what is no list stays", async () => {
  for (const [value, left] of [
    [["x", 5, null, TOKENS], [TOKENS]],
    ["x", "x"],
    [null, null],
    [{ a: 1 }, { a: 1 }],
  ]) {
    const json = JSON.stringify(value);
    const store = await open(
      await oldFile(set("trees", tree, `json_set(body, '$.exhausted', json('${json}'))`)),
    );
    expect(await store.read((view) => view.tree(tree)!.exhausted)).toEqual(left);
  }
});

test("C1.5 REC-3 what is no turn in a conversation is none, and what has no name that holds is one without", async () => {
  const turns = [
    "x",
    null,
    5,
    [1],
    { ordinal: 1, ref: "t" },
    { ordinal: 1, ref: turnRef("t1") },
    { ref: {} },
  ];
  for (const [value, first] of [
    [turns, [null, turnRef("t1")]],
    ["abc", []],
    [{ a: "b" }, []],
    [null, []],
  ]) {
    const json = JSON.stringify(value);
    const store = await open(
      await oldFile(set("provider_threads", conversation("a"), `json_set(body, '$.turns', json('${json}'))`)),
    );
    expect([await turnsOf(store, 1), await turnsOf(store, 2)]).toEqual([first, []]);
    expect(await turnsOf(store, 4)).toEqual([turnRef("t4")]);
  }
});

test.for([
  ["without an intent", "json_remove(body, '$.intent')"],
  ["that is a number", "5"],
  ["that is a list", "'[1]'"],
  ["that is cut off", "substr(body, 1, 9)"],
])("REC-1 REC-3 a fork %s keeps no file from being opened", async ([, body]) => {
  const store = await open(await oldFile(set("transfers", sampleId("xfr", "fork"), body!)));
  expect((await store.read((view) => view.tree(tree)))?.treeId).toBe(tree);
  expect(await turnsOf(store, 2)).toEqual([turnRef("t2")]);
});

test("REC-1 a run that was mended by hand, without what later versions know of it, is one that cannot be read", async () => {
  let body = "";
  const path = await oldFile((database) => {
    body = String(database.prepare("SELECT body FROM runs WHERE id = ?").get(runId(1))!["body"]);
    set("runs", runId(1), "substr(body, 1, 9)")(database);
  });
  await (await openSqliteStore({ path })).close();
  {
    using raw = openRaw(path);
    raw.database.prepare("UPDATE runs SET body = ? WHERE id = ?").run(body, runId(1));
  }
  const store = await open(path);
  await expect(store.read((view) => view.run(runId(1)))).rejects.toMatchObject({ code: "STORE_CORRUPT" });
});
