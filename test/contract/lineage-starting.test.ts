/** What is asked of a thread while a run of it has been sent and no provider has accepted it yet (C4.13, C3.11, C7.5). */
import { describe, expect, onTestFinished, test } from "vitest";
import type { ThreadId } from "../../src/protocol/ids.ts";
import { RejectedError } from "../../src/protocol/errors.ts";
import { hang, refuse } from "../../src/providers/scripted/native/faults.ts";
import {
  itemFork,
  type ScriptedNativeProvider,
  turnFork,
} from "../../src/providers/scripted/native/provider.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";

const says = (who: string) => ({
  "/root": [repeat(say((context) => `${who} answers ${context.inputs.at(-1)}`))],
});

interface Pair {
  readonly h: Harness;
  readonly a: ScriptedNativeProvider;
  readonly b: ScriptedNativeProvider;
}

async function pair(store: (typeof STORES)[number]): Promise<Pair> {
  const a = turnFork(says("A"));
  const b = itemFork(says("B"));
  const h = await harness({ store, others: { a, b }, tree: { provider: "a" } });
  onTestFinished(() => h[Symbol.asyncDispose]());
  return { h, a, b };
}

async function run(h: Harness, thread: ThreadId, message: string, provider?: string) {
  const work = await h.runtime.threads.continue(thread, message, provider === undefined ? {} : { provider });
  const tree = await h.runtime.openTree({ id: thread });
  return tree.work(work.id).outcome();
}

const handoffs = async (h: Harness) => (await h.runtime.threads.handoffs(h.tree.id, { limit: 50 })).rows;
const merges = async (h: Harness) =>
  (await h.runtime.threads.transfers(h.tree.id, { limit: 50 })).rows.filter(
    ({ type }) => type === "merge_back",
  );
const told = (provider: ScriptedNativeProvider) =>
  provider
    .calls("startTurn")
    .map(({ input }) =>
      (input as { preambles: { text: string }[] }).preambles.map(({ text }) => text).join(),
    );

