import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { limitsTable, LIMITS_BEGIN, LIMITS_END } from "../../scripts/limits-table.ts";
import { type Budgets, DEFAULT_LIMITS, limitsSchema } from "../../src/protocol/limits.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { commandTree } from "../../src/runtime/command-tree.ts";
import type { WorkId } from "../../src/protocol/ids.ts";
import type { Agent } from "../../src/runtime/agent.ts";
import { gate, list, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type Harness, harness, type HarnessOptions, STORES, type StoreKind } from "../support/harness.ts";
import { look } from "../support/look.ts";

const MINUTE = 60_000;
const idle = { "*": [repeat(say("ok"))] };

function open(
  store: StoreKind,
  limits: NonNullable<HarnessOptions["tree"]>["limits"] = {},
): Promise<Harness> {
  return harness({ store, scripts: idle, tree: { limits } });
}

/** Spawns a chain or a row of agents, as the library does, and lets them come to rest. */
async function child(parent: Agent, name: string, budgets?: Budgets): Promise<Agent> {
  const { agent, work } = await parent.spawn(name, "work", budgets === undefined ? {} : { budgets });
  await work.outcome();
  return agent;
}

const refused = (details: object, code = "LIMIT_REACHED") => ({
  code,
  retryable: true,
  details: { frees: expect.any(String), ...details },
});

