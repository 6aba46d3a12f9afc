/** What a store guarantees about reads of waits and questions. */
import assert from "node:assert/strict";
import type { StoreCase } from "./store-cases-mail.ts";
import { sampleId, sampleRequest, sampleRun, sampleWait } from "./store-records.ts";

export const waitCases = {
  "finds open waits for threads of other trees": async ({ store, lease, tree, worker }) => {
    const threads = [sampleId("thread", "elsewhere")];
    const [first, second] = [1, 3].map((n) => sampleWait(tree, worker, n, { threads }));
    await store.commit(lease, (tx) => {
      for (const wait of [first!, sampleWait(tree, worker, 2), second!]) tx.putWait(wait);
    });
    const open = () => store.read((view) => ids(view.openThreadWaits(tree)));
    assert.deepEqual(await open(), [first!.id, second!.id]);
    await store.commit(lease, (tx) => tx.putWait({ ...first!, end: "settled", endedAt: 2 }));
    assert.deepEqual(await open(), [second!.id]);
  },

  "finds runs, waits and requests while they are open": async ({ store, lease, tree, worker }) => {
    const work = sampleId("wrk", 1);
    const [soon, late] = [
      sampleWait(tree, worker, 1, { deadlineAt: 50, works: [work], runId: sampleId("run", 1) }),
      sampleWait(tree, worker, 2, { deadlineAt: 90.5, runId: sampleId("run", 1) }),
    ];
    await store.commit(lease, (tx) => {
      tx.putRun(sampleRun(tree, worker, 1));
      tx.putRun(sampleRun(tree, worker, 2, { status: "completed" }));
      tx.putWait(late);
      tx.putWait(soon);
      tx.putRequest(sampleRequest(tree, worker, 1));
    });
    await store.read((view) => {
      assert.deepEqual(ids(view.openRuns(tree)), [sampleId("run", 1)]);
      assert.deepEqual(
        [ids(view.openWaitsOf(worker)), ids(view.openWaitsOn(work))],
        [[late.id, soon.id], [soon.id]],
      );
      assert.deepEqual(
        [
          view.nextDeadline(tree),
          ...[
            [50, 9],
            [99, 9],
            [99, 1],
          ].map(([at, most]) => ids(view.dueWaits(tree, at!, most!))),
        ],
        [50, [soon.id], [soon.id, late.id], [soon.id]],
      );
      assert.deepEqual(ids(view.openRequestsOf(worker)), [sampleId("req", 1)]);
    });
    await assert.rejects(
      store.commit(lease, (tx) => {
        tx.putWait({ ...tx.wait(soon.id)!, end: "settled", endedAt: 2 });
        assert.equal(tx.nextDeadline(tree), 90.5);
        throw new Error("on purpose");
      }),
    );
    assert.equal(await store.read((view) => view.nextDeadline(tree)), 50);
    await store.commit(lease, (tx) => {
      tx.putWait({ ...tx.wait(soon.id)!, end: "settled", endedAt: 2 });
      tx.putRequest({ ...tx.request(sampleId("req", 1))!, status: "resolved", answer: "a" });
    });
    await store.read((view) => {
      assert.deepEqual([ids(view.openWaitsOn(work)), view.nextDeadline(tree)], [[], 90.5]);
      assert.deepEqual(ids(view.waitsOfRun(sampleId("run", 1))), [late.id, soon.id]);
      assert.deepEqual([ids(view.openRequestsOf(worker)), view.wait(soon.id)?.end], [[], "settled"]);
    });
  },

  "refuses a question that another run has asked": async ({ store, lease, tree, worker }) => {
    const asked = sampleRequest(tree, worker, 1);
    await store.commit(lease, (tx) => tx.putRequest(asked));
    await assert.rejects(
      store.commit(lease, (tx) => tx.putRequest({ ...asked, runId: sampleId("run", 2), text: "another" })),
      { code: "THREAD_INVARIANT_VIOLATION" },
    );
    assert.deepEqual(await store.read((view) => view.request(asked.id)), asked);
  },
} satisfies Record<string, StoreCase>;

function ids(records: readonly { readonly id: string }[]): string[] {
  return records.map(({ id }) => id);
}
