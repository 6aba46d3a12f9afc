/** What is done over and over, at each step, commit or poll, costs the same however much there is that does not concern it. */
import { describe, expect, test } from "vitest";
import { endDueWaits } from "../../src/control/wait-ends.ts";
import { sweepWorktrees } from "../../src/control/worktrees.ts";
import type { Worktrees } from "../../src/platform/workspace/port.ts";
import { Transaction } from "../../src/control/transaction.ts";
import { sampleId, sampleMail, sampleWait } from "../../src/testing/store-records.ts";
import {
  call,
  followUp,
  gate,
  repeat,
  say,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { callByName, hostTools } from "../../src/tools/host-tools.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type Counted, counted } from "../support/counted.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";

/** A new runtime on the same store, all of whose reads are counted. */
async function watched(h: Harness): Promise<Counted> {
  const counts = counted(h.store);
  h.cut();
  h.store = counts.store;
  h.runtime = await h.newRuntime();
  h.tree = await h.runtime.openTree({ id: h.tree.id });
  return counts;
}

/** Rows read until a script comes to a gate, which is opened then. */
async function upTo(h: Harness, name: string, rows: () => number): Promise<number> {
  await h.provider.gates.arrived(name);
  const read = rows();
  h.provider.gates.open(name);
  return read;
}

/** Lets one of those go on who wait at the gate, to the end of its work. */
async function endOne(h: Harness): Promise<void> {
  h.provider.gates.letThrough("hold", 1);
  await h.clock.settle();
}

describe.each(STORES)("on %s", (store) => {
  test("WRK-4 WAI-8 a request and a wait for it cost the same after three results of the same work and after thirty", async () => {
    const costOf = async (results: number) => {
      await using h = await harness({
        store,
        scripts: {
          "/root": [
            spawn("w", "go"),
            together(...Array.from({ length: results }, () => followUp("w", "more"))),
            wait({ targets: ["w"] }),
            gate("before"),
            followUp("w", "once more"),
            wait({ targets: ["w"] }),
            gate("after"),
            say("done"),
          ],
          "*": [repeat(say("a result"))],
        },
        tree: { limits: { runsPerMinute: null, stepsPerRun: null } },
      });
      const { rows } = await watched(h);
      const asked = h.ask("go");
      const before = await upTo(h, "before", rows);
      const after = await upTo(h, "after", rows);
      expect(await asked).toMatchObject({ ending: "completed", text: "done" });
      return after - before;
    };
    expect(await costOf(30)).toBe(await costOf(3));
  });

  test("HDR-2 WAI-5 what ends or comes during a host's wait costs it the same however much was there before", async () => {
    const costOf = async (works: number) => {
      await using h = await harness({
        store,
        scripts: { "*": [gate("hold"), repeat(say("a result"))] },
        tree: { hostDriven: true, limits: { spawnsPerMinute: null, running: null } },
      });
      const { rows } = await watched(h);
      const agents = [];
      for (let n = 0; n < works; n += 1) agents.push(await h.tree.root.spawn(`w${n}`, "go"));
      await h.provider.gates.arrived("hold", works);
      const tools = hostTools(h.tree.control, h.tree.id);
      const waiting = callByName(tools, "wait_agent", { works: agents.map(({ work }) => work.id) });
      const { watchers } = h.tree.control.tree;
      await waitUntil("the wait has begun", () => watchers.size === 1);
      for (let n = 2; n < works; n += 1) await endOne(h);
      const before = rows();
      await endOne(h);
      const cost = rows() - before;
      expect(watchers.size).toBe(1);
      await endOne(h);
      expect((await waiting).output).toMatchObject({ ended_by: "settled" });
      return cost;
    };
    expect(await costOf(20)).toBe(await costOf(4));
  });

  test("WAI-5 a call that waits in a run reads nothing when somebody else's mail is stored", async () => {
    const costOf = async (calls: number) => {
      await using h = await harness({
        store,
        scripts: { "*": [gate("hold"), repeat(say("a result"))] },
        runtime: { threadTools: { allow: "all" } },
      });
      const { rows } = await watched(h);
      const other = await h.runtime.openTree({});
      const { agent } = await h.tree.root.spawn("a", "go");
      const { agent: stranger } = await h.tree.root.spawn("b", "go");
      await h.provider.gates.arrived("hold", 2);
      const tools = (await h.runtime.actAs(await agent.token())).tools();
      const asked = { thread_id: other.id, message: "hello" };
      const waiting = Array.from({ length: calls }, (_, n) => [
        callByName(tools, "wait_agent", { timeout_ms: 60_000 }),
        callByName(tools, "send_message_to_thread", asked, { callId: `call_${n}` }),
      ]).flat();
      await h.clock.settle();
      expect(h.tree.control.tree.watchers.size).toBe(2 * calls);
      const before = rows();
      await stranger.tell("not for those who wait");
      await h.clock.settle();
      const cost = rows() - before;
      for (const { id } of await h.tree.requests()) await h.tree.answer(id, "yes");
      await agent.tell("for those who wait");
      expect((await Promise.all(waiting)).map(({ isError }) => isError)).toEqual(waiting.map(() => false));
      return cost;
    };
    expect(await costOf(3)).toBe(await costOf(0));
  });

  test("XTR-4 a look at threads that are waited for costs the same however many wait for something else", async () => {
    const costOf = async (others: number) => {
      let thread = "";
      await using h = await harness({
        store,
        scripts: {
          "/root": [gate("busy"), say("done")],
          "/root/a": [
            call("wait_threads", () => ({ thread_ids: [thread], timeout_ms: 60_000 })),
            say("done"),
          ],
          "*": [wait({ timeout_ms: 60_000 }), say("done")],
        },
        runtime: { threadTools: { allow: "all" } },
      });
      const { rows } = await watched(h);
      const other = await h.runtime.openTree({});
      thread = other.id;
      const asked = await other.root.send("go");
      await h.provider.gates.arrived("busy");
      const { agent, work } = await h.tree.root.spawn("a", "go");
      for (let n = 0; n < others; n += 1) await h.tree.root.spawn(`w${n}`, "go");
      await h.clock.settle();
      expect(await agent.status()).toEqual({ kind: "waiting", on: [thread] });
      const before = rows();
      await h.clock.advance(100);
      const cost = rows() - before;
      h.provider.gates.open("busy");
      await asked.outcome();
      await h.clock.advance(100);
      expect(await work.outcome()).toMatchObject({ text: "done" });
      return cost;
    };
    expect(await costOf(4)).toBe(await costOf(0));
  });

  test("WAI-6 REC-3 a commit that ends what is due reads no more than it ends", async () => {
    await using h = await harness({ store });
    const { tree } = h.tree.control;
    const waits = Array.from({ length: 250 }, (_, n) =>
      sampleWait(h.tree.id, h.tree.id, n, { runId: sampleId("run", n) }),
    );
    await tree.transact((tx) => waits.forEach((wait) => tx.store.putWait(wait)));
    const { store: counting, rows } = counted(h.store);
    for (const left of [150, 50, 0]) {
      const before = rows();
      await counting.commit(tree.lease, (tx) => endDueWaits(new Transaction(tx, tree), 100));
      expect(rows() - before).toBeLessThanOrEqual(3 * 100);
      expect(await h.store.read((view) => view.openWaitsOf(h.tree.id).length)).toBe(left);
    }
  });

  test("REC-2 a poll asks one question for all trees, also while somebody writes for others all the time", async () => {
    const costOf = async (trees: number) => {
      await using h = await harness({ store });
      const { asked } = await watched(h);
      const { id } = await h.runtime.openTree({});
      for (let n = 1; n < trees; n += 1) await h.runtime.openTree({});
      const stranger = await h.runtime.openTree({});
      await stranger.close();
      await h.clock.advance(1_000);
      const before = asked();
      for (let n = 0; n < 5; n += 1) {
        await h.store.send([sampleMail(stranger.id, stranger.id, n)]);
        if (store === "sqlite") h.edit("UPDATE trees SET body = body");
        await h.clock.advance(100);
      }
      const cost = asked() - before;
      await h.store.send([sampleMail(id, id, "mine")]);
      await h.clock.advance(100);
      expect(await h.store.read((view) => view.arrivals(id))).toEqual([]);
      return cost;
    };
    expect(await costOf(12)).toBe(await costOf(2));
  });

  test("SPN-7 a sweep of worktrees costs the same in a tree of one agent and of many, beside many threads", async () => {
    const costOf = async (others: number) => {
      await using h = await harness({ store, scripts: { "*": [repeat(say("done"))] } });
      const { rows } = await watched(h);
      for (let n = 0; n < others; n += 1) {
        await h.runtime.openTree({});
        await h.tree.root.spawn(`w${n}`, "go");
      }
      await h.tree.idle();
      const { tree } = h.tree.control;
      const swept: string[] = [];
      const worktrees: Partial<Worktrees> = {
        list: async () => ["/worktrees/one", "/worktrees/two"],
        async end(path) {
          swept.push(path);
          return { status: "removed" };
        },
      };
      Object.assign(tree.shared.workspaces, { worktrees });
      const before = rows();
      await sweepWorktrees(tree);
      await h.clock.settle();
      expect(swept).toHaveLength(2);
      return rows() - before;
    };
    expect(await costOf(5)).toBe(await costOf(1));
  });
});
