/** Random work on mailboxes: whatever happened, the counters equal a recount of the rows. */
import assert from "node:assert/strict";
import { type Random, seededRandom } from "../platform/ids.ts";
import type { MailRecord, MailState } from "../protocol/mail.ts";
import type { StoreTx, StoreView } from "../store/port.ts";
import type { StoreCase } from "./store-cases-mail.ts";
import { sampleAgent, sampleId } from "./store-records.ts";
import type { World } from "./store-harness.ts";

const STATES: readonly MailState[] = ["accepted", "delivered", "settled", "superseded", "dead_lettered"];

/** One step of a random life, told by three numbers at least 0 and below 1. */
export type MailboxStep = readonly [verb: number, mail: number, detail: number];

/** Carries out steps, several in one tick, and compares counters with rows. */
export async function liveThrough(world: World, steps: readonly MailboxStep[]): Promise<void> {
  const { store, lease, tree, worker } = world;
  const other = sampleId("thread", "second");
  await store.commit(lease, (tx) => tx.putAgent(sampleAgent(tree, other, "/root/second")));
  const recipients = [worker, other];
  let reserved = 0;
  const underWay: Promise<unknown>[] = [];
  for (const [verb, mail, detail] of steps) {
    const name = Math.floor(mail * 30);
    const draft = world.mail(name, {
      recipient: recipients[name % 2]!,
      trigger: detail < 0.5,
      text: "x".repeat(Math.floor(detail * 40)),
      createdAt: name,
      key: detail < 0.2 ? `key ${Math.floor(detail * 50)}` : null,
    });
    const change = (tx: StoreTx): void => {
      const one = tx.mail(draft.id);
      const state = STATES[Math.floor(detail * STATES.length)]!;
      if (one !== undefined)
        tx.putMail({ ...one, state, trigger: detail * 10 - Math.floor(detail * 10) < 0.5 });
    };
    if (verb < 0.35) underWay.push(world.send(draft));
    else if (verb < 0.5) underWay.push(store.commit(lease, (tx) => void tx.appendMail(draft)));
    else if (verb < 0.8) underWay.push(store.commit(lease, change));
    else if (verb < 0.9) {
      const messages = reserved > 0 && detail < 0.5 ? -1 : 1;
      reserved += messages;
      underWay.push(store.commit(lease, (tx) => tx.reserveMailbox(worker, messages, messages * 8)));
    } else {
      const doomed = store.commit(lease, (tx) => {
        tx.appendMail(draft);
        change(tx);
        tx.reserveMailbox(worker, 5, 5);
        throw new Error("on purpose");
      });
      underWay.push(assert.rejects(doomed, /on purpose/));
    }
    if (detail > 0.7) await Promise.all(underWay.splice(0));
  }
  await Promise.all(underWay);
  await store.read((view) => recipients.forEach((recipient) => compare(view, recipient)));
  const box = await store.read((view) => view.mailbox(worker));
  assert.deepEqual([box.reservedMessages, box.reservedBytes], [reserved, reserved * 8]);
}

function compare(view: StoreView, recipient: World["worker"]): void {
  const all = view.mailOf(recipient, { limit: 10_000 }).rows;
  const unread = all.filter(({ state }) => state === "accepted");
  const { reservedMessages: _messages, reservedBytes: _bytes, ...counters } = view.mailbox(recipient);
  assert.deepEqual(counters, {
    threadId: recipient,
    lastSeq: all.length,
    unread: unread.length,
    unreadBytes: unread.reduce((sum, mail) => sum + mail.content.bytes, 0),
    triggers: unread.filter(({ trigger }) => trigger).length,
    oldestUnreadAt: unread[0]?.createdAt ?? null,
  });
  assert.deepEqual(view.unread(recipient, { limit: 10_000 }), unread);
  assert.deepEqual(
    all.map(({ seq }) => seq),
    all.map((_: MailRecord, at) => at + 1),
  );
}

export function randomSteps(random: Random, count: number): MailboxStep[] {
  return Array.from(
    { length: count },
    () => [random.fraction(), random.fraction(), random.fraction()] as const,
  );
}

export const randomCases = {
  "has counters that equal a recount after any life": async (world) => {
    await liveThrough(world, randomSteps(seededRandom(20_261_130), 300));
  },
} satisfies Record<string, StoreCase>;
