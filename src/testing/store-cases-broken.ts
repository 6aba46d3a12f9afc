/** What a store says of rows that cannot be read, and how another record comes to stand in for one (REC-1). */
import assert from "node:assert/strict";
import type { MendableTable, StoreTx, StoreView } from "../store/port.ts";
import type { StoreCase } from "./store-cases-mail.ts";
import { NO_USAGE } from "../protocol/usage.ts";
import {
  sampleAgent,
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
    const names = (view: StoreView) => view.openRows(tree);
    assert.deepEqual(await store.read(names), [
      { table: "runs", id: run, threadId: worker },
      { table: "waits", id: wait, threadId: worker },
      { table: "requests", id: request, threadId: worker },
      { table: "commands", id: command.id, threadId: tree },
    ]);
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
      { table: "runs", threadId: worker, open: true },
      { table: "waits", threadId: worker, runId: run, open: true },
      { table: "requests", threadId: worker, open: true },
      { table: "runs", threadId: worker, open: false },
      { table: "commands", threadId: tree, open: true },
    ]);
    await store.read((view) => {
      assert.deepEqual([view.openRuns(tree), view.openRows(tree)], [[], []]);
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

  "leaves out and names works and agents that cannot be read, and counts them, until others stand in": async (
    world,
  ) => {
    const { store, lease, tree, worker, subject } = world;
    const child = sampleId("thread", "child");
    const usage = { ...NO_USAGE, inputTokens: 3, outputTokens: 4, cost: null, complete: false };
    const broken = sampleAgent(tree, child, "/root/worker/child", { parent: worker, usage, state: "open" });
    const top = sampleWork(tree, worker, 1);
    const asked = sampleWork(tree, worker, 2, {
      requester: { kind: "agent", threadId: tree, path: "/root" },
      parents: [top.id],
      begunAt: 7,
    });
    const ended = sampleWork(tree, worker, 3, { state: "ended", begunAt: 5, parents: [top.id] });
    await store.commit(lease, (tx) => {
      tx.putAgent(broken);
      for (const work of [top, asked, ended]) tx.putWork(work);
    });
    const below = await store.read((view) => view.usageUnder(tree, "/root"));
    await subject.damageRow("agents", child);
    for (const { id } of [asked, ended]) await subject.damageRow("works", id);

    const page = { limit: 2 };
    const corrupt = (table: MendableTable, id: string) => ({
      code: "STORE_CORRUPT",
      details: { path: store.name, table, id },
    });
    await store.read((view) => {
      const first = view.works(tree, page);
      assert.deepEqual(first, { rows: [top], unreadable: [asked.id], next: asked.id });
      assert.deepEqual(view.works(tree, { ...page, after: first.next }), {
        rows: [],
        unreadable: [ended.id],
        next: null,
      });
      assert.deepEqual(view.worksUnder(top.id), []);
      assert.equal(view.oldestBegun(tree, "/root"), 7);
      const agents = view.agents(tree, "/root/worker", page);
      assert.deepEqual([agents.rows.length, agents.unreadable, agents.next], [1, [broken.path], null]);
      const one = view.agents(tree, "/root/worker", { limit: 1 });
      assert.deepEqual(view.agents(tree, "/root/worker", { limit: 1, after: one.next }), {
        rows: [],
        unreadable: [broken.path],
        next: null,
      });
      assert.deepEqual(view.childrenOf(worker, page), { rows: [], unreadable: [child], next: null });
      assert.equal(view.openChildren(worker), 1);
      assert.deepEqual(view.usageUnder(tree, "/root"), below);
    });
    const reads: [MendableTable, string, (view: StoreView) => unknown][] = [
      ["agents", child, (view) => view.agent(child)],
      ["agents", child, (view) => view.agentAt(tree, broken.path)],
      ["works", asked.id, (view) => view.work(asked.id)],
      ["works", asked.id, (view) => view.openWorksOf(worker)],
      ["works", asked.id, (view) => view.openWorksAskedBy(tree)],
      ["works", ended.id, (view) => view.latestWork(worker)],
    ];
    for (const [table, id, read] of reads) await assert.rejects(store.read(read), corrupt(table, id));

    const rows = await store.commit(lease, (tx) => {
      const found = [
        tx.setAside("agents", child),
        tx.setAside("works", asked.id),
        tx.setAside("works", ended.id),
        tx.setAside("works", top.id),
      ];
      tx.putAgent({ ...broken, state: "closed", revision: 9 });
      tx.putWork({ ...asked, state: "ended" });
      tx.putWork(ended);
      return found;
    });
    assert.deepEqual(rows, [
      {
        table: "agents",
        threadId: child,
        open: true,
        agent: {
          treeId: tree,
          path: broken.path,
          parent: worker,
          state: "open",
          workspace: null,
          lineage: null,
          usage,
        },
      },
      {
        table: "works",
        threadId: worker,
        open: true,
        work: { requester: tree, parents: [top.id], begunAt: 7 },
      },
      {
        table: "works",
        threadId: worker,
        open: false,
        work: { requester: null, parents: [top.id], begunAt: null },
      },
      undefined,
    ]);
    await store.read((view) => {
      assert.equal(view.agentAt(tree, broken.path)?.state, "closed");
      assert.equal(view.openChildren(worker), 0);
      assert.deepEqual(view.usageUnder(tree, "/root"), below);
      assert.deepEqual(
        view.worksUnder(top.id).map(({ id }) => id),
        [asked.id, ended.id],
      );
      assert.deepEqual(view.openWorksAskedBy(tree), []);
      assert.equal(view.oldestBegun(tree, "/root"), null);
      assert.equal(view.works(tree, { limit: 9 }).unreadable, undefined);
    });
  },
} satisfies Record<string, StoreCase>;
