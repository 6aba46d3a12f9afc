/** After a restart: which trees there are, and those that have something to do are opened (REC-1, REC-2). */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { Logger } from "../../src/platform/logger.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { RejectedError } from "../../src/protocol/errors.ts";
import type { TreeId } from "../../src/protocol/ids.ts";
import {
  gate,
  repeat,
  say,
  type ScriptedStep,
  spawn,
  together,
} from "../../src/providers/scripted/script.ts";
import { commandTree } from "../../src/runtime/command-tree.ts";
import type { Runtime } from "../../src/runtime/runtime.ts";
import type { TreeHandle } from "../../src/runtime/tree-handle.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";
import { loggerTo, warningsTo } from "../support/logger.ts";

/** Only the first process is dead. */
const ONE_DEAD = { provenDead: ({ pid }: { readonly pid: number }) => pid === 1 };

const idsOf = (trees: readonly { readonly id: TreeId }[]) => trees.map(({ id }) => id).toSorted();

interface Three {
  readonly h: Harness;
  /** Its root is in the middle of a request. */
  readonly running: TreeHandle;
  /** Its root waits for a child, which is in the middle of a request. */
  readonly waiting: TreeHandle;
  readonly idle: TreeHandle;
}

/** What a root does first, by a word of its input. */
const FIRST: readonly (readonly [string, ScriptedStep])[] = [
  ["alone", together(gate("run"), say("has run"))],
  ["child", spawn("child", "work")],
  ["nothing", say("rested")],
];

/** Three trees of one process, which is killed. */
async function killed(store: (typeof STORES)[number]): Promise<Three> {
  const h = await harness({
    store,
    tree: { title: "idle" },
    runtime: ONE_DEAD,
    scripts: {
      "/root": [
        (context) => FIRST.find(([word]) => context.inputs.join().includes(word))![1],
        say("started"),
        repeat(say("heard")),
      ],
      "/root/child": [together(gate("child"), say("from the child"))],
    },
  });
  const running = await h.runtime.openTree({ title: "running", onLostRun: "retry" });
  const waiting = await h.runtime.openTree({ title: "waiting" });
  await h.ask("do nothing");
  await running.root.send("work alone");
  await h.provider.gates.arrived("run");
  await waiting.root.send("use a child");
  await h.provider.gates.arrived("child");
  await waitUntil("it awaits", async () => (await waiting.root.status()).kind === "awaiting_children");
  h.cut();
  return { h, running, waiting, idle: h.tree };
}

/** Another process on the same store. */
async function restarted({ h }: Three, options: Parameters<Harness["newRuntime"]>[0] = {}): Promise<Runtime> {
  return h.newRuntime({ ...ONE_DEAD, ...options });
}

async function endings(tree: TreeHandle) {
  await tree.idle();
  return (await tree.works()).rows.map(({ outcome }) => [outcome?.ending, outcome?.text]);
}

