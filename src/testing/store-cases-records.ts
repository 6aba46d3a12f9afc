/** What a store guarantees about its reads: indexes that follow what is put, order, and paging of every list. */
import assert from "node:assert/strict";
import type { AgentPath } from "../protocol/agent-path.ts";
import type { StoreView } from "../store/port.ts";
import { type List, refusesUnknown, walk } from "./store-paging.ts";
import type { StoreCase } from "./store-cases-mail.ts";
import { sampleTransfer } from "./store-records-threads.ts";
import {
  nextAgent,
  sampleAgent,
  sampleId,
  sampleMail,
  sampleOwner,
  sampleRun,
  sampleTree,
  sampleWork,
} from "./store-records.ts";

const tokens = (inputTokens: number, cost: number | null, complete = true) => ({
  inputTokens,
  cachedInputTokens: 1,
  outputTokens: 2,
  reasoningTokens: 3,
  cost,
  complete,
});

export const recordCases = {
  "finds agents by id, path, token and parent, and subtrees by path": async ({
    store,
    lease,
    tree,
    root,
    worker,
  }) => {
    const paths: AgentPath[] = ["/root/a", "/root/a/x", "/root/ab", "/root/a_b", "/root/a0", "/root/b"];
    await store.commit(lease, (tx) => {
      for (const path of paths)
        tx.putAgent(
          sampleAgent(tree, sampleId("thread", path.slice(6).replace("/", "0x")), path, { parent: root }),
        );
      tx.putAgent(nextAgent(tx.agentAt(tree, "/root/b")!, { state: "closed" }));
    });
    const under = (view: StoreView, path: AgentPath, closed = false): AgentPath[] =>
      view.agents(tree, path, { limit: 99, closed }).rows.map((agent) => agent.path);
    await store.read((view) => {
      assert.deepEqual(under(view, "/root/a"), ["/root/a", "/root/a/x"]);
      assert.deepEqual(under(view, "/root", true), ["/root", ...paths, "/root/worker"].toSorted());
      assert.deepEqual(under(view, "/root/b"), []);
      assert.equal(view.agentAt(tree, "/root/worker")?.threadId, worker);
      assert.equal(view.agentAt(tree, "/root/nobody"), undefined);
      assert.equal(view.agentByToken(`digest of ${worker}`)?.threadId, worker);
      assert.equal(view.childrenOf(root, { limit: 99, closed: true }).rows.length, 1 + paths.length);
      assert.deepEqual(
        view.childrenOf(root, { limit: 99 }).rows.map(({ state }) => state),
        paths.map(() => "open"),
      );
      assert.deepEqual(
        [root, worker].map((id) => view.openChildren(id)),
        [paths.length, 0],
      );
    });
    await assert.rejects(
      store.commit(lease, (tx) => tx.putAgent(sampleAgent(tree, sampleId("thread", "twin"), "/root/a"))),
      { code: "INVARIANT_BROKEN" },
    );
  },

  "sums usage below a path": async ({ store, lease, tree }) => {
    const put = (name: string, usage: ReturnType<typeof tokens>): Promise<void> =>
      store.commit(lease, (tx) => {
        const known = tx.agentAt(tree, `/root/${name}`);
        const first = sampleAgent(tree, sampleId("thread", name), `/root/${name}`, { usage });
        tx.putAgent(known === undefined ? first : nextAgent(known, { usage }));
      });
    const sum = (path: AgentPath) => store.read((view) => view.usageUnder(tree, path));
    assert.equal((await sum("/root")).inputTokens, 0);
    await put("a", tokens(10, 0.5));
    await put("ab", tokens(100, 0.25));
    assert.deepEqual(await sum("/root/a"), { ...tokens(10, 0.5), pricedCost: 0.5 });
    assert.deepEqual(await sum("/root"), {
      ...tokens(110, 0.75),
      cachedInputTokens: 2,
      outputTokens: 4,
      reasoningTokens: 6,
      pricedCost: 0.75,
    });
    await put("a", tokens(20, 1));
    assert.deepEqual([(await sum("/root")).inputTokens, (await sum("/root")).cost], [120, 1.25]);
    await assert.rejects(
      store.commit(lease, (tx) => {
        tx.putAgent(nextAgent(tx.agentAt(tree, "/root/a")!, { usage: tokens(1000, 1) }));
        assert.equal(tx.usageUnder(tree, "/root").inputTokens, 1100);
        throw new Error("on purpose");
      }),
    );
    assert.equal((await sum("/root")).inputTokens, 120);
    await put("ab", tokens(100, null, false));
    assert.deepEqual([(await sum("/root")).cost, (await sum("/root")).complete], [null, false]);
    // What has a price still counts against a budget of money.
    assert.equal((await sum("/root")).pricedCost, 1);
    await put("ab", tokens(100, 0.25));
    assert.deepEqual([(await sum("/root")).cost, (await sum("/root")).complete], [1.25, true]);
  },

  "keeps transcripts and events in order, and refuses a gap": async ({ store, lease, tree, worker }) => {
    const item = (text: string) =>
      ({ kind: "context", topic: "role", text, runId: null, step: 1, at: 2 }) as const;
    await store.commit(lease, (tx) => {
      assert.deepEqual(
        tx.appendItems(worker, 0, [item("a"), item("b")]).map(({ index }) => index),
        [0, 1],
      );
      tx.appendItems(worker, 2, [item("c")]);
    });
    for (const first of [2, 4]) {
      await assert.rejects(
        store.commit(lease, (tx) => tx.appendItems(worker, first, [item("d")])),
        { code: "INVARIANT_BROKEN" },
      );
    }
    const items = await store.read((view) => view.items(worker, 1, 9));
    assert.deepEqual(items, [
      { ...item("b"), index: 1 },
      { ...item("c"), index: 2 },
    ]);
    for (const before of [-1, -3]) {
      const first = await store.read((view) => view.items(worker, before, 1));
      assert.deepEqual(first, [{ ...item("a"), index: 0 }]);
    }
    await store.commit(lease, (tx) => {
      for (const n of [1, 2, 3]) {
        tx.appendEvent(tree, sampleId("evt", n), n, {
          type: "run.step",
          path: "/root",
          threadId: worker,
          runId: null,
          workId: null,
          data: { n },
        });
      }
    });
    const seqs = await store.read((view) => [
      view.lastEvent(tree),
      view.events(tree, 1, 1).map(({ seq, data }) => [seq, data["n"]]),
    ]);
    assert.deepEqual(seqs, [3, [[2, 2]]]);
  },

  "finds transfers and what hangs on them": async ({ store, lease, tree, worker }) => {
    const work = sampleId("wrk", 1);
    await store.commit(lease, (tx) => {
      tx.putTransfer(sampleTransfer(tree, worker, 1, { workId: work }));
      tx.putTransfer(sampleTransfer(tree, worker, 2, { workId: work, status: "consumed", consumedAt: 2 }));
      tx.putArtifact({
        id: sampleId("art", 1),
        treeId: tree,
        bytes: 1,
        digest: "d",
        text: "t",
        provider: null,
        createdAt: 1,
      });
      tx.putReceipt({
        treeId: tree,
        key: "scope:k",
        argumentsDigest: "d",
        answer: { ok: true },
        createdAt: 1,
      });
    });
    await store.read((view) => {
      assert.deepEqual(ids(view.pendingTransfersTo(worker)), [sampleId("xfr", 1)]);
      assert.equal(view.transferOfWork(work, "subagent_result")?.id, sampleId("xfr", 2));
      assert.equal(view.transferOfWork(work, "fork"), undefined);
      assert.equal(view.artifact(sampleId("art", 1))?.text, "t");
      assert.deepEqual(view.receipt(tree, "scope:k")?.answer, { ok: true });
      assert.equal(view.receipt(tree, "scope:l"), undefined);
    });
  },

  "registers process groups of a tree": async ({ store, lease, tree, worker }) => {
    const group = (pgid: number) => ({
      treeId: tree,
      threadId: worker,
      runId: null,
      pgid,
      owner: sampleOwner(1),
      startedAt: "1",
    });
    await store.commit(lease, (tx) => [10, 11].forEach((pgid) => tx.putProcessGroup(group(pgid))));
    await store.commit(lease, (tx) => tx.removeProcessGroup(tree, 10));
    assert.deepEqual(await store.read((view) => view.processGroups(tree)), [group(11)]);
  },

  "pages every list without losing or doubling a row": async (world) => {
    const { store, lease, tree, root, worker } = world;
    const numbers = Array.from({ length: 7 }, (_, n) => n + 1);
    await store.commit(lease, (tx) => {
      for (const n of numbers) {
        tx.putTree(sampleTree(sampleId("thread", `tree${n}`)));
        tx.putAgent(
          sampleAgent(tree, sampleId("thread", `child${n}`), `/root/worker/c${n}`, { parent: worker }),
        );
        tx.appendMail(sampleMail(tree, worker, n));
        tx.putWork(sampleWork(tree, root, n));
        tx.putRun(sampleRun(tree, worker, n, { ordinal: n }));
        tx.putTransfer(sampleTransfer(tree, worker, n));
      }
      tx.putMail({ ...tx.mail(sampleId("msg", 3))!, state: "settled" });
    });
    const lists: Record<string, [count: number, list: List]> = {
      trees: [8, (view, page) => view.trees(page)],
      agents: [8, (view, page) => view.agents(tree, "/root/worker", page)],
      children: [7, (view, page) => view.childrenOf(worker, page)],
      mail: [7, (view, page) => view.mailOf(worker, page)],
      works: [7, (view, page) => view.works(tree, page)],
      runs: [7, (view, page) => view.runsOf(worker, page)],
      transfers: [7, (view, page) => view.transfers(tree, page)],
    };
    for (const [name, [count, list]] of Object.entries(lists)) {
      const whole = await store.read((view) => list(view, { limit: 99 }));
      assert.deepEqual([name, whole.rows.length, whole.next], [name, count, null]);
      for (const limit of [1, 3, 7, 8]) assert.deepEqual(await walk(world, list, limit), whole.rows, name);
      await refusesUnknown(world, list);
    }
    const trees = await store.read((view) => view.trees({ limit: 2 }).rows.map(({ treeId }) => treeId));
    assert.deepEqual(trees, [sampleId("thread", "tree7"), sampleId("thread", "tree6")]);
    for (const limit of [1, 3, 8]) {
      const [whole, ids] = await store.read((view) => {
        const { next: after } = view.trees({ limit });
        return [view.trees({ limit, after }), view.treeIds({ limit, after })] as const;
      });
      assert.deepEqual(ids, { ...whole, rows: whole.rows.map(({ treeId }) => treeId) });
    }
    await assert.rejects(
      store.read((view) => view.treeIds({ limit: 5, after: "garbage" })),
      { code: "INVALID_ARGUMENT" },
    );
  },

  "hands out records that cannot be used to change it": async ({ store, lease, tree }) => {
    const record = await store.commit(lease, (tx) => {
      tx.putTree({ ...tx.tree(tree)!, title: "kept" });
      return tx.tree(tree)!;
    });
    assert.throws(() => Object.assign(record, { title: "changed" }), TypeError);
    assert.equal((await store.read((view) => view.tree(tree)))?.title, "kept");
  },
} satisfies Record<string, StoreCase>;

function ids(records: readonly { readonly id: string }[]): string[] {
  return records.map(({ id }) => id);
}