describe.each(STORES)("limits of a tree on %s", (store) => {
  test("BUD-1 depth: five levels by default, settable, zero and unlimited", async () => {
    await using h = await open(store);
    let at = h.tree.root;
    for (const name of ["a", "b", "c", "d", "e"]) at = await child(at, name);
    await expect(at.spawn("f", "work")).rejects.toMatchObject(refused({ limit: "depth", value: 5, use: 5 }));
    await using none = await open(store, { depth: 0 });
    await expect(none.tree.root.spawn("a", "work")).rejects.toMatchObject(
      refused({ limit: "depth", value: 0, use: 0 }),
    );
    await using free = await open(store, { depth: null });
    at = free.tree.root;
    for (const name of ["a", "b", "c", "d", "e", "f", "g"]) at = await child(at, name);
    expect(at.path).toBe("/root/a/b/c/d/e/f/g");
  });

  test("BUD-1 direct children that are open; agents a tree, closed ones counted", async () => {
    await using h = await open(store, { directChildren: 2, agentsPerTree: 3 });
    const a = await child(h.tree.root, "a");
    const b = await child(h.tree.root, "b");
    await expect(h.tree.root.spawn("c", "work")).rejects.toMatchObject(
      refused({ limit: "directChildren", value: 2, use: 2 }),
    );
    await child(a, "c");
    await b.close();
    await expect(a.spawn("d", "work")).rejects.toMatchObject(
      refused({ limit: "agentsPerTree", value: 3, use: 3 }, "AGENT_LIMIT_REACHED"),
    );
    await using none = await open(store, { agentsPerTree: 0 });
    await expect(none.tree.root.spawn("a", "work")).rejects.toMatchObject({ code: "AGENT_LIMIT_REACHED" });
    await using childless = await open(store, { directChildren: 0 });
    await expect(childless.tree.root.spawn("a", "work")).rejects.toMatchObject({ code: "LIMIT_REACHED" });
    await using free = await open(store, {
      directChildren: null,
      agentsPerTree: null,
      spawnsPerMinute: null,
    });
    for (let at = 0; at < 40; at += 1) await child(free.tree.root, `a_${at}`);
    expect((await free.tree.counts()).registered).toBe(41);
  });

  test("BUD-1 spawns a minute slide with the clock, and say when there is room", async () => {
    await using h = await open(store, { spawnsPerMinute: 2 });
    await child(h.tree.root, "a");
    await h.clock.advance(10_000);
    await child(h.tree.root, "b");
    await expect(h.tree.root.spawn("c", "work")).rejects.toMatchObject(
      refused({ limit: "spawnsPerMinute", value: 2, use: 2, retryAfterMs: 50_000 }),
    );
    await h.clock.advance(49_999);
    await expect(h.tree.root.spawn("c", "work")).rejects.toMatchObject(refused({ retryAfterMs: 1 }));
    await h.clock.advance(1);
    await child(h.tree.root, "c");
    await using none = await open(store, { spawnsPerMinute: 0 });
    await expect(none.tree.root.spawn("a", "work")).rejects.toMatchObject(refused({ retryAfterMs: null }));
  });

  test("BUD-1 running children: as many as allowed at every instant, or without a limit", async () => {
    const scripts = { "*": [together(gate("hold"), say("done"))] };
    for (const [running, expected] of [
      [2, 2],
      [null, 6],
    ] as const) {
      await using h = await harness({ store, scripts, tree: { limits: { running } } });
      for (let at = 0; at < 6; at += 1) await h.tree.root.spawn(`a_${at}`, "work");
      await waitUntil("they run", () => h.provider.gates.waiting("hold") === expected);
      await h.clock.settle();
      expect(await h.tree.counts()).toMatchObject({ running: expected, queued: 6 - expected });
    }
  });

  test("BUD-1 BUD-3 where no child may ever run, none is made and none is asked: it is refused, not queued", async () => {
    await using h = await open(store, { running: 0 });
    const before = await look(h).snapshot();
    await expect(h.tree.root.spawn("a", "work")).rejects.toMatchObject(
      refused({ limit: "running", value: 0 }),
    );
    expect(await look(h).snapshot()).toEqual(before);
    expect((await h.ask("the root takes no permit")).ending).toBe("completed");
    // A tree that was stored with such a limit and children.
    await using old = await open(store);
    const a = await child(old.tree.root, "a");
    await old.tree.control.tree.transact((tx) => tx.putTree({ limits: { ...tx.limits, running: 0 } }));
    const stored = await look(old).snapshot();
    await expect(a.send("more")).rejects.toMatchObject(refused({ limit: "running", value: 0 }));
    expect(await look(old).snapshot()).toEqual(stored);
  });

  test("BUD-1 BUD-2 the wall clock of a tree ends work that does not come to rest, tells it once, and begins anew", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(spawn("a", "work"), spawn("b", "work")),
          wait({ targets: ["a", "b"] }),
          repeat(say("ok")),
        ],
        "/root/a": [together(gate("hold"), list()), say("never asked")],
        "/root/b": [together(gate("hold"), list()), say("never asked")],
      },
      tree: { limits: { treeWallClockMs: 10 * MINUTE } },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("hold", 2);
    await h.clock.advance(10 * MINUTE);
    // Both ask at the same time for what the clock has no room for.
    h.provider.gates.open("hold");
    expect(await work.outcome()).toMatchObject({
      ending: "budget_exhausted",
      error: { code: "BUDGET_EXHAUSTED", message: "the wallClock budget of /root is spent" },
    });
    await h.tree.idle();
    expect((await look(h).works()).map(({ outcome }) => outcome?.ending)).toEqual(
      Array.from({ length: 3 }, () => "budget_exhausted"),
    );
    expect(await look(h).events("budget.spent")).toMatchObject([{ path: "/root" }]);
    expect(await h.ask("again")).toMatchObject({ ending: "completed" });
    expect((await (await (await h.tree.agent("a")).send("again")).outcome()).ending).toBe("completed");
    expect((await look(h).mail("/root")).filter(({ kind }) => kind === "notice")).toMatchObject([
      { content: { text: expect.stringContaining("a new request begins a new clock") as unknown } },
    ]);
  });

  test("BUD-1 BUD-2 a wall clock that came to rest before the commit in which it would end work ends none", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/old": [together(gate("old"), say("old done"))],
        "/root/new": [together(gate("new"), list()), say("new done")],
      },
      tree: { limits: { treeWallClockMs: 10 * MINUTE } },
    });
    const old = await h.tree.root.spawn("old", "work");
    await h.provider.gates.arrived("old");
    await h.clock.advance(9 * MINUTE);
    const fresh = await h.tree.root.spawn("new", "work");
    await h.provider.gates.arrived("new");
    await h.clock.advance(2 * MINUTE);
    const read = h.faulty.read.bind(h.faulty);
    let late = 0;
    h.faulty.read = async (plan) => {
      const seen = await read(plan);
      const { admission } = (seen ?? {}) as { readonly admission?: { readonly kind: string } };
      if (admission?.kind === "exhausted" && (late += 1) === 1) {
        h.provider.gates.open("old");
        await old.work.outcome();
      }
      return seen;
    };
    h.provider.gates.open("new");
    expect(await fresh.work.outcome()).toMatchObject({ ending: "completed", text: "new done" });
    expect([late, (await old.work.outcome()).ending]).toEqual([1, "completed"]);
    expect(await look(h).events("budget.spent")).toEqual([]);
  });

  test("BUD-1 a tree at rest uses nothing of its wall clock, nor does a request that nobody has begun", async () => {
    await using h = await open(store);
    const { id } = h.tree;
    expect((await h.ask("day one")).ending).toBe("completed");
    await h.tree.close();
    await h.clock.advance(25 * 60 * MINUTE);
    const dayTwo = await h.runtime.openTree({ id });
    expect((await (await dayTwo.root.send("day two")).outcome()).ending).toBe("completed");
    await dayTwo.close();
    const asked = { target: "/root", message: "for day three" };
    const { answer } = await commandTree(h.store, id, "followup", asked, { clock: h.clock });
    await h.clock.advance(25 * 60 * MINUTE);
    const dayThree = await h.runtime.openTree({ id });
    expect((await dayThree.work(answer["work_id"] as WorkId).outcome()).ending).toBe("completed");
  });
});

