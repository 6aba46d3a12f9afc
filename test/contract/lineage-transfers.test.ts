/** Transfers as records: one schema for every way in which context moves, and nothing made before it is used (S0). */
import { describe, expect, onTestFinished, test } from "vitest";
import {
  itemFork,
  noFork,
  type ScriptedNativeProvider,
  turnFork,
} from "../../src/providers/scripted/native/provider.ts";
import { nativeChild } from "../../src/providers/scripted/native/words.ts";
import { gate, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { TRANSFER_TYPES } from "../../src/protocol/transfer.ts";
import { createNativeConversations } from "../../src/providers/scripted/native/conversations.ts";
import type { ThreadId } from "../../src/protocol/ids.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";

type Store = (typeof STORES)[number];
const answers = repeat(say((context) => `answer to ${context.inputs.at(-1)}`));

async function opened(
  store: Store,
  native: ScriptedNativeProvider,
  more: { readonly worker?: ScriptedNativeProvider } = {},
): Promise<Harness> {
  const h = await harness({
    store,
    scripts: { "/root": [answers] },
    others: { native, ...more },
    tree: { provider: "native", title: "Work" },
  });
  onTestFinished(() => h[Symbol.asyncDispose]());
  return h;
}

async function talk(h: Harness, ...messages: string[]): Promise<void> {
  for (const message of messages) expect((await h.ask(message)).ending).toBe("completed");
}

const transfersOf = async (h: Harness, id: string) =>
  (await h.runtime.threads.transfers(id, { limit: 50 })).rows;

async function sendTo(h: Harness, id: string, message: string, provider?: string): Promise<void> {
  const tree = await h.runtime.openTree({ id });
  const work = await tree.root.send(message, provider === undefined ? {} : { provider });
  expect((await work.outcome()).ending).toBe("completed");
}

/** What a source point has (C1.8). */
const POINT = [
  "checkpointId",
  "cut",
  "items",
  "ordinal",
  "providerThreadRef",
  "providerTurnRef",
  "runId",
  "threadId",
  "turnItemId",
];

describe.each(STORES)("transfers on %s", (store) => {
  test("S0-1 S0-58 S0-18 S0-16 S0-17 S0-33 C1.9 fork, switch, merge-back and subagent are rows of one schema", async () => {
    const native = turnFork({
      "/root": [
        say("one"),
        spawn("worker", "count", { model: "scripted/scripted", fork_turns: "none" }),
        wait({ targets: ["worker"] }),
        answers,
      ],
    });
    const h = await harness({
      store,
      scripts: { "/root": [answers], "/root/worker": [say("seven")] },
      others: { native },
      tree: { provider: "native" },
    });
    onTestFinished(() => h[Symbol.asyncDispose]());
    await talk(h, "first", "delegate");
    const fork = await h.runtime.threads.fork(h.tree.id);
    await sendTo(h, fork.thread.id, "try it", "scripted");
    await h.runtime.threads.mergeBack(fork.thread.id);
    await sendTo(h, h.tree.id, "and now", "scripted");
    const rows = [...(await transfersOf(h, h.tree.id)), ...(await transfersOf(h, fork.thread.id))];
    const byId = new Map(rows.map((row) => [row.id, row]));
    expect(new Set([...byId.values()].map(({ type }) => type))).toEqual(new Set(TRANSFER_TYPES));
    const keys = new Set([...byId.values()].map((row) => Object.keys(row).toSorted().join()));
    expect(keys.size).toBe(1);
    for (const row of byId.values()) {
      expect(row.status).toBe("consumed");
      expect(Object.keys(row.sourcePoint).toSorted()).toEqual(POINT);
      if (row.type === "provider_handoff" || row.type === "merge_back") {
        const { contextHandoffId } = row.resolution as unknown as { contextHandoffId: never };
        expect(await h.store.read((view) => view.handoff(contextHandoffId))).toMatchObject({
          transferId: row.id,
        });
      }
    }
    const result = [...byId.values()].find(({ type }) => type === "subagent_result")!;
    const { contextHandoffId } = result.resolution as unknown as { contextHandoffId: never };
    const told = await h.store.read((view) => view.handoff(contextHandoffId)!);
    expect(told).toMatchObject({ transferId: result.id, threadId: h.tree.id });
    expect(told.summaryText).toContain("seven");
    const [worker, forked] = await h.store.read((view) => [
      view.agentAt(h.tree.id, "/root/worker"),
      view.agent(fork.thread.id),
    ]);
    expect(result).toMatchObject({
      sourceThreadId: worker!.threadId,
      targetThreadId: h.tree.id,
      createdBy: "system",
    });
    expect(worker!.thread!.lineage).toEqual({
      parentThreadId: h.tree.id,
      relationshipToParent: "subagent",
      rootThreadId: h.tree.id,
    });
    expect(Object.keys(worker!.thread!)).toEqual(Object.keys(forked!.thread!));
    expect([worker!.createdBy, fork.thread.createdBy]).toEqual(["agent", "user"]);
    // Of all this the thread itself knows nothing.
    expect(JSON.stringify((await h.tree.root.record()).thread)).not.toContain("xfr_");
  });

  test("S0-11 S0-12 S0-13 S0-25 S0-46 C7.2 C7.3 a merge-back covers the fork's own runs, and precedes the message", async () => {
    const native = turnFork({ "/root": [answers] });
    const h = await opened(store, native);
    await talk(h, "one", "two");
    const { thread } = await h.runtime.threads.fork(h.tree.id);
    await sendTo(h, thread.id, "f1", "scripted");
    await sendTo(h, thread.id, "f2");
    const transfer = await h.runtime.threads.mergeBack(thread.id);
    expect(transfer).toMatchObject({
      status: "pending",
      sourceThreadId: thread.id,
      targetThreadId: h.tree.id,
    });
    expect([transfer.basePoint!.ordinal, transfer.sourcePoint.ordinal]).toEqual([2, 2]);
    const before = await h.runtime.threads.get(h.tree.id);
    await talk(h, "three");
    const turn = native.calls("startTurn").at(-1)!.input as {
      userMessage: string;
      preambles: { text: string }[];
    };
    expect(turn.userMessage).toBe("three");
    expect(turn.preambles).toHaveLength(1);
    expect(turn.preambles[0]!.text).toContain("answer to f1");
    expect(turn.preambles[0]!.text).toContain("answer to f2");
    expect(turn.preambles[0]!.text).not.toContain("answer to two");
    const after = await h.runtime.threads.get(h.tree.id);
    expect(after.activeProviderThreadId).toBe(before.activeProviderThreadId);
    expect(after.coverage).toMatchObject([{ native: [[1, 3]], told: [], gap: [] }]);
  });

  test("S0-10 S3-17 C1.6 the canonical history has every run, whatever provider it went to", async () => {
    const native = turnFork({ "/root": [answers] });
    const h = await opened(store, native);
    await talk(h, "one");
    await sendTo(h, h.tree.id, "two", "scripted");
    for (const { nativeThreadRef } of await h.store.read((view) => view.providerThreadsOf(h.tree.id)))
      if (nativeThreadRef !== null) native.lose(nativeThreadRef);
    const items = await h.tree.root.transcript();
    const texts = JSON.stringify(items);
    expect(texts).toContain("answer to one");
    expect(texts).toContain("answer to two");
    expect((await h.tree.root.runs()).rows.map(({ provider }) => provider)).toEqual(["native", "scripted"]);
  });

  test("S0-14 S0-15 C8.1 a subagent of the provider's own is a node that is observed, and nothing is spawned", async () => {
    const native = turnFork({ "/root": [nativeChild("look it up", "found"), say("done")] });
    const h = await opened(store, native);
    await talk(h, "go");
    const run = (await h.tree.root.runs()).rows[0]!;
    const nodes = (await h.store.read((view) => view.providerThreadsOf(h.tree.id))).filter(
      ({ ownerNodeId }) => ownerNodeId !== null,
    );
    expect(nodes).toHaveLength(1);
    expect(nodes[0]).toMatchObject({ status: "idle", nativeThreadRef: { driver: native.driver } });
    expect(nodes[0]!.ownerNodeId).toMatch(new RegExp(`^${run.id}/`));
    expect((await h.tree.records()).map(({ path }) => path)).toEqual(["/root"]);
    const log = await h.tree.log();
    expect(
      log
        .filter(({ type }) => type.startsWith("child."))
        .map(({ type, data }) => [type, data["text"] ?? data["prompt"]]),
    ).toEqual([
      ["child.started", "look it up"],
      ["child.ended", "found"],
    ]);
    expect((await h.runtime.threads.get(h.tree.id)).coverage).toHaveLength(1);
  });

  test("S0-20 S0-27 S0-32 S0-45 C5.14 without a fork of its own the relationship is the same, and text comes at dispatch", async () => {
    const native = noFork({ "/root": [answers] });
    const h = await opened(store, native);
    await talk(h, "one");
    const { thread } = await h.runtime.threads.fork(h.tree.id);
    expect((await h.runtime.threads.handoffs(thread.id, { limit: 5 })).rows).toEqual([]);
    await sendTo(h, thread.id, "two");
    const [transfer] = await transfersOf(h, thread.id);
    expect(transfer).toMatchObject({ type: "fork", resolution: { strategy: "portable_context" } });
    const [handoff] = (await h.runtime.threads.handoffs(thread.id, { limit: 5 })).rows;
    expect(handoff).toMatchObject({ targetRunId: transfer!.targetRunId });
    expect(thread.lineage.relationshipToParent).toBe("fork");
  });

  test("S0-31 C5.18 a conversation whose name is weak is forked by text", async () => {
    const native = itemFork({ "/root": [answers] });
    const h = await opened(store, native);
    await talk(h, "one");
    const [record] = await h.store.read((view) => view.providerThreadsOf(h.tree.id));
    const weak = { ...record!, nativeThreadRef: { ...record!.nativeThreadRef!, strength: "weak" as const } };
    await h.tree.control.tree.transact((tx) => tx.store.putProviderThread(weak));
    const { thread } = await h.runtime.threads.fork(h.tree.id);
    await sendTo(h, thread.id, "two");
    expect((await transfersOf(h, thread.id))[0]!.resolution).toMatchObject({
      strategy: "portable_context",
    });
  });

  test("S0-21 C1.8 a source point has a place, and nothing else", async () => {
    const h = await opened(store, turnFork({ "/root": [answers] }));
    await talk(h, "one");
    const { transfer } = await h.runtime.threads.fork(h.tree.id);
    const { sourcePoint } = transfer;
    expect(sourcePoint).toMatchObject({ threadId: h.tree.id, ordinal: 1, cut: "inclusive" });
    expect(Object.keys(sourcePoint).toSorted()).toEqual(POINT);
  });

  test("S0-22 S0-61 C5.2 while a run is under way the one before is taken, and no half of an answer", async () => {
    const native = turnFork({
      "/root": [say("a1"), say("a2"), together(say("half"), gate("rest"), say("whole"))],
    });
    const h = await opened(store, native);
    await talk(h, "one", "two");
    const work = await h.tree.root.send("three");
    await native.gates.arrived("rest");
    const { transfer } = await h.runtime.threads.fork(h.tree.id);
    expect(transfer.sourcePoint.ordinal).toBe(2);
    const run = (await h.tree.root.record()).currentRun!;
    await expect(
      h.runtime.threads.fork(h.tree.id, { at: { kind: "run", runId: run } }),
    ).rejects.toMatchObject({
      code: "SOURCE_POINT_UNSTABLE",
    });
    native.gates.open("rest");
    await work.outcome();
  });

  test("S0-23 X-12 C1.9 C1.15 a transfer and a draft that were not used are there after a restart", async () => {
    const conversations = createNativeConversations();
    const native = turnFork({ "/root": [answers] }, { conversations });
    const h = await opened(store, native);
    await talk(h, "one", "two");
    const items = await h.tree.root.transcript();
    const at = items.findLastIndex((item) => item.kind === "user") + 1;
    const { thread } = await h.runtime.threads.fork(h.tree.id, { at: { kind: "message", seq: at } });
    await h.crash();
    expect((await transfersOf(h, thread.id))[0]).toMatchObject({ status: "pending" });
    expect((await h.runtime.threads.draft(thread.id))!.text).toBe("two");
    await sendTo(h, thread.id, "two, again");
    expect((await transfersOf(h, thread.id))[0]).toMatchObject({ status: "consumed" });
  });

  test("S0-30 C1.9 a record that lacks what its resolution or its end must name is refused", async () => {
    const h = await opened(store, turnFork({ "/root": [answers] }));
    await talk(h, "one");
    const { transfer, thread } = await h.runtime.threads.fork(h.tree.id);
    const { tree } = (await h.runtime.openTree({ id: thread.id })).control;
    const broken: object[] = [
      { status: "resolved_native", resolution: { strategy: "native_fork" } },
      { status: "resolved_portable", resolution: { strategy: "portable_context" } },
      { status: "resolved_portable", resolution: { strategy: "delta_context" } },
      { status: "resolved_portable", resolution: { strategy: "checkpoint_context", contextHandoffId: null } },
      { status: "resolved_native", resolution: null },
      { status: "consumed", consumedAt: null, targetRunId: "run_x" },
      { status: "consumed", consumedAt: 1, targetRunId: null },
    ];
    for (const change of broken) {
      await expect(
        tree.transact((tx) => tx.store.putTransfer({ ...transfer, ...change } as typeof transfer)),
      ).rejects.toMatchObject({ code: "THREAD_INVARIANT_VIOLATION" });
    }
    expect((await transfersOf(h, thread.id))[0]).toEqual(transfer);
  });

  test("S0-2 S0-40 C5.4 a hundred forks that never run make nothing, and cost the same whatever the source holds", async () => {
    const native = noFork({ "/root": [answers] });
    const h = await opened(store, native);
    await talk(h, "one");
    const calls = native.calls().length;
    const made: ThreadId[] = [];
    for (let n = 0; n < 100; n += 1) made.push((await h.runtime.threads.fork(h.tree.id)).thread.id);
    await h.clock.advance(10_000);
    expect(native.calls()).toHaveLength(calls);
    for (const id of [made[0]!, made[99]!]) {
      expect((await h.runtime.threads.handoffs(id, { limit: 5 })).rows).toEqual([]);
      expect(await h.store.read((view) => view.providerThreadsOf(id))).toEqual([]);
    }
  });

  test("S0-42 C4.4 C4.11 only what is pending for the thread itself is looked at", async () => {
    const native = turnFork({ "/root": [answers] });
    const h = await opened(store, native);
    await talk(h, "one");
    const first = await h.runtime.threads.fork(h.tree.id);
    const second = await h.runtime.threads.fork(h.tree.id);
    await sendTo(h, second.thread.id, "two");
    expect((await transfersOf(h, first.thread.id))[0]!.status).toBe("pending");
    expect((await transfersOf(h, second.thread.id))[0]!.status).toBe("consumed");
  });

  test("S0-57 C1.2 the root of a lineage is the same for forks of forks and for subagents of forks", async () => {
    const native = turnFork({ "/root": [answers] });
    const h = await opened(store, native);
    await talk(h, "one");
    const first = await h.runtime.threads.fork(h.tree.id);
    await sendTo(h, first.thread.id, "two");
    const second = await h.runtime.threads.fork(first.thread.id);
    const tree = await h.runtime.openTree({ id: second.thread.id });
    const { agent } = await tree.root.spawn("worker", "count", { provider: "scripted" });
    const lineage = (await agent.record()).thread!.lineage;
    expect(second.thread.lineage).toEqual({
      parentThreadId: first.thread.id,
      relationshipToParent: "fork",
      rootThreadId: h.tree.id,
    });
    expect(lineage).toEqual({
      parentThreadId: second.thread.id,
      relationshipToParent: "subagent",
      rootThreadId: h.tree.id,
    });
  });

  test("S0-9 S3-18 S3-19 S3-20 S3-8 C1.10 a handoff and its transfer name each other, the run both, and neither holds the other's part", async () => {
    const native = turnFork({ "/root": [answers] });
    const h = await opened(store, native);
    await talk(h, "one");
    await sendTo(h, h.tree.id, "two", "scripted");
    const [transfer] = await transfersOf(h, h.tree.id);
    const [handoff] = (await h.runtime.threads.handoffs(h.tree.id, { limit: 5 })).rows;
    const run = (await h.tree.root.runs()).rows.at(-1)!;
    expect(run.contextHandoffIds).toEqual([handoff!.id]);
    expect(handoff).toMatchObject({
      transferId: transfer!.id,
      targetRunId: run.id,
      threadId: h.tree.id,
      kind: "portable_context",
      strategy: "full_thread_summary",
      coveredRunOrdinals: { from: 1, to: 1 },
      coveredRuns: [[1, 1]],
      status: "ready",
      createdByProvider: null,
      supersededBy: null,
    });
    expect(handoff!.fromProviderThreadIds).toHaveLength(1);
    expect(handoff!.toProviderThreadId).toBe(run.providerThreadId);
    expect(handoff!.budget.used).toBeGreaterThan(0);
    expect(handoff!.payload.sections.length).toBeGreaterThan(0);
    expect(JSON.stringify(transfer)).not.toContain("answer to one");
    expect(transfer).toMatchObject({ sourceProvider: "native", targetProvider: "scripted" });
  });
});
