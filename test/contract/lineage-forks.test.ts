/** Forks with providers that own their loop, and with ours: made for nothing, resolved at the first run (S0, S2; C5). */
import { describe, expect, onTestFinished, test } from "vitest";
import { crashAfter, refuse, unauthenticated } from "../../src/providers/scripted/native/faults.ts";
import {
  exclusiveFork,
  headFork,
  itemFork,
  noFork,
  type ScriptedNativeProvider,
  turnFork,
} from "../../src/providers/scripted/native/provider.ts";
import { createNativeConversations } from "../../src/providers/scripted/native/conversations.ts";
import { nativeChild } from "../../src/providers/scripted/native/words.ts";
import { ask, call, gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { RejectedError } from "../../src/protocol/errors.ts";
import type { ForkOptions } from "../../src/runtime/thread-options.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";

type Store = (typeof STORES)[number];
const SCRIPTS = { "/root": [repeat(say((context) => `answer to ${context.inputs.at(-1)}`))] };

async function opened(store: Store, native: ScriptedNativeProvider, provider = "native"): Promise<Harness> {
  const h = await harness({
    store,
    scripts: SCRIPTS,
    others: { native, other: noFork(SCRIPTS) },
    tree: { provider, title: "Work", workspace: import.meta.dirname },
  });
  onTestFinished(() => h[Symbol.asyncDispose]());
  return h;
}

async function talk(h: Harness, ...messages: string[]): Promise<void> {
  for (const message of messages) expect((await h.ask(message)).ending).toBe("completed");
}

/** Forks the harness's thread and sends a first message to the fork. */
async function forkAndSend(h: Harness, options: ForkOptions, message: string, provider?: string) {
  const { thread } = await h.runtime.threads.fork(h.tree.id, options);
  const tree = await h.runtime.openTree({ id: thread.id });
  const work = await tree.root.send(message, provider === undefined ? {} : { provider });
  const outcome = await work.outcome();
  const { rows } = await h.runtime.threads.transfers(thread.id, { limit: 10 });
  return { child: thread.id, tree, outcome, transfer: rows.find(({ type }) => type === "fork")! };
}

/** All that is stored of the harness's thread, as it is stored. */
const stored = (h: Harness): Promise<string> =>
  h.store.read((view) => {
    const { id } = h.tree;
    const all = { limit: 100 };
    const agent = view.agent(id)!;
    const revisions = agent.thread!.currentContext!.revision;
    return JSON.stringify([
      [view.tree(id), agent, view.draft(id), view.mailbox(id), view.events(id, 0, 500)],
      [view.runsOf(id, all), view.works(id, all), view.mailOf(id, all), view.history(id, all)],
      Array.from({ length: revisions }, (_, at) => view.snapshot(id, at + 1)),
      [view.providerThreadsOf(id), view.handoffsOf(id, all)],
    ]);
  });

const moved = async (h: Harness, thread: string): Promise<unknown[]> => {
  const events = await h.store.read((view) => view.events(thread as `thread_${string}`, 0, 500));
  return events.filter(({ type }) => type === "transfer.moved").map(({ data }) => data["status"]);
};

describe.each(STORES)("a fork on %s", (store) => {
  test("S0-3 S0-4 S0-34 S0-35 S0-36 S0-37 S0-38 S0-26 C5.4 makes a thread and a pending transfer, and asks nobody", async () => {
    const native = turnFork(SCRIPTS);
    const h = await opened(store, native);
    await talk(h, "one", "two");
    // What its last run has left is mirrored by now.
    await h.clock.settle();
    const before = await stored(h);
    const calls = native.calls().length;
    const { thread: made, transfer, draft } = await h.runtime.threads.fork(h.tree.id);
    expect(native.calls()).toHaveLength(calls);
    expect(await stored(h)).toBe(before);
    expect(await h.runtime.threads.get(made.id)).toMatchObject({
      status: "open",
      executions: 0,
      provider: null,
      activeProviderThreadId: null,
      lineage: { parentThreadId: h.tree.id, relationshipToParent: "fork", rootThreadId: h.tree.id },
      title: "Work (fork 1)",
      coverage: [],
    });
    expect(transfer).toMatchObject({ type: "fork", status: "pending", resolution: null, intent: null });
    expect(draft).toBeNull();
    expect((await h.runtime.threads.handoffs(made.id, { limit: 10 })).rows).toEqual([]);
    const types = await h.store.read((view) => view.events(made.id, 0, 10).map(({ type }) => type));
    expect(types).toEqual(["thread.forked"]);
  });

  test("S0-6 S0-44 S0-62 S3-64 S0-39 C5.18 C5.20 is the provider's own where it runs there again", async () => {
    const native = turnFork(SCRIPTS);
    const h = await opened(store, native);
    await talk(h, "one", "two");
    const calls = native.calls().length;
    const { child, transfer, outcome } = await forkAndSend(h, {}, "three");
    expect(outcome.ending).toBe("completed");
    // The mirror reads beside it.
    const made = native
      .calls()
      .slice(calls)
      .filter(({ method }) => method !== "readThread");
    expect(made.map(({ method }) => method)).toEqual(["openSession", "forkThread", "startTurn"]);
    expect((await h.runtime.threads.handoffs(child, { limit: 10 })).rows).toEqual([]);
    expect(transfer).toMatchObject({ status: "consumed", resolution: { strategy: "native_fork" } });
    expect(await moved(h, child)).toEqual(["resolved_native", "consumed"]);
    const [coverage] = (await h.runtime.threads.get(child)).coverage;
    expect(coverage).toMatchObject({ provider: "native", native: [[1, 1]], gap: [] });
  });

  test("S0-7 S0-63 S3-65 S0-5 S0-66 C5.14 is told by text where it runs elsewhere", async () => {
    const native = turnFork(SCRIPTS);
    const h = await opened(store, native);
    await talk(h, "one", "two");
    const { child, transfer } = await forkAndSend(h, {}, "three", "other");
    expect(native.calls("forkThread")).toEqual([]);
    expect(await moved(h, child)).toEqual(["resolved_portable", "consumed"]);
    const { rows } = await h.runtime.threads.handoffs(child, { limit: 10 });
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({ transferId: transfer.id, targetRunId: transfer.targetRunId });
    expect(rows[0]!.summaryText).toContain("answer to two");
    expect(transfer.resolution).toEqual({ strategy: "portable_context", contextHandoffId: rows[0]!.id });
    expect((await h.runtime.threads.get(child)).provider).toBe("other");
  });

  test("S2-3 S2-4 S2-25 S2-13 C6.10 C6.11 a replay is sent before the first message alone, and is no message", async () => {
    const native = noFork(SCRIPTS);
    const h = await opened(store, native);
    await talk(h, "one");
    const { child, tree } = await forkAndSend(h, { policy: { strategy: "replay" } }, "two");
    const turn = () =>
      native.calls("startTurn").at(-1)!.input as { userMessage: string; preambles: { text: string }[] };
    expect(turn().userMessage).toBe("two");
    expect(JSON.stringify(turn().preambles)).toContain("answer to one");
    await (await tree.root.send("three")).outcome();
    expect(turn().preambles).toEqual([]);
    const items = await tree.root.transcript();
    expect(items.flatMap((item) => (item.kind === "user" ? item.text : []))).toEqual(["two", "three"]);
    expect(await h.runtime.threads.draft(child)).toBeNull();
  });

  test("S2-36 S2-7 S2-41 C5.8 on a message of the user is cut before it, and holds its text", async () => {
    const native = turnFork(SCRIPTS);
    const h = await opened(store, native);
    await talk(h, "one", "two  ✓ exactly");
    const items = await h.tree.root.transcript();
    const index = items.findIndex((item) => item.kind === "user" && item.text.startsWith("two"));
    const {
      thread: made,
      draft,
      transfer,
    } = await h.runtime.threads.fork(h.tree.id, {
      at: { kind: "message", seq: index + 1 },
    });
    expect(draft!.text).toBe("two  ✓ exactly");
    expect(transfer.sourcePoint.ordinal).toBe(1);
    const tree = await h.runtime.openTree({ id: made.id });
    await (await tree.root.send("two again")).outcome();
    // The cut is the end of the run before: the provider can fork there.
    expect(native.wire().at(-1)).toMatchObject({ method: "thread/fork" });
    expect(await h.runtime.threads.draft(made.id)).toBeNull();
  });

  test("C5.5 a cut inside a run inherits the context from before it, and one at its end what it has pinned", async () => {
    const asks = gate("asks");
    const h = await harness({
      store,
      scripts: { "/root": [say("one"), asks, call("list_agents"), say("two"), repeat(say("more"))] },
    });
    onTestFinished(() => h[Symbol.asyncDispose]());
    const { threads } = h.runtime;
    await threads.pin(h.tree.id, "decisions", "pinned first");
    await h.ask("q1");
    const work = await h.tree.root.send("q2");
    await h.provider.gates.arrived("asks");
    await threads.pin(h.tree.id, "decisions", "pinned in the run");
    h.provider.gates.open("asks");
    await work.outcome();
    const items = await h.tree.root.transcript();
    const seq = (kind: string, text: string) =>
      1 + items.findIndex((item) => item.kind === kind && JSON.stringify(item).includes(text));
    const pinsAt = async (at: Parameters<typeof threads.fork>[1]) => {
      const { thread } = await threads.fork(h.tree.id, at);
      const { context } = thread.forkedFrom!;
      const snapshot = await h.store.read((view) => view.snapshot(context!.threadId, context!.revision)!);
      return snapshot.decisions.map(({ text }) => text);
    };
    expect(await pinsAt({ at: { kind: "message", seq: seq("user", "q2") } })).toEqual(["pinned first"]);
    expect(await pinsAt({ at: { kind: "message", seq: seq("assistant", "list_agents") } })).toEqual([
      "pinned first",
    ]);
    expect(await pinsAt({ at: { kind: "message", seq: seq("assistant", "two") } })).toEqual([
      "pinned first",
      "pinned in the run",
    ]);
    expect(await pinsAt({})).toHaveLength(2);
  });

  test("C5.11 C20.7 a cut inside a turn is told by text, whatever the provider names: a turn is not the item that was named", async () => {
    const native = itemFork({
      "*": [together(say("first half"), call("list_agents")), say("second half"), repeat(say("more"))],
    });
    const h = await opened(store, native);
    await talk(h, "one");
    const items = await h.tree.root.transcript();
    const seq =
      1 + items.findIndex((item) => item.kind === "assistant" && JSON.stringify(item).includes("first half"));
    const at = { kind: "message", seq } as const;
    await expect(
      h.runtime.threads.fork(h.tree.id, { at, policy: { strategy: "native" } }),
    ).rejects.toMatchObject({
      code: "FORK_NATIVE_UNSUPPORTED",
      details: { obstacle: "point_inside_turn" },
    });
    const { transfer, child, outcome } = await forkAndSend(h, { at }, "go on");
    expect(outcome.ending).toBe("completed");
    expect(native.calls("forkThread")).toEqual([]);
    expect(transfer.resolution).toMatchObject({ strategy: "portable_context" });
    const { rows } = await h.runtime.threads.handoffs(child, { limit: 10 });
    expect(rows[0]!.summaryText).toContain("first half");
    expect(rows[0]!.summaryText).not.toContain("second half");
  });

  test("S2-38 C5.10 on the first message inherits nothing, keeps draft, title and workspace", async () => {
    const native = turnFork(SCRIPTS);
    const h = await opened(store, native);
    await talk(h, "one");
    const items = await h.tree.root.transcript();
    const index = items.findIndex((item) => item.kind === "user");
    const made = await h.runtime.threads.fork(h.tree.id, { at: { kind: "message", seq: index + 1 } });
    const { id } = made.thread;
    expect(made).toMatchObject({
      draft: { text: "one", clearedAt: null },
      thread: { title: "Work (fork 1)", workspace: import.meta.dirname },
    });
    expect(await h.runtime.threads.draft(id)).toEqual(made.draft);
    const work = await (await h.runtime.openTree({ id })).root.send("anew");
    expect((await work.outcome()).ending).toBe("completed");
    const { rows } = await h.runtime.threads.transfers(id, { limit: 10 });
    expect(rows).toMatchObject([{ status: "consumed", resolution: null }]);
    expect(native.calls("forkThread")).toEqual([]);
    expect(native.calls("startTurn").at(-1)!.input).toMatchObject({
      userMessage: "anew",
      preambles: [{ kind: "note" }],
    });
  });

  test("S2-18 C5.17 a strict one that cannot be is refused before anything is made", async () => {
    const h = await opened(store, noFork(SCRIPTS));
    await talk(h, "one");
    const trees = await h.store.read((view) => view.trees({ limit: 10 }).rows.length);
    await expect(h.runtime.threads.fork(h.tree.id, { policy: { strategy: "native" } })).rejects.toMatchObject(
      { code: "FORK_NATIVE_UNSUPPORTED" },
    );
    expect(await h.store.read((view) => view.trees({ limit: 10 }).rows.length)).toBe(trees);
  });

  test("S2-19 S2-53 C5.13 a strict one that the provider refuses fails, keeps the message, and can be forked again by text", async () => {
    const native = turnFork(SCRIPTS);
    const h = await opened(store, native);
    await talk(h, "one");
    native.fault("forkThread", refuse(new RejectedError("PROVIDER_REFUSED", "not today", {})));
    const { child, outcome, transfer } = await forkAndSend(h, { policy: { strategy: "native" } }, "two");
    expect(outcome.error).toMatchObject({ code: "FORK_NATIVE_FAILED" });
    expect(transfer.status).toBe("failed");
    expect((await h.runtime.threads.handoffs(child, { limit: 10 })).rows).toEqual([]);
    expect((await h.runtime.threads.draft(child))!.text).toBe("two");
    const again = await forkAndSend(h, { policy: { strategy: "replay" } }, "two");
    expect(again.outcome.ending).toBe("completed");
  });

  test("S2-20 C5.14 with `auto` a refusal of the provider falls back to text", async () => {
    const native = turnFork(SCRIPTS);
    const h = await opened(store, native);
    await talk(h, "one");
    native.fault("forkThread", refuse(new RejectedError("PROVIDER_REFUSED", "not today", {})));
    const { child, outcome, transfer } = await forkAndSend(h, {}, "two");
    expect(outcome.ending).toBe("completed");
    expect(transfer).toMatchObject({ status: "consumed", resolution: { strategy: "portable_context" } });
    expect((await h.runtime.threads.handoffs(child, { limit: 10 })).rows).toHaveLength(1);
  });

  test("X-15 C5.14 with `auto` a sign-in that is missing surfaces, and no text is tried", async () => {
    const native = turnFork(SCRIPTS);
    const h = await opened(store, native);
    await talk(h, "one");
    native.fault("forkThread", unauthenticated());
    const { child, outcome, transfer } = await forkAndSend(h, {}, "two");
    expect(outcome.error).toMatchObject({ code: "PROVIDER_UNAVAILABLE" });
    expect(transfer.status).toBe("pending");
    expect((await h.runtime.threads.handoffs(child, { limit: 10 })).rows).toEqual([]);
  });

  test("X-4 C5.19 a fork whose answer was lost is adopted, and not asked for again", async () => {
    const native = turnFork(SCRIPTS);
    const h = await opened(store, native);
    await talk(h, "one");
    native.fault("forkThread", crashAfter());
    const first = await forkAndSend(h, {}, "two");
    expect(first.outcome.error).toMatchObject({ code: "FORK_NATIVE_INDETERMINATE" });
    expect(first.transfer.intent).not.toBeNull();
    const again = await (await first.tree.root.send("two")).outcome();
    expect(again.ending).toBe("completed");
    expect(native.calls("forkThread")).toHaveLength(1);
    const { rows } = await h.runtime.threads.transfers(first.child, { limit: 10 });
    expect(rows[0]).toMatchObject({
      status: "consumed",
      resolution: { strategy: "native_fork" },
      intent: null,
    });
  });

  test("C5.19 C5.13 a strict fork whose answer was lost is refused where it cannot be any more, and still looked for", async () => {
    const native = headFork(SCRIPTS);
    const h = await opened(store, native);
    await talk(h, "one");
    native.fault("forkThread", crashAfter());
    const first = await forkAndSend(h, { policy: { strategy: "native" } }, "two");
    expect(first.outcome.error).toMatchObject({ code: "FORK_NATIVE_INDETERMINATE" });
    // The point is not the head any more, and this agent forks nothing else.
    await talk(h, "more");
    const refused = await (await first.tree.root.send("two")).outcome();
    expect(refused.error).toMatchObject({ code: "FORK_NATIVE_UNSUPPORTED" });
    const { rows } = await h.runtime.threads.transfers(first.child, { limit: 10 });
    const by = (status: string) => rows.find((row) => row.status === status);
    expect(by("failed")).toMatchObject({ id: first.transfer.id, intent: null });
    expect(by("pending")).toMatchObject({ requestedStrategy: "native", intent: first.transfer.intent });
  });

  test("S2-26 X-1 C4.13 a seed whose first turn was refused is sent again, and delivered once", async () => {
    const native = noFork(SCRIPTS);
    const h = await opened(store, native);
    await talk(h, "one");
    native.fault("startTurn", refuse(new RejectedError("PROVIDER_REFUSED", "not this", {})));
    const { child, tree, outcome } = await forkAndSend(h, {}, "two");
    expect(outcome.ending).not.toBe("completed");
    expect((await h.runtime.threads.get(child)).coverage).toEqual([]);
    expect((await (await tree.root.send("two")).outcome()).ending).toBe("completed");
    const { rows } = await h.runtime.threads.handoffs(child, { limit: 10 });
    expect(rows.map(({ status, deliveredAt }) => [status, deliveredAt !== null])).toEqual([
      ["superseded", false],
      ["ready", true],
    ]);
  });

  test("S2-12 S2-32 C5.14 an agent that forks its head alone forks the latest point, and tells an older one", async () => {
    const native = headFork(SCRIPTS);
    const h = await opened(store, native);
    await talk(h, "one", "two");
    expect((await forkAndSend(h, {}, "three")).transfer.resolution).toMatchObject({
      strategy: "native_fork",
    });
    const [first] = (await h.tree.root.runs()).rows;
    const older = await forkAndSend(h, { at: { kind: "run", runId: first!.id } }, "three");
    expect(older.transfer.resolution).toMatchObject({ strategy: "portable_context" });
  });

  test.each([
    ["exclusive", exclusiveFork],
    ["turn", turnFork],
    ["item", itemFork],
  ] as const)(
    "S2-10 S2-11 S2-23 %s: a run in the middle is forked by the provider at that point",
    async (_name, make) => {
      const native = make(SCRIPTS);
      const h = await opened(store, native);
      await talk(h, "one", "two", "three");
      const [, second] = (await h.tree.root.runs()).rows;
      const { tree, transfer } = await forkAndSend(h, { at: { kind: "run", runId: second!.id } }, "four");
      expect(transfer.resolution).toMatchObject({ strategy: "native_fork" });
      const forked = native.conversations.all().at(-1)!;
      const held = JSON.stringify(forked.items);
      expect(held).toContain("answer to two");
      expect(held).not.toContain("answer to three");
      expect((await tree.root.record()).runs).toBe(1);
    },
  );

  test("S0-60 S0-64 S2-1 C5.2 a point in a run that is not over is refused, the latest stable one steps back", async () => {
    const native = turnFork(SCRIPTS);
    const h = await opened(store, native);
    await talk(h, "one");
    const { thread } = await h.runtime.threads.fork(h.tree.id);
    expect(thread.forkedFrom!.point.ordinal).toBe(1);
    await expect(
      h.runtime.threads.fork(h.tree.id, { at: { kind: "message", seq: null } }),
    ).rejects.toMatchObject({ code: "FORK_UNCOMMITTED_MESSAGE" });
    await expect(
      h.runtime.threads.fork(h.tree.id, { at: { kind: "run", runId: "run_nobody" } }),
    ).rejects.toMatchObject({ code: "SOURCE_POINT_NOT_FOUND" });
  });

  test("S2-37 C5.9 on an answer is cut after it, with no draft", async () => {
    const native = itemFork(SCRIPTS);
    const h = await opened(store, native);
    await talk(h, "one", "two");
    const items = await h.tree.root.transcript();
    const index = items.findIndex((item) => item.kind === "assistant");
    const { transfer, draft } = await h.runtime.threads.fork(h.tree.id, {
      at: { kind: "message", seq: index + 1 },
    });
    expect(draft).toBeNull();
    expect(transfer.sourcePoint).toMatchObject({ ordinal: 1, cut: "inclusive", turnItemId: index });
  });

  test("S2-15 C5.12 what a point allows is said before anything is made", async () => {
    const h = await opened(store, noFork(SCRIPTS));
    await talk(h, "one");
    expect((await h.runtime.threads.planFork(h.tree.id)).availability).toEqual({
      native: "no_fork",
      replay: true,
    });
    const able = await opened(store, turnFork(SCRIPTS));
    await talk(able, "one");
    expect((await able.runtime.threads.planFork(able.tree.id)).availability).toEqual({
      native: true,
      replay: true,
    });
  });

  test("S2-2 S2-39 C5.1 a fork of the thread is from its tip, and what is not over stays behind", async () => {
    const native = turnFork({ "/root": [say("a1"), together(say("half"), gate("rest"), say("whole"))] });
    const h = await opened(store, native);
    await talk(h, "one");
    const work = await h.tree.root.send("two");
    await native.gates.arrived("rest");
    const { transfer } = await forkAndSend(h, {}, "three", "other");
    expect(transfer.sourcePoint.ordinal).toBe(1);
    native.gates.open("rest");
    await work.outcome();
    const tip = await h.runtime.threads.fork(h.tree.id);
    expect(tip.transfer.sourcePoint.ordinal).toBe(2);
  });

  test("S2-17 C5.16 a new session is ordinary creation: the source is pointed at, and nothing is made", async () => {
    const h = await opened(store, turnFork(SCRIPTS));
    await talk(h, "one");
    const trees = await h.store.read((view) => view.trees({ limit: 10 }).rows.length);
    const reference = await h.runtime.threads.reference(h.tree.id);
    expect(reference).toMatchObject({ title: "Work", point: { threadId: h.tree.id, ordinal: 1 } });
    expect(reference.text).toContain(h.tree.id);
    await expect(
      h.runtime.threads.fork(h.tree.id, { policy: { strategy: "new_session" } }),
    ).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(await h.store.read((view) => view.trees({ limit: 10 }).rows.length)).toBe(trees);
  });

  test("S2-51 C2.10 a question of before a restart can be read, and not be answered; its run is not stuck", async () => {
    const conversations = createNativeConversations();
    const native = turnFork({ "/root": [ask("red or blue?"), say("after")] }, { conversations });
    const h = await opened(store, native);
    const work = await h.tree.root.send("paint it");
    let requests = await h.tree.requests();
    for (let step = 0; step < 1_000 && requests.length === 0; step += 1) {
      await h.clock.advance(10);
      requests = await h.tree.requests();
    }
    native.kill();
    await h.crash();
    const { id } = requests[0]!;
    const stored = await h.store.read((view) => view.request(id));
    expect(stored).toMatchObject({ text: "red or blue?", status: "cancelled" });
    await expect(h.tree.answer(id, "blue")).rejects.toMatchObject({ code: "REQUEST_NOT_RESUMABLE" });
    expect(await h.store.read((view) => view.work(work.id))).toMatchObject({ state: "ended" });
  });

  test("S3-67 C5.1 C5.18 a conversation of the provider's own subagent is a source where the provider can fork it", async () => {
    const native = turnFork({ "/root": [nativeChild("look", "found"), say("done"), repeat(say("more"))] });
    const h = await opened(store, native);
    await talk(h, "one");
    const child = (await h.store.read((view) => view.providerThreadsOf(h.tree.id))).find(
      ({ ownerNodeId }) => ownerNodeId !== null,
    )!;
    const at = { kind: "provider_thread", providerThreadId: child.id } as const;
    const { outcome, transfer } = await forkAndSend(h, { at }, "two");
    expect(outcome.ending).toBe("completed");
    expect(transfer.status).toBe("consumed");
  });

  test("S2-45 C5.14 an agent over ACP forks its head where it can, and is told where it cannot", async () => {
    for (const [make, strategy] of [
      [headFork, "native_fork"],
      [noFork, "portable_context"],
    ] as const) {
      const h = await opened(store, make(SCRIPTS));
      await talk(h, "one");
      expect((await forkAndSend(h, {}, "two")).transfer.resolution).toMatchObject({ strategy });
    }
  });

  test("S2-8 S2-9 C16 numbers titles and never stacks them", async () => {
    const h = await opened(store, turnFork(SCRIPTS));
    await talk(h, "one");
    const first = await h.runtime.threads.fork(h.tree.id);
    const tree = await h.runtime.openTree({ id: first.thread.id });
    await (await tree.root.send("two")).outcome();
    const second = await h.runtime.threads.fork(first.thread.id);
    expect([first, second].map(({ thread }) => thread.title)).toEqual(["Work (fork 1)", "Work (fork 2)"]);
    const named = await h.runtime.threads.fork(h.tree.id, { title: "Another" });
    expect(named.thread.title).toBe("Another");
  });

  test("X-16 C5.6 retries of one action make one fork, and the same id for another is refused", async () => {
    const h = await opened(store, turnFork(SCRIPTS));
    await talk(h, "one");
    const options = { policy: { requestId: "click-1" } } as const;
    const both = await Promise.all([
      h.runtime.threads.fork(h.tree.id, options),
      h.runtime.threads.fork(h.tree.id, options),
    ]);
    expect(both[0].thread.id).toBe(both[1].thread.id);
    await expect(h.runtime.threads.fork(h.tree.id, { ...options, title: "Else" })).rejects.toMatchObject({
      code: "COMMAND_ID_CONFLICT",
    });
  });
});
