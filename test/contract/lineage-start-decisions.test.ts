/** What a start has decided holds until a provider has accepted its run, and counts for nothing before (C4.13, C2.6, C10). */
import { describe, expect, test } from "vitest";
import { RejectedError } from "../../src/protocol/errors.ts";
import type { ThreadId } from "../../src/protocol/ids.ts";
import { refuse } from "../../src/providers/scripted/native/faults.ts";
import { turnFork } from "../../src/providers/scripted/native/provider.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { fail, gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { harness, type Harness, STORES } from "../support/harness.ts";

/** Refuses for good what says so. */
const moody = (who: string) =>
  repeat((context: { readonly inputs: readonly string[] }) => {
    const last = String(context.inputs.at(-1));
    return last.includes("REFUSE") ? fail({ code: "PROVIDER_REFUSED" }) : say(`${who} took ${last}`);
  });
const says = () => ({ "/root": [repeat(say((context) => `took ${context.inputs.at(-1)}`))] });

type RunOptions = Parameters<Harness["runtime"]["threads"]["continue"]>[2];

async function run(h: Harness, message: string, thread: ThreadId = h.tree.id, options: RunOptions = {}) {
  const work = await h.runtime.threads.continue(thread, message, options);
  const tree = await h.runtime.openTree({ id: thread });
  const outcome = await tree.work(work.id).outcome();
  await h.clock.settle();
  return outcome;
}

const into = async (h: Harness, thread: ThreadId = h.tree.id) =>
  (await h.runtime.threads.transfers(thread, { limit: 50 })).rows.filter(
    ({ targetThreadId }) => targetThreadId === thread,
  );
const handoffs = async (h: Harness, thread: ThreadId = h.tree.id) =>
  (await h.runtime.threads.handoffs(thread, { limit: 50 })).rows;
const sent = (provider: Harness["provider"]): string =>
  JSON.stringify(provider.requests("/root").at(-1)!.messages);

