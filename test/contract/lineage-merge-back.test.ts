/** Forks merged back into the thread they came from (C7): told with the next message, once, and to no transcript of messages. */
import { describe, expect, test } from "vitest";
import { call, fail, repeat, say, type Script, spawn } from "../../src/providers/scripted/script.ts";
import { scripted, type ScriptedProvider } from "../../src/providers/scripted/provider.ts";
import type { ThreadId } from "../../src/protocol/ids.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { z } from "zod";
import { harness, type Harness, STORES } from "../support/harness.ts";

const echo = (name: string) => repeat(say((context) => `${name} took ${context.inputs.at(-1)}`));

const write = defineTool({
  name: "write_file",
  description: "Writes a file.",
  input: z.object({ path: z.string(), text: z.string() }),
  effects: ["write"],
  run: async () => "written",
});

async function open(
  store: (typeof STORES)[number],
  script: Script = [echo("A")],
  model: { readonly contextWindow?: number } = {},
): Promise<{ h: Harness; b: ScriptedProvider }> {
  const b = scripted({ "/root": [echo("B")] }, { models: { scripted: model } });
  const scripts = { "/root": script, "/root/helper": [repeat(say("the helper's result"))] };
  const h = await harness({ store, scripts, others: { b }, runtime: { tools: [write] } });
  return { h, b };
}

async function run(
  h: Harness,
  message: string,
  thread: ThreadId = h.tree.id,
  provider?: string,
): Promise<void> {
  const work = await h.runtime.threads.continue(thread, message, provider === undefined ? {} : { provider });
  const tree = await h.runtime.openTree({ id: thread });
  expect(await tree.work(work.id).outcome()).toMatchObject({ ending: "completed" });
}

const fork = async (h: Harness): Promise<ThreadId> => (await h.runtime.threads.fork(h.tree.id)).thread.id;
const replayed = async (h: Harness): Promise<ThreadId> =>
  (await h.runtime.threads.fork(h.tree.id, { policy: { strategy: "replay" } })).thread.id;
const sentAny = (provider: ScriptedProvider): string => JSON.stringify(provider.requests("/root"));
const sent = (provider: ScriptedProvider): string =>
  JSON.stringify(provider.requests("/root").at(-1)!.messages);
const count = (text: string, part: string): number => text.split(part).length - 1;

/** Merge-backs into the thread, oldest first. */
async function merges(h: Harness) {
  const { rows } = await h.runtime.threads.transfers(h.tree.id, { limit: 50 });
  return rows.filter(({ type }) => type === "merge_back");
}

const handoffsOf = async (h: Harness) => (await h.runtime.threads.handoffs(h.tree.id, { limit: 50 })).rows;

const BROUGHT = "Brought back by forks";