describe.each(STORES)("after a restart on %s", (store) => {
  test("REC-1 RES-6 what was under way in trees is opened and brought to its end, and an idle tree is left alone", async () => {
    const three = await killed(store);
    await using h = three.h;
    h.runtime = await restarted(three);
    const opened = await h.runtime.openPending();
    expect(idsOf(opened)).toEqual(idsOf([three.running, three.waiting]));
    h.provider.gates.openAll();
    const [running, waiting] = [three.running, three.waiting].map(({ id }) =>
      opened.find((tree) => tree.id === id)!,
    );
    expect(await endings(running!)).toEqual([["completed", "has run"]]);
    expect(await endings(waiting!)).toEqual([
      ["completed", "heard"],
      ["runtime_lost", ""],
    ]);
    expect(await h.store.read((view) => view.lease(three.idle.id))).toMatchObject({ owner: { pid: 1 } });
    // Nothing is left to open, and what is open stays with its handle.
    expect(await h.runtime.openPending()).toEqual([]);
    expect(await h.runtime.openTree({ id: running!.id })).toBe(running);
  });

  test("REC-2 of two processes that do the same each tree is opened by one, and so many as were asked for", async () => {
    const three = await killed(store);
    await using h = three.h;
    h.runtime = await restarted(three);
    await using other = await restarted(three);
    expect(await h.runtime.openPending({ limit: 1 })).toHaveLength(1);
    await h.runtime.close();
    h.runtime = await restarted(three);
    const found = await Promise.all([h.runtime.openPending(), other.openPending(), h.runtime.openPending()]);
    expect(new Set(idsOf(found.flat()))).toEqual(new Set(idsOf([three.running, three.waiting])));
    const mine = [...found[0]!, ...found[2]!].map(({ id }) => id);
    for (const { id } of found[1]!) expect(mine).not.toContain(id);
    h.provider.gates.openAll();
    for (const tree of found.flat()) await tree.idle();
  });

  test("REC-2 a caller who leaves has no further tree opened", async () => {
    const three = await killed(store);
    await using h = three.h;
    h.runtime = await restarted(three);
    const gone = new AbortController();
    let writes = 0;
    // The first is the claim of the first tree.
    h.onWrite = () => {
      if ((writes += 1) === 2) gone.abort(new Error("gone"));
      return null;
    };
    await expect(h.runtime.openPending({ signal: gone.signal })).rejects.toThrow("gone");
    await h.clock.settle();
    const owners = (await h.runtime.trees()).rows.map((tree) => tree.owner?.pid ?? null);
    expect(owners.filter((pid) => pid === 2)).toHaveLength(1);
    h.provider.gates.openAll();
  });

  test("REC-2 a command that waits for an owner is one more thing to do", async () => {
    const three = await killed(store);
    await using h = three.h;
    const { id } = three.idle;
    await commandTree(
      h.store,
      id,
      "followup",
      { target: "/root", message: "more" },
      { ...ONE_DEAD, claim: false },
    );
    h.runtime = await restarted(three);
    const opened = await h.runtime.openPending();
    expect(idsOf(opened)).toEqual(idsOf([three.running, three.waiting, three.idle]));
    h.provider.gates.openAll();
    await h.clock.advance(1000);
    const idle = opened.find((tree) => tree.id === id)!;
    expect(await endings(idle)).toEqual([
      ["completed", "rested"],
      ["completed", "started"],
    ]);
  });

  test("REC-1 REC-2 a tree that cannot run here is left to a process that can run it", async () => {
    const other = scripted({ "*": [repeat(say("from the other"))] });
    const search = defineTool({
      name: "search",
      description: "Searches.",
      input: z.strictObject({}),
      effects: ["read"],
      run: async () => ({ text: "found" }),
    });
    const scripts = { "*": [together(gate("never"), say("late"))] };
    await using h = await harness({
      store,
      runtime: { ...ONE_DEAD, tools: [search] },
      others: { other },
      scripts,
    });
    const elsewhere = await h.runtime.openTree({ provider: "other", tools: [] });
    const tooled = await h.runtime.openTree({ tools: ["search"] });
    const here = await h.runtime.openTree({ tools: [] });
    h.cut();
    for (const { id } of [elsewhere, tooled, here]) {
      const asked = { target: "/root", message: "more" };
      await commandTree(h.store, id, "followup", asked, { ...ONE_DEAD, claim: false });
    }
    const told: string[] = [];
    const logger: Logger = { ...warningsTo(() => undefined), info: (_, message) => void told.push(message!) };
    h.runtime = await h.newRuntime({ ...ONE_DEAD, providers: { scripted: h.provider }, tools: [], logger });
    expect(idsOf(await h.runtime.openPending())).toEqual([here.id]);
    expect(told.filter((line) => line.includes("left to who can run it"))).toHaveLength(2);
    await using able = await h.newRuntime({ ...ONE_DEAD, tools: [search] });
    expect(idsOf(await able.openPending())).toEqual(idsOf([elsewhere, tooled]));
    h.provider.gates.openAll();
  });

  test("REC-2 RES-1 trees are listed newest first with what each has to do, and who runs them", async () => {
    const three = await killed(store);
    await using h = three.h;
    h.runtime = await restarted(three);
    const counts = { registered: 1, openRuns: 0, triggered: 0, commands: 0 };
    const owner = null;
    const listed = [
      { title: "waiting", id: three.waiting.id, counts: { ...counts, registered: 2, openRuns: 1 }, owner },
      { title: "running", id: three.running.id, counts: { ...counts, openRuns: 1 }, owner },
      { title: "idle", id: three.idle.id, counts, owner },
    ];
    expect((await h.runtime.trees()).rows).toMatchObject(listed);
    const first = await h.runtime.trees({ limit: 2 });
    const second = await h.runtime.trees({ limit: 2, after: first.next });
    expect([first.rows.length, second.rows.length, second.next]).toEqual([2, 1, null]);
    await h.runtime.openTree({ id: three.running.id });
    const owners = (await h.runtime.trees()).rows.map((tree) => tree.owner?.pid ?? null);
    expect(owners).toEqual([null, 2, null]);
    // Another process sees the same.
    await using other = await restarted(three);
    expect((await other.trees()).rows.map((tree) => tree.owner?.pid ?? null)).toEqual(owners);
  });

  test("REC-1 a row that cannot be read hides no tree, and a tree that cannot be opened keeps none closed", async () => {
    const three = await killed(store);
    await using h = three.h;
    const [run] = await h.store.read((view) => view.openRuns(three.waiting.id));
    h.damageRow("runs", run!.id);
    const failing = new RejectedError("STORE_CORRUPT", "a row cannot be read");
    const said: string[] = [];
    h.runtime = await restarted(three, { logger: loggerTo(said) });
    const counted = (await h.runtime.trees()).rows.find(({ id }) => id === three.waiting.id)!.counts;
    expect(counted).toMatchObject({ registered: expect.any(Number), openRuns: 1 });
    // The first that is opened cannot be recovered.
    let commits = 0;
    h.onWrite = (_, kind) =>
      kind === "commit" && ++commits === 1 ? { kind: "error", error: failing } : null;
    const opened = await h.runtime.openPending();
    expect(opened).toHaveLength(1);
    expect(said).toContain("a tree with something to do could not be opened");
    expect(idsOf([...opened, ...(await h.runtime.openPending())])).toEqual(
      idsOf([three.running, three.waiting]),
    );
    expect((await h.runtime.trees()).rows.every((tree) => tree.counts !== null)).toBe(true);
    h.provider.gates.openAll();
  });
});

test("REC-1 a tree whose own row cannot be read is listed with what is known, among the others", async () => {
  const three = await killed("sqlite");
  await using h = three.h;
  h.runtime = await restarted(three);
  h.edit("UPDATE trees SET body = substr(body, 1, 40) WHERE id = ?", three.running.id);
  const known = { createdAt: expect.any(Number), counts: { registered: expect.any(Number) } };
  expect((await h.runtime.trees()).rows).toMatchObject([
    { id: three.waiting.id, title: "waiting", ...known },
    { id: three.running.id, title: null, createdAt: null, counts: null, owner: null },
    { id: three.idle.id, title: "idle", ...known },
  ]);
  // It ends a page, and begins one.
  const pages = [await h.runtime.trees({ limit: 2 })];
  pages.push(await h.runtime.trees({ limit: 1, after: three.waiting.id }));
  expect(pages.map(({ rows, next }) => [rows.length, next])).toEqual([
    [2, three.running.id],
    [1, three.running.id],
  ]);
  expect(idsOf(await h.runtime.openPending())).toEqual([three.waiting.id]);
  h.provider.gates.openAll();
});
