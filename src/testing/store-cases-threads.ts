/** What a store guarantees about lists of threads: their filters, descent, order, and paging. */
import assert from "node:assert/strict";
import type { AgentRecord } from "../protocol/agent.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { StoreView } from "../store/port.ts";
import type { StoreCase } from "./store-cases-mail.ts";
import { type List, refusesUnknown, walk } from "./store-paging.ts";
import {
  sampleCompaction,
  sampleHandoff,
  sampleHistoryEntry,
  sampleThreadFacts,
  sampleTransfer,
} from "./store-records-threads.ts";
import { nextAgent, sampleId, sampleRun, sampleTree } from "./store-records.ts";
import { EVERYTHING, putChild, putRoot, threadIds } from "./store-threads.ts";

export const threadCases = {
  "lists threads by workspace and state, newest first": async ({ store, lease, root }) => {
    const [a, b, c, d] = await store.commit(lease, (tx) => [
      putRoot(tx, "a", { workspace: "/one" }),
      putRoot(tx, "b", { workspace: "/two" }),
      putRoot(tx, "c", { workspace: "/one", state: "closed" }),
      putRoot(tx, "d", { workspace: "/one" }),
    ]);
    const list = (filter: Parameters<StoreView["threads"]>[0]): Promise<ThreadId[]> =>
      store.read((view) => threadIds(view.threads(filter, EVERYTHING).rows));
    assert.deepEqual(await list({}), [d, c, b, a, root]);
    assert.deepEqual(await list({ workspace: "/one" }), [d, c, a]);
    assert.deepEqual(await list({ state: "open" }), [d, b, a, root]);
    assert.deepEqual(await list({ workspace: "/one", state: "open" }), [d, a]);
    assert.deepEqual(await list({ workspace: "/one", state: "archived" }), []);
    assert.deepEqual(await list({ workspace: "/three" }), []);
    await store.commit(lease, (tx) => tx.putAgent(nextAgent(tx.agent(a)!, { state: "closed" })));
    await store.commit(lease, (tx) => tx.putAgent(nextAgent(tx.agent(c)!, { state: "archived" })));
    assert.deepEqual(await list({ workspace: "/one", state: "open" }), [d]);
    assert.deepEqual(await list({ workspace: "/one", state: "closed" }), [a]);
    assert.deepEqual(await list({ workspace: "/one", state: "archived" }), [c]);
    assert.deepEqual(await list({ state: "open" }), [d, b, root]);
    await assert.rejects(
      store.commit(lease, (tx) => {
        tx.putAgent(nextAgent(tx.agent(d)!, { state: "closed" }));
        putRoot(tx, "e", { workspace: "/one" });
        assert.equal(tx.threads({ workspace: "/one", state: "closed" }, EVERYTHING).rows.length, 2);
        throw new Error("on purpose");
      }),
      /on purpose/,
    );
    assert.deepEqual(await list({ workspace: "/one" }), [d, c, a]);
    assert.deepEqual(await list({ state: "open" }), [d, b, root]);
  },

  "says whether somebody works in a folder": async ({ store, lease, tree, worker }) => {
    await store.commit(lease, (tx) => {
      const agent = tx.agent(worker)!;
      tx.putAgent(nextAgent(agent, { config: { ...agent.config, workspace: "/w/one/sub" } }));
      putRoot(tx, "a", { workspace: "/w/two" });
      putRoot(tx, "b", { workspace: "/w/twofold" });
      putRoot(tx, "c", { workspace: "/w/three", state: "closed" });
    });
    const worked = (by: ThreadId) =>
      store.read((view) =>
        ["/w/one", "/w/one/sub", "/w/on", "/w/two", "/w/tw", "/w/three"].filter((folder) =>
          view.isWorkedIn(by, folder),
        ),
      );
    assert.deepEqual(await worked(tree), ["/w/one", "/w/one/sub", "/w/two"]);
    // Agents of another tree are that tree's own business.
    assert.deepEqual(await worked(sampleId("thread", "a")), ["/w/two"]);
    await store.commit(lease, (tx) => tx.putAgent(nextAgent(tx.agent(worker)!, { state: "closed" })));
    assert.deepEqual(await worked(tree), ["/w/two"]);
  },

  "takes a thread's record only as the next of the one it replaces": async ({ store, lease, root }) => {
    const change = (edit: Parameters<typeof nextAgent>[1]): Promise<void> =>
      store.commit(lease, (tx) => tx.putAgent({ ...nextAgent(tx.agent(root)!, edit), ...edit }));
    const record = (): Promise<AgentRecord> => store.read((view) => view.agent(root)!);
    const thread = sampleThreadFacts(root, { currentContext: { revision: 2, digest: "d2" } });
    await change({ thread });
    const before = await record();
    const { revision } = before;
    for (const wrong of [revision - 1, revision, revision + 2, revision + 7])
      await assert.rejects(change({ revision: wrong }), { code: "THREAD_REVISION_CONFLICT" });
    const invariant = { code: "THREAD_INVARIANT_VIOLATION" };
    for (const facts of [
      { currentContext: null },
      { currentContext: { revision: 1, digest: "d1" } },
      { agentId: "/root/another" },
      { lineage: { ...thread.lineage, parentThreadId: sampleId("thread", "other") } },
      { lineage: { ...thread.lineage, rootThreadId: sampleId("thread", "other") } },
    ])
      await assert.rejects(change({ thread: { ...thread, ...facts } }), invariant);
    assert.deepEqual(await record(), before);
    // Several in one commit count one by one.
    await store.commit(lease, (tx) => {
      for (const state of ["open", "closed", "archived"] as const)
        tx.putAgent(nextAgent(tx.agent(root)!, { state }));
    });
    assert.equal((await record()).revision, revision + 3);
    await assert.rejects(change({ state: "open" }), invariant);
  },

  "finds who descends from a root, through forks and subagents": async ({ store, lease, root }) => {
    const ids = await store.commit(lease, (tx) => {
      const top = putRoot(tx, "top");
      const other = putRoot(tx, "other");
      const fork = putChild(tx, "fork", top, "fork");
      const agent = putChild(tx, "agent", fork, "subagent");
      const forkOfAgent = putChild(tx, "deep", agent, "fork");
      return { top, other, fork, agent, forkOfAgent };
    });
    await store.read((view) => {
      const descendants = (id: ThreadId): ThreadId[] => threadIds(view.descendants(id, EVERYTHING).rows);
      assert.deepEqual(descendants(ids.top), [ids.top, ids.fork, ids.agent, ids.forkOfAgent]);
      assert.deepEqual(descendants(ids.other), [ids.other]);
      assert.deepEqual(descendants(ids.fork), []);
      // Subagents are no threads of their own in the list.
      assert.deepEqual(threadIds(view.threads({}, EVERYTHING).rows), [
        ids.forkOfAgent,
        ids.fork,
        ids.other,
        ids.top,
        root,
      ]);
    });
  },

  "finds the trees that agents of a tree have made": async ({ store, lease, root }) => {
    const [a, b] = await store.commit(lease, (tx) => {
      const payer = { treeId: root, threadId: root, path: "/root" } as const;
      const ids = (["a", "b"] as const).map((name) => putRoot(tx, name));
      for (const treeId of ids) tx.putTree({ ...sampleTree(treeId), billedTo: payer });
      tx.putTree(sampleTree(putRoot(tx, "c")));
      return ids;
    });
    const billed = (id: ThreadId): Promise<ThreadId[]> =>
      store.read((view) => view.billed(id).map(({ treeId }) => treeId));
    assert.deepEqual(await billed(root), [a, b]);
    assert.deepEqual(await billed(a!), []);
    await store.commit(lease, (tx) => tx.putTree({ ...tx.tree(b!)!, title: "later" }));
    assert.deepEqual(await billed(root), [a, b]);
  },

  "lists a thread from before threads, which descends from nobody": async ({ store, lease }) => {
    const old = await store.commit(lease, (tx) => putRoot(tx, "old", { legacy: true }));
    await store.read((view) => {
      assert.equal(view.threads({}, EVERYTHING).rows[0]?.threadId, old);
      assert.equal(view.agent(old)?.thread, null);
      assert.deepEqual(view.descendants(old, EVERYTHING).rows, []);
    });
  },

  "finds a run by its ordinal": async ({ store, lease, tree, root, worker }) => {
    await store.commit(lease, (tx) => {
      for (const ordinal of [1, 2, 3]) tx.putRun(sampleRun(tree, worker, ordinal, { ordinal }));
      tx.putRun({ ...tx.run(sampleId("run", 2))!, status: "completed" });
    });
    await store.read((view) => {
      assert.equal(view.runAt(worker, 2)?.status, "completed");
      for (const [id, ordinal] of [
        [worker, 0],
        [worker, 4],
        [root, 1],
      ] as const)
        assert.equal(view.runAt(id, ordinal), undefined);
    });
  },

  "finds transfers at either end, and handoffs by the thread that they are for": async (world) => {
    const { store, lease, tree, root, worker } = world;
    const third = sampleId("thread", "third");
    const ends: readonly (readonly [ThreadId, ThreadId])[] = [
      [root, worker],
      [worker, root],
      [root, third],
      [worker, worker],
      [third, worker],
    ];
    await store.commit(lease, (tx) => {
      for (const [at, [sourceThreadId, target]] of ends.entries())
        tx.putTransfer(sampleTransfer(tree, target, at, { sourceThreadId }));
      tx.putTransfer({ ...tx.transfer(sampleId("xfr", 0))!, status: "consumed", consumedAt: 2 });
      for (const name of [1, 2]) tx.putHandoff(sampleHandoff(tree, worker, name));
      tx.putHandoff({ ...tx.handoff(sampleId("hnd", 1))!, status: "superseded" });
    });
    await store.read((view) => {
      const names = (id: ThreadId): string[] => view.transfersOf(id, EVERYTHING).rows.map((one) => one.id);
      const named = (...at: readonly number[]): string[] => at.map((name) => sampleId("xfr", name));
      assert.deepEqual(names(worker), named(0, 1, 3, 4));
      assert.deepEqual(names(root), named(0, 1, 2));
      assert.deepEqual(names(third), named(2, 4));
      assert.equal(view.transfersOf(worker, EVERYTHING).rows[0]?.status, "consumed");
      assert.deepEqual(
        view.handoffsOf(worker, EVERYTHING).rows.map(({ id, status }) => [id, status]),
        [
          [sampleId("hnd", 1), "superseded"],
          [sampleId("hnd", 2), "ready"],
        ],
      );
      assert.deepEqual(view.handoffsOf(root, EVERYTHING).rows, []);
    });
  },

  "pages every list of threads without losing or doubling a row": async (world) => {
    const { store, lease, tree, root, worker } = world;
    const numbers = Array.from({ length: 12 }, (_, at) => at + 1);
    const top = await store.commit(lease, (tx) => {
      const id = putRoot(tx, "top", { workspace: "/one" });
      for (const n of numbers) {
        putRoot(tx, `root${n}`, { workspace: "/one", state: n % 3 === 0 && n > 3 ? "closed" : "open" });
        putChild(tx, `child${n}`, id, n % 2 === 0 ? "fork" : "subagent");
        const [source, target] = n % 3 === 0 ? [worker, root] : [root, worker];
        tx.putTransfer(sampleTransfer(tree, target, n, { sourceThreadId: source }));
        tx.putTransfer(sampleTransfer(tree, worker, `own${n}`, { sourceThreadId: worker }));
        tx.putHandoff(sampleHandoff(tree, worker, n));
        tx.putCompaction(sampleCompaction(worker, n));
        tx.addHistory(sampleHistoryEntry(worker, n));
      }
      tx.putAgent(nextAgent(tx.agent(sampleId("thread", "root4"))!, { state: "closed" }));
      return id;
    });
    const lists: Record<string, readonly [count: number, list: List]> = {
      threads: [12 + 6 + 2, (view, page) => view.threads({}, page)],
      workspace: [13, (view, page) => view.threads({ workspace: "/one" }, page)],
      state: [4, (view, page) => view.threads({ state: "closed" }, page)],
      both: [9, (view, page) => view.threads({ workspace: "/one", state: "open" }, page)],
      descendants: [13, (view, page) => view.descendants(top, page)],
      transfers: [24, (view, page) => view.transfersOf(worker, page)],
      handoffs: [12, (view, page) => view.handoffsOf(worker, page)],
      compactions: [12, (view, page) => view.compactions(worker, page)],
      history: [12, (view, page) => view.history(worker, page)],
    };
    for (const [name, [count, list]] of Object.entries(lists)) {
      const whole = await store.read((view) => list(view, { limit: 99 }));
      assert.deepEqual([name, whole.rows.length, whole.next], [name, count, null]);
      for (const limit of [1, 5, count, count + 1])
        assert.deepEqual(await walk(world, list, limit), whole.rows, name);
      await refusesUnknown(world, list);
    }
    const history = await store.read((view) => view.history(worker, EVERYTHING).rows);
    assert.deepEqual(
      history.map(({ sequence }) => sequence),
      numbers,
    );
  },

  "goes on paging threads while others are added and closed": async ({ store, lease }) => {
    await store.commit(lease, (tx) => {
      for (let n = 1; n <= 6; n += 1) putRoot(tx, `t${n}`, { workspace: "/one" });
    });
    const open = { workspace: "/one", state: "open" } as const;
    const first = await store.read((view) => view.threads(open, { limit: 3 }));
    await store.commit(lease, (tx) => {
      putRoot(tx, "t7", { workspace: "/one" });
      // The row that the cursor names leaves the list, and so does one behind it.
      for (const name of ["t4", "t2"])
        tx.putAgent(nextAgent(tx.agent(sampleId("thread", name))!, { state: "closed" }));
    });
    const second = await store.read((view) => view.threads(open, { limit: 3, after: first.next }));
    assert.deepEqual(threadIds(first.rows), named("t6", "t5", "t4"));
    assert.deepEqual([threadIds(second.rows), second.next], [named("t3", "t1"), null]);
  },
} satisfies Record<string, StoreCase>;

function named(...names: readonly string[]): ThreadId[] {
  return names.map((name) => sampleId("thread", name));
}
