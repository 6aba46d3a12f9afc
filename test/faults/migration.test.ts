/** Files of version 1, from before threads: they are migrated whole or not at all, and nothing is invented. */
import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { sha256 } from "../../src/platform/digest.ts";
import type { HandoffRecord, TransferRecord } from "../../src/protocol/transfer.ts";
import type { AgentRecord } from "../../src/protocol/agent.ts";
import type { RunRecord } from "../../src/protocol/run.ts";
import type { Store } from "../../src/store/port.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations.ts";
import { APPLICATION_ID } from "../../src/store/sqlite/schema.ts";
import { claimTree } from "../../src/testing/store-harness.ts";
import {
  sampleHandoff,
  sampleProviderThread,
  sampleSnapshot,
  sampleThreadFacts,
  sampleTransfer,
} from "../../src/testing/store-records-threads.ts";
import {
  nextAgent,
  sampleAgent,
  sampleId,
  sampleRun,
  sampleTree,
  sampleWait,
  sampleWork,
} from "../../src/testing/store-records.ts";
import { backTo } from "../support/old-stores.ts";
import { makeFolder, openRaw } from "../support/stores.ts";

const tree = sampleId("thread", "tree");
const worker = sampleId("thread", "worker");
const elsewhere = sampleId("thread", "elsewhere");

/** As they are to be read; stored without what version 1 did not know. */
const root: AgentRecord = {
  ...sampleAgent(tree, tree, "/root", { state: "closed", createdBy: "user" }),
  config: { ...sampleAgent(tree, tree, "/root").config, workspace: "/work" },
};
const child = sampleAgent(tree, worker, "/root/worker", { parent: tree, depth: 1 });
const runs = [1, 2].map((ordinal) =>
  sampleRun(tree, worker, ordinal, { ordinal, text: `"answer" ${ordinal}` }),
);
/** Open and begun, open and not begun, ended. */
const works = [
  sampleWork(tree, worker, 1, { state: "running", runsServed: 1, createdAt: 70.5, begunAt: 70.5 }),
  sampleWork(tree, worker, 2, { createdAt: 60 }),
  sampleWork(tree, worker, 3, { state: "ended", runsServed: 2, createdAt: 50, begunAt: 50 }),
];
const TOKENS = { path: "/root/worker", budget: "tokens" } as const;
const transfer = sampleTransfer(tree, worker, 1, { sourceThreadId: elsewhere, note: "completed" });
const handoff = sampleHandoff(tree, worker, 1, {
  sourceThreadId: elsewhere,
  createdAt: 1_796_000_000_000.125,
  updatedAt: 1_796_000_000_000.125,
});

function oldAgent({ thread: _thread, config, ...rest }: AgentRecord): object {
  const { worktree: _worktree, ...oldConfig } = config;
  return { ...rest, config: oldConfig };
}

function oldRun(run: RunRecord): object {
  const { binding: _b, delegatedFrom: _d, providerThreadId: _p, contextHandoffIds: _c, ...others } = run;
  const {
    nativeTurns: _t,
    pins: _i,
    checkpoint: _k,
    nextContextRevision: _n,
    history: _h,
    rolledBack: _r,
    ...rest
  } = others;
  return rest;
}

function oldTransfer(record: TransferRecord): object {
  const { sourceOutcome: _o, staleness: _s, intent: _i, staleBase: _b, supersededBy: _y, ...rest } = record;
  const { threadId, runId, items, cut } = record.sourcePoint;
  return { ...rest, sourcePoint: { threadId, runId, items, cut } };
}

function oldHandoff(record: HandoffRecord): object {
  const {
    sourceThreadId: _s,
    strategy: _t,
    fromProviderThreadIds: _f,
    toProviderThreadId: _p,
    ...a
  } = record;
  const { coveredRuns: _r, coveredRunOrdinals: _o, payload: _l, budget: _b, ...b } = a;
  const { createdByProvider: _c, supersededBy: _y, updatedAt: _u, ...rest } = b;
  return rest;
}

