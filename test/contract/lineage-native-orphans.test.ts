/** Native forks whose outcome nobody knows, and answers that name somebody else's conversation (C5.19, C5.11, X-4). */
import { describe, expect, onTestFinished, test } from "vitest";
import type { ThreadId } from "../../src/protocol/ids.ts";
import { hang } from "../../src/providers/scripted/native/faults.ts";
import { type ScriptedNativeProvider, turnFork } from "../../src/providers/scripted/native/provider.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";

interface Opened {
  readonly h: Harness;
  readonly a: ScriptedNativeProvider;
}

async function open(store: (typeof STORES)[number]): Promise<Opened> {
  const a = turnFork({ "/root": [repeat(say((context) => `A answers ${context.inputs.at(-1)}`))] });
  const h = await harness({ store, others: { a }, tree: { provider: "a" } });
  onTestFinished(() => h[Symbol.asyncDispose]());
  return { h, a };
}

async function run(h: Harness, thread: ThreadId, message: string) {
  const work = await h.runtime.threads.continue(thread, message);
  return (await h.runtime.openTree({ id: thread })).work(work.id).outcome();
}

async function forkAt(h: Harness, ordinal: number): Promise<ThreadId> {
  const { id: runId } = (await h.store.read((view) => view.runAt(h.tree.id, ordinal)))!;
  const at = { kind: "run", runId } as const;
  return (await h.runtime.threads.fork(h.tree.id, { at, policy: { strategy: "native" } })).thread.id;
}

/** What the user has said in the conversation that the thread goes on in. */
async function said(h: Harness, a: ScriptedNativeProvider, thread: ThreadId) {
  const records = await h.store.read((view) => view.providerThreadsOf(thread));
  const ids = records
    .filter(({ status }) => status !== "archived")
    .map((one) => one.nativeThreadRef?.nativeId);
  expect(ids).toHaveLength(1);
  const { items } = a.conversations.all().find(({ id }) => id === ids[0])!;
  return items.flatMap(({ message }) => (message.role === "user" ? [message.text] : []));
}

describe.each(STORES)("native forks that nobody can tell apart on %s", (store) => {
  test("X-4 C5.19 C5.11 two siblings lost in their forks: neither goes on from where the other was cut", async () => {
    const { h, a } = await open(store);
    for (const message of ["one", "two", "three"]) await run(h, h.tree.id, message);
    const early = await forkAt(h, 1);
    const late = await forkAt(h, 3);
    a.fault("forkThread", hang("made", { done: true }), 2);
    const first = await h.runtime.threads.continue(early, "early");
    const second = await h.runtime.threads.continue(late, "late");
    await a.gates.arrived("made", 2);
    h.cut();
    a.kill();
    await h.crash();
    for (const [thread, work] of [
      [early, first],
      [late, second],
    ] as const) {
      const tree = await h.runtime.openTree({ id: thread });
      await tree.work(work.id).outcome();
      expect(await run(h, thread, "again")).toMatchObject({ ending: "completed" });
    }
    const [ofEarly, ofLate] = [await said(h, a, early), await said(h, a, late)];
    expect(ofEarly).toEqual(expect.arrayContaining(["one", "again"]));
    for (const later of ["two", "three", "late"]) expect(ofEarly).not.toContain(later);
    expect(ofLate).toEqual(expect.arrayContaining(["one", "two", "three", "again"]));
    expect(ofLate).not.toContain("early");
  });

  test.for(["of the source", "of a sibling"])(
    "C5.13 C1.6 a fork that answers with the conversation %s has failed, and nobody shares one",
    async (whose) => {
      const { h, a } = await open(store);
      await run(h, h.tree.id, "one");
      const sibling = await forkAt(h, 1);
      await run(h, sibling, "sibling");
      const all = a.conversations.all().map(({ id }) => id);
      const nativeId = whose === "of the source" ? all[0]! : all[1]!;
      const openSession = a.openSession.bind(a);
      a.openSession = async (input) => {
        const session = await openSession(input);
        const forkThread = session.forkThread!.bind(session);
        session.forkThread = async (asked) => {
          const thread = await forkThread(asked);
          return { ...thread, ref: { ...thread.ref, nativeId } };
        };
        return session;
      };
      const fork = await forkAt(h, 1);
      expect(await run(h, fork, "mine")).toMatchObject({
        ending: "provider_error",
        error: { code: "FORK_NATIVE_FAILED" },
      });
      const spoken = JSON.stringify(a.conversations.all().map(({ items }) => items));
      expect(spoken).not.toContain("mine");
    },
  );
});
