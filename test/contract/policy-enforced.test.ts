/** POL-2: what narrows is enforced by the provider, or there is no such agent. */
import { describe, expect, test } from "vitest";
import type { Effect } from "../../src/protocol/agent.ts";
import { turnFork } from "../../src/providers/scripted/native/provider.ts";
import { approve, ask, call, repeat, say } from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const MORE = repeat(say("more"));

/** Its own tools always read and write; the rest it withholds as it is told. */
function writing() {
  const effectiveEffects = (effects: readonly Effect[]): readonly Effect[] => [
    ...new Set<Effect>(["read", "write", ...effects]),
  ];
  return turnFork({ "*": [MORE] }, { effectiveEffects });
}

describe.each(STORES)("a provider that cannot keep an effect from its agents, on %s", (store) => {
  test("POL-2 a spawn that narrows more than it can enforce is refused, and nothing is made or asked", async () => {
    const native = writing();
    await using h = await harness({ store, others: { native }, scripts: { "*": [MORE] } });
    const { root } = h.tree;
    const refused = root.spawn("w", "look", { provider: "native", effects: ["read"] });
    await expect(refused).rejects.toMatchObject({
      code: "POLICY_UNMET",
      message: expect.stringMatching(/`native` cannot keep write .* allow write as well/),
      details: { provider: "native", effects: ["read"], unmet: ["write"] },
    });
    expect(await h.tree.counts()).toMatchObject({ registered: 1 });
    expect(native.calls("openSession")).toEqual([]);
    const { agent, work } = await root.spawn("w", "look", { provider: "native", effects: ["read", "write"] });
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    expect((await agent.record()).config.effects).toEqual(["read", "write"]);
  });

  test("POL-2 a model that spawns one is refused with a result that says what to do", async () => {
    await using h = await harness({
      store,
      others: { native: writing() },
      scripts: {
        "/root": [
          call("spawn_agent", { task_name: "w", message: "m", model: "native/any", effects: [] }),
          MORE,
        ],
      },
    });
    const look = new Look(h);
    await h.ask("go");
    const [output] = await look.outputs("/root", "spawn_agent");
    expect(output).toMatchObject({ isError: true });
    expect(JSON.stringify(output)).toContain("choose another provider");
  });

  test("POL-2 a thread does not go over to it either", async () => {
    await using h = await harness({
      store,
      others: { native: writing() },
      tree: { effects: ["read"] },
      scripts: { "*": [MORE] },
    });
    await h.ask("go");
    const switched = h.runtime.threads.select(h.tree.id, { provider: "native" });
    await expect(switched).rejects.toMatchObject({ code: "POLICY_UNMET" });
    expect((await h.tree.root.record()).config.provider).not.toBe("native");
  });

  test("RES-8 a load after its ancestors were narrowed is `policy_unmet`", async () => {
    const native = writing();
    await using h = await harness({
      store,
      others: { native },
      runtime: { limits: { residents: 1 } },
      scripts: { "*": [MORE] },
    });
    const look = new Look(h);
    const { agent, work } = await h.tree.root.spawn("w", "look", { provider: "native" });
    await work.outcome();
    await (await h.tree.root.spawn("x", "look")).work.outcome();
    expect((await agent.summary()).resident).toBe(false);
    const opened = native.calls("openSession").length;
    await h.tree.control.tree.transact((tx) => {
      const root = tx.agent(h.tree.id);
      tx.putAgent(root, { config: { ...root.config, effects: ["read"] } });
    });
    const again = await agent.send("again");
    expect(await again.outcome()).toMatchObject({ ending: "failed", error: { code: "LOAD_FAILED" } });
    expect((await again.record()).outcome!.error!.message).toContain("policy_unmet");
    expect((await look.events("agent.load_failed"))[0]!.data).toMatchObject({ retryable: false });
    expect(native.calls("openSession")).toHaveLength(opened);
  });
});

describe.each(STORES)("what an agent asks for, on %s", (store) => {
  const about = { tool: "shell", input: '{"command":"rm -rf build"}' };

  test.each(["native", "scripted"])(
    "WAI-2 an approval of %s names the call that it is about",
    async (provider) => {
      const script = [approve("remove it?", about), ask("and then?"), say("done")];
      await using h = await harness({
        store,
        others: { native: turnFork({ "/root": script }) },
        scripts: { "/root": script },
        tree: { provider },
      });
      const look = new Look(h);
      const work = await h.tree.root.send("go");
      await look.until("it asks", async () => (await h.tree.requests()).length === 1);
      const [asked] = await h.tree.requests();
      expect(asked).toMatchObject({ kind: "approval", text: "remove it?", about });
      await h.tree.answer(asked!.id, "approved");
      await look.until("it asks again", async () => (await h.tree.requests())[0]?.kind === "question");
      expect((await h.tree.requests())[0]).not.toHaveProperty("about");
      await h.tree.answer((await h.tree.requests())[0]!.id, "nothing");
      expect(await work.outcome()).toMatchObject({ ending: "completed" });
    },
  );
});
