/** MBX-5, C4.16: input that waits for a run of its own, and the run that it waits for. */
import { describe, expect, test } from "vitest";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { fail, gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const reads = (who: string) => repeat(say(({ inputs }) => `${who}: ${inputs.at(-1)}`));

describe.each(STORES)("input for the next run on %s", (store) => {
  test("MBX-5 C4.16 RUN-3 for another provider: the run under way ends with its answer, and the next one begins there", async () => {
    const other = scripted({ "*": [reads("other")] });
    await using h = await harness({
      store,
      scripts: { "/root": [together(gate("busy"), say("one")), repeat(say("again"))] },
      others: { other },
    });
    const first = await h.tree.root.send("first");
    await h.provider.gates.arrived("busy");
    const second = await h.tree.root.send("second", { provider: "other" });
    h.provider.gates.open("busy");
    expect(await first.outcome()).toMatchObject({ ending: "completed", text: "one" });
    expect(await second.outcome()).toMatchObject({ ending: "completed", text: "other: second" });
    expect(h.provider.requests("/root")).toHaveLength(1);
    const runs = await look(h).runs("/root");
    expect(runs.map(({ provider, steps }) => [provider, steps])).toEqual([
      ["scripted", 1],
      ["other", 1],
    ]);
  });

  test.for([
    ["another provider", { provider: "other", onBusy: "queue" }, "other: second"],
    ["another provider as a steer", { provider: "other" }, "other: second"],
    ["its own provider", { onBusy: "queue" }, "own: second"],
  ] as const)(
    "MBX-5 C4.16 for %s: no run takes it that was reserved before, accepted or not",
    async ([, options, text]) => {
      const other = scripted({ "*": [reads("other")] });
      await using h = await harness({
        store,
        scripts: { "/root": [fail({ retryAfterMs: 5_000 }), reads("own")] },
        others: { other },
      });
      const first = await h.tree.root.send("first");
      await h.clock.settle();
      const second = await h.tree.root.send("second", options);
      await h.clock.advance(10_000);
      expect(await first.outcome()).toMatchObject({ ending: "completed", text: "own: first" });
      expect(await second.outcome()).toMatchObject({ ending: "completed", text });
      expect((await look(h).runs("/root")).map(({ serves }) => serves)).toEqual([[first.id], [second.id]]);
    },
  );

  test("MBX-5 MBX-15 it does not end with a run that was refused before it, though later mail does", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [fail({ retryAfterMs: 5_000 }), fail({ code: "PROVIDER_REFUSED" }), reads("own")],
      },
    });
    const first = await h.tree.root.send("first");
    await h.clock.settle();
    const queued = await h.tree.root.send("queued", { onBusy: "queue" });
    const joined = await h.tree.root.send("joined");
    await h.clock.advance(10_000);
    expect(await first.outcome()).toMatchObject({ ending: "provider_error" });
    expect(await joined.outcome()).toMatchObject({ ending: "provider_error" });
    expect(await queued.outcome()).toMatchObject({ ending: "completed", text: "own: queued" });
  });
});
