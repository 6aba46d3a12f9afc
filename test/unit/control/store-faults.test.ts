/** Faults of the store under a run (REC-3): what is stored decides, and nobody else is blamed for them. */
import { describe, expect, test } from "vitest";
import { type CoppiceError, RejectedError, TransientError } from "../../../src/protocol/errors.ts";
import { gate, say, together } from "../../../src/providers/scripted/script.ts";
import { type Harness, harness, STORES } from "../../support/harness.ts";
import { look } from "../../support/look.ts";

/** Fails commits of the next requests: the first after each, which stores its acceptance, or the second, its answer. */
function failRequests(h: Harness, error: CoppiceError, times: number, nth: 1 | 2 = 1): void {
  let left = times;
  let made = h.provider.requests("/root").length;
  let commits = 0;
  h.onWrite = (_, kind) => {
    const { length } = h.provider.requests("/root");
    if (kind !== "commit" || length === made || left === 0) return null;
    commits += 1;
    if (commits < nth) return null;
    commits = 0;
    made = length;
    left -= 1;
    return { kind: "error", error };
  };
}

const ANSWERS = [say("first"), say("second"), say("third"), say("fourth")];

describe.each(STORES)("store faults on %s", (store) => {
  test("REC-3 an acceptance that the store cannot take is no failure of the provider", async () => {
    await using h = await harness({ store, scripts: { "/root": ANSWERS } });
    failRequests(h, new TransientError("STORE_BUSY", "locked"), 1);
    const work = await h.tree.root.send("go");
    await h.clock.advance(60_000);
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    expect(await look(h).events("run.retrying")).toEqual([]);
    expect(await look(h).runs("/root")).toMatchObject([
      { status: "cancelled", reason: "not_accepted" },
      { status: "completed" },
    ]);
  });

  test("REC-3 nor is one for which a row is damaged: it ends no work and counts as no refusal", async () => {
    await using h = await harness({ store, scripts: { "/root": ANSWERS } });
    failRequests(h, new RejectedError("STORE_CORRUPT", "a row cannot be read"), 1);
    const work = await h.tree.root.send("go");
    await h.clock.advance(60_000);
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    failRequests(h, new RejectedError("STORE_CORRUPT", "a row cannot be read"), 3);
    const lost = await h.tree.root.send("go");
    await h.clock.advance(60_000);
    expect(await lost.outcome()).toMatchObject({ ending: "runtime_lost" });
    expect((await h.tree.root.record()).refusals).toBe(0);
  });

  test("REC-3 the session of a run that is dropped is closed", async () => {
    let open = 0;
    await using h = await harness({ store, scripts: { "/root": ANSWERS } });
    const openSession = h.provider.openSession.bind(h.provider);
    h.provider.openSession = async (input) => {
      const session = await openSession(input);
      open += 1;
      return {
        step: session.step.bind(session),
        close: async () => {
          open -= 1;
          await session.close();
        },
      };
    };
    failRequests(h, new TransientError("STORE_IO", "the disk failed"), 1, 2);
    const lost = await h.tree.root.send("go");
    await h.clock.advance(60_000);
    expect(await lost.outcome()).toMatchObject({ ending: "runtime_lost" });
    expect(open).toBe(0);
    const work = await h.tree.root.send("go");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    expect(open).toBe(1);
    await h.tree.close();
    expect(open).toBe(0);
  });

  test("RUN-3 a run that the store does not let end at its limit is ended when it does", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [together(gate("step"), say("never"))] },
      tree: { limits: { runWallClockMs: 1_000, wrapUpMs: 1_000 } },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("step");
    await h.clock.advance(1_500);
    const failing = h.clock.now() + 1_200;
    h.onWrite = (_, kind) => (kind === "commit" && h.clock.now() < failing ? { kind: "error" } : null);
    await h.clock.advance(1_000);
    expect((await work.record()).state).toBe("running");
    await h.clock.advance(1_000);
    expect(await work.outcome()).toMatchObject({ ending: "time_limit" });
  });

  test("BUD-2 a reservation is given back when the store fails after it was taken", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": ANSWERS },
      tree: { limits: { tokensPerTree: 100_000 } },
    });
    const { tree } = h.tree.control;
    const read = tree.read.bind(tree);
    let fail = true;
    tree.read = async (plan) => {
      const value = await read(plan);
      if (!fail || tree.reservations.reserved("/root", "tokens") === 0) return value;
      fail = false;
      throw new TransientError("STORE_IO", "the disk failed");
    };
    const work = await h.tree.root.send("go");
    await h.clock.advance(60_000);
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    expect({ fail, reserved: tree.reservations.reserved("/root", "tokens") }).toEqual({
      fail: false,
      reserved: 0,
    });
  });
});
