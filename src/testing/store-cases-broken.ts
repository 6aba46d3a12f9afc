/** What a store says of rows that cannot be read, and how another record comes to stand in for one (REC-1). */
import assert from "node:assert/strict";
import type { MendableTable, StoreTx, StoreView } from "../store/port.ts";
import type { StoreCase } from "./store-cases-mail.ts";
import {
  sampleCommand,
  sampleId,
  sampleRequest,
  sampleRun,
  sampleWait,
  sampleWork,
} from "./store-records.ts";

export const brokenCases = {
  "names a row that cannot be read, sets it aside, and has another stand in for it": async (world) => {
    const { store, lease, tree, worker, subject } = world;
    const [run, wait, request] = [sampleId("run", 1), sampleId("wait", 1), sampleId("req", 1)] as const;
    const command = sampleCommand(tree, 1);
    await store.command(command);
    const asked = sampleWork(tree, worker, 1);
    const of = { threadId: worker, runId: run };
    await store.commit(lease, (tx) => {
      tx.putWork(asked);
      tx.putRun(sampleRun(tree, worker, 1, { status: "waiting" }));
      tx.putRun(sampleRun(tree, worker, 2, { status: "completed" }));
      tx.putWait(sampleWait(tree, worker, 1, { runId: run, works: [asked.id] }));
      tx.putRequest(sampleRequest(tree, worker, 1, { runId: run }));
    });
    const reads: [MendableTable, string, (view: StoreView) => unknown][] = [
      ["runs", run, (view) => view.openRuns(tree)],
      ["runs", run, (view) => view.run(run)],
      ["waits", wait, (view) => view.openWaitsOf(worker)],
      ["waits", wait, (view) => view.openWaitsOn(asked.id)],
      ["requests", request, (view) => view.openRequestsOf(worker)],
      ["commands", command.id, (view) => view.pendingCommands(tree)],
      ["commands", command.id, (view) => view.command(command.id)],
      ["runs", sampleId("run", 2), (view) => view.run(sampleId("run", 2))],
    ];
    assert.equal(await store.commit(lease, (tx) => tx.setAside("runs", run)), undefined);
    assert.equal(await store.commit(lease, (tx) => tx.setAside("runs", "run_none")), undefined);
    for (const [table, id, read] of reads) {
      await subject.damageRow(table, id);
      const details = { code: "STORE_CORRUPT", details: { path: store.name, table, id } };
      await assert.rejects(store.read(read), details);
    }
    assert.equal(await store.read((view) => view.nextDeadline(tree)), 100);
    const standIns = (tx: StoreTx) => {
      const rows = [
        tx.setAside("runs", run),
        tx.setAside("waits", wait),
        tx.setAside("requests", request),
        tx.setAside("runs", sampleId("run", 2)),
        tx.setAside("commands", command.id),
      ];
      tx.putRun(sampleRun(tree, worker, 1, { status: "failed" }));
      tx.putRun(sampleRun(tree, worker, 2, { status: "failed" }));
      tx.putWait(sampleWait(tree, worker, 1, { runId: run, end: "aborted" }));
      tx.putRequest(sampleRequest(tree, worker, 1, { runId: run, status: "cancelled" }));
      tx.putCommand({ ...command, verb: null, state: "refused" });
      return rows;
    };
    // What is rolled back is as broken as before.
    await assert.rejects(
      store.commit(lease, (tx) => {
        standIns(tx);
        throw new Error("not now");
      }),
      /not now/,
    );
    await assert.rejects(
      store.read((view) => view.run(run)),
      { code: "STORE_CORRUPT" },
    );
    const rows = await store.commit(lease, standIns);
    assert.deepEqual(rows, [
      { threadId: worker, runId: null, open: true },
      { ...of, open: true },
      { threadId: worker, runId: null, open: true },
      { threadId: worker, runId: null, open: false },
      { threadId: tree, runId: null, open: true },
    ]);
    await store.read((view) => {
      assert.deepEqual(view.openRuns(tree), []);
      assert.deepEqual(
        view.runsOf(worker, { limit: 9 }).rows.map(({ id, status }) => [id, status]),
        [
          [run, "failed"],
          [sampleId("run", 2), "failed"],
        ],
      );
      assert.deepEqual(view.openWaitsOf(worker), []);
      assert.deepEqual(view.openWaitsOn(asked.id), []);
      assert.deepEqual(
        view.waitsOfRun(run).map(({ end }) => end),
        ["aborted"],
      );
      assert.equal(view.nextDeadline(tree), null);
      assert.deepEqual(view.openRequestsOf(worker), []);
      assert.equal(view.request(request)?.status, "cancelled");
      assert.deepEqual(view.pendingCommands(tree), []);
      assert.equal(view.command(command.id)?.state, "refused");
    });
  },
} satisfies Record<string, StoreCase>;