describe.each(STORES)("a merge-back on %s", (store) => {
  test.for<[string, (h: Harness) => Promise<void>]>([
    ["a full handoff of a switch", (h) => run(h, "over to b", h.tree.id, "b")],
    [
      "a clean context",
      async (h) => {
        await h.runtime.threads.select(h.tree.id, { provider: "scripted", cleanContext: true });
        await run(h, "anew");
      },
    ],
    ["a fork that is told by text", async (h) => run(h, "in the fork", await replayed(h))],
  ])("C7.3 C10 what it told stays with the thread: %s", async ([, goOn]) => {
    const { h, b } = await open(store);
    await using _ = h;
    await run(h, "q1;");
    const forked = await fork(h);
    await run(h, "the fork's own work;", forked);
    await h.runtime.threads.mergeBack(forked);
    await run(h, "take it in;");
    await goOn(h);
    const told = [h.provider, b].map(sentAny).find((text) => text.includes(BROUGHT)) ?? "";
    expect(count(told, BROUGHT)).toBe(1);
    expect(told).toContain("told in run 2");
    expect(told).toContain("A took the fork's own work;");
  });

  test("C7.3 C4.14 into a thread whose runs are told the pinned context alone it is refused", async () => {
    const { h } = await open(store);
    await using _ = h;
    const { threads } = h.runtime;
    const { id } = await threads.create({ continuity: "projected-only", provider: "scripted" });
    await run(h, "q1;", id);
    const { thread } = await threads.fork(id);
    await run(h, "the fork's own work;", thread.id);
    const before = await threads.get(id);
    await expect(threads.mergeBack(thread.id)).rejects.toMatchObject({ code: "THREAD_INVARIANT_VIOLATION" });
    expect(await threads.get(id)).toEqual(before);
    const { rows } = await threads.transfers(id, { limit: 50 });
    expect(rows.filter(({ type }) => type === "merge_back")).toEqual([]);
  });

  test("C4.6 C7.3 what it told is part of a delta, and of no text once its run was rolled back", async () => {
    const { h, b } = await open(store);
    await using _ = h;
    await run(h, "q1;", h.tree.id, "b");
    await run(h, "q2;", h.tree.id, "scripted");
    const forked = await fork(h);
    await run(h, "the fork's own work;", forked);
    await h.runtime.threads.mergeBack(forked);
    await run(h, "take it in;");
    await run(h, "back to b;", h.tree.id, "b");
    expect(sent(b)).toContain("took the fork's own work;");
    await h.runtime.threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal: 2 } });
    await run(h, "once more;", h.tree.id, "b");
    expect(sent(b)).not.toContain("fork's own work");
  });

  test("C6.8 C6.9 what it told is cut and says so where there is no room for the whole", async () => {
    const { h, b } = await open(store, [echo("A")]);
    await using _ = h;
    await run(h, "q1;");
    const forked = await fork(h);
    await run(h, `the fork's own work; ${"w".repeat(6_000)}`, forked);
    await run(h, "what it comes to;", forked);
    await h.runtime.threads.mergeBack(forked);
    await run(h, "take it in;");
    await run(h, "over to b", h.tree.id, "b");
    expect(sent(b)).toMatch(/told in run 2:.{0,4}\[cut from \d+ bytes\]/);
    expect(sent(b)).toContain("A took what it comes to;");
  });

  test("S0-25 S0-33 C3.5 C7.2 C7.3 goes from the point of the fork to its newest stable run, as text of the next message", async () => {
    const { h } = await open(store);
    await using _ = h;
    await run(h, "q1;");
    await run(h, "q2;");
    const { thread, transfer } = await h.runtime.threads.fork(h.tree.id);
    for (const n of [1, 2, 3]) await run(h, `f${n};`, thread.id);
    await run(h, "q3;");
    const before = (await h.runtime.threads.get(h.tree.id)).revision;
    const merge = await h.runtime.threads.mergeBack(thread.id);
    expect(merge).toMatchObject({ status: "pending", basePoint: transfer.sourcePoint });
    expect(merge.basePoint!.ordinal).toBe(2);
    expect(merge.sourcePoint).toMatchObject({ threadId: thread.id, ordinal: 3 });
    expect(await handoffsOf(h)).toEqual([]);
    expect((await h.runtime.threads.get(h.tree.id)).revision).toBe(before + 1);
    await run(h, "q4;");
    const told = sent(h.provider);
    for (const n of [1, 2, 3]) expect(told).toContain(`f${n};`);
    // Only what the fork has done itself; what it inherits is the target's own.
    const [handoff] = await handoffsOf(h);
    expect(handoff!.summaryText).not.toContain("q1;");
    expect(handoff).toMatchObject({
      kind: "delta_context",
      sourceThreadId: thread.id,
      coveredRuns: [[1, 3]],
    });
    expect(await merges(h)).toMatchObject([
      { status: "consumed", resolution: { strategy: "delta_context", contextHandoffId: handoff!.id } },
    ]);
    const items = await h.tree.root.transcript();
    const messages = items.filter(({ kind }) => kind === "user" || kind === "mail");
    expect(JSON.stringify(messages)).not.toContain("f1;");
    await run(h, "q5;");
    expect(count(sent(h.provider), "what a fork of this conversation has done")).toBe(1);
  });

  test("C7.1 C7.2 only into the parent of the fork, of a stable run, and into an open thread", async () => {
    const { h } = await open(store);
    await using _ = h;
    await run(h, "q1;");
    const one = await fork(h);
    const two = await fork(h);
    const merge = (from: ThreadId, options = {}) => h.runtime.threads.mergeBack(from, options);
    await expect(merge(one)).rejects.toMatchObject({ code: "MERGE_BACK_SOURCE_UNSTABLE" });
    await run(h, "f1;", one);
    await run(h, "f2;", one);
    const first = await h.store.read((view) => view.runAt(one, 1)!.id);
    expect((await merge(one, { run: first })).sourcePoint).toMatchObject({ ordinal: 1, runId: first });
    await expect(merge(one, { into: two })).rejects.toMatchObject({ code: "MERGE_BACK_NOT_A_FORK" });
    await expect(merge(h.tree.id)).rejects.toMatchObject({ code: "MERGE_BACK_NOT_A_FORK" });
    await h.runtime.threads.close(h.tree.id);
    await expect(merge(one)).rejects.toMatchObject({ code: "THREAD_CLOSED" });
  });

  test("C2.5 C3.7 C7.3 what no run can take in any more is superseded when its thread is closed, with its text", async () => {
    const { h } = await open(store, [
      repeat(({ inputs }) =>
        inputs.at(-1) === "q2;" ? fail({ code: "PROVIDER_REFUSED", accepted: false }) : say("done"),
      ),
    ]);
    await using _ = h;
    await run(h, "q1;");
    const [one, two] = [await fork(h), await fork(h)];
    await run(h, "f1;", one);
    await run(h, "f2;", two);
    await h.runtime.threads.mergeBack(one);
    // Its text is built, and its run refused.
    await (await h.runtime.threads.continue(h.tree.id, "q2;")).outcome();
    await h.runtime.threads.mergeBack(two);
    const states = async () => (await merges(h)).map(({ status }) => status);
    const before = await states();
    await h.runtime.threads.close(h.tree.id);
    expect([before, await states()]).toEqual([
      ["resolved_portable", "pending"],
      ["superseded", "superseded"],
    ]);
    expect((await handoffsOf(h)).map(({ status }) => status)).toEqual(["superseded"]);
    const moved = (await h.tree.log(0, 1000)).filter(({ type }) => type === "transfer.moved");
    expect(moved.slice(-2)).toMatchObject([
      { data: { status: "superseded" } },
      { data: { status: "superseded" } },
    ]);
  });

  test("C7.5 a newer one of the same fork supersedes the older, and several forks are told in the order of their requests", async () => {
    const { h } = await open(store);
    await using _ = h;
    await run(h, "q1;");
    const forks = [await fork(h), await fork(h), await fork(h)];
    for (const [at, id] of forks.entries()) await run(h, `fork${at};`, id);
    const order = [2, 0, 1];
    for (const at of order) await h.runtime.threads.mergeBack(forks[at]!);
    await h.runtime.threads.mergeBack(forks[2]!);
    expect((await merges(h)).map(({ status }) => status)).toEqual([
      "superseded",
      "pending",
      "pending",
      "pending",
    ]);
    expect((await merges(h))[0]!.supersededBy).toBe((await merges(h))[3]!.id);
    await run(h, "q2;");
    const told = sent(h.provider);
    const places = [0, 1, 2].map((at) => told.indexOf(`fork${at};`));
    expect(places[0]).toBeGreaterThan(0);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect((await merges(h)).map(({ status }) => status)).toEqual([
      "superseded",
      "consumed",
      "consumed",
      "consumed",
    ]);
    const [newest] = (await h.store.read((view) => view.runsOf(h.tree.id, { limit: 9 }))).rows.toReversed();
    expect(newest!.contextHandoffIds).toEqual((await handoffsOf(h)).map(({ id }) => id));
  });

  test("X-8 C7.6 C7.8 a rollback that is undone does not let one be told twice", async () => {
    const { h } = await open(store);
    await using _ = h;
    await run(h, "q1;");
    const id = await fork(h);
    await run(h, "f1;", id);
    await h.runtime.threads.mergeBack(id);
    await run(h, "q2;");
    await h.runtime.threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal: 1 } });
    await h.runtime.threads.undoRollback(h.tree.id);
    await run(h, "f2;", id);
    await h.runtime.threads.mergeBack(id);
    await run(h, "q3;");
    const second = (await handoffsOf(h)).at(-1)!;
    expect(second.summaryText).toContain("f2;");
    expect(second.summaryText).not.toContain("f1;");
  });

  test("C7.6 C7.8 what was told in a run that is rolled back is new to the conversation that is begun then", async () => {
    const { h } = await open(store);
    await using _ = h;
    await run(h, "q1;");
    const id = await fork(h);
    await run(h, "f1;", id);
    expect(await h.runtime.threads.mergeBack(id)).toMatchObject({ nothingNew: false });
    await run(h, "q2;");
    expect(await h.runtime.threads.mergeBack(id)).toMatchObject({ nothingNew: true });
    await h.runtime.threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal: 1 } });
    expect(await h.runtime.threads.mergeBack(id)).toMatchObject({ nothingNew: false });
    await run(h, "q3;");
    expect((await handoffsOf(h)).at(-1)!.summaryText).toContain("f1;");
  });

  test("X-8 C7.6 a second one leaves out what the first has told, results of subagents too", async () => {
    const { h } = await open(store, (context) =>
      context.inputs.at(-1) === "f1;" && context.lastToolResult === null
        ? spawn("helper", "help", { fork_turns: "none" })
        : say("done"),
    );
    await using _ = h;
    await run(h, "q1;");
    const id = await fork(h);
    await run(h, "f1;", id);
    await h.runtime.threads.mergeBack(id);
    await run(h, "q2;");
    const [first] = await handoffsOf(h);
    expect(first!.summaryText).toContain("f1;");
    expect(first!.summaryText).toContain("the helper's result");
    await run(h, "f2;", id);
    expect(await h.runtime.threads.mergeBack(id)).toMatchObject({ nothingNew: false });
    await run(h, "q3;");
    const [, second] = await handoffsOf(h);
    expect(second!.summaryText).toContain("f2;");
    expect(second!.summaryText).not.toContain("f1;");
    expect(second!.summaryText).not.toContain("the helper's result");
    const [, again] = await merges(h);
    expect(again!.basePoint).toEqual((await merges(h))[0]!.basePoint);
    // Nothing new is said at once, is no text, and over with the next run.
    expect(await h.runtime.threads.mergeBack(id, { commandId: "again" })).toMatchObject({ nothingNew: true });
    expect(await h.runtime.threads.mergeBack(id, { commandId: "again" })).toMatchObject({ nothingNew: true });
    await run(h, "q4;");
    expect(await handoffsOf(h)).toHaveLength(2);
    expect((await merges(h))[2]).toMatchObject({ status: "consumed", resolution: null });
  });

  test("C7.4 with a switch in the same message both are told, the switch first, and the provider stays chosen", async () => {
    const { h, b } = await open(store);
    await using _ = h;
    await run(h, "q1;");
    const id = await fork(h);
    await run(h, "f1;", id);
    await h.runtime.threads.mergeBack(id);
    expect((await h.runtime.threads.get(h.tree.id)).provider).toBe("scripted");
    await run(h, "q2;", h.tree.id, "b");
    const handoffs = await handoffsOf(h);
    expect(handoffs.map(({ kind, strategy }) => [kind, strategy])).toEqual([
      ["portable_context", "full_thread_summary"],
      ["delta_context", "delta_since_target_last_seen"],
    ]);
    const told = sent(b);
    expect(told.indexOf("q1;")).toBeGreaterThan(0);
    expect(told.indexOf("f1;")).toBeGreaterThan(told.indexOf("q1;"));
    expect(told.indexOf("q2;")).toBeGreaterThan(told.indexOf("f1;"));
    const { rows } = await h.runtime.threads.transfers(h.tree.id, { limit: 9 });
    expect(
      rows.filter(({ targetThreadId }) => targetThreadId === h.tree.id).map(({ status }) => status),
    ).toEqual(["consumed", "consumed"]);
  });

  test("C7.6 C4.11 what a switch tells of a fork is not told again by its next merge-back, now or later", async () => {
    const { h } = await open(store);
    await using _ = h;
    await run(h, "q1;");
    const id = await fork(h);
    await run(h, "f1;", id);
    await h.runtime.threads.mergeBack(id);
    await run(h, "q2;", h.tree.id, "b");
    const [, first] = await handoffsOf(h);
    await run(h, "f2;", id);
    await h.runtime.threads.mergeBack(id);
    // This conversation has not heard of the fork yet: the switch tells of its first run, the merge-back of its second.
    await run(h, "q3;", h.tree.id, "scripted");
    const [delta, merge] = (await handoffsOf(h)).slice(-2);
    expect(delta!.payload.mergeBackIds).toEqual([first!.id]);
    expect(delta!.summaryText).toContain("f1;");
    expect(merge).toMatchObject({ coveredRuns: [[2, 2]] });
    expect(merge!.summaryText).not.toContain("f1;");
    await run(h, "f3;", id);
    await h.runtime.threads.mergeBack(id);
    await run(h, "q4;", h.tree.id, "scripted");
    expect((await handoffsOf(h)).at(-1)).toMatchObject({ coveredRuns: [[3, 3]] });
    expect(count(sent(h.provider), "User, run 1 ===\\nf1;")).toBe(1);
  });

  test("C6.7 the texts of one start share what is left of the window, and each is told with a message at least", async () => {
    const { h, b } = await open(
      store,
      [repeat(say((context) => `A took ${context.inputs.at(-1)} ${"z".repeat(3_000)}`))],
      {
        contextWindow: 32_000,
      },
    );
    await using _ = h;
    for (const at of [1, 2, 3]) await run(h, `q${at}; ${"x".repeat(2_000)}`);
    const [one, two] = [await fork(h), await fork(h)];
    for (const [id, words] of [
      [one, "f1;"],
      [two, "g1;"],
    ] as const) {
      for (const at of [1, 2]) await run(h, `${words}${at} ${"y".repeat(3_000)}`, id);
      await h.runtime.threads.mergeBack(id);
    }
    const left = 32_000 - 16_000;
    await run(h, "go;", h.tree.id, "b");
    const told = (await handoffsOf(h)).filter(({ targetRunId }) => targetRunId !== null).slice(-3);
    expect(told.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(left);
    for (const { payload } of told) expect(payload.items).toBeGreaterThan(0);
    expect(sent(b)).toContain("go;");
  });

  test("C7.7 files that were changed on both sides are named", async () => {
    const { h } = await open(store, (context) => {
      const input = context.inputs.at(-1) ?? "";
      const [, path] = /write (\S+);/.exec(input) ?? [];
      if (path === undefined || context.lastToolText === "written") return say("done");
      return call("write_file", { path, text: "x" });
    });
    await using _ = h;
    await run(h, "q1;");
    const id = await fork(h);
    await run(h, "write both.txt;", id);
    await run(h, "write fork.txt;", id);
    await run(h, "write both.txt;");
    await run(h, "write ours.txt;");
    await h.runtime.threads.mergeBack(id);
    await run(h, "q2;");
    const [handoff] = await handoffsOf(h);
    expect(handoff!.payload.sections).toContain("conflicts");
    const [, section] = handoff!.summaryText.split("== Conflicts");
    const conflicts = section!.split("\n==")[0]!;
    expect(conflicts).toContain("both.txt");
    expect(conflicts).not.toContain("fork.txt");
    expect(conflicts).not.toContain("ours.txt");
  });

  test("C7.8 a rollback behind the run that took it makes its text void, and it may be asked for again", async () => {
    const { h } = await open(store);
    await using _ = h;
    await run(h, "q1;");
    const id = await fork(h);
    await run(h, "f1;", id);
    await h.runtime.threads.mergeBack(id);
    await run(h, "q2;");
    const [first] = await handoffsOf(h);
    await h.runtime.threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal: 1 } });
    expect(await handoffsOf(h)).toMatchObject([
      { id: first!.id, status: "superseded", summaryText: first!.summaryText },
    ]);
    await run(h, "q3;");
    expect(sent(h.provider)).not.toContain("f1;");
    await h.runtime.threads.mergeBack(id);
    await run(h, "q4;");
    expect(sent(h.provider)).toContain("f1;");
    expect(await merges(h)).toMatchObject([{ status: "consumed" }, { status: "consumed" }]);
  });

  test("C9.4 one that rests on a run that is taken back is superseded with it", async () => {
    const { h } = await open(store);
    await using _ = h;
    await run(h, "q1;");
    await run(h, "q2;");
    const id = await fork(h);
    await run(h, "f1;", id);
    await h.runtime.threads.mergeBack(id);
    await h.runtime.threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal: 1 } });
    expect(await merges(h)).toMatchObject([{ status: "superseded" }]);
    await run(h, "q3;");
    expect(sent(h.provider)).not.toContain("f1;");
  });
});
