/** RES-2, WAI-5: agents that are loaded and may not go on now, and those who wait for their slots. */
import { describe, expect, test } from "vitest";
import { gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

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
});
