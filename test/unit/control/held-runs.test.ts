/** Runs that wait for a budget's reservations (BUD-2), and what becomes of the agent when such a run ends meanwhile. */
import { describe, expect, test } from "vitest";
import { gate, list, say, together } from "../../../src/providers/scripted/script.ts";
import { harness, STORES } from "../../support/harness.ts";

describe.each(STORES)("runs held by a budget on %s", (store) => {
  test("BUD-2 one that was interrupted leaves nothing to come back to, and the agent's next run is not lost", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/p": [say("p")],
        "/root/p/a": [together(gate("a"), list()), together(gate("a again"), say("a"))],
        "/root/p/b": [say("b"), say("b again")],
        "/root/c": [together(gate("c"), say("c"))],
      },
      tree: { limits: { running: 2 } },
    });
    const { agent: p, work } = await h.tree.root.spawn("p", "look", { budgets: { tokens: 12_000 } });
    await work.outcome();
    await p.spawn("a", "look");
    await h.provider.gates.arrived("a");
    const { agent: b } = await p.spawn("b", "look");
    await h.clock.settle();
    expect((await b.status()).kind).toBe("waiting");
    expect(h.provider.requests("/root/p/b")).toHaveLength(0);
    await h.tree.root.spawn("c", "look");
    await h.provider.gates.arrived("c");
    await b.interrupt();
    const again = await b.send("again");
    await h.clock.settle();
    expect((await b.status()).kind).toBe("queued");
    // The reservation for which it was held is given back while nobody's permit is.
    h.provider.gates.open("a");
    await h.provider.gates.arrived("a again");
    expect((await b.status()).kind).toBe("queued");
    h.provider.gates.openAll();
    expect(await again.outcome()).toMatchObject({ ending: "completed" });
  });
});
