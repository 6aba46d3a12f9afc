import { describe, expect, test } from "vitest";
import { followUp, gate, list, say, spawn, wait } from "../../src/providers/scripted/script.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { harness, STORES } from "../support/harness.ts";

describe.each(STORES)("figures of what was cut off on %s", (store) => {
  test("BUD-4 an interrupted request makes the figures of run, work and agent partial", async () => {
    await using h = await harness({ store, scripts: { "/root": [gate("here"), say("never said")] } });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("here");
    await h.tree.root.interrupt();
    const { ending, usage } = await work.outcome();
    expect(ending).toBe("interrupted");
    expect([usage.own.complete, usage.subtree.complete]).toEqual([false, false]);
    expect((await h.tree.root.usage()).complete).toBe(false);
  });

  test("BUD-4 a run that serves two works counts once in what they cost together", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "first", { fork_turns: "none" }),
          followUp("worker", "second"),
          wait({ targets: ["worker"] }),
          say("done"),
        ],
        "/root/worker": [gate("first"), list(), say("both")],
      },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("first");
    await waitUntil("both are asked", async () => (await h.tree.works()).rows.length === 3);
    h.provider.gates.open("first");
    const { usage } = await work.outcome();
    const shared = (await h.tree.works()).rows.filter(({ outcome }) => outcome?.shared === true);
    expect(shared).toHaveLength(2);
    const total = await h.tree.root.usage();
    expect(usage.subtree.inputTokens).toBe(total.inputTokens);
    expect(usage.subtree.outputTokens).toBe(total.outputTokens);
  });
});
