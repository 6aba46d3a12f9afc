/** What is looked for in a long thread, or in a large lineage, is found without walking through it. */
import { describe, expect, test } from "vitest";
import { isKnown, orphansAmong } from "../../src/control/fork-intents.ts";
import type { ThreadId } from "../../src/protocol/ids.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { turnFork } from "../../src/providers/scripted/native/provider.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { counted } from "../support/counted.ts";
import { harness, STORES } from "../support/harness.ts";

const done = { "*": [repeat(say("done"))] };

describe.each(STORES)("on %s", (store) => {
  test("C13.6 how much of a thread's history is there costs the same after five runs and after forty", async () => {
    const costOf = async (runs: number) => {
      await using h = await harness({ store, scripts: done, tree: { limits: { runsPerMinute: null } } });
      for (let n = 0; n < runs; n += 1) await h.ask(`question ${n}`);
      await h.runtime.threads.sync(h.tree.id);
      const { store: watched, rows } = counted(h.store);
      await using runtime = await createRuntime({
        store: watched,
        clock: h.clock,
        providers: { scripted: h.provider },
      });
      const page = await runtime.threads.history(h.tree.id, { limit: 1 });
      expect(page.level).toBe("complete");
      return rows();
    };
    expect(await costOf(40)).toBe(await costOf(5));
  });

  test("C5.19 whose a conversation is costs the same in a lineage of two threads and of twenty", async () => {
    const costOf = async (forks: number) => {
      const a = turnFork(done);
      await using h = await harness({ store, others: { a }, tree: { provider: "a" } });
      await h.ask("one");
      const { threads } = h.runtime;
      const ids: string[] = [];
      for (let n = 0; n < forks; n += 1) ids.push((await threads.fork(h.tree.id)).thread.id);
      await (await threads.continue(ids[0]!, "two")).outcome();
      const [transfer] = await h.store.read(
        (view) => view.transfersOf(ids.at(-1) as ThreadId, { limit: 1 }).rows,
      );
      const [mine] = await h.store.read((view) => view.providerThreadsOf(ids[0] as ThreadId));
      const ref = mine!.nativeThreadRef!;
      const { store: watched, rows } = counted(h.store);
      const nobodys = { ref: { ...ref, nativeId: "nobody's" }, head: null, turns: [], forkedFrom: null };
      await watched.read((view) => {
        expect(isKnown(view, h.tree.id, ref, "in_use")).toBe(true);
        const found = orphansAmong(view, transfer!, ref.driver, [{ ...nobodys, ref }, nobodys]);
        expect(found.orphans).toEqual([nobodys]);
        // Neither is one of another lineage.
        expect(isKnown(view, h.tree.id, { ...ref, driver: "other" }, "any")).toBe(false);
      });
      return rows();
    };
    expect(await costOf(20)).toBe(await costOf(2));
  });
});
