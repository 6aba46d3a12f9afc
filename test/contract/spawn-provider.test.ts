/** The provider that a spawn names (SPN-7). */
import { describe, expect, test } from "vitest";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { say, spawn } from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

describe.each(STORES)("the provider of a spawn on %s", (store) => {
  test("SPN-7 a spawn names its provider: on that one's default model, and none that there is not", async () => {
    const other = scripted({ "*": [say("from there")] }, { models: { big: {}, small: {} } });
    await using h = await harness({
      store,
      others: { other },
      runtime: { subagents: { model: "scripted" } },
      scripts: {
        "/root": [
          spawn("there", "go", { provider: "other", fork_turns: "none" }),
          spawn("small", "go", { provider: "other", model: "small", fork_turns: "none" }),
          spawn("nowhere", "go", { provider: "nobody" }),
          say("done"),
        ],
      },
    });
    await h.ask("start");
    const outputs = await look(h).outputs("/root", "spawn_agent");
    expect(outputs.map(({ isError }) => isError)).toEqual([false, false, true]);
    expect(JSON.stringify(outputs[2]!.output)).toContain("configured providers: scripted, other");
    const summaryOf = async (path: string) => (await h.tree.agent(path)).summary();
    expect(await summaryOf("/root/there")).toMatchObject({ provider: "other", model: "big" });
    expect(await summaryOf("/root/small")).toMatchObject({ provider: "other", model: "small" });
  });

  test("SPN-7 `codex` takes no provider", async () => {
    await using h = await harness({
      store,
      tree: { profile: "codex" },
      scripts: { "/root": [spawn("w", "go", { provider: "scripted" }), say("done")] },
    });
    await h.ask("start");
    const [refused] = await look(h).outputs("/root", "spawn_agent");
    expect(refused).toMatchObject({ isError: true });
    expect(JSON.stringify(refused!.output)).toContain("provider");
  });
});
