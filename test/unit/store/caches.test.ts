import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { NO_USAGE, type Usage } from "../../../src/protocol/usage.ts";
import { Deadlines } from "../../../src/store/memory/deadlines.ts";
import { GENERATION_WEIGHT, RecordCache } from "../../../src/store/sqlite/record-cache.ts";
import { openSqliteStore } from "../../../src/store/sqlite.ts";
import { totalsOf, UsageCache, type UsageTotals } from "../../../src/store/usage-cache.ts";
import { openTree } from "../../../src/testing/store-harness.ts";
import { sampleAgent, sampleId, sampleMail } from "../../../src/testing/store-records.ts";
import { damageRow, makeFolder } from "../../support/stores.ts";

const tree = sampleId("thread", "tree");

describe("the cache of records", () => {
  test("keeps what is used and forgets the rest", () => {
    const cache = new RecordCache<number>();
    cache.set("hot", 1);
    for (let n = 0; n < 10_000; n += 1) {
      cache.set(`cold ${n}`, n);
      expect(cache.get("hot")).toBe(1);
    }
    expect([cache.get("cold 0"), cache.get("cold 9999")]).toEqual([undefined, 9999]);
    cache.clear();
    expect([cache.get("hot"), cache.get("cold 9999")]).toEqual([undefined, undefined]);
  });
});

describe("the cache of records by weight", () => {
  const big = GENERATION_WEIGHT / 4;

  test("holds two generations of bodies at most, the latest ones", () => {
    const cache = new RecordCache<number>();
    for (let n = 0; n < 100; n += 1) {
      cache.set(`body ${n}`, n, big);
      expect(cache.weight).toBeLessThanOrEqual(2 * GENERATION_WEIGHT);
    }
    expect([cache.get("body 99"), cache.get("body 96")]).toEqual([99, 96]);
    expect([cache.get("body 0"), cache.get("body 91")]).toEqual([undefined, undefined]);
    cache.clear();
    expect(cache.weight).toBe(0);
  });

  test("does not hold what outweighs a generation, nor an earlier version of it", () => {
    const cache = new RecordCache<string>();
    cache.set("grown", "small", 1);
    cache.set("grown", "huge", GENERATION_WEIGHT + 1);
    expect([cache.get("grown"), cache.weight]).toEqual([undefined, 0]);
    cache.set("old", "small", 1);
    for (let n = 0; n < 5; n += 1) cache.set(`body ${n}`, "body", big);
    cache.set("old", "huge", GENERATION_WEIGHT + 1);
    expect(cache.get("old")).toBe(undefined);
  });

  test("weighs a record that is put again once, so that what is hot pushes nothing out", () => {
    const cache = new RecordCache<number>();
    cache.set("quiet", 0, 1);
    for (let n = 0; n < 1000; n += 1) cache.set("hot", n, big);
    expect([cache.get("quiet"), cache.weight]).toEqual([0, big + 1]);
  });
});

