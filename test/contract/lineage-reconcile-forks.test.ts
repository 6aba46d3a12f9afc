/** Forks that a provider was asked for before a crash, and what `threads.reconcile` makes of them (C5.19, C14.7). */
import { describe, expect, onTestFinished, test } from "vitest";
import type { ThreadId } from "../../src/protocol/ids.ts";
import { hang, refuse } from "../../src/providers/scripted/native/faults.ts";
import { type ScriptedNativeProvider, turnFork } from "../../src/providers/scripted/native/provider.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { TransientError } from "../../src/protocol/errors.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";

const SCRIPT = { "/root": [repeat(say((context) => `A answers ${context.inputs.at(-1)}`))] };

describe.each(STORES)("forks in doubt on %s", (store) => {
  async function open(a: ScriptedNativeProvider = turnFork(SCRIPT)) {
    const h = await harness({ store, others: { a }, tree: { provider: "a" } });
    onTestFinished(() => h[Symbol.asyncDispose]());
    await h.ask("one");
    return { h, a };
  }

  /** A fork whose provider dies while it is asked: with `done`, after it has forked. */
  async function lost({ h, a }: { h: Harness; a: ScriptedNativeProvider }, done: boolean): Promise<ThreadId> {
    const { thread } = await h.runtime.threads.fork(h.tree.id, { policy: { strategy: "native" } });
    a.fault("forkThread", hang(thread.id, { done }));
    await h.runtime.threads.continue(thread.id, "two");
    await a.gates.arrived(thread.id);
    h.cut();
    a.kill();
    await h.crash();
    return thread.id;
  }

  /** What nobody has settled has had its time, and everything is reconciled. */
  async function reconcile(h: Harness, id: ThreadId) {
    await h.clock.advance(120_000);
    return h.runtime.threads.reconcile(id);
  }

  const forkOf = async (h: Harness, id: ThreadId) =>
    (await h.runtime.threads.transfers(id)).rows.findLast(({ type }) => type === "fork")!;
  const answered = async (h: Harness, id: ThreadId) => {
    const tree = await h.runtime.openTree({ id });
    await tree.idle();
    return (await h.runtime.threads.continue(id, "again")).outcome();
  };

  test("C14.7 C5.19 one that was made is taken in, and the next run goes on in it", async () => {
    const opened = await open();
    const { h, a } = opened;
    const id = await lost(opened, true);
    const before = await h.runtime.threads.get(id);
    const after = await reconcile(h, id);
    expect(await forkOf(h, id)).toMatchObject({
      status: "resolved_native",
      intent: null,
      resolution: { strategy: "native_fork" },
    });
    expect(after.revision).toBeGreaterThan(before.revision);
    // Nothing is left to be done.
    expect((await reconcile(h, id)).revision).toBe(after.revision);
    expect(await answered(h, id)).toMatchObject({ ending: "completed" });
    expect(a.calls("forkThread")).toHaveLength(1);
    expect(await forkOf(h, id)).toMatchObject({ status: "consumed", targetProvider: "a" });
  });

  test("C14.7 C5.19 one that was not made is undone, and the next run asks for it again", async () => {
    const opened = await open();
    const { h, a } = opened;
    const id = await lost(opened, false);
    await reconcile(h, id);
    expect(await forkOf(h, id)).toMatchObject({ status: "pending", intent: null });
    expect(await answered(h, id)).toMatchObject({ ending: "completed" });
    expect(a.calls("forkThread")).toHaveLength(2);
  });

  test("C14.7 C5.19 where it cannot be said whose they are, none is taken in, and all are known", async () => {
    const opened = await open();
    const { h } = opened;
    const ids = [await lost(opened, true), await lost(opened, true)];
    for (const id of ids) await reconcile(h, id);
    for (const id of ids) {
      expect(await forkOf(h, id)).toMatchObject({ status: "pending", intent: null });
      expect(await answered(h, id)).toMatchObject({ ending: "completed" });
    }
    const records = await h.store.read((view) => ids.flatMap((id) => view.providerThreadsOf(id)));
    expect(records.filter(({ status }) => status === "archived")).toHaveLength(2);
    expect(new Set(records.map((one) => one.nativeThreadRef?.nativeId)).size).toBe(4);
  });

  test("C14.7 C5.19 a provider that does not answer leaves it in doubt; one that lists no forks, undone", async () => {
    const opened = await open();
    const { h, a } = opened;
    const id = await lost(opened, true);
    a.fault("findForks", refuse(new TransientError("PROVIDER_OVERLOADED", "later", {})));
    await expect(reconcile(h, id)).rejects.toMatchObject({ code: "PROVIDER_OVERLOADED" });
    a.fault("findForks", refuse(new Error("no words")));
    await expect(reconcile(h, id)).rejects.toMatchObject({ code: "FORK_NATIVE_INDETERMINATE" });
    expect((await forkOf(h, id)).intent).not.toBeNull();
    const openSession = a.openSession.bind(a);
    a.openSession = async (input) => {
      const session = await openSession(input);
      delete session.findForks;
      return session;
    };
    await reconcile(h, id);
    expect(await forkOf(h, id)).toMatchObject({ status: "pending", intent: null });
    expect(await answered(h, id)).toMatchObject({ ending: "completed" });
  });

  test("C14.7 C5.19 where its provider is not given, that is said, and the intent stays", async () => {
    const opened = await open();
    const { h } = opened;
    const id = await lost(opened, true);
    const other = await h.newRuntime({ providers: {} });
    onTestFinished(() => other.close());
    await h.clock.advance(120_000);
    await expect(other.threads.reconcile(id)).rejects.toMatchObject({ code: "PROVIDER_UNAVAILABLE" });
    expect((await forkOf(h, id)).intent).not.toBeNull();
  });

  test("C2.1 C1.1 C14.7 an archived thread is not changed by it, and its provider is not asked", async () => {
    const opened = await open();
    const { h, a } = opened;
    const id = await lost(opened, true);
    const tree = await h.runtime.openTree({ id });
    await tree.root.interrupt();
    await h.runtime.threads.close(id);
    await h.runtime.threads.archive(id);
    const before = await h.store.read((view) => [view.agent(id), ...view.providerThreadsOf(id)]);
    const asked = await forkOf(h, id);
    const calls = a.calls("findForks").length;
    await reconcile(h, id);
    expect(await h.store.read((view) => [view.agent(id), ...view.providerThreadsOf(id)])).toEqual(before);
    expect(await forkOf(h, id)).toEqual(asked);
    expect(a.calls("findForks")).toHaveLength(calls);
  });

  test("C14.7 C14.1 a run that is under way settles its own, and another process's is left to it", async () => {
    const opened = await open();
    const { h, a } = opened;
    const { thread } = await h.runtime.threads.fork(h.tree.id, { policy: { strategy: "native" } });
    a.fault("forkThread", hang("made", { done: true }));
    const work = await h.runtime.threads.continue(thread.id, "two");
    await a.gates.arrived("made");
    await h.runtime.threads.reconcile(thread.id);
    expect((await forkOf(h, thread.id)).intent).not.toBeNull();
    const other = await h.newRuntime({ provenDead: () => false });
    onTestFinished(() => other.close());
    await other.threads.reconcile(thread.id);
    expect((await forkOf(h, thread.id)).intent).not.toBeNull();
    a.gates.open("made");
    let ending = "";
    work.outcome().then((outcome) => (ending = outcome.ending), String);
    await waitUntil("it has ended", () => ending !== "", { step: () => h.clock.advance(25) });
    expect(ending).toBe("completed");
    expect(a.calls("findForks")).toEqual([]);
  });

  test.for([true, false])(
    "C5.19 X-4 a provider that has not answered a stopped run is waited for, and asked for no second fork; made before: %s",
    async (done) => {
      const { h, a } = await open();
      const { thread } = await h.runtime.threads.fork(h.tree.id, { policy: { strategy: "native" } });
      a.fault("forkThread", hang("late", { done }));
      await h.runtime.threads.continue(thread.id, "two");
      await a.gates.arrived("late");
      const tree = await h.runtime.openTree({ id: thread.id });
      await tree.root.interrupt();
      // The grace time of what was stopped is over.
      await h.clock.advance(60_000);
      await h.runtime.threads.reconcile(thread.id);
      expect((await forkOf(h, thread.id)).intent).not.toBeNull();
      expect(a.calls("findForks")).toEqual([]);

      const work = await h.runtime.threads.continue(thread.id, "again");
      await h.clock.advance(60_000);
      expect(a.calls("findForks")).toEqual([]);
      a.gates.open("late");
      expect(await work.outcome()).toMatchObject({ ending: "completed" });
      expect(a.calls("forkThread")).toHaveLength(1);
      expect(await forkOf(h, thread.id)).toMatchObject({ status: "consumed", intent: null });
    },
  );

  test("C5.19 INT-3 and a run that waits for it can be stopped", async () => {
    const { h, a } = await open();
    const { thread } = await h.runtime.threads.fork(h.tree.id, { policy: { strategy: "native" } });
    a.fault("forkThread", hang("never"));
    await h.runtime.threads.continue(thread.id, "two");
    await a.gates.arrived("never");
    const tree = await h.runtime.openTree({ id: thread.id });
    await tree.root.interrupt();
    await h.clock.advance(60_000);
    const work = await h.runtime.threads.continue(thread.id, "again");
    await h.clock.settle();
    await tree.root.interrupt();
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    expect((await forkOf(h, thread.id)).intent).not.toBeNull();
    a.gates.openAll();
  });
});