describe.each(STORES)("limits of a subtree on %s", (store) => {
  test("BUD-1 depth, direct children and agents hold below the agent that carries them, and nowhere else", async () => {
    await using h = await open(store, { depth: 9 });
    const top = await child(h.tree.root, "top", { depth: 2, directChildren: 2, agents: 3 });
    const a = await child(top, "a");
    const deep = await child(a, "deep");
    await expect(deep.spawn("deeper", "work")).rejects.toMatchObject(
      refused({ limit: "depth below /root/top", value: 2, use: 2 }),
    );
    await child(top, "b");
    await expect(top.spawn("c", "work")).rejects.toMatchObject(
      refused({ limit: "directChildren below /root/top", value: 2, use: 2 }),
    );
    await expect(a.spawn("second", "work")).rejects.toMatchObject(
      refused({ limit: "agents below /root/top", value: 3, use: 3 }),
    );
    const other = await child(h.tree.root, "other");
    for (const name of ["x", "y", "z", "w"]) await child(other, name);
    expect((await h.tree.counts()).registered).toBe(10);
  });

  test("BUD-1 spawns a minute below an agent", async () => {
    await using h = await open(store);
    const top = await child(h.tree.root, "top", { spawnsPerMinute: 1 });
    await h.clock.advance(1000);
    const a = await child(top, "a");
    await expect(a.spawn("b", "work")).rejects.toMatchObject(
      refused({ limit: "spawnsPerMinute below /root/top", value: 1, use: 1, retryAfterMs: MINUTE }),
    );
    await child(h.tree.root, "other");
    await h.clock.advance(MINUTE);
    await child(a, "b");
  });

  test("BUD-1 running children below an agent, beside others of the tree", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/top": [repeat(say("ok"))], "*": [together(gate("hold"), say("done"))] },
      tree: { limits: { running: 4 } },
    });
    const top = await child(h.tree.root, "top", { running: 1 });
    for (const name of ["a", "b", "c"]) await top.spawn(name, "work");
    for (const name of ["x", "y"]) await h.tree.root.spawn(name, "work");
    await waitUntil("they run", () => h.provider.gates.waiting("hold") === 3);
    await h.clock.settle();
    const running = (await h.tree.list()).agents.filter(({ status }) => status.kind === "running");
    expect(running.map(({ path }) => path)).toEqual(["/root/top/a", "/root/x", "/root/y"]);
    h.provider.gates.letThrough("hold", 1);
    await waitUntil(
      "the next runs",
      async () => (await (await h.tree.agent("top/b")).status()).kind === "running",
    );
  });

  test("BUD-1 BUD-3 below an agent whose children may never run none is made or asked; itself it runs", async () => {
    await using h = await open(store);
    const top = await child(h.tree.root, "top", { running: 0 });
    const before = await look(h).snapshot();
    await expect(top.spawn("a", "work")).rejects.toMatchObject(
      refused({ limit: "running below /root/top", value: 0 }),
    );
    expect(await look(h).snapshot()).toEqual(before);
    expect((await (await top.send("more")).outcome()).ending).toBe("completed");
    await child(h.tree.root, "other");
  });

  test("BUD-1 time of a subtree, with zero as a limit of its own", async () => {
    await using h = await harness({
      store,
      scripts: {
        ...idle,
        "/root/slow": [repeat(say("ok"), 2), together(gate("slow"), list()), say("never asked")],
      },
    });
    const slow = await child(h.tree.root, "slow", { wallClockMs: MINUTE });
    await h.clock.advance(MINUTE);
    expect((await (await slow.send("more")).outcome()).ending).toBe("completed");
    const late = await slow.send("more");
    await h.provider.gates.arrived("slow");
    await h.clock.advance(MINUTE);
    h.provider.gates.open("slow");
    expect((await late.outcome()).ending).toBe("budget_exhausted");
    const { work } = await h.tree.root.spawn("never", "work", { budgets: { tokens: 0 } });
    expect((await work.outcome()).ending).toBe("budget_exhausted");
    const { work: free } = await h.tree.root.spawn("free", "work", { budgets: { tokens: null } });
    expect((await free.outcome()).ending).toBe("completed");
    expect((await h.ask("the rest goes on")).ending).toBe("completed");
  });
});

