/** Threads that have changed their provider very often: what a start reads does not grow with how often (C20.16). */
import { expect, test, describe } from "vitest";
import { NOTHING_TRIED, startFacts } from "../../src/control/start-facts.ts";
import { destinationOf } from "../../src/control/start.ts";
import type { ThreadAgent } from "../../src/control/start-request.ts";
import type { Look } from "../../src/control/transaction.ts";
import { DEFAULT_LINEAGE_LIMITS } from "../../src/protocol/lineage-limits.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import type { StoreView } from "../../src/store/port.ts";
import { harness, STORES } from "../support/harness.ts";

const SWITCHES = 40;

/** The same look, and how many handoffs were read through it. */
function counting(look: Look): { readonly look: Look; readonly reads: () => number } {
  let reads = 0;
  const handoff: StoreView["handoff"] = (id) => {
    reads += 1;
    return look.store.handoff(id);
  };
  const store = Object.create(look.store, { handoff: { value: handoff } }) as StoreView;
  return { look: Object.create(look, { store: { value: store } }) as Look, reads: () => reads };
}

describe.each(STORES)("a thread of many switches on %s", (store) => {
  test("C20.16 C4.3: a start reads what the provider thread that it goes on with was told, and nothing of the others", async () => {
    const b = scripted({ "/root": [repeat(say("from B"))] });
    await using h = await harness({ store, scripts: { "/root": [repeat(say("from A"))] }, others: { b } });
    for (let at = 1; at <= SWITCHES; at += 1) {
      const work = await h.tree.root.send(`question ${at}`, { provider: at % 2 === 1 ? "scripted" : "b" });
      expect((await work.outcome()).ending).toBe("completed");
    }
    const { rows } = await h.runtime.threads.handoffs(h.tree.id, { limit: 100 });
    expect(rows.length).toBe(SWITCHES - 1);

    const { tree } = h.tree.control;
    const adapter = tree.shared.adapter("b")!;
    if (adapter.loop !== "ours") throw new Error("a scripted provider's loop is ours");
    const to = destinationOf(adapter, { provider: "b", model: null }, adapter.threads);
    const { facts, reads } = await tree.look((look) => {
      const counted = counting(look);
      const agent = look.agent(h.tree.id) as ThreadAgent;
      const found = startFacts(
        counted.look,
        agent,
        { causes: [], ordinal: agent.runs + 1 },
        [],
        to,
        NOTHING_TRIED,
      );
      return { facts: found, reads: counted.reads() };
    });
    const newest = facts.providerThreads.findLast(({ provider }) => provider === "b")!;
    expect(facts.handoffs.map(({ id }) => id)).toEqual(newest.handoffIds);
    // One that was told more often is gone on with no more.
    expect(reads).toBeLessThanOrEqual(DEFAULT_LINEAGE_LIMITS.handoffsHard + 1);
  });
});
