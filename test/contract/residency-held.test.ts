/** RES-2, WAI-5: agents that are loaded and may not go on now, and those who wait for their slots. */
import { describe, expect, test } from "vitest";
import { gate, repeat, say, spawn, together, usage, wait } from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const FRESH = { fork_turns: "none" };

describe.each(STORES)("loaded without a run to go on with, on %s", (store) => {
  test("RES-2 WAI-5 a run that waits for a budget keeps its slot, and nobody asks for it again and again", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 2 } },
      tree: { limits: { tokensPerTree: 8_000 } },
      scripts: { "/root/a": [together(gate("a"), say("A"))], "*": [repeat(say("ok"))] },
    });
    const a = await h.tree.root.spawn("a", "go");
    await h.provider.gates.arrived("a");
    const b = await h.tree.root.spawn("b", "go");
    await look(h).until(
      "b waits for the budget",
      async () => (await look(h).status("/root/b")) === "waiting",
    );
    const c = await h.tree.root.spawn("c", "go");
    const before = h.faulty.writes;
    await h.clock.settle();
    expect(h.faulty.writes).toBe(before);
    expect(await look(h).status("/root/c")).toBe("queued");
    h.provider.gates.open("a");
    for (const { work } of [a, b, c]) expect(await work.outcome()).toMatchObject({ ending: "completed" });
  });

  test("RES-3 EXE-2 BUD-2 mail in a spent scope keeps no slot, and the tree is idle with it", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      tree: { limits: { running: 1 } },
      scripts: {
        "/root/p": [together(spawn("c1", "one", FRESH), spawn("c2", "two", FRESH)), repeat(say("p rests"))],
        "/root/p/c1": [together(usage({ outputTokens: 7_000 }), say("c1 done"))],
        "*": [repeat(say("ok"))],
      },
    });
    const p = await h.tree.root.spawn("p", "go", { budgets: { tokens: 10_000 } });
    expect(await p.work.outcome()).toMatchObject({ ending: "budget_exhausted" });
    await h.tree.idle();
    expect(await h.store.read((view) => view.mailbox(p.agent.threadId).triggers)).toBe(1);
    expect(await p.agent.status()).toMatchObject({ kind: "idle" });
    const why = (await p.agent.why()).reasons.join(" ");
    expect(why).toContain("1 trigger-turn message is pending and starts nothing while a budget is spent.");
    const outside = await h.tree.root.spawn("outside", "go");
    expect(await outside.work.outcome()).toMatchObject({ ending: "completed" });
    await p.agent.raiseBudget("tokens", 1_000_000);
    await h.tree.idle();
    expect(await h.store.read((view) => view.mailbox(p.agent.threadId).triggers)).toBe(0);
  });

  test("RES-3 BUD-5 runs that the minute holds up leave their slots to other trees", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      tree: { limits: { runsPerMinute: 2 } },
      scripts: { "/root": [spawn("c", "x", FRESH), repeat(say("rests"))], "*": [repeat(say("ok"))] },
    });
    const other = await h.runtime.openTree();
    const asked = await h.tree.root.send("go");
    await look(h).until("the root waits", async () => (await look(h).status("/root")) === "queued");
    const { work } = await other.root.spawn("w", "other tree");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    expect(await look(h).status("/root")).toBe("queued");
    await h.clock.advance(60_000);
    expect(await asked.outcome()).toMatchObject({ ending: "completed" });
  });

  test("BUD-5 an agent whose run was refused by the minute is not queued when it was interrupted meanwhile", async () => {
    await using h = await harness({
      store,
      tree: { limits: { runsPerMinute: 2 } },
      scripts: { "/root": [spawn("c", "x", FRESH), repeat(say("rests"))], "/root/c": [gate("c"), say("ok")] },
    });
    const { tree } = h.tree.control;
    const work = await h.tree.root.send("go");
    await look(h).until(
      "the root rests",
      async () => (await look(h).status("/root")) === "awaiting_children",
    );
    const interrupted = Promise.withResolvers<unknown>();
    let asked = false;
    h.onWrite = () => {
      // Its run is about to be asked for, and refused.
      if (asked || !tree.starting.has(h.tree.id)) return null;
      asked = true;
      interrupted.resolve(Promise.resolve().then(() => h.tree.root.interrupt({ pending: "cancel" })));
      return null;
    };
    h.provider.gates.open("c");
    await interrupted.promise;
    await h.clock.settle();
    expect((await work.record()).state).toBe("ended");
    expect(tree.lane.size).toBe(0);
    await h.tree.idle();
  });

  test("RES-3 RES-4 a wait that ends with its run while it is being unloaded leaves an agent that goes", async () => {
    // At each of the first moments of the interrupt, for between them its commit is on its way.
    for (let moment = 0; moment < 20; moment += 1) {
      await using h = await harness({
        store,
        runtime: { limits: { residents: 1 } },
        scripts: { "/root/a": [wait({}), say("never")], "*": [repeat(say("ok"))] },
      });
      const { agent } = await h.tree.root.spawn("a", "go");
      await look(h).until("a waits", async () => (await look(h).status("/root/a")) === "waiting");
      const interrupted = agent.interrupt();
      for (let tick = 0; tick < moment; tick += 1) await Promise.resolve();
      h.tree.control.tree.residency.makeRoom(1, true);
      await interrupted;
      const { work } = await h.tree.root.spawn("b", "go");
      await h.clock.settle();
      expect(await work.record(), `asked at ${moment}`).toMatchObject({ state: "ended" });
    }
  });
});
