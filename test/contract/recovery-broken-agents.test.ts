/** Rows of agents that cannot be read (REC-1): each costs its agent, which is closed in order; all else goes on. */
import { describe, expect, test } from "vitest";
import { ask, gate, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { TreeReader } from "../../src/runtime/tree-reader.ts";
import { invariants } from "../../src/testing/invariants.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const heard = repeat(say((context) => `heard: ${context.lastToolText ?? ""}`));
const scripts = {
  "/root": [spawn("a", "first"), wait({ targets: ["a"] }), heard],
  "/root/a": [spawn("b", "second"), together(gate("a"), say("from a")), repeat(say("a again"))],
  "/root/a/b": [together(gate("b"), say("from b")), repeat(say("b again"))],
};

async function sound(h: Harness): Promise<void> {
  await h.tree.idle();
  expect(await h.store.read((view) => invariants(h.tree.id).check(view))).toEqual([]);
  expect(await h.tree.counts()).toMatchObject({ running: 0, queued: 0 });
  expect(h.tree.control.tree.permits.inUse).toBe(0);
}

async function setAside(h: Harness) {
  return (await look(h).events("record.set_aside")).map(({ path, data }) => ({ path, ...data }));
}

async function underWay(h: Harness) {
  const work = await h.tree.root.send("go");
  await h.provider.gates.arrived("a");
  await h.provider.gates.arrived("b");
  await waitUntil("the root waits", async () => (await h.tree.root.status()).kind === "waiting");
  const a = await (await h.tree.agent("/root/a")).record();
  return { work, a };
}

describe.each(STORES)("an agent that cannot be read on %s", (store) => {
  test("REC-1 INT-7 a busy one is closed in order: run lost, works ended, what is below it goes on", async () => {
    await using h = await harness({ store, scripts });
    const { work, a } = await underWay(h);
    const b = await (await h.tree.agent("/root/a/b")).record();
    h.damageRow("agents", a.threadId);
    await h.crash();
    expect(await h.tree.work(work.id).outcome()).toMatchObject({
      ending: "completed",
      text: expect.stringContaining("the stored record of the agent cannot be read"),
    });
    expect((await look(h).work("/root/a")).outcome).toMatchObject({
      ending: "runtime_lost",
      error: { code: "STORE_CORRUPT" },
    });
    expect(await look(h).runs("/root/a")).toMatchObject([{ status: "interrupted", reason: "runtime_lost" }]);
    const after = await (await h.tree.agent("/root/a")).record();
    const { treeId, threadId, path, parent, depth, createdAt, createdBy, bornInRun } = a;
    expect(after).toMatchObject({ treeId, threadId, path, parent, depth, createdAt, createdBy, bornInRun });
    // What its request had used when it was cut off is nobody's to say.
    expect(after.usage).toEqual({ ...a.usage, complete: false });
    expect(after).toMatchObject({
      state: "closed",
      children: 1,
      runs: 1,
      currentRun: null,
      lastOutcome: { status: "interrupted", reason: "runtime_lost" },
      thread: { agentId: a.path, lineage: a.thread!.lineage },
      config: { provider: "scripted", tools: [], effects: a.config.effects },
    });
    expect(await setAside(h)).toEqual([{ path: "/root/a", table: "agents", id: a.threadId, open: true }]);
    if (store === "sqlite") expect(h.setAside(a.threadId)).toBe(JSON.stringify(a).slice(0, 40));
    // Its path stays taken, and nobody can write to it.
    await expect(h.tree.root.spawn("a", "anew")).rejects.toMatchObject({ code: "AGENT_EXISTS" });
    await expect((await h.tree.agent("/root/a")).send("hello")).rejects.toMatchObject({
      code: "AGENT_CLOSED",
    });
    // What is below is there, and can be asked.
    h.provider.gates.openAll();
    const below = await h.tree.agent("/root/a/b");
    expect(await below.record()).toMatchObject({ parent: a.threadId, state: "open", config: b.config });
    expect(await (await below.send("again")).outcome()).toMatchObject({ ending: "completed" });
    await sound(h);
    await h.crash();
    expect(await setAside(h)).toHaveLength(1);
    expect((await h.tree.root.close()).length).toBe(2);
  });

  test("REC-1 WRK-6 what it had asked for comes to the nearest one above that lives", async () => {
    await using h = await harness({
      store,
      scripts: { ...scripts, "/root/a": [spawn("b", "second"), wait({ targets: ["b"] }), say("from a")] },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("b");
    await waitUntil("a waits", async () => (await look(h).status("/root/a")) === "waiting");
    const a = await h.tree.agent("/root/a");
    h.damageRow("agents", a.threadId);
    const asked = await look(h).work("/root/a/b");
    h.provider.gates.openAll();
    await h.crash();
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed" });
    expect(await h.tree.work(asked.id).outcome()).toMatchObject({ ending: "runtime_lost" });
    const results = (await look(h).mail("/root")).filter((mail) => mail.resultOf === asked.id);
    expect(results).toMatchObject([{ redirectedFrom: "/root/a" }]);
    await sound(h);
  });

  test("REC-1 with its run, its work, its parent and its question: whatever is broken at once, the tree opens", async () => {
    await using h = await harness({
      store,
      scripts: { ...scripts, "/root/a/b": [ask("how far?"), say("from b")] },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("a");
    await waitUntil("b asks", async () => (await look(h).status("/root/a/b")) === "awaiting_approval");
    const [a, b] = [await h.tree.agent("/root/a"), await h.tree.agent("/root/a/b")];
    const rows = await h.store.read((view) => ({
      runs: view.openRuns(h.tree.id).filter(({ threadId }) => threadId !== h.tree.id),
      works: [...view.openWorksOf(a.threadId), ...view.openWorksOf(b.threadId)],
      requests: view.openRequestsOf(b.threadId),
    }));
    for (const { threadId } of [b, a]) h.damageRow("agents", threadId);
    for (const { id } of rows.runs) h.damageRow("runs", id);
    for (const { id } of rows.works) h.damageRow("works", id);
    for (const { id } of rows.requests) h.damageRow("requests", id);
    await h.crash();
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed" });
    await sound(h);
    expect(await setAside(h)).toHaveLength(7);
    expect((await look(h).works()).map(({ state }) => state)).toEqual(["ended", "ended", "ended"]);
    for (const path of ["/root/a", "/root/a/b"]) expect(await look(h).status(path)).toBe("closed");
    expect((await (await h.tree.agent("/root/a/b")).record()).config.effects).toEqual(
      (await h.tree.root.record()).config.effects,
    );
  });

  test("REC-1 MBX-10 one that was to begin is closed, its work ends failed, and its request is a dead letter", async () => {
    await using h = await harness({ store, scripts, tree: { limits: { running: 1 } } });
    await h.tree.root.spawn("busy", "go");
    const { agent, work } = await h.tree.root.spawn("later", "go");
    h.damageRow("agents", agent.threadId);
    await h.crash();
    expect(await h.tree.work(work.id).outcome()).toMatchObject({
      ending: "failed",
      error: { code: "STORE_CORRUPT" },
    });
    await sound(h);
    expect(await look(h).mail("/root/later")).toMatchObject([
      { state: "dead_lettered", reason: "work_ended" },
    ]);
    expect(await look(h).status("/root/later")).toBe("closed");
  });

  test("REC-1 while the tree is open: who needs it first mends it, and its session is dropped", async () => {
    await using h = await harness({ store, scripts });
    const { work, a } = await underWay(h);
    h.damageRow("agents", a.threadId);
    h.provider.gates.openAll();
    expect(await work.outcome()).toMatchObject({
      ending: "completed",
      text: expect.stringContaining("the stored record of the agent cannot be read"),
    });
    await sound(h);
    expect(await look(h).status("/root/a")).toBe("closed");
    expect(h.tree.control.tree.sessions.has(a.threadId)).toBe(false);
  });

  test("REC-1 one that is idle is closed when somebody needs it, with its transcript and its context", async () => {
    await using h = await harness({ store, scripts: { "*": [repeat(say("ok"))] } });
    const { agent, work } = await h.tree.root.spawn("c", "go");
    await work.outcome();
    const before = await agent.record();
    const told = await agent.transcript();
    h.damageRow("agents", agent.threadId);
    await h.crash();
    expect(await setAside(h)).toEqual([]);
    const reader = new TreeReader(h.store, h.tree.id);
    expect(await reader.agents({ closed: true })).toMatchObject({
      agents: [{ path: "/root" }],
      unreadable: [{ table: "agents", id: agent.threadId, path: "/root/c" }],
    });
    expect(await setAside(h)).toEqual([]);
    const after = await (await h.tree.agent("c")).record();
    const { runs, items, usage, lastOutcome, thread } = before;
    expect(after).toMatchObject({ state: "closed", runs, items, usage, lastOutcome, thread });
    expect(await (await h.tree.agent("c")).transcript()).toEqual(told);
    expect((await h.tree.list({ closed: true })).agents.map(({ path }) => path)).toEqual([
      "/root",
      "/root/c",
    ]);
    await sound(h);
  });

  test.for(["list", "snapshot", "close"] as const)("REC-1 a %s meets one that is idle", async (asked) => {
    await using h = await harness({ store, scripts: { "*": [repeat(say("ok"))] } });
    const { agent, work } = await h.tree.root.spawn("c", "go");
    await work.outcome();
    h.damageRow("agents", agent.threadId);
    await h.crash();
    if (asked === "close") await h.tree.root.close();
    else await h.tree[asked]();
    const { agents } = await h.tree.list({ closed: true });
    expect(agents.map(({ path, status }) => [path, status.kind])).toEqual([
      ["/root", asked === "close" ? "closed" : "idle"],
      ["/root/c", "closed"],
    ]);
    expect(await setAside(h)).toHaveLength(1);
    await sound(h);
  });

  test("REC-1 C19 a root is not mended: its tree is refused, with its row, and others go on", async () => {
    await using h = await harness({ store, scripts: { "*": [repeat(say("ok"))] } });
    const { id } = h.tree;
    await h.ask("go");
    const other = await h.runtime.openTree({});
    h.damageRow("agents", id);
    h.cut();
    await expect(h.crash()).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      details: { table: "agents", id },
    });
    const { rows } = await h.runtime.trees();
    expect(rows.map((tree) => [tree.id, tree.counts === null])).toEqual([
      [other.id, false],
      [id, true],
    ]);
    h.tree = await h.runtime.openTree({ id: other.id });
    expect(await h.ask("and on")).toMatchObject({ ending: "completed" });
    expect(await h.store.read((view) => view.lease(id)?.live ?? false)).toBe(false);
  });
});
