/** The formulas over threads: whole records pass them, and each of them finds what it is there for. */
import { describe, expect, test } from "vitest";
import type { StoreTx } from "../../../src/store/port.ts";
import { invariants } from "../../../src/testing/invariants.ts";
import { repeat, say } from "../../../src/providers/scripted/script.ts";
import { scripted } from "../../../src/providers/scripted/provider.ts";
import { nextAgent } from "../../../src/testing/store-records.ts";
import { harness, type Harness } from "../../support/harness.ts";

const SCRIPT = { "/root": [repeat(say("answer"))] };

/** Runs 1 and 2 on A, 3 on B, 4 on A again, rolled back to 2, and 5 on A. */
async function thread(): Promise<Harness> {
  const h = await harness({ scripts: SCRIPT, others: { b: scripted(SCRIPT) } });
  const say = async (provider: string) => (await h.tree.root.send("go on", { provider })).outcome();
  for (const provider of ["scripted", "scripted", "b", "scripted"]) await say(provider);
  await h.runtime.threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal: 2 } });
  await say("scripted");
  return h;
}

interface Damage {
  readonly id: string;
  readonly says: string;
  readonly by: (tx: StoreTx, h: Harness) => void;
}

const agentOf = (tx: StoreTx, h: Harness) => tx.agent(h.tree.id)!;
const factsOf = (tx: StoreTx, h: Harness) => agentOf(tx, h).thread!;
const runAt = (tx: StoreTx, h: Harness, ordinal: number) => tx.runAt(h.tree.id, ordinal)!;
const switchAt = (tx: StoreTx, h: Harness, at: number) => tx.transfers(h.tree.id, { limit: 9 }).rows[at]!;
const handoffAt = (tx: StoreTx, h: Harness, at: number) => tx.handoffsOf(h.tree.id, { limit: 9 }).rows[at]!;
const [A, B] = [0, 1];
const conversation = (tx: StoreTx, h: Harness, at: number) => tx.providerThreadsOf(h.tree.id)[at]!;

const DAMAGES: readonly Damage[] = [
  {
    id: "C1.1",
    says: "unsettled are 2",
    by: (tx, h) => tx.putRun({ ...runAt(tx, h, 2), status: "running" }),
  },
  {
    id: "C2.11",
    says: "revision 7",
    by(tx, h) {
      const currentContext = { revision: 7, digest: "of nothing" };
      tx.putAgent(nextAgent(agentOf(tx, h), { thread: { ...factsOf(tx, h), currentContext } }));
    },
  },
  {
    id: "C11.6",
    says: "a snapshot beyond",
    by: (tx, h) => tx.putSnapshot({ ...tx.snapshot(h.tree.id, 6)!, revision: 7 }),
  },
  {
    id: "C11.10",
    says: "run 5",
    by(tx, h) {
      const run = runAt(tx, h, 5);
      tx.putRun({ ...run, binding: { ...run.binding!, contextDigest: "of another" } });
    },
  },
  {
    id: "C1.3",
    says: "has left 2",
    by: (tx, h) => tx.putRun({ ...runAt(tx, h, 5), nextContextRevision: 2 }),
  },
  {
    id: "C9.3",
    says: "run 4",
    by: (tx, h) => tx.putAgent(nextAgent(agentOf(tx, h), { thread: { ...factsOf(tx, h), rolledBack: [] } })),
  },
  {
    id: "C4.5",
    says: "run 1",
    by: (tx, h) =>
      tx.putAgent(nextAgent(agentOf(tx, h), { thread: { ...factsOf(tx, h), voided: [[1, 1]] } })),
  },
  {
    id: "C2.9",
    says: "draft from before",
    by: (tx, h) =>
      tx.putDraft({
        threadId: h.tree.id,
        text: "left over",
        sourceMessageId: null,
        createdAt: runAt(tx, h, 1).reservedAt - 1,
        clearedAt: null,
      }),
  },
  {
    id: "C5.19",
    says: "still about to be asked",
    by: (tx, h) => tx.putTransfer({ ...switchAt(tx, h, 0), intent: { id: "int_1", at: 0 } }),
  },
  {
    id: "C2.5",
    says: "from consumed to pending",
    by: (tx, h) => tx.putTransfer({ ...switchAt(tx, h, 0), status: "pending" }),
  },
  {
    id: "C4.13",
    says: "was not delivered",
    by(tx, h) {
      tx.putHandoff({ ...handoffAt(tx, h, 0), deliveredAt: null });
      tx.putTransfer({ ...switchAt(tx, h, 0) });
    },
  },
  {
    id: "C2.6",
    says: "waits and its transfer is consumed",
    by: (tx, h) => tx.putHandoff({ ...handoffAt(tx, h, 0), deliveredAt: null }),
  },
  {
    id: "C2.6",
    says: "was superseded and is ready",
    by: (tx, h) => tx.putHandoff({ ...handoffAt(tx, h, 1), status: "ready" }),
  },
  {
    id: "C1.10",
    says: "has changed",
    by: (tx, h) => tx.putHandoff({ ...handoffAt(tx, h, 0), summaryText: "in other words" }),
  },
  {
    id: "C1.6",
    says: "counts run 3",
    by: (tx, h) => tx.putProviderThread({ ...conversation(tx, h, A), nativeRunOrdinals: [[1, 3]] }),
  },
  {
    id: "C1.6",
    says: "is in pth_",
    by(tx, h) {
      const { handoffIds } = conversation(tx, h, B);
      tx.putProviderThread({ ...conversation(tx, h, A), handoffIds });
    },
  },
  {
    id: "C2.7",
    says: "is bound to",
    by: (tx, h) => tx.putProviderThread({ ...conversation(tx, h, A), continuity: "divergent" }),
  },
  {
    id: "S3-7",
    says: "was told of 3",
    by: (tx, h) =>
      tx.putProviderThread({
        ...conversation(tx, h, A),
        handoffIds: [handoffAt(tx, h, 1).id, handoffAt(tx, h, 1).id],
      }),
  },
];

describe("formulas over threads", () => {
  test("what the runtime writes passes all of them, at every commit", async () => {
    await using h = await thread();
    const checker = invariants(h.tree.id);
    const look = () => h.store.read((view) => checker.check(view));
    expect(await look()).toEqual([]);
    await h.ask("once more");
    expect(await look()).toEqual([]);
  });

  test.each(DAMAGES)("$id $says", async ({ id, says, by }) => {
    await using h = await thread();
    const checker = invariants(h.tree.id);
    await h.store.read((view) => checker.check(view));
    await h.tree.control.tree.transact((tx) => by(tx.store, h));
    const found = await h.store.read((view) => checker.check(view));
    expect(found.filter((one) => one.contract === id).map(({ text }) => text)).toContainEqual(
      expect.stringContaining(says),
    );
  });
});
