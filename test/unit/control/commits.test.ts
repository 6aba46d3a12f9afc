/** What a run costs in commits: one for each thing that it changes, none for a look at what is there. */
import { describe, expect, test } from "vitest";
import { gate, list, say, spawn, together, wait } from "../../../src/providers/scripted/script.ts";
import { type Harness, harness, STORES } from "../../support/harness.ts";

/** Commits from now on. */
function counted(h: Harness): () => number {
  let commits = 0;
  h.onWrite = (_, kind) => {
    if (kind === "commit") commits += 1;
    return null;
  };
  return () => commits;
}

describe.each(STORES)("commits on %s", (store) => {
  test("a run that answers: the request, the run with the load that it wants, acceptance, answer", async () => {
    await using h = await harness({ store, scripts: { "/root": [say("ok")] } });
    const commits = counted(h);
    await h.ask("go");
    expect(commits()).toBe(4);
    const types = (await h.tree.log(0, 500)).map(({ type }) => type);
    expect(types.indexOf("run.reserved")).toBe(types.indexOf("agent.loaded") + 1);
  });

  test("a step with a tool call: acceptance, step, result", async () => {
    await using h = await harness({ store, scripts: { "/root": [list(), say("ok")] } });
    const commits = counted(h);
    await h.ask("go");
    expect(commits()).toBe(4 + 3);
  });

  test("a wait that ends: the return, the output, then a request like any other", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("a", "look", { fork_turns: "none" }), wait({ targets: ["a"] }), say("ok")],
        "/root/a": [together(gate("a"), say("a"))],
      },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("a");
    await h.clock.settle();
    const commits = counted(h);
    h.provider.gates.open("a");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    // The answer of the child, which ends the wait; then return, output, acceptance, answer.
    expect(commits()).toBe(1 + 4);
  });
});