describe.each(STORES)("a run that is about to begin on %s", (store) => {
  test("C3.11 C4.13 S3-21 its handoff is neither edited nor written anew, and its turn is sent once", async () => {
    const { h, b } = await pair(store);
    await run(h, h.tree.id, "one");
    b.fault("startTurn", hang("sent"));
    const work = await h.runtime.threads.continue(h.tree.id, "two", { provider: "b" });
    await b.gates.arrived("sent");
    const [handoff] = await handoffs(h);
    const refused = { code: "TRANSFER_STATE_INVALID" };
    await expect(h.runtime.threads.editHandoff(handoff!.id, "mine")).rejects.toMatchObject(refused);
    await expect(h.runtime.threads.regenerateHandoff(handoff!.id)).rejects.toMatchObject(refused);
    b.gates.open("sent");
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed" });
    expect(told(b)).toEqual([handoff!.summaryText]);
    const [delivered, ...others] = await handoffs(h);
    expect(others).toEqual([]);
    expect(delivered).toMatchObject({ id: handoff!.id, status: "ready" });
    expect(delivered!.deliveredAt).not.toBeNull();
  });

  test("C7.5 C4.13 X-8 a merge-back that it carries is consumed, and the newer one goes with the next run", async () => {
    const { h, a } = await pair(store);
    await run(h, h.tree.id, "one");
    const fork = (await h.runtime.threads.fork(h.tree.id)).thread.id;
    await run(h, fork, "first in the fork");
    await h.runtime.threads.mergeBack(fork);
    await run(h, fork, "second in the fork");
    a.fault("startTurn", hang("sent"));
    const turns = told(a).length;
    const work = await h.runtime.threads.continue(h.tree.id, "two");
    await a.gates.arrived("sent");
    await h.runtime.threads.mergeBack(fork);
    a.gates.open("sent");
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed" });
    expect((await merges(h)).map(({ status }) => status)).toEqual(["consumed", "pending"]);
    await run(h, h.tree.id, "three");
    expect((await merges(h)).map(({ status }) => status)).toEqual(["consumed", "consumed"]);
    const [first, second, ...more] = told(a).slice(turns);
    expect(more).toEqual([]);
    expect(first).toContain("first in the fork");
    expect(first).not.toContain("second in the fork");
    expect(second).toContain("second in the fork");
    expect(second).not.toContain("first in the fork");
  });

  test("C7.5 when it is refused after all, the newest of the pair is told alone", async () => {
    const { h, a } = await pair(store);
    await run(h, h.tree.id, "one");
    const fork = (await h.runtime.threads.fork(h.tree.id)).thread.id;
    await run(h, fork, "in the fork");
    await h.runtime.threads.mergeBack(fork);
    a.fault("startTurn", hang("sent"));
    const work = await h.runtime.threads.continue(h.tree.id, "two");
    await a.gates.arrived("sent");
    await h.runtime.threads.mergeBack(fork);
    await h.tree.root.interrupt();
    a.gates.open("sent");
    expect(await h.tree.work(work.id).outcome()).not.toMatchObject({ ending: "completed" });
    await run(h, h.tree.id, "three");
    await run(h, h.tree.id, "four");
    expect((await merges(h)).map(({ status }) => status)).toEqual(["superseded", "consumed"]);
    const [third, fourth] = told(a).slice(-2);
    expect(third!.split("what a fork of this conversation has done")).toHaveLength(2);
    expect(fourth).toBe("");
  });

  test("C3.3 C4.16 a steer that names another provider waits for a run of its own, and goes nowhere else", async () => {
    const { h, a, b } = await pair(store);
    await run(h, h.tree.id, "one");
    a.fault("startTurn", hang("at work", { done: true }));
    await h.runtime.threads.continue(h.tree.id, "two");
    await a.gates.arrived("at work");
    const work = await h.runtime.threads.continue(h.tree.id, "for B alone", {
      provider: "b",
      onBusy: "steer",
    });
    a.gates.open("at work");
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ text: "B answers for B alone" });
    expect(JSON.stringify(a.calls())).not.toContain("for B alone");
    expect(told(b)).toHaveLength(1);
  });

  test("C4.14 C6.12 SEC-3 the snapshot that crosses to another provider holds no secret of a pin or a title", async () => {
    const { h, b } = await pair(store);
    const { threads } = h.runtime;
    const secret = `sk-ant-api03-${"A".repeat(80)}`;
    const { id } = await threads.create({
      provider: "a",
      continuity: "projected-only",
      title: `with ${secret}`,
    });
    await threads.pin(id, "decisions", `the key is ${secret}`);
    await run(h, id, "one");
    await run(h, id, "two", "b");
    expect(told(b).join()).toContain("the key is");
    expect(told(b).join()).not.toContain(secret);
  });

  test("C4 C4.14 the preview of a run that is told the pinned context says so, and the run is told just that", async () => {
    const { h, a } = await pair(store);
    const { threads } = h.runtime;
    const { id } = await threads.create({ provider: "a", continuity: "projected-only", title: "T" });
    await threads.pin(id, "decisions", "tabs, not spaces");
    await run(h, id, "one");
    const { strategy, tells } = await threads.preview(id, { provider: "a" });
    expect(strategy).toBe("projected");
    expect(tells).toEqual([
      {
        transferId: null,
        kind: "pinned_context",
        runs: [],
        omitted: 0,
        tokens: expect.any(Number) as unknown,
        bytes: Buffer.byteLength(tells[0]!.text),
        text: expect.stringContaining("tabs, not spaces") as unknown,
      },
    ]);
    expect(tells[0]!.tokens).toBeGreaterThan(0);
    await run(h, id, "two");
    expect(told(a).at(-1)).toContain(tells[0]!.text);
  });

  test("C1.1 C2.1 of an archived thread nothing but its title is written, by a read neither", async () => {
    const { h, b } = await pair(store);
    const { threads } = h.runtime;
    const { id } = h.tree;
    await run(h, id, "one");
    b.fault("startTurn", refuse(new RejectedError("PROVIDER_REFUSED", "no", {})));
    await run(h, id, "two", "b");
    const [handoff] = await handoffs(h);
    expect(handoff).toMatchObject({ status: "ready", deliveredAt: null });
    const draft = await threads.draft(id);
    await threads.close(id);
    const { revision } = await threads.archive(id);
    const kept = await handoffs(h);
    const archived = { code: "THREAD_ARCHIVED" };
    await threads.history(id);
    await threads.sync(id);
    await expect(threads.editHandoff(handoff!.id, "mine")).rejects.toMatchObject(archived);
    await expect(threads.regenerateHandoff(handoff!.id)).rejects.toMatchObject(archived);
    await expect(threads.discardDraft(id)).rejects.toMatchObject(archived);
    expect(await threads.draft(id)).toEqual(draft);
    expect(await handoffs(h)).toEqual(kept);
    expect((await threads.get(id)).revision).toBe(revision);
    expect((await threads.rename(id, "another")).revision).toBe(revision + 1);
  });

  test("C1.14 C3.9 C16 what no type would let through is refused before anything is stored", async () => {
    const { h } = await pair(store);
    const { threads } = h.runtime;
    await run(h, h.tree.id, "one");
    const wrong = { code: "INVALID_ARGUMENT" };
    for (const section of ["objective", "outcomes", "__proto__"])
      await expect(threads.pin(h.tree.id, section as "decisions", "x")).rejects.toMatchObject(wrong);
    for (const provider of ["constructor", "__proto__", "toString"]) {
      const selection = { provider, model: null, effort: null, cleanContext: false };
      const refused = { code: "PROVIDER_UNAVAILABLE" };
      await expect(threads.select(h.tree.id, selection)).rejects.toMatchObject(refused);
      await expect(threads.preview(h.tree.id, selection)).rejects.toMatchObject(refused);
      await expect(threads.continue(h.tree.id, "two", { provider })).rejects.toMatchObject(refused);
    }
    for (const [seq, code] of [
      [Number.NaN, "INVALID_ARGUMENT"],
      [Number.POSITIVE_INFINITY, "INVALID_ARGUMENT"],
      [1.5, "INVALID_ARGUMENT"],
      [-0, "FORK_UNCOMMITTED_MESSAGE"],
      [-1, "FORK_UNCOMMITTED_MESSAGE"],
    ] as const)
      await expect(threads.planFork(h.tree.id, { at: { kind: "message", seq } })).rejects.toMatchObject({
        code,
      });
    expect(await run(h, h.tree.id, "two")).toMatchObject({ ending: "completed" });
  });
});
