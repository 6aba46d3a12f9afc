/** What a store guarantees about the records of lineage: what is written once, order by number, rollback. */
import assert from "node:assert/strict";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { HistoryLevel } from "../protocol/thread.ts";
import type { TransferType } from "../protocol/transfer.ts";
import type { StoreTx, StoreView } from "../store/port.ts";
import type { StoreCase } from "./store-cases-mail.ts";
import {
  sampleCompaction,
  sampleDraft,
  sampleHandoff,
  sampleHistoryEntry,
  sampleProviderThread,
  sampleSnapshot,
  sampleTransfer,
} from "./store-records-threads.ts";
import { sampleId, sampleRun } from "./store-records.ts";
import { EVERYTHING, putRoot, threadIds } from "./store-threads.ts";

const twice = { code: "THREAD_INVARIANT_VIOLATION" };

export const lineageCases = {
  "keeps every field of a transfer, and refuses a type that there is not": async (world) => {
    const { store, lease, tree, worker } = world;
    const ref = { driver: "d", nativeId: "n", strength: "strong" } as const;
    const transfer = sampleTransfer(tree, worker, 1, {
      type: "merge_back",
      resolution: { strategy: "native_fork", providerThreadRef: ref },
      staleness: ["handoff_chain"],
      intent: { id: sampleId("int", 1), at: 2 },
      supersededBy: sampleId("xfr", 2),
    });
    await store.commit(lease, (tx) => tx.putTransfer({ ...transfer, basePoint: transfer.sourcePoint }));
    assert.deepEqual(await store.read((view) => view.transfer(transfer.id)), {
      ...transfer,
      basePoint: transfer.sourcePoint,
    });
    const type = "sideways" as TransferType;
    const wrong = store.commit(lease, (tx) => tx.putTransfer(sampleTransfer(tree, worker, 3, { type })));
    await assert.rejects(wrong, twice);
    assert.equal(await store.read((view) => view.transfer(sampleId("xfr", 3))), undefined);
  },

  "keeps the provider threads of a thread, oldest first": async ({ store, lease, tree, root, worker }) => {
    const [one, two] = [sampleProviderThread(tree, worker, 1), sampleProviderThread(tree, worker, 2)];
    const changed = { ...one, status: "idle", nativeRunOrdinals: [[1, 3]], updatedAt: 2 } as const;
    await store.commit(lease, (tx) => {
      for (const record of [one, two, sampleProviderThread(tree, root, 3)]) tx.putProviderThread(record);
      tx.putProviderThread(changed);
    });
    await store.read((view) => {
      assert.deepEqual(view.providerThreadsOf(worker), [changed, two]);
      assert.deepEqual(view.providerThread(two.id), two);
      assert.deepEqual(
        [view.providerThread(sampleId("pth", 4)), view.providerThreadsOf(sampleId("thread", "nobody"))],
        [undefined, []],
      );
    });
  },

  "writes a snapshot and a compaction once, and never again": async ({ store, lease, root, worker }) => {
    const snapshot = sampleSnapshot(worker, 1);
    const compaction = sampleCompaction(worker, 1);
    await store.commit(lease, (tx) => {
      tx.putSnapshot(snapshot);
      tx.putCompaction(compaction);
      tx.putSnapshot(sampleSnapshot(root, 1));
      tx.putCompaction(sampleCompaction(root, 1));
    });
    const again = [
      store.commit(lease, (tx) => tx.putSnapshot({ ...snapshot, objective: "another" })),
      store.commit(lease, (tx) => tx.putCompaction({ ...compaction, droppedCount: 7 })),
      // Not even within one plan, nor unchanged.
      store.commit(lease, (tx) => {
        tx.putSnapshot(sampleSnapshot(worker, 2));
        tx.putSnapshot(sampleSnapshot(worker, 2));
      }),
    ];
    for (const commit of again) await assert.rejects(commit, twice);
    await store.read((view) => {
      assert.deepEqual(view.snapshot(worker, 1), snapshot);
      assert.deepEqual([view.snapshot(worker, 2), view.snapshot(worker, 0)], [undefined, undefined]);
      assert.deepEqual(view.compactions(worker, EVERYTHING).rows, [compaction]);
    });
    await store.commit(lease, (tx) => tx.putSnapshot(sampleSnapshot(worker, 2)));
    assert.equal((await store.read((view) => view.snapshot(worker, 2)))?.revision, 2);
  },

  "adds a history entry once, by its id": async ({ store, lease, root, worker }) => {
    const [one, two] = [sampleHistoryEntry(worker, 1), sampleHistoryEntry(worker, 2)];
    const added = await store.commit(lease, (tx) => [
      tx.addHistory(one),
      tx.addHistory(two),
      tx.addHistory({ ...one, sequence: 3, digest: "another" }),
      // Ids and sequences are a thread's own.
      tx.addHistory({ ...one, threadId: root }),
    ]);
    assert.deepEqual(added, [true, true, false, true]);
    assert.equal(await store.commit(lease, (tx) => tx.addHistory({ ...two, sequence: 3 })), false);
    await assert.rejects(
      store.commit(lease, (tx) => tx.addHistory({ ...two, id: "another" })),
      { code: "INVARIANT_BROKEN" },
    );
    await store.read((view) => {
      assert.deepEqual(view.history(worker, EVERYTHING).rows, [one, two]);
      assert.deepEqual(view.historyEntry(worker, two.id), two);
      assert.equal(view.historyEntry(worker, "another"), undefined);
      assert.equal(view.historyEntry(root, two.id), undefined);
      assert.equal(view.history(root, EVERYTHING).rows.length, 1);
    });
  },

  "finds a conversation by its name, wherever it is, as it is called now": async (world) => {
    const { store, lease, tree, root, worker } = world;
    const named = (nativeId: string, driver = "d") => ({ driver, nativeId, strength: "strong" }) as const;
    const [one, two, three] = [root, worker, worker].map((id, at) =>
      sampleProviderThread(tree, id, at, { nativeThreadRef: at === 2 ? named("a", "other") : named("a") }),
    ) as [ProviderThreadRecord, ProviderThreadRecord, ProviderThreadRecord];
    const moved = { ...two, nativeThreadRef: named("b") };
    await store.commit(lease, (tx) => [one, two, three].forEach((record) => tx.putProviderThread(record)));
    assert.deepEqual(await store.read((view) => view.providerThreadsNamed("d", "a")), [one, two]);
    await store.commit(lease, (tx) => tx.putProviderThread(moved));
    await store.read((view) => {
      assert.deepEqual(view.providerThreadsNamed("d", "a"), [one]);
      assert.deepEqual(view.providerThreadsNamed("d", "b"), [moved]);
      assert.deepEqual(view.providerThreadsNamed("other", "a"), [three]);
      assert.deepEqual(view.providerThreadsNamed("d", "nothing"), []);
    });
  },

  "tells the forks in doubt, and when one was last taken of a thread": async (world) => {
    const { store, lease, tree, root, worker } = world;
    const intent = { id: sampleId("int", 1), at: 2 };
    const fork = sampleTransfer(tree, worker, 1, {
      type: "fork",
      sourceThreadId: root,
      createdAt: 9,
      intent,
    });
    const others = [
      sampleTransfer(tree, worker, 2, { type: "subagent_spawn", sourceThreadId: root, createdAt: 7 }),
      sampleTransfer(tree, worker, 3, { type: "merge_back", sourceThreadId: root, createdAt: 20 }),
      sampleTransfer(tree, root, 4, { type: "fork", sourceThreadId: worker, createdAt: 5.5 }),
    ];
    await store.commit(lease, (tx) => [fork, ...others].forEach((record) => tx.putTransfer(record)));
    await store.read((view) => {
      assert.deepEqual(view.forksInDoubt(), [fork]);
      const last = [root, worker, sampleId("thread", "nobody")].map((id) => view.lastTakenOf(id));
      assert.deepEqual(last, [9, 5.5, null]);
    });
    await store.commit(lease, (tx) => tx.putTransfer({ ...fork, intent: null }));
    assert.deepEqual(await store.read((view) => view.forksInDoubt()), []);
  },

  "tells the worst that was collected of a thread": async ({ store, lease, tree, root, worker }) => {
    const run = (n: number, level: HistoryLevel | null) =>
      sampleRun(tree, worker, n, {
        ordinal: n,
        history: level === null ? null : { level, skipped: 0, entries: 1, cursor: null },
      });
    const worst = (id = worker) => store.read((view) => view.worstHistory(id));
    await store.commit(lease, (tx) => tx.putRun(run(1, null)));
    assert.equal(await worst(), null);
    await store.commit(lease, (tx) =>
      [run(2, "complete"), run(3, "final-only")].forEach((one) => tx.putRun(one)),
    );
    assert.deepEqual([await worst(), await worst(root)], ["final-only", null]);
    await store.commit(lease, (tx) => tx.putRun(run(3, "partial")));
    assert.equal(await worst(), "partial");
  },

  "keeps the draft of a fork until it is cleared": async ({ store, lease, root, worker }) => {
    await store.commit(lease, (tx) => tx.putDraft(sampleDraft(worker)));
    await store.commit(lease, (tx) => tx.putDraft({ ...tx.draft(worker)!, clearedAt: 2 }));
    await store.read((view) => {
      assert.deepEqual(view.draft(worker), sampleDraft(worker, { clearedAt: 2 }));
      assert.equal(view.draft(root), undefined);
    });
  },

  "keeps nothing of threads from a plan that throws": async ({ store, lease, tree, root, worker }) => {
    const write = (tx: StoreTx): void => {
      putRoot(tx, "gone", { workspace: "/one" });
      tx.putRun(sampleRun(tree, worker, 1));
      tx.putTransfer(sampleTransfer(tree, worker, 1));
      tx.putHandoff(sampleHandoff(tree, worker, 1));
      tx.putProviderThread(sampleProviderThread(tree, worker, 1));
      tx.putSnapshot(sampleSnapshot(worker, 1));
      tx.putCompaction(sampleCompaction(worker, 1));
      tx.addHistory(sampleHistoryEntry(worker, 1));
      tx.putDraft(sampleDraft(worker));
    };
    const picture = (view: StoreView) => ({
      threads: threadIds(view.threads({}, EVERYTHING).rows),
      inOne: view.threads({ workspace: "/one" }, EVERYTHING).rows.length,
      descendants: view.descendants(sampleId("thread", "gone"), EVERYTHING).rows.length,
      run: view.runAt(worker, 1)?.id,
      transfers: view.transfersOf(root, EVERYTHING).rows.length,
      handoffs: view.handoffsOf(worker, EVERYTHING).rows.length,
      provider: view.providerThreadsOf(worker).length,
      snapshot: view.snapshot(worker, 1)?.revision,
      compactions: view.compactions(worker, EVERYTHING).rows.length,
      history: view.history(worker, EVERYTHING).rows.length,
      entry: view.historyEntry(worker, sampleHistoryEntry(worker, 1).id)?.sequence,
      draft: view.draft(worker)?.text,
    });
    const before = await store.read(picture);
    const doomed = store.commit(lease, (tx) => {
      write(tx);
      assert.notDeepEqual(picture(tx), before);
      throw new Error("on purpose");
    });
    // Beside another of the same tick, so that it is undone alone.
    const beside = store.commit(lease, (tx) => tx.putDraft(sampleDraft(root)));
    await assert.rejects(doomed, /on purpose/);
    await beside;
    assert.deepEqual(await store.read(picture), before);
    assert.equal((await store.read((view) => view.draft(root)))?.text, "draft");
    // What was undone is not taken for written.
    await store.commit(lease, write);
    assert.deepEqual(await store.read(picture), {
      threads: [sampleId("thread", "gone"), root],
      inOne: 1,
      descendants: 1,
      run: sampleId("run", 1),
      transfers: 1,
      handoffs: 1,
      provider: 1,
      snapshot: 1,
      compactions: 1,
      history: 1,
      entry: 1,
      draft: "draft",
    });
  },
} satisfies Record<string, StoreCase>;
