/** Schemas and answers that are there to hold up the process. */
import { describe, expect, test } from "vitest";
import { call, gate, say, together } from "../../src/providers/scripted/script.ts";
import { turn } from "../../src/testing/virtual-clock.ts";
import { harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const CALLS = 5;
const backtracks = { type: "object", properties: { a: { type: "string", pattern: "^(a+)+$" } } };
const result = { a: `${"a".repeat(60)}!` };

describe.each(STORES)("slow checks on %s", (store) => {
  test("WRK-8 REC-6 the checks of several results leave the event loop its turns in between", async () => {
    const reports = Array.from({ length: CALLS }, () => call("report_result", { result }));
    await using h = await harness({
      store,
      scripts: { "/root/w": [gate("go"), together(...reports), gate("end"), say("no JSON")] },
      tree: { limits: { schemaRepairs: 0 } },
    });
    const { work } = await h.tree.root.spawn("w", "go", { outputSchema: backtracks });
    await h.provider.gates.arrived("go");
    h.provider.gates.open("go");
    let longest = 0;
    const began = performance.now();
    const occupied = (): boolean => h.provider.gates.occupied().some((name) => String(name).includes("end"));
    for (let last = began; !occupied(); last = performance.now()) {
      await turn();
      longest = Math.max(longest, performance.now() - last);
    }
    // All in one turn would be as long as the whole.
    expect(longest).toBeLessThan((performance.now() - began) * 0.7);
    const outputs = await look(h).outputs("/root/w", "report_result");
    expect(outputs.map(({ isError }) => isError)).toEqual(Array(CALLS).fill(true));
    expect(JSON.stringify(outputs[0]!.output)).toContain("it takes too long to be checked");
    h.provider.gates.open("end");
    expect(await work.outcome()).toMatchObject({ ending: "schema_failed" });
  });
});

describe.each(STORES)("long answers on %s", (store) => {
  test("REC-6 WRK-7 a long answer is whole in its outcome, and its head alone in the record of its run", async () => {
    const [whole, partial] = ["a".repeat(300_000), "b".repeat(200_000)];
    await using h = await harness({
      store,
      scripts: { "/root/w": [say(whole)], "/root/p": [together(say(partial), gate("never"))] },
    });
    const { work } = await h.tree.root.spawn("w", "go");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: whole });
    expect((await look(h).runs("/root/w"))[0]!.text).toBe(whole.slice(0, 64 * 1024));
    const cut = await h.tree.root.spawn("p", "go");
    await h.provider.gates.arrived("never");
    await cut.agent.interrupt();
    expect(await cut.work.outcome()).toMatchObject({ ending: "interrupted", text: partial });
  });
});
