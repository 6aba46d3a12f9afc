/** The formulas over mailboxes and budgets: what the runtime writes passes them, and each is broken by what it forbids. */
import { describe, expect, test } from "vitest";
import { invariants } from "../../../src/testing/invariants.ts";
import { nextAgent, sampleMail } from "../../../src/testing/store-records.ts";
import type { AgentRecord } from "../../../src/protocol/agent.ts";
import { gate, repeat, say, together } from "../../../src/providers/scripted/script.ts";
import type { StoreTx } from "../../../src/store/port.ts";
import { harness, type Harness } from "../../support/harness.ts";

/** A child at its gate and one at rest, in a tree with little room. */
async function standing() {
  const h = await harness({
    scripts: {
      "/root/busy": [together(gate("busy"), say("done"))],
      "*": [repeat(say("ok"))],
    },
    tree: {
      limits: { mailboxMessages: 4, mailboxBytes: 4000, tokensPerTree: 100_000, resultReservationBytes: 500 },
    },
  });
  const { agent, work } = await h.tree.root.spawn("calm", "work");
  await work.outcome();
  const { agent: busy } = await h.tree.root.spawn("busy", "work");
  await h.provider.gates.arrived("busy");
  await h.clock.settle();
  const checker = invariants(h.tree.id);
  const all = () => h.store.read((view) => checker.check(view));
  expect(await all()).toEqual([]);
  const check = async (contract: string) =>
    (await all()).filter((found) => found.contract === contract).map(({ text }) => text);
  return { h, check, calm: await agent.record(), busy: await busy.record() };
}

function commit(h: Harness, plan: (tx: StoreTx) => void): Promise<unknown> {
  return h.store.commit(h.tree.control.tree.lease, plan);
}

function told(to: AgentRecord, text: string, trigger = false) {
  return sampleMail(to.treeId, to.threadId, text.slice(0, 20), { text, trigger, recipientPath: to.path });
}

describe("formulas over bounds", () => {
  test("MBX-8 more messages or bytes than a mailbox may hold break them; the request that starts an idle agent does not", async () => {
    const { h, check, calm } = await standing();
    await using _h = h;
    await commit(h, (tx) => {
      for (let at = 0; at < 4; at += 1) tx.appendMail(told(calm, `${at}`));
    });
    expect(await check("MBX-8")).toEqual([]);
    await commit(h, (tx) => void tx.appendMail(told(calm, "starts it", true)));
    expect(await check("MBX-8")).toEqual([]);
    await commit(h, (tx) => void tx.appendMail(told(calm, "one too many")));
    expect(await check("MBX-8")).toEqual([expect.stringContaining("/root/calm holds 6 messages")]);
  });

  test("MBX-8 so do bytes, and room that is reserved", async () => {
    const { h, check, calm, busy } = await standing();
    await using _h = h;
    await commit(h, (tx) => void tx.appendMail(told(calm, "x".repeat(4001))));
    expect(await check("MBX-8")).toEqual([expect.stringContaining("holds 4001 bytes")]);
    await commit(h, (tx) => tx.reserveMailbox(busy.threadId, 5, 2500));
    expect(await check("MBX-8")).toContainEqual(expect.stringContaining("/root/busy holds 5 messages"));
  });

  test("BUD-2 a run that makes requests after its budget was passed breaks them; the one that was under way does not", async () => {
    const { h, check, busy } = await standing();
    await using _h = h;
    const use = (inputTokens: number) =>
      commit(h, (tx) => {
        const agent = tx.agent(busy.threadId)!;
        const run = tx.run(agent.currentRun!)!;
        const usage = { ...run.usage, inputTokens };
        tx.putRun({ ...run, usage });
        tx.putAgent(nextAgent(agent, { usage }));
      });
    await use(200_000);
    expect(await check("BUD-2")).toEqual([]);
    await use(200_100);
    expect(await check("BUD-2")).toEqual([]);
    await use(200_200);
    expect(await check("BUD-2")).toEqual([
      expect.stringMatching(/tokens budget of \/root is passed .* \/root\/busy/),
    ]);
  });

  test("BUD-2 what is unfinished where a budget was told to be spent breaks them", async () => {
    const { h, check } = await standing();
    await using _h = h;
    await commit(h, (tx) => {
      const tree = tx.tree(h.tree.id)!;
      const spent = { path: "/root" as const, budget: "tokens" as const };
      tx.putTree({ ...tree, revision: tree.revision + 1, exhausted: [spent] });
    });
    expect(await check("BUD-2")).toEqual([
      expect.stringContaining("is running"),
      expect.stringContaining("goes on"),
    ]);
  });
});
