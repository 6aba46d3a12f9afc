/** What a life of a thread costs, and what a failed commit leaves of it (lineage C5.4, C11.6). */
import { describe, expect, test } from "vitest";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { counted } from "../support/counted.ts";
import { harness, STORES } from "../support/harness.ts";

describe.each(STORES)("on %s", (store) => {
  test("S0-2 C5.4 to make and to fork a thread costs the same after five runs and after sixty, and asks no provider", async () => {
    const costOf = async (runs: number) => {
      await using h = await harness({
        store,
        scripts: { "/root": [repeat(say("done"))] },
        tree: { limits: { runsPerMinute: null } },
      });
      for (let n = 0; n < runs; n += 1) await h.ask(`question ${n}`);
      const requests = h.provider.requests("/root").length;
      const { store: watched, asked } = counted(h.store);
      const options = { store: watched, clock: h.clock, providers: { scripted: h.provider } };
      await using runtime = await createRuntime(options);
      await runtime.threads.create({ parent: h.tree.id });
      await runtime.threads.fork(h.tree.id);
      expect(h.provider.requests("/root")).toHaveLength(requests);
      return asked();
    };
    expect(await costOf(60)).toBe(await costOf(5));
  });

  test("S1-68 S1-52 C11.3 C11.6 a settle that was not stored leaves no snapshot, and is projected again alike", async () => {
    await using h = await harness({ store, scripts: { "/root": [repeat(say("done"))] } });
    await h.ask("one");
    const { tree } = h.tree.control;
    const revision = (await h.tree.root.record()).revision;
    const failed = tree.transact((tx) => {
      tx.store.putSnapshot({ ...tx.store.snapshot(h.tree.id, 1)!, revision: 2 });
      throw new Error("the disk is gone");
    });
    await expect(failed).rejects.toThrow("the disk is gone");
    expect(await h.store.read((view) => view.snapshot(h.tree.id, 2))).toBeUndefined();
    expect((await h.tree.root.record()).revision).toBe(revision);
    await h.ask("two");
    const stored = await h.store.read((view) => view.snapshot(h.tree.id, 2));
    expect((await h.runtime.threads.get(h.tree.id)).currentContext).toEqual({
      revision: 2,
      digest: stored!.digest,
    });
    // Who planned on an earlier revision writes nothing.
    await expect(
      h.runtime.threads.continue(h.tree.id, "three", { expectedRevision: revision }),
    ).rejects.toMatchObject({
      code: "THREAD_REVISION_CONFLICT",
    });
  });
});