describe("the cache of sums", () => {
  const agent = (usage: Usage) => sampleAgent(tree, sampleId("thread", "a"), "/root/a", { usage });
  const used = (inputTokens: number, cost: number | null = 0): Usage => ({ ...NO_USAGE, inputTokens, cost });

  test("follows what is put without another aggregate", () => {
    const cache = new UsageCache();
    const never = (): UsageTotals => expect.fail("asked for an aggregate");
    cache.sum(tree, "/root", () => totalsOf([used(5)]));
    cache.sum(tree, "/root/ab", () => totalsOf([used(1)]));
    cache.follow(agent(used(5)), agent(used(8)));
    expect(cache.sum(tree, "/root", never).inputTokens).toBe(8);
    expect(cache.sum(tree, "/root/ab", never).inputTokens).toBe(1);
    cache.follow(undefined, agent(used(2)));
    expect(cache.sum(tree, "/root", never).inputTokens).toBe(10);
  });

  test("RES-7 does not grow with the trees that were asked for, and keeps those that are", () => {
    const cache = new UsageCache();
    const never = (): UsageTotals => expect.fail("asked for an aggregate");
    cache.sum(tree, "/root", () => totalsOf([used(5)]));
    let most = 0;
    for (let n = 0; n < 10_000; n += 1) {
      cache.sum(sampleId("thread", n), "/root", () => totalsOf([used(n)]));
      expect(cache.sum(tree, "/root", never).inputTokens).toBe(5);
      most = Math.max(most, cache.size);
    }
    expect(most).toBeLessThanOrEqual(4096);
    expect(cache.sum(sampleId("thread", 9_999), "/root", never).inputTokens).toBe(9_999);
    for (let n = 0; n < 10_000; n += 1) cache.sum(tree, `/root/a${n}`, () => totalsOf([used(n)]));
    expect(cache.size).toBeLessThanOrEqual(4096);
    cache.clear();
    expect(cache.size).toBe(0);
  });

  test("follows what has no price or reported nothing, and back", () => {
    const cache = new UsageCache();
    const never = (): UsageTotals => expect.fail("asked for an aggregate");
    cache.sum(tree, "/root", () => totalsOf([used(1, 2)]));
    cache.follow(agent(used(1, 2)), agent(used(1, null)));
    expect(cache.sum(tree, "/root", never).cost).toBe(null);
    cache.follow(agent(used(1, null)), agent({ ...used(1, 3), complete: false }));
    expect(cache.sum(tree, "/root", never)).toMatchObject({ cost: 3, complete: false });
    cache.follow(agent({ ...used(1, 3), complete: false }), agent(used(1, 4)));
    expect(cache.sum(tree, "/root", never)).toMatchObject({ cost: 4, complete: true });
  });
});

describe("deadlines", () => {
  test("tell the earliest that still holds", () => {
    const deadlines = new Deadlines();
    const open = new Map<string, number>();
    const earliest = () => deadlines.earliest((id, at) => open.get(id) === at);
    for (const at of [50, 20, 90, 20.5, 70, 10, 30]) {
      open.set(`wait ${at}`, at);
      deadlines.add(at, `wait ${at}`);
    }
    const told: (number | null)[] = [];
    for (let at = earliest(); at !== null; at = earliest()) {
      told.push(at);
      open.delete(`wait ${at}`);
    }
    expect(told).toEqual([10, 20, 20.5, 30, 50, 70, 90]);
    expect(earliest()).toBe(null);
  });
});

describe("the caches of a file", () => {
  test("MBX-10 unread mail that was found whole is not read again to find what is broken", async () => {
    using folder = makeFolder();
    const path = join(folder.path, "store.db");
    const store = await openSqliteStore({ path, synchronous: "normal" });
    onTestFinished(() => store.close());
    await openTree(store, tree);
    const send = (...names: readonly number[]) => store.send(names.map((n) => sampleMail(tree, tree, n)));
    const parse = vi.spyOn(JSON, "parse");
    onTestFinished(() => parse.mockRestore());
    /** What cannot be read, and how many bodies were read to know it. */
    const look = async () => {
      const before = parse.mock.calls.length;
      const found = await store.read((view) => view.unreadable(tree));
      return [found, parse.mock.calls.length - before];
    };
    await send(1, 2, 3);
    expect([await look(), await look()]).toEqual([
      [[], 3],
      [[], 0],
    ]);
    await send(4);
    expect([await look(), await look()]).toEqual([
      [[], 1],
      [[], 0],
    ]);
    damageRow(path, "mail", sampleId("msg", 2));
    expect(await look()).toEqual([[sampleId("msg", 2)], 4]);
    // Until it is put away, what came after it is looked at each time.
    expect(await look()).toEqual([[sampleId("msg", 2)], 3]);
  });

  test("hold after a read that failed, for it has written nothing", async () => {
    using folder = makeFolder();
    const store = await openSqliteStore({ path: join(folder.path, "store.db"), synchronous: "normal" });
    const lease = await store.claim({
      treeId: tree,
      token: "mine",
      owner: { host: "test", bootId: "boot", pid: 1, startedAt: "1" },
      leaseMs: 1000,
      provenDead: () => false,
    });
    await store.commit(lease, (tx) => tx.putAgent(sampleAgent(tree, tree, "/root")));
    const before = await store.read((view) => view.agent(tree));
    const failing = store.read(() => {
      throw new Error("not found");
    });
    await expect(failing).rejects.toThrow("not found");
    expect(await store.read((view) => view.agent(tree))).toBe(before);
    await store.close();
  });
});
