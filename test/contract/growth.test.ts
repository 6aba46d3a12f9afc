/** What is done over and over, at each step, commit or poll, costs the same however much there is that does not concern it. */
import { describe, expect, test } from "vitest";
import { followUp, gate, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { counted } from "../support/counted.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";

/** A new runtime on the same store, all of whose reads are counted. */
async function watched(h: Harness): Promise<() => number> {
  const { store, rows } = counted(h.store);
  h.cut();
  h.store = store;
  h.runtime = await h.newRuntime();
  h.tree = await h.runtime.openTree({ id: h.tree.id });
  return rows;
}

/** Rows read until a script comes to a gate, which is opened then. */
async function upTo(h: Harness, name: string, rows: () => number): Promise<number> {
  await h.provider.gates.arrived(name);
  const read = rows();
  h.provider.gates.open(name);
  return read;
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
      const rows = await watched(h);
      const asked = h.ask("go");
      const before = await upTo(h, "before", rows);
      const after = await upTo(h, "after", rows);
      expect(await asked).toMatchObject({ ending: "completed", text: "done" });
      return after - before;
    };
    expect(await costOf(30)).toBe(await costOf(3));
  });
});
