/** ACC-4, of two requests whose results are to be of different shapes. */
import { describe, expect, test } from "vitest";
import { followUp, gate, list, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

describe.each(STORES)("acceptance of results on %s", (store) => {
  test("ACC-4 several requests in one run: the one answer is held to each request's own schema", async () => {
    const needs = (name: string) => ({
      output_schema: { type: "object", properties: { [name]: { type: "number" } }, required: [name] },
      acceptance: `has ${name}`,
    });
    await using h = await harness({
      store,
      tree: { limits: { schemaRepairs: 0 } },
      scripts: {
        "/root/a": [followUp("/root/b", "for a", needs("n")), repeat(say("a is done"))],
        "/root/d": [followUp("/root/b", "for d", needs("m")), repeat(say("d is done"))],
        "/root/b": [say("ready"), together(gate("both"), list()), say('{"n": 1}'), repeat(say("more"))],
      },
    });
    await (await h.tree.root.spawn("b", "be ready")).work.outcome();
    await h.tree.root.spawn("a", "x");
    await h.tree.root.spawn("d", "y");
    await h.provider.gates.arrived("both");
    await waitUntil("both have asked", async () => (await look(h).works("/root/b")).length === 3);
    h.provider.gates.open("both");
    await h.tree.idle();
    const works = await look(h).works("/root/b");
    const [forA, forD] = ["for a", "for d"].map((asked) =>
      works.find(({ objective }) => objective === asked)!,
    );
    expect(forA!.outcome).toMatchObject({ ending: "completed", shared: true, value: { n: 1 } });
    expect(forD!.outcome).toMatchObject({ ending: "schema_failed", shared: true, value: null });
    expect(forD!.outcome!.runId).toBe(forA!.outcome!.runId);
    expect([forA!.acceptance, forD!.acceptance]).toEqual(["has n", "has m"]);
    expect(look(h).inputs("/root/b", 1).concat(look(h).inputs("/root/b", 2)).join()).toMatch(
      /has [nm][^]*has [nm]/,
    );
  });
});
