/** What a store guarantees about ownership and commits: one owner, all or nothing, no wake-up lost. */
import assert from "node:assert/strict";
import type { StoreTx } from "../store/port.ts";
import type { StoreCase } from "./store-cases-mail.ts";
import { nextAgent, sampleCommand, sampleId, sampleOwner, sampleRun } from "./store-records.ts";
import { claimTree, LEASE_MS, openTree } from "./store-harness.ts";

const nobodyDead = (): boolean => false;

export const ownershipCases = {
  "lets one owner hold a tree, and names it to others": async ({ store, tree, clock }) => {
    await assert.rejects(claimTree(store, tree, 2), (error: { code: string; details: unknown }) => {
      assert.equal(error.code, "NOT_OWNER");
      assert.deepEqual(error.details, {
        treeId: tree,
        owner: sampleOwner(1),
        epoch: 1,
        expiresAt: clock.now() + LEASE_MS,
      });
      return true;
    });
    assert.deepEqual(await store.read((view) => view.lease(tree)), {
      epoch: 1,
      owner: sampleOwner(1),
      expiresAt: clock.now() + LEASE_MS,
      live: true,
    });
  },

  "takes a tree over when its lease has run out, and fences the former owner": async (world) => {
    const { store, tree, clock, lease } = world;
    clock.set(clock.now() + LEASE_MS);
    assert.equal((await store.read((view) => view.lease(tree)))?.live, false);
    // Run out, but nobody else came: its owner may still commit.
    await store.commit(lease, (tx) => tx.putTree({ ...tx.tree(tree)!, title: "mine" }));
    const next = await claimTree(store, tree, 2);
    assert.equal(next.epoch, 2);
    await assert.rejects(
      store.commit(lease, (tx) => tx.putTree({ ...tx.tree(tree)!, title: "late" })),
      { code: "FENCED" },
    );
    assert.deepEqual(await store.heartbeat([lease, next], LEASE_MS), [
      { ...next, expiresAt: clock.now() + LEASE_MS },
    ]);
    await assert.rejects(store.release(lease), { code: "FENCED" });
    assert.equal((await store.read((view) => view.tree(tree)))?.title, "mine");
    assert.equal((await store.read((view) => view.lease(tree)))?.owner.pid, 2);
  },

  "takes a tree over whose lease lies absurdly far ahead, as after the clock was set back": async (world) => {
    const { store, tree, clock, lease } = world;
    await store.commit(lease, (tx) => tx.putRun(sampleRun(tree, world.root, 1)));
    const start = clock.now();
    const claimable = () => store.claimable(10, nobodyDead);
    // Some difference between clocks is borne, and a living owner renews by the clock as it is now.
    clock.set(start - 59 * LEASE_MS);
    assert.deepEqual(await claimable(), []);
    await assert.rejects(claimTree(store, tree, 2), { code: "NOT_OWNER" });
    const [renewed] = await store.heartbeat([lease], LEASE_MS);
    assert.equal(renewed?.expiresAt, clock.now() + LEASE_MS);
    clock.set(clock.now() - 59 * LEASE_MS - 1);
    assert.equal((await store.read((view) => view.lease(tree)))?.live, false);
    assert.deepEqual(await claimable(), [tree]);
    const next = await claimTree(store, tree, 2);
    assert.deepEqual([next.epoch, next.expiresAt], [2, clock.now() + LEASE_MS]);
    await assert.rejects(
      store.commit(lease, () => 0),
      { code: "FENCED" },
    );
  },

  "takes over at once from an owner that is proved dead": async ({ store, tree, lease }) => {
    await claimTree(store, tree, 2, [1]);
    await assert.rejects(
      store.commit(lease, () => 0),
      { code: "FENCED" },
    );
  },

  "renews a lease": async ({ store, tree, clock, lease }) => {
    clock.set(clock.now() + LEASE_MS - 1);
    await store.heartbeat([lease], LEASE_MS);
    clock.set(clock.now() + LEASE_MS - 1);
    await assert.rejects(claimTree(store, tree, 2), { code: "NOT_OWNER" });
    await store.commit(lease, () => 0);
  },

  "gives a tree back, and nothing can be written with what was given back": async ({
    store,
    tree,
    lease,
  }) => {
    assert.equal(await store.release(lease), "released");
    await assert.rejects(
      store.commit(lease, () => 0),
      { code: "FENCED" },
    );
    assert.equal((await claimTree(store, tree, 2)).epoch, 2);
  },

  "keeps a tree while trigger-turn mail or a command waits": async (world) => {
    const { store, tree, lease } = world;
    await world.send(world.mail(1));
    await world.send(world.mail(2, { trigger: true }));
    assert.equal(await store.release(lease), "kept");
    await store.commit(lease, (tx) => tx.putMail({ ...tx.mail(sampleId("msg", 2))!, state: "settled" }));
    await store.command(sampleCommand(tree, 1));
    assert.equal(await store.release(lease), "kept");
    await store.commit(lease, (tx) => tx.putCommand(sampleCommand(tree, 1, { state: "done", doneAt: 2 })));
    assert.deepEqual(await store.claimable(9, nobodyDead), []);
    assert.equal(await store.release(lease), "released");
    // Queue-only mail is still there and wakes nobody.
    assert.deepEqual(await store.claimable(9, nobodyDead), []);
  },

  "loses no wake-up between a sender and an owner that gives the tree back": async (world) => {
    const { store, tree, lease } = world;
    const [sent, released] = await Promise.all([
      world.send(world.mail(1, { trigger: true })),
      store.release(lease),
    ]);
    assert.deepEqual([sent[0]?.kind, released], ["accepted", "kept"]);
    await store.commit(lease, (tx) => tx.putMail({ ...tx.mail(sampleId("msg", 1))!, state: "settled" }));
    const [gone, late] = await Promise.all([
      store.release(lease),
      world.send(world.mail(2, { trigger: true })),
    ]);
    assert.deepEqual([gone, late[0]?.kind], ["released", "accepted"]);
    assert.deepEqual(await store.claimable(9, nobodyDead), [tree]);
  },

  "offers trees that have something to do and no live owner": async (world) => {
    const { store, tree, lease, root, clock } = world;
    const idle = sampleId("thread", "idle");
    await openTree(store, idle);
    await world.send(world.mail(1, { trigger: true }));
    assert.deepEqual(await store.claimable(9, nobodyDead), []);
    assert.deepEqual(await store.claimable(9, ({ pid }) => pid === 1), [tree]);
    assert.equal(await store.release(lease, { abandon: true }), "released");
    assert.deepEqual(await store.claimable(9, nobodyDead), [tree]);
    const next = await claimTree(store, tree, 2);
    assert.deepEqual(await store.claimable(9, nobodyDead), []);
    await store.commit(next, (tx) => {
      tx.putMail({ ...tx.mail(sampleId("msg", 1))!, state: "settled" });
      tx.putRun(sampleRun(tree, root, 1, { status: "running" }));
    });
    clock.set(clock.now() + LEASE_MS);
    assert.deepEqual(await store.claimable(9, nobodyDead), [tree]);
    await store.command(sampleCommand(idle, 1));
    assert.deepEqual((await store.claimable(9, nobodyDead)).toSorted(), [idle, tree].toSorted());
    assert.equal((await store.claimable(1, nobodyDead)).length, 1);
  },

  "stores all of a plan or nothing": async (world) => {
    const { store, lease, tree, worker } = world;
    const half = (tx: StoreTx): void => {
      tx.putTree({ ...tx.tree(tree)!, title: "half" });
      tx.putAgent(nextAgent(tx.agent(worker)!, { state: "closed" }));
      tx.appendMail(world.mail(1));
      tx.reserveMailbox(worker, 1, 1);
      tx.putRun(sampleRun(tree, worker, 1));
      tx.appendItems(worker, 0, [{ kind: "context", topic: "role", text: "t", runId: null, step: 0, at: 1 }]);
      tx.appendEvent(tree, sampleId("evt", 1), 1, event("run.settled"));
    };
    const before = await snapshot(world);
    const [failed, beside] = await Promise.allSettled([
      store.commit(lease, (tx) => {
        half(tx);
        assert.deepEqual(
          [tx.tree(tree)?.title, tx.mailbox(worker).unread, tx.lastEvent(tree)],
          ["half", 1, 1],
        );
        throw new Error("on purpose");
      }),
      store.commit(lease, (tx) => tx.tree(tree)?.title),
    ]);
    assert.equal((failed as PromiseRejectedResult).reason.message, "on purpose");
    assert.deepEqual(beside, { status: "fulfilled", value: null });
    assert.deepEqual(await snapshot(world), before);
    await store.commit(lease, half);
    assert.notDeepEqual(await snapshot(world), before);
  },

  "isolates a plan that throws from its group": async (world) => {
    const { store, lease, tree } = world;
    const outcomes = await Promise.allSettled([
      store.commit(lease, (tx) => tx.appendEvent(tree, sampleId("evt", 1), 1, event("run.reserved")).seq),
      store.commit(lease, (tx) => {
        tx.appendEvent(tree, sampleId("evt", 2), 1, event("run.accepted"));
        tx.appendMail(world.mail(1));
        throw new Error("on purpose");
      }),
      world.send(world.mail(2)),
      store.commit(lease, (tx) => tx.appendEvent(tree, sampleId("evt", 3), 1, event("run.settled")).seq),
    ]);
    assert.deepEqual(
      outcomes.map((one) => (one.status === "fulfilled" ? one.value : "failed")).filter(Number),
      [1, 2],
    );
    const types = await store.read((view) => view.events(tree, 0, 9).map(({ type }) => type));
    assert.deepEqual(types, ["run.reserved", "run.settled"]);
    assert.deepEqual(
      (await store.read((view) => view.mailOf(world.worker, { limit: 9 }))).rows.map(({ seq }) => seq),
      [1],
    );
  },

  "undoes a plan that only reserved room": async ({ store, lease, worker }) => {
    const reserve = (messages: number, doomed: boolean): Promise<void> =>
      store.commit(lease, (tx) => {
        tx.reserveMailbox(worker, messages, messages);
        if (doomed) throw new Error("on purpose");
      });
    await Promise.allSettled([reserve(1, false), reserve(2, true), reserve(4, false), reserve(8, true)]);
    const box = await store.read((view) => view.mailbox(worker));
    assert.deepEqual([box.reservedMessages, box.reservedBytes], [5, 5]);
  },

  "refuses writes outside of a plan, and plans that wait": async ({ store, lease, tree }) => {
    let kept: StoreTx | undefined;
    await store.commit(lease, (tx) => {
      kept = tx;
    });
    assert.throws(() => kept!.putTree({ ...kept!.tree(tree)!, title: "late" }), { code: "INVARIANT_BROKEN" });
    await assert.rejects(
      store.commit(lease, async () => 0),
      { code: "INVARIANT_BROKEN" },
    );
    assert.equal((await store.read((view) => view.tree(tree)))?.title, null);
  },

  "keeps a command once, whoever sends it again": async ({ store, tree, lease }) => {
    await Promise.all([store.command(sampleCommand(tree, 1)), store.command(sampleCommand(tree, 1))]);
    assert.equal((await store.read((rows) => rows.pendingCommands(tree))).length, 1);
    await store.commit(lease, (tx) =>
      tx.putCommand({ ...tx.command(sampleId("cmd", 1))!, state: "done", answer: 7 }),
    );
    await store.command(sampleCommand(tree, 1));
    assert.deepEqual(await store.read((rows) => rows.pendingCommands(tree)), []);
    assert.equal((await store.read((rows) => rows.command(sampleId("cmd", 1))))?.answer, 7);
  },

  "keeps commands for the owner": async ({ store, tree, lease }) => {
    const before = await store.changes();
    await store.command(sampleCommand(tree, 1));
    await store.command(sampleCommand(tree, 2));
    assert.notEqual(await store.changes(), before);
    await store.commit(lease, (tx) =>
      tx.putCommand({ ...tx.command(sampleId("cmd", 1))!, state: "done", answer: 7 }),
    );
    const view = await store.read((rows) => [
      rows.pendingCommands(tree).map(({ id }) => id),
      rows.command(sampleId("cmd", 1))?.answer,
    ]);
    assert.deepEqual(view, [[sampleId("cmd", 2)], 7]);
    const withInbox = () => store.read((rows) => rows.withInbox([sampleId("thread", "other"), tree]));
    assert.deepEqual(await withInbox(), [tree]);
    await store.commit(lease, (tx) =>
      tx.putCommand({ ...tx.command(sampleId("cmd", 2))!, state: "done", answer: 7 }),
    );
    assert.deepEqual(await withInbox(), []);
  },
} satisfies Record<string, StoreCase>;

function event(type: "run.reserved" | "run.accepted" | "run.settled") {
  return { type, path: null, threadId: null, runId: null, workId: null, data: {} } as const;
}

function snapshot({ store, tree, worker }: Parameters<StoreCase>[0]): Promise<unknown> {
  return store.read((view) => [
    view.tree(tree),
    view.agent(worker),
    view.mailbox(worker),
    view.mailOf(worker, { limit: 9 }),
    view.openRuns(tree),
    view.items(worker, 0, 9),
    view.lastEvent(tree),
  ]);
}