describe.each(STORES)("what a start has decided, on %s", (store) => {
  test("C4.13 S3-15 a run that was held begins as it was to, with the fork that its provider made", async () => {
    const native = turnFork(says());
    await using h = await harness({
      store,
      scripts: { "/root": [moody("A")], "/root/a": [together(gate("a"), say("done"))] },
      others: { native },
      tree: { provider: "native" },
    });
    const { threads } = h.runtime;
    await run(h, "q1;");
    const fork = (await threads.fork(h.tree.id)).thread.id;
    await run(h, "f1;", fork);
    const further = (await threads.fork(fork)).thread.id;
    await run(h, "g1;", further);
    await threads.rollBack(fork, { to: { kind: "ordinal", ordinal: 0 } });
    await threads.mergeBack(further);
    const tree = await h.runtime.openTree({ id: fork });
    await tree.root.spawn("a", "work", { provider: "scripted" });
    await h.provider.gates.arrived("a");
    const used = await tree.root.usage();
    await tree.root.raiseBudget("tokens", used.inputTokens + used.outputTokens + 10_500);
    const work = await threads.continue(fork, "f2;");
    await h.clock.settle();
    const held = await h.store.read((view) => view.run(view.agent(fork)!.currentRun!)!);
    expect(held).toMatchObject({ acceptedAt: null, contextHandoffIds: [expect.any(String)] });
    await tree.root.raiseBudget("tokens", null);
    expect(await tree.work(work.id).outcome()).toMatchObject({ ending: "completed" });
    h.provider.gates.open("a");
    await h.clock.settle();
    const open = (await into(h, fork)).filter(({ status }) => status.startsWith("resolved"));
    expect(open).toEqual([]);
    expect(await h.store.read((view) => view.run(held.id))).not.toHaveProperty("starting");
    await run(h, "f3;", fork, { provider: "scripted" });
    expect(sent(h.provider)).toContain("f2;");
  });

  test("C4.13 X-1 a run elsewhere that nobody accepts leaves a switch, and the user's own words in it", async () => {
    const b = scripted({ "/root": [moody("B")] });
    await using h = await harness({ store, scripts: { "/root": [moody("A")] }, others: { b } });
    await run(h, "q1;");
    await run(h, "q2 REFUSE", h.tree.id, { provider: "b" });
    await h.runtime.threads.editHandoff((await handoffs(h)).at(-1)!.id, "my own words");
    await run(h, "q3 REFUSE", h.tree.id, { provider: "scripted" });
    expect(await into(h)).toMatchObject([{ type: "provider_handoff", status: "resolved_portable" }]);
    await run(h, "q4", h.tree.id, { provider: "b" });
    expect(sent(b)).toContain("my own words");
  });

  test("C4.13 and one that is accepted elsewhere supersedes it", async () => {
    const b = scripted({ "/root": [moody("B")] });
    await using h = await harness({ store, scripts: { "/root": [moody("A")] }, others: { b } });
    await run(h, "q1;");
    await run(h, "q2 REFUSE", h.tree.id, { provider: "b" });
    await run(h, "q3");
    expect(await into(h)).toMatchObject([{ type: "provider_handoff", status: "superseded" }]);
    expect(await handoffs(h)).toMatchObject([{ status: "superseded", deliveredAt: null }]);
  });

  test("C4.13 C2.6 C3.11 what has nothing to tell any more names no text, and that text is not to be changed", async () => {
    await using h = await harness({ store, scripts: { "/root": [moody("A")] } });
    const { threads } = h.runtime;
    await run(h, "q1;");
    const fork = (await threads.fork(h.tree.id)).thread.id;
    await run(h, "forkwork;", fork);
    await threads.mergeBack(fork);
    await run(h, "q2 REFUSE");
    await threads.rollBack(fork, { to: { kind: "ordinal", ordinal: 0 } });
    await run(h, "q3");
    expect(await into(h)).toMatchObject([{ type: "merge_back", status: "consumed", resolution: null }]);
    const [text] = (await handoffs(h)).filter(({ sourceThreadId }) => sourceThreadId === fork);
    expect(text).toMatchObject({ status: "superseded", deliveredAt: null });
    const refused = { code: "TRANSFER_STATE_INVALID" };
    await expect(threads.editHandoff(text!.id, "mine")).rejects.toMatchObject(refused);
    await expect(threads.regenerateHandoff(text!.id)).rejects.toMatchObject(refused);
  });

  test("C10 S3-36 a clean context is made once, also where the message names another model", async () => {
    await using h = await harness({ store, scripts: { "/root": [moody("A")] } });
    await run(h, "q1;");
    const selection = { provider: "scripted", model: "m1", cleanContext: true };
    await h.runtime.threads.select(h.tree.id, selection);
    await run(h, "q2;", h.tree.id, { model: "m2" });
    expect((await h.runtime.threads.get(h.tree.id)).selection).toMatchObject({ cleanContext: false });
    await run(h, "q3;");
    await run(h, "q4;");
    const clean = (await into(h)).filter(({ staleness }) => staleness.includes("clean_context"));
    expect(clean).toHaveLength(1);
  });

  test("C10 C5.14 a clean context is not the fork that a provider made for a run which was refused", async () => {
    const native = turnFork(says());
    await using h = await harness({ store, others: { native }, tree: { provider: "native" } });
    await run(h, "q1;");
    const fork = (await h.runtime.threads.fork(h.tree.id)).thread.id;
    native.fault("startTurn", refuse(new RejectedError("PROVIDER_REFUSED", "no.", {})));
    await run(h, "f1;", fork);
    expect(await into(h, fork)).toMatchObject([{ type: "fork", status: "resolved_native" }]);
    await h.runtime.threads.select(fork, { provider: "native", cleanContext: true });
    expect(await run(h, "f2;", fork)).toMatchObject({ ending: "completed" });
    const records = await h.store.read((view) => view.providerThreadsOf(fork));
    const used = records.find(({ nativeRunOrdinals }) => nativeRunOrdinals.length > 0)!;
    expect(used.forkedFrom).toBeNull();
    expect((await h.runtime.threads.get(fork)).selection?.cleanContext ?? false).toBe(false);
  });
});