describe.each(STORES)("children that were closed on %s", (store) => {
  test("BUD-1 BUD-3 do not count in the limits of direct children, also after a crash", async () => {
    await using h = await open(store, { directChildren: 2 });
    const first = await child(h.tree.root, "first");
    const top = await child(h.tree.root, "top", { directChildren: 1 });
    await child(top, "a");
    for (const at of [h.tree.root, top])
      await expect(at.spawn("more", "work")).rejects.toMatchObject({ code: "LIMIT_REACHED" });
    await first.close();
    await (await h.tree.agent("top/a")).close();
    await h.crash();
    const { root } = h.tree;
    for (const at of [root, await h.tree.agent("top")]) await child(at, "next");
    await expect(root.spawn("more", "work")).rejects.toMatchObject(
      refused({ limit: "directChildren", value: 2, use: 2 }),
    );
    await expect((await h.tree.agent("top")).spawn("more", "work")).rejects.toMatchObject(
      refused({ limit: "directChildren below /root/top", value: 1, use: 1 }),
    );
    // The whole of them is bounded by the number of agents, in which closed ones count.
    expect((await root.record()).children).toBe(3);
    expect((await h.tree.counts()).registered).toBe(6);
  });
});

describe.each(STORES)("a refusal on %s", (store) => {
  test("BUD-3 reaches the model as a tool result with limit, value, use and remedy, and fails no run", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(spawn("a", "work"), spawn("b", "work")),
          spawn("c", "work"),
          wait({ targets: ["a"] }),
          say("done without it"),
          repeat(say("ok")),
        ],
        "*": [say("worked")],
      },
      tree: { limits: { directChildren: 2 } },
    });
    expect(await h.ask("go")).toMatchObject({ ending: "completed" });
    const outputs = await look(h).outputs("/root", "spawn_agent");
    expect(outputs.map(({ isError }) => isError)).toEqual([false, false, true]);
    expect(outputs[2]!.output).toMatchObject({
      code: "LIMIT_REACHED",
      retryable: true,
      error: "LIMIT_REACHED: the limit directChildren is 2 and 2 are in use. Follow up with one of them.",
      details: { limit: "directChildren", value: 2, use: 2, frees: "Follow up with one of them." },
    });
  });
});

describe("the defaults", () => {
  test("BUD-6 stand in one table, finite but for the explicit null", () => {
    expect(DEFAULT_LIMITS).toMatchObject({
      depth: 5,
      agentsPerTree: 200,
      directChildren: 32,
      spawnsPerMinute: 60,
      runsPerMinute: 240,
      running: 4,
      residents: 64,
      queue: 256,
      stepsPerRun: 100,
      runWallClockMs: 3_600_000,
      treeWallClockMs: 86_400_000,
      tokensPerTree: 20_000_000,
      moneyPerTree: 50,
      interruptGraceMs: 5000,
      closeDeadlineMs: 30_000,
      mailboxMessages: 1000,
      mailboxBytes: 4 * 1024 * 1024,
      retries: 4,
      schemaRepairs: 1,
      artifactHeadBytes: 4096,
      artifactTailBytes: 2048,
    });
    const unlimited = Object.entries(DEFAULT_LIMITS).filter(([, value]) => value === null);
    expect(unlimited.map(([name]) => name)).toEqual(["mailPerRequestBytes"]);
  });

  test("BUD-6 the codex profile starts with three running children", async () => {
    await using h = await harness({ scripts: idle, tree: { profile: "codex" } });
    expect((await h.store.read((view) => view.tree(h.tree.id)))?.limits.running).toBe(3);
  });

  test("BUD-6 the README's table is the one that is generated from them", () => {
    const table = limitsTable();
    for (const name of Object.keys(limitsSchema.shape)) expect(table).toContain(`| \`${name}\` | `);
    expect(table).toContain(
      "| `treeWallClockMs` | 24 h | how long the work of a tree may go on without coming to rest |",
    );
    expect(table).toContain("| `mailboxBytes` | 4 MiB | unread bytes a mailbox |");
    const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
    const begin = readme.indexOf(LIMITS_BEGIN);
    if (begin === -1) return;
    expect(readme.slice(begin + LIMITS_BEGIN.length, readme.indexOf(LIMITS_END)).trim()).toBe(table);
  });
});

test("BUD-1 a runtime in which no child could ever run is not made", async () => {
  await expect(createRuntime({ limits: { runningTotal: 0 } })).rejects.toMatchObject({
    code: "INVALID_ARGUMENT",
    message: expect.stringContaining("limits.runningTotal"),
  });
});
