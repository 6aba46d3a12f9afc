/** What a store guarantees about mail: durable, in order, once, bounded, readable around what is broken. */
import assert from "node:assert/strict";
import type { MailDraft, MailRecord } from "../protocol/mail.ts";
import { nextAgent, sampleAgent, sampleId } from "./store-records.ts";
import { claimTree, openTree, type World } from "./store-harness.ts";

export type StoreCase = (world: World) => Promise<void>;

const unreadOf = (world: World, afterSeq = 0, limit = 1000): Promise<readonly MailRecord[]> =>
  world.store.read((view) => view.unread(world.worker, { afterSeq, limit }));

const changed = (world: World, id: string, change: Partial<MailRecord>): Promise<void> =>
  world.store.commit(world.lease, (tx) => tx.putMail({ ...tx.mail(id as MailRecord["id"])!, ...change }));

export const mailCases = {
  "keeps what was acknowledged when it is opened again": async (world) => {
    const { subject, worker } = world;
    const [sent] = await world.send(world.mail(1));
    assert.equal(sent?.kind, "accepted");
    const store = (await subject.reopen?.()) ?? world.store;
    const mail = await store.read((view) => view.mail(sampleId("msg", 1)));
    assert.deepEqual([mail?.seq, mail?.state, mail?.content.text], [1, "accepted", "text 1"]);
    assert.equal((await store.read((view) => view.mailbox(worker))).unread, 1);
  },

  "numbers a recipient's mail without a gap, in the order of commits": async (world) => {
    const { store, lease, worker } = world;
    const seqs = await Promise.all([
      world.send(world.mail(1), world.mail(2)),
      store.commit(lease, (tx) => tx.appendMail(world.mail(3))),
      world.send(world.mail(4)),
      world.send(world.mail(1)),
      store.commit(lease, (tx) => tx.appendMail(world.mail(5))),
    ]);
    assert.equal(seqs.length, 5);
    const unread = await unreadOf(world);
    assert.deepEqual(
      unread.map(({ id, seq }) => [id, seq]),
      [1, 2, 3, 4, 5].map((n) => [sampleId("msg", n), n]),
    );
    assert.deepEqual(
      (await unreadOf(world, 3)).map(({ seq }) => seq),
      [4, 5],
    );
    assert.deepEqual(
      (await unreadOf(world, 1, 2)).map(({ seq }) => seq),
      [2, 3],
    );
    assert.equal((await store.read((view) => view.mailbox(worker))).lastSeq, 5);
  },

  "settles promises in the order of the calls": async (world) => {
    const order: number[] = [];
    const note = (n: number) => (): void => void order.push(n);
    await Promise.all([
      world.send(world.mail(1)).then(note(1)),
      world.store.commit(world.lease, () => 0).then(note(2)),
      world.store.commit(world.lease, () => assert.fail("on purpose")).catch(note(3)),
      world.send(world.mail(2)).then(note(4)),
    ]);
    assert.deepEqual(order, [1, 2, 3, 4]);
  },

  "stores an id and an author's key once, for ever": async (world) => {
    const { store, lease } = world;
    const agent = { kind: "agent", threadId: world.root, path: "/root" } as const;
    const first = world.mail(1, { key: "k", author: agent });
    await world.send(first);
    await changed(world, first.id, { state: "settled" });
    const again = await world.send(
      { ...first, content: { text: "other", bytes: 5, artifact: null } },
      world.mail(2, { key: "k", author: agent }),
      world.mail(3, { key: "k" }),
    );
    assert.deepEqual(
      again.map(({ kind }) => kind),
      ["duplicate", "duplicate", "accepted"],
    );
    assert.ok(again[1]?.kind === "duplicate");
    assert.deepEqual([again[1].mail.id, again[1].mail.state], [first.id, "settled"]);
    const stored = await store.commit(lease, (tx) =>
      tx.appendMail(world.mail(4, { key: "k", author: agent })),
    );
    assert.equal(stored.id, first.id);
  },

  "answers unknown and closed recipients, and duplicates before that": async (world) => {
    const { store, lease, tree, worker } = world;
    const stranger = sampleId("thread", "stranger");
    await world.send(world.mail(1));
    await store.commit(lease, (tx) => tx.putAgent(nextAgent(tx.agent(worker)!, { state: "closed" })));
    const results = await world.send(
      world.mail(2),
      world.mail(1),
      world.mail(3, { recipient: stranger }),
      world.mail(4, { treeId: stranger }),
    );
    assert.deepEqual(
      results.map(({ kind }) => kind),
      ["closed", "duplicate", "unknown", "unknown"],
    );
    assert.equal((await store.read((view) => view.mailOf(worker, { limit: 9 }))).rows.length, 1);
    assert.notEqual(tree, stranger);
  },

  "refuses mail over the limits and stores nothing of it": async (world) => {
    const { store, worker, lease } = world;
    await setLimits(world, 3, 30);
    const results = await world.send(
      world.mail(1, { text: "x".repeat(10) }),
      world.mail(2, { text: "x".repeat(21) }),
      world.mail(3, { text: "x".repeat(20) }),
      world.mail(4, { text: "" }),
      world.mail(5, { text: "" }),
      world.mail(1),
    );
    assert.deepEqual(
      results.map(({ kind }) => kind),
      ["accepted", "full", "accepted", "accepted", "full", "duplicate"],
    );
    assert.ok(results[4]?.kind === "full");
    assert.deepEqual(results[4].capacity, { messages: 3, bytes: 30 });
    assert.deepEqual([results[4].mailbox.unread, results[4].mailbox.unreadBytes], [3, 30]);
    assert.equal(await store.read((view) => view.mail(sampleId("msg", 5))), undefined);
    await changed(world, sampleId("msg", 1), { state: "delivered" });
    assert.deepEqual(
      (await world.send(world.mail(5, { text: "" }))).map(({ kind }) => kind),
      ["accepted"],
    );
    // The owner knows what it owes and is not bound by the limit.
    await store.commit(lease, (tx) => tx.appendMail(world.mail(6)));
    assert.equal((await store.read((view) => view.mailbox(worker))).unread, 4);
  },

  "takes one message over the limits that starts a run of an idle agent, which an empty mailbox would hold":
    async (world) => {
      const { store, lease, worker } = world;
      await setLimits(world, 2, 30);
      const trigger = true;
      const kinds = async (...drafts: readonly MailDraft[]) =>
        (await world.send(...drafts)).map(({ kind }) => kind);
      const fills = [world.mail(1, { text: "x".repeat(15) }), world.mail(2, { text: "x".repeat(15) })];
      assert.deepEqual(await kinds(...fills), ["accepted", "accepted"]);
      const starter = world.mail(3, { trigger, text: "x".repeat(30) });
      const others = [world.mail(4), world.mail(5, { trigger, text: "x".repeat(31) })];
      assert.deepEqual(await kinds(...others, starter, world.mail(6, { trigger }), starter), [
        "full",
        "full",
        "accepted",
        "full",
        "duplicate",
      ]);
      // Once a run has taken it, whoever runs makes room by itself.
      await changed(world, starter.id, { state: "delivered" });
      assert.deepEqual(await kinds(starter), ["duplicate"]);
      await store.commit(lease, (tx) =>
        tx.putAgent(nextAgent(tx.agent(worker)!, { currentRun: sampleId("run", 1) })),
      );
      assert.deepEqual(await kinds(world.mail(6, { trigger })), ["full"]);
      assert.equal((await store.read((view) => view.mailbox(worker))).unread, 2);
    },

  "keeps reserved room free": async (world) => {
    const { store, lease, worker } = world;
    await setLimits(world, 3, 100);
    await store.commit(lease, (tx) => tx.reserveMailbox(worker, 2, 90));
    const results = await world.send(
      world.mail(1, { text: "x".repeat(11) }),
      world.mail(2, { text: "x" }),
      world.mail(3),
    );
    assert.deepEqual(
      results.map(({ kind }) => kind),
      ["full", "accepted", "full"],
    );
    await store.commit(lease, (tx) => tx.reserveMailbox(worker, -2, -90));
    assert.deepEqual(
      (await world.send(world.mail(4))).map(({ kind }) => kind),
      ["accepted"],
    );
    await assert.rejects(
      store.commit(lease, (tx) => tx.reserveMailbox(worker, -1, 0)),
      { code: "INVARIANT_BROKEN" },
    );
  },

  "follows state and trigger with its counters": async (world) => {
    const { store, worker, tree } = world;
    const counters = async () => {
      const { unread, triggers, oldestUnreadAt } = await store.read((view) => view.mailbox(worker));
      return [unread, triggers, oldestUnreadAt];
    };
    assert.deepEqual(await counters(), [0, 0, null]);
    await world.send(world.mail(1, { createdAt: 10 }), world.mail(2, { createdAt: 20, trigger: true }));
    assert.deepEqual(await counters(), [2, 1, 10]);
    await changed(world, sampleId("msg", 1), { state: "delivered", runId: sampleId("run", 1) });
    assert.deepEqual(await counters(), [1, 1, 20]);
    await changed(world, sampleId("msg", 2), { trigger: false });
    assert.deepEqual(await counters(), [1, 0, 20]);
    assert.deepEqual(await store.read((view) => view.triggered(tree)), []);
    await changed(world, sampleId("msg", 1), { state: "accepted", trigger: true });
    assert.deepEqual(await counters(), [2, 1, 10]);
    const delivered = await store.read((view) => view.mailOfRun(sampleId("run", 1), "accepted"));
    assert.deepEqual(
      delivered.map(({ seq }) => seq),
      [1],
    );
  },

  "leaves unreadable mail out and lets it be dead-lettered": async (world) => {
    const { store, lease, worker, subject } = world;
    await world.send(world.mail(1), world.mail(2, { trigger: true }), world.mail(3));
    await subject.damageMail(sampleId("msg", 2));
    const view = await store.read((rows) => ({
      unread: rows.unread(worker, { limit: 2 }).map(({ seq }) => seq),
      unreadable: rows.unreadable(worker),
      all: rows.mailOf(worker, { limit: 9 }).rows.length,
      one: rows.mail(sampleId("msg", 2)),
      counted: rows.mailbox(worker).unread,
      none: [rows.unread(worker, { limit: 0 }), rows.mailOf(worker, { limit: 0 })],
    }));
    assert.deepEqual(view, {
      none: [[], { rows: [], next: null }],
      unread: [1, 3],
      unreadable: [sampleId("msg", 2)],
      all: 2,
      one: undefined,
      counted: 3,
    });
    const [again] = await world.send(world.mail(2, { trigger: true }));
    assert.deepEqual(again?.kind === "duplicate" && [again.mail.id, again.mail.seq, again.mail.reason], [
      sampleId("msg", 2),
      2,
      "unreadable",
    ]);
    await store.commit(lease, (tx) => tx.deadLetterUnreadable(sampleId("msg", 2)));
    await store.commit(lease, (tx) => tx.deadLetterUnreadable(sampleId("msg", 1)));
    const after = await store.read((rows) => ({
      letter: rows.mail(sampleId("msg", 2)),
      unreadable: rows.unreadable(worker),
      box: rows.mailbox(worker),
      arrivals: rows.arrivals(world.tree).map(({ seq }) => seq),
    }));
    assert.deepEqual(after.arrivals, [1, 3]);
    assert.deepEqual(
      [after.letter?.state, after.letter?.reason, after.letter?.seq],
      ["dead_lettered", "unreadable", 2],
    );
    assert.deepEqual([after.unreadable, after.box.unread, after.box.triggers], [[], 2, 0]);
  },

  "shows the owner what others appended, until it was taken": async (world) => {
    const { store, lease, tree } = world;
    const other = sampleId("thread", "other");
    const otherLease = await openTree(store, other);
    const before = await store.changes();
    await store.commit(lease, (tx) => tx.appendMail(world.mail(1)));
    await world.send(world.mail(2));
    await store.commit(otherLease, (tx) => tx.appendMail(world.mail(3)));
    const arrivals = await store.read((view) => view.arrivals(tree).map(({ id }) => id));
    assert.deepEqual(arrivals, [sampleId("msg", 2), sampleId("msg", 3)]);
    assert.notEqual(await store.changes(), before);
    const withInbox = () => store.read((view) => view.withInbox([other, tree]));
    assert.deepEqual(await withInbox(), [tree]);
    await store.commit(lease, (tx) => tx.takeArrivals([sampleId("msg", 2)]));
    assert.deepEqual(await store.read((view) => view.arrivals(tree).map(({ id }) => id)), [
      sampleId("msg", 3),
    ]);
    await store.commit(lease, (tx) => tx.takeArrivals([sampleId("msg", 3)]));
    assert.deepEqual(await withInbox(), []);
  },

  "lists trigger-turn mail by its recipients, oldest first": async (world) => {
    const { store, lease, tree, root } = world;
    const late = sampleId("thread", "late");
    await store.commit(lease, (tx) => tx.putAgent(sampleAgent(tree, late, "/root/late")));
    await world.send(
      world.mail(1, { recipient: late, trigger: true }),
      world.mail(2, { trigger: true }),
      world.mail(3, { recipient: root }),
      world.mail(4, { recipient: late, trigger: true }),
    );
    assert.deepEqual(await store.read((view) => view.triggered(tree)), [late, world.worker]);
  },

  "hints when somebody else writes, and works without": async (world) => {
    const { store, tree } = world;
    let heard = 0;
    const hint = new Promise<void>((resolve) => {
      const listening = store.onHint(tree, () => {
        heard += 1;
        listening[Symbol.dispose]();
        resolve();
      });
    });
    await world.send(world.mail(1));
    await hint;
    await world.send(world.mail(2));
    await claimTree(store, sampleId("thread", "elsewhere"), 1);
    assert.equal(heard, 1);
    assert.equal((await store.read((view) => view.arrivals(tree))).length, 2);
  },
} satisfies Record<string, StoreCase>;

function setLimits(world: World, mailboxMessages: number, mailboxBytes: number): Promise<void> {
  return world.store.commit(world.lease, (tx) => {
    const tree = tx.tree(world.tree)!;
    tx.putTree({ ...tree, limits: { ...tree.limits, mailboxMessages, mailboxBytes } });
  });
}
