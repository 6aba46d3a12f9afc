/** SEC-3 for text that is shown while it streams. */
import { describe, expect, test } from "vitest";
import { gate, say, together } from "../../src/providers/scripted/script.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";

describe.each(STORES)("text as it streams on %s", (store) => {
  test("SEC-3 OBS-1 progress shows no secret, split over deltas in every position", async () => {
    const text = "the key is swordfish-1 and password=hunter2 is not said";
    const splits = Array.from(text, (_, at) => together(say(text.slice(0, at)), say(text.slice(at))));
    await using h = await harness({
      store,
      runtime: { secrets: ["swordfish-1"] },
      scripts: { "/root": splits },
    });
    const shown = watch(h);
    for (const _ of splits) expect(await h.ask("go")).toMatchObject({ ending: "completed", text });
    await h.tree.close();
    expect(await shown).toBe("the key is *** and password=*** is not said".repeat(splits.length));
  });

  test("SEC-3 what is undecided when a response is cut off is not shown", async () => {
    const half = `sk-${"k".repeat(12)}`;
    await using h = await harness({
      store,
      scripts: { "/root": [together(say(`first ${half}`), gate("cut"), say(half))] },
    });
    const shown = watch(h);
    const asked = await h.tree.root.send("go");
    await h.provider.gates.arrived("cut");
    await h.tree.root.interrupt();
    expect(await asked.outcome()).toMatchObject({ ending: "interrupted", text: `first ${half}` });
    h.provider.gates.open("cut");
    expect(await h.ask("again")).toMatchObject({ text: `first ${half}${half}` });
    await h.tree.close();
    expect(await shown).toBe("first first ***");
  });
});

/** All the text that is shown until the tree is given back. */
async function watch(h: Harness): Promise<string> {
  let shown = "";
  for await (const event of h.tree.events({ progress: true }))
    if (event.type === "progress") shown += event.text;
  return shown;
}