/** A file as version 1 left it, with so many more runs. */
function oldFile(more = 0): string {
  const folder = makeFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const path = join(folder.path, "store.db");
  using raw = openRaw(path);
  const { database } = raw;
  database.exec(`PRAGMA journal_mode = WAL; BEGIN; ${MIGRATIONS[0]!}`);
  database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = 1`);
  const insert = (sql: string, ...values: readonly (string | number | null)[]): void =>
    void database.prepare(`INSERT INTO ${sql} VALUES (${values.map(() => "?").join(", ")})`).run(...values);
  insert("threads", 1, tree);
  insert("threads", 2, worker);
  insert(
    "trees",
    tree,
    JSON.stringify({ ...sampleTree(tree), exhausted: [{ path: "/root", budget: "wallClock" }, TOKENS] }),
  );
  for (const [number, agent, open] of [
    [1, root, 0],
    [2, child, 1],
  ] as const) {
    const { threadId, path: at, tokenDigest } = agent;
    const parent = agent.parent === null ? null : 1;
    const usage = [0, 0, 0, 0, 0, 1] as const;
    const body = JSON.stringify(oldAgent(agent));
    insert("agents", number, threadId, 1, at, parent, tokenDigest.slice(-16), open, ...usage, body);
  }
  for (const run of runs) insert("runs", run.id, 1, 2, 1, JSON.stringify(oldRun(run)));
  for (let n = 1; n <= more; n += 1) {
    const run = sampleRun(tree, tree, `more${n}`, { ordinal: n, status: "completed", text: "x".repeat(900) });
    insert("runs", run.id, 1, 1, 0, JSON.stringify(oldRun(run)));
  }
  for (const { begunAt: _b, ...work } of works)
    insert("works", work.id, 1, 2, null, work.state === "ended" ? 0 : 1, JSON.stringify(work));
  insert("transfers", transfer.id, 1, null, transfer.type, 2, 1, JSON.stringify(oldTransfer(transfer)));
  insert("handoffs", handoff.id, JSON.stringify(oldHandoff(handoff)));
  database.exec("COMMIT");
  return path;
}

async function open(path: string): Promise<Store> {
  const store = await openSqliteStore({ path });
  onTestFinished(() => store.close());
  return store;
}

/** Everything in the file: its version, its schema, its rows. */
function contentOf(path: string): unknown {
  using raw = openRaw(path);
  const all = (sql: string) => raw.database.prepare(sql).all();
  const schema = all("SELECT name, sql FROM sqlite_schema ORDER BY name");
  const tables = ["threads", "trees", "agents", "works", "runs", "transfers", "handoffs"];
  return [all("PRAGMA user_version"), schema, tables.map((table) => all(`SELECT * FROM ${table}`))];
}

describe("a file of version 1", () => {
  test("S1-57, S1-58 has what is new filled in when it is opened, and no invented thread", async () => {
    const store = await open(oldFile());
    await store.read((view) => {
      expect(view.agent(tree)).toEqual(root);
      expect(view.agent(worker)).toEqual(child);
      expect(view.agent(tree)?.thread).toBeNull();
      expect(view.runsOf(worker, { limit: 9 }).rows).toEqual(runs);
      expect(view.transfer(transfer.id)).toEqual(transfer);
      expect(view.handoff(handoff.id)).toEqual(handoff);
      // Nobody descends, nothing was projected, no provider is said to know anything.
      expect(view.descendants(tree, { limit: 9 }).rows).toEqual([]);
      expect(view.providerThreadsOf(tree)).toEqual([]);
      expect(view.snapshot(tree, 1)).toBeUndefined();
      expect(view.history(tree, { limit: 9 }).rows).toEqual([]);
    });
  });

  test("BUD-1 knows when its open works were begun, and has no wall clock that is spent for good", async () => {
    const store = await open(oldFile());
    await store.read((view) => {
      expect(works.map(({ id }) => view.work(id))).toEqual(works);
      expect(view.oldestBegun(tree, "/root")).toBe(70.5);
      expect(view.tree(tree)?.exhausted).toEqual([TOKENS]);
    });
  });

  test("is found by every new list", async () => {
    const store = await open(oldFile());
    await store.read((view) => {
      const roots = (filter: Parameters<typeof view.threads>[0]) =>
        view.threads(filter, { limit: 9 }).rows.map(({ threadId }) => threadId);
      expect(roots({})).toEqual([tree]);
      expect(roots({ workspace: "/work", state: "closed" })).toEqual([tree]);
      expect([roots({ workspace: "/other" }), roots({ state: "open" })]).toEqual([[], []]);
      expect(view.runAt(worker, 2)).toEqual(runs[1]);
      for (const id of [worker, elsewhere])
        expect(view.transfersOf(id, { limit: 9 }).rows).toEqual([transfer]);
      expect(view.handoffsOf(worker, { limit: 9 }).rows).toEqual([handoff]);
    });
  });

  test("goes on as any other", async () => {
    const store = await open(oldFile());
    const lease = await claimTree(store, tree, 1);
    await store.commit(lease, (tx) => {
      tx.putAgent(nextAgent(root, { state: "archived", thread: sampleThreadFacts(tree) }));
      tx.putRun({ ...runs[0]!, status: "completed" });
      tx.putRun(sampleRun(tree, worker, 3, { ordinal: 3 }));
      tx.putSnapshot(sampleSnapshot(tree, 1));
    });
    await store.read((view) => {
      expect(view.threads({ state: "archived" }, { limit: 9 }).rows).toHaveLength(1);
      expect(view.descendants(tree, { limit: 9 }).rows).toHaveLength(1);
      expect(view.runAt(worker, 1)?.status).toBe("completed");
      expect(view.runsOf(worker, { limit: 9 }).rows).toHaveLength(3);
    });
  });

  test("keeps a row that cannot be read as it is, and names it when it is asked for", async () => {
    const path = oldFile();
    {
      using raw = openRaw(path);
      raw.database.prepare("UPDATE transfers SET body = substr(body, 1, 40)").run();
      raw.database.prepare("UPDATE runs SET body = substr(body, 1, 40) WHERE id = ?").run(runs[0]!.id);
    }
    const store = await open(path);
    await store.read((view) => {
      expect(view.run(runs[1]!.id)).toEqual(runs[1]);
      expect(view.handoff(handoff.id)).toEqual({ ...handoff, sourceThreadId: null });
    });
    await expect(store.read((view) => view.run(runs[0]!.id))).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      details: { table: "runs", id: runs[0]!.id },
    });
  });

  test("REC-3 is left as it is by who only reads, and where there is no room", async () => {
    const path = oldFile();
    const before = contentOf(path);
    const pages = statSync(path).size / 4096;
    await expect(openSqliteStore({ path, readOnly: true })).rejects.toMatchObject({ code: "STORE_IO" });
    await expect(openSqliteStore({ path, maxPageCount: pages + 2 })).rejects.toMatchObject({
      code: "STORE_FULL",
    });
    expect(contentOf(path)).toEqual(before);
    await open(path);
  });

  test("REC-3 is whole after a kill in the middle of its migration, and is migrated by who comes next", async () => {
    const path = oldFile(600);
    const before = contentOf(path);
    const script = fileURLToPath(new URL("killed-migration.ts", import.meta.url));
    for (const calls of [1, 2, 300, 604]) {
      const child_ = spawnSync(process.execPath, [script, path, String(calls)], { encoding: "utf8" });
      expect([child_.signal, child_.stderr]).toEqual(["SIGKILL", ""]);
      // Half of it stands in the log.
      if (calls === 300) expect(statSync(`${path}-wal`).size).toBeGreaterThan(100_000);
      expect(contentOf(path)).toEqual(before);
    }
    const store = await open(path);
    await store.read((view) => {
      expect(view.runAt(tree, 600)?.pins).toEqual([]);
      expect(view.runsOf(worker, { limit: 9 }).rows).toEqual(runs);
      expect(view.handoff(handoff.id)).toEqual(handoff);
    });
  });
});

/** A file of version 4, where the record of a conversation held the turns of all its runs. */
async function fileWithTurns(turns: readonly (readonly [ordinal: number, name: string])[]): Promise<string> {
  const folder = makeFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const path = join(folder.path, "store.db");
  {
    await using store = await openSqliteStore({ path }).then((opened) =>
      Object.assign(opened, { [Symbol.asyncDispose]: () => opened.close() }),
    );
    const lease = await claimTree(store, tree, 1);
    await store.commit(lease, (tx) => {
      tx.putTree(sampleTree(tree));
      tx.putAgent(sampleAgent(tree, tree, "/root"));
      for (const ordinal of [1, 2, 3])
        tx.putRun(sampleRun(tree, tree, ordinal, { ordinal, providerThreadId: ordinal === 3 ? null : own }));
      tx.putProviderThread(sampleProviderThread(tree, tree, "own", { nativeRunOrdinals: [[1, 2]] }));
    });
  }
  using raw = openRaw(path);
  const { database } = raw;
  backTo(5, database);
  database.exec("UPDATE runs SET body = json_remove(body, '$.nativeTurns'); PRAGMA user_version = 4");
  database
    .prepare("UPDATE provider_threads SET body = json_set(body, '$.turns', json(?))")
    .run(JSON.stringify(turns.map(([ordinal, name]) => ({ ordinal, ref: turnRef(name) }))));
  return path;
}

const own = sampleId("pth", "own");
const turnRef = (nativeId: string) => ({ driver: "d", nativeId, strength: "strong" as const });

test("C1.5 C1.6 a file of version 4 has the turns of a conversation with their runs", async () => {
  const path = await fileWithTurns([
    [1, "a"],
    [2, "b"],
    [2, "c"],
  ]);
  const store = await open(path);
  await store.read((view) => {
    expect([1, 2, 3].map((ordinal) => view.runAt(tree, ordinal)!.nativeTurns)).toEqual([
      [turnRef("a")],
      [turnRef("b"), turnRef("c")],
      [],
    ]);
    expect(view.providerThread(own)).toEqual(
      sampleProviderThread(tree, tree, "own", { nativeRunOrdinals: [[1, 2]] }),
    );
  });
});

test("C5.19 C9.9 C13.6 what is looked for by a column of its own is found in a file from before there was one", async () => {
  const folder = makeFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const path = join(folder.path, "store.db");
  const ref = { driver: "d", nativeId: "n", strength: "strong" } as const;
  const conversation = sampleProviderThread(tree, tree, 1, { nativeThreadRef: ref });
  const intent = { id: sampleId("int", 1), at: 2 };
  const fork = sampleTransfer(tree, worker, 2, { type: "fork", createdAt: 70.5, intent });
  const history = { level: "partial", skipped: 0, entries: 1, cursor: null } as const;
  const first = await openSqliteStore({ path });
  const lease = await claimTree(first, tree, 1);
  await first.commit(lease, (tx) => {
    tx.putProviderThread(conversation);
    tx.putTransfer(fork);
    tx.putTransfer(sampleTransfer(tree, worker, 3, { createdAt: 99 }));
    tx.putRun(sampleRun(tree, worker, 1, { history }));
    tx.putRun(sampleRun(tree, worker, 2, { ordinal: 2 }));
  });
  await first.close();
  {
    using raw = openRaw(path);
    backTo(5, raw.database);
  }
  const store = await open(path);
  await store.read((view) => {
    expect(view.providerThreadsNamed("d", "n")).toEqual([conversation]);
    expect(view.forksInDoubt()).toEqual([fork]);
    expect(view.lastTakenOf(tree)).toBe(70.5);
    expect(view.worstHistory(worker)).toBe("partial");
  });
});

test("WRK-4 XTR-4 a file of version 6 knows which results are on their way, and which waits are for threads", async () => {
  const folder = makeFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const path = join(folder.path, "store.db");
  const requester = { kind: "agent", threadId: worker, path: "/root/worker" } as const;
  const resultMailId = sampleId("msg", 1);
  const ended = { requester, state: "ended", resultMailId } as const;
  const works = [
    sampleWork(tree, tree, 1, { ...ended, resultPending: true }),
    sampleWork(tree, tree, 2, ended),
    sampleWork(tree, tree, 3, { requester }),
  ];
  const first = await openSqliteStore({ path });
  const lease = await claimTree(first, tree, 1);
  const waits = [sampleWait(tree, tree, 1, { threads: [elsewhere] }), sampleWait(tree, tree, 2)];
  await first.commit(lease, (tx) => {
    for (const work of works) tx.putWork(work);
    for (const wait of waits) tx.putWait(wait);
  });
  await first.close();
  {
    using raw = openRaw(path);
    backTo(6, raw.database);
  }
  const store = await open(path);
  await store.read((view) => {
    expect(view.strandedResults(worker)).toEqual([works[0]]);
    expect(view.openThreadWaits(tree)).toEqual([waits[0]]);
  });
});

test("a step of the schema that files have had is not changed", () => {
  const [first = "", second = ""] = MIGRATIONS;
  expect(sha256(first.replaceAll(/\s+/g, " "))).toMatch(/938a45335dec69ed/);
  expect(sha256(second.replaceAll(/\s+/g, " "))).toMatch(/7811b6de581c6964/);
});

test("REC-3 a file of the next version is refused", async () => {
  const path = oldFile();
  await (await openSqliteStore({ path })).close();
  {
    using raw = openRaw(path);
    raw.database.exec(`PRAGMA user_version = ${MIGRATIONS.length + 1}`);
  }
  const before = contentOf(path);
  await expect(openSqliteStore({ path })).rejects.toMatchObject({
    code: "STORE_VERSION",
    details: { version: MIGRATIONS.length + 1, known: MIGRATIONS.length },
  });
  expect(contentOf(path)).toEqual(before);
});
