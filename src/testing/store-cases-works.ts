/** What a store guarantees about reads of works. */
import assert from "node:assert/strict";
import type { WorkRecord } from "../protocol/work.ts";
import type { StoreCase } from "./store-cases-mail.ts";
import { WORKER_PATH } from "./store-harness.ts";
import { sampleId, sampleWork } from "./store-records.ts";

export const workCases = {
  "finds works by executor, requester and parent": async ({ store, lease, tree, root, worker }) => {
    const asked = { requester: { kind: "agent", threadId: root, path: "/root" } } as const;
    const [one, two, three] = [
      sampleWork(tree, worker, 1, asked),
      sampleWork(tree, worker, 2),
      sampleWork(tree, root, 3, { parents: [sampleId("wrk", 1), sampleId("wrk", 2)] }),
    ];
    await store.commit(lease, (tx) => [one, two, three].forEach((work) => tx.putWork(work)));
    await store.commit(lease, (tx) => tx.putWork({ ...tx.work(two.id)!, state: "ended" }));
    await store.commit(lease, (tx) => tx.putWork({ ...tx.work(one.id)!, state: "running" }));
    await store.read((view) => {
      assert.deepEqual(ids(view.openWorksOf(worker)), [one.id]);
      assert.deepEqual(ids(view.openWorksAskedBy(root)), [one.id]);
      assert.deepEqual(
        [view.latestWork(worker)?.id, view.latestWork(worker, root)?.id, view.latestWork(root, worker)],
        [two.id, one.id, undefined],
      );
      assert.deepEqual([ids(view.worksUnder(one.id)), ids(view.worksUnder(three.id))], [[three.id], []]);
      assert.equal(view.work(one.id)?.state, "running");
    });
  },

  "finds results that are on their way and among nobody's unread mail": async (world) => {
    const { store, lease, tree, root, worker, subject } = world;
    const requester = { kind: "agent", threadId: worker, path: WORKER_PATH } as const;
    const ended = { requester, state: "ended", resultPending: true } as const;
    const works = [1, 2, 3, 4].map((n) =>
      sampleWork(tree, root, n, { ...ended, resultMailId: sampleId("msg", n) }),
    );
    const [there, gone, dead, had] = works as [WorkRecord, WorkRecord, WorkRecord, WorkRecord];
    await store.commit(lease, (tx) => {
      for (const n of [1, 3]) tx.appendMail(world.mail(n, { resultOf: sampleId("wrk", n) }));
      for (const work of works) tx.putWork(work);
      tx.putWork({ ...had, resultPending: false });
      tx.putWork(sampleWork(tree, root, 5, { ...ended, requester: { ...requester, threadId: root } }));
    });
    const stranded = () => store.read((view) => ids(view.strandedResults(worker)));
    assert.deepEqual(await stranded(), [gone.id]);
    await store.commit(lease, (tx) =>
      tx.putMail({ ...tx.mail(dead.resultMailId!)!, state: "dead_lettered" }),
    );
    assert.deepEqual(await stranded(), [gone.id, dead.id]);
    await store.commit(lease, (tx) => tx.putWork({ ...gone, resultMailId: there.resultMailId }));
    assert.deepEqual(await stranded(), [dead.id]);
    await subject.damageRow("works", dead.id);
    assert.deepEqual(await stranded(), []);
  },

  "says when the oldest open work below a path was begun": async ({ store, lease, tree, root, worker }) => {
    const at = { executorPath: "/root/worker" } as const;
    await store.commit(lease, (tx) => {
      tx.putWork(sampleWork(tree, root, 1));
      tx.putWork(sampleWork(tree, worker, 2, { ...at, begunAt: 70 }));
      tx.putWork(sampleWork(tree, worker, 3, at));
    });
    const oldest = () =>
      store.read((view) =>
        (["/root", "/root/worker", "/root/work"] as const).map((path) => view.oldestBegun(tree, path)),
      );
    assert.deepEqual(await oldest(), [70, 70, null]);
    await store.commit(lease, (tx) => {
      tx.putWork({ ...tx.work(sampleId("wrk", 1))!, begunAt: 50 });
      tx.putWork({ ...tx.work(sampleId("wrk", 3))!, begunAt: 60 });
    });
    assert.deepEqual(await oldest(), [50, 60, null]);
    await store.commit(lease, (tx) => {
      for (const n of [1, 3]) tx.putWork({ ...tx.work(sampleId("wrk", n))!, state: "ended" });
    });
    assert.deepEqual(await oldest(), [70, 70, null]);
  },
} satisfies Record<string, StoreCase>;

function ids(records: readonly { readonly id: string }[]): string[] {
  return records.map(({ id }) => id);
}
