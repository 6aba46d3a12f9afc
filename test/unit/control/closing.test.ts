/** What a close does to a provider that is still at a request (INT-7). */
import { describe, expect, test } from "vitest";
import { gate, ignoreAbort, say, together } from "../../../src/providers/scripted/script.ts";
import { type Harness, harness, STORES } from "../../support/harness.ts";

/** Threads whose provider sessions were closed. */
function closedSessions(h: Harness): string[] {
  const closed: string[] = [];
  const openSession = h.provider.openSession.bind(h.provider);
  h.provider.openSession = async (input) => {
    const session = await openSession(input);
    return {
      step: session.step.bind(session),
      close: async () => {
        closed.push(input.path);
        await session.close();
      },
    };
  };
  return closed;
}

describe.each(STORES)("a close on %s", (store) => {
  test("INT-7 waits for a request that was cut off, and closes its provider by force at the deadline", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/deaf": [together(ignoreAbort("deaf"), say("late"))],
        "/root/slow": [together(ignoreAbort("slow"), say("late"))],
        "/root/quick": [together(gate("quick"), say("never"))],
      },
      tree: { limits: { closeDeadlineMs: 10_000 } },
    });
    const closed = closedSessions(h);
    for (const name of ["deaf", "slow", "quick"]) {
      const { agent, work } = await h.tree.root.spawn(name, "look");
      await h.provider.gates.arrived(name);
      await agent.close();
      expect(await work.outcome()).toMatchObject({ ending: "cancelled" });
    }
    await h.clock.settle();
    expect(closed).toEqual(["/root/quick"]);
    h.provider.gates.open("slow");
    await h.clock.settle();
    expect(closed).toEqual(["/root/quick", "/root/slow"]);
    await h.clock.advance(9_999);
    expect(closed).not.toContain("/root/deaf");
    await h.clock.advance(1);
    expect(closed).toContain("/root/deaf");
  });
});
