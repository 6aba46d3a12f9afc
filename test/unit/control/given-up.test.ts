/** A tree that is given up while commits are under way: nothing of it stays behind in what its runtime shares. */
import { describe, expect, test } from "vitest";
import { gate, say, spawn, together, wait } from "../../../src/providers/scripted/script.ts";
import { turn } from "../../../src/testing/virtual-clock.ts";
import { harness, STORES } from "../../support/harness.ts";

/** Enough for a child to be reserved, accepted, and to have answered. */
const TURNS = 16;

describe.each(STORES)("a tree that is given up on %s", (store) => {
  test("EXE-4 leaves no permit in use, at whatever point of a child's start it is closed", async () => {
    await using h = await harness({
      store,
      scripts: { "*": [say("ok")] },
      runtime: { limits: { runningTotal: 1 } },
    });
    for (let turns = 0; turns < TURNS; turns += 1) {
      const other = await h.runtime.openTree();
      const { permits } = other.control.tree;
      void other.root.spawn("a", "look").catch(() => undefined);
      for (let passed = 0; passed < turns; passed += 1) await turn();
      await other.close();
      await h.clock.settle();
      expect({ turns, inUse: permits.inUse }).toEqual({ turns, inUse: 0 });
    }
    const { work } = await h.tree.root.spawn("b", "look");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
  });

  test("EXE-4 leaves no permit in use, at whatever point of a return it is closed", async () => {
    for (let turns = 0; turns < TURNS; turns += 1) {
      await using h = await harness({
        store,
        scripts: {
          "/root/a": [spawn("b", "look", { fork_turns: "none" }), wait({ targets: ["b"] }), say("a")],
          "/root/a/b": [together(gate("b"), say("b"))],
        },
        tree: { limits: { running: 1 } },
      });
      const { permits } = h.tree.control.tree;
      const { agent } = await h.tree.root.spawn("a", "look");
      await h.provider.gates.arrived("b");
      expect((await agent.status()).kind).toBe("waiting");
      h.provider.gates.open("b");
      for (let passed = 0; passed < turns; passed += 1) await turn();
      await h.tree.close();
      await h.clock.settle();
      expect({ turns, inUse: permits.inUse }).toEqual({ turns, inUse: 0 });
    }
  });

  test("BUD-5 leaves no timer, at whatever point of a start over the runs a minute it is closed", async () => {
    for (let turns = 0; turns < TURNS; turns += 1) {
      await using h = await harness({
        store,
        scripts: { "*": [say("ok")] },
        tree: { limits: { runsPerMinute: 1 } },
      });
      // Both are taken before either starts.
      await Promise.all([h.tree.root.spawn("a", "look"), h.tree.root.spawn("b", "look")]);
      for (let passed = 0; passed < turns; passed += 1) await turn();
      await h.tree.close();
      await h.clock.settle();
      expect({ turns, timers: h.clock.pending().filter(({ keepAlive }) => keepAlive) }).toEqual({
        turns,
        timers: [],
      });
    }
  });
});
