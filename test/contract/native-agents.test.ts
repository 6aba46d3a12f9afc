/** C8.1: agents of a provider's own below a run, as its readers see them. */
import { describe, expect, test } from "vitest";
import { TreeReader } from "../../src/runtime/tree-reader.ts";
import { harness, STORES } from "../support/harness.ts";
import { puppet, puppetRef, type PuppetTurn } from "../support/puppet.ts";

describe.each(STORES)("agents of a provider's own, on %s", (store) => {
  async function shown(play: (turn: PuppetTurn) => void) {
    const native = puppet(async (turn) => {
      play(turn);
      turn.say("done");
    });
    const h = await harness({
      store,
      scripts: { "*": [] },
      others: { native },
      tree: { provider: "native" },
    });
    const reader = new TreeReader(h.store, h.tree.id);
    const natives = async () => reader.nativeAgents((await reader.agents()).agents);
    return { h, natives };
  }

  test("C8.1 stand under their agent with what they were asked and what came of it, those of the newest run", async () => {
    let run = 0;
    const { h: opened, natives } = await shown(({ tell }) => {
      run += 1;
      const child = puppetRef("one");
      tell({ type: "child.started", child, prompt: `look ${run}` });
      tell({
        type: "child.terminal",
        child,
        outcome: run === 1 ? "failed" : "completed",
        text: `found ${run}`,
      });
    });
    await using h = opened;
    await h.ask("go");
    expect(await natives()).toEqual([
      { under: "/root", prompt: "look 1", outcome: "failed", text: "found 1" },
    ]);
    await h.ask("on");
    expect(await natives()).toEqual([
      { under: "/root", prompt: "look 2", outcome: "completed", text: "found 2" },
    ]);
  });

  test("C8.1 REC-5 one whose end was never told is interrupted with its run", async () => {
    const { h: opened, natives } = await shown(({ tell }) =>
      tell({ type: "child.started", child: puppetRef("one"), prompt: "look" }),
    );
    await using h = opened;
    await h.ask("go");
    expect(await natives()).toMatchObject([{ prompt: "look", outcome: "interrupted" }]);
    const ends = (await h.tree.log()).filter(({ type }) => type === "child.ended");
    expect(ends.map(({ data }) => data["outcome"])).toEqual(["interrupted"]);
    const records = await h.store.read((view) => view.providerThreadsOf(h.tree.root.threadId));
    expect(records.map(({ status }) => status)).toEqual(["idle", "idle"]);
  });
});
