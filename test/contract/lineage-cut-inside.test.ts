/** Forks that are cut inside a run tell of the state at the cut, and of nothing that came later (C5.5, C15.7, C7.7). */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { ThreadId } from "../../src/protocol/ids.ts";
import { call, repeat, say } from "../../src/providers/scripted/script.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { harness, type Harness, STORES } from "../support/harness.ts";

async function run(h: Harness, message: string, thread: ThreadId = h.tree.id) {
  const work = await h.runtime.threads.continue(thread, message);
  const tree = await h.runtime.openTree({ id: thread });
  expect(await tree.work(work.id).outcome()).toMatchObject({ ending: "completed" });
  await h.clock.settle();
}

const sent = (h: Harness): string => JSON.stringify(h.provider.requests("/root").at(-1)!.messages);

/** A fork of the tree's root after the first result of this tool. */
async function forkAfter(h: Harness, tool: string): Promise<ThreadId> {
  const items = await h.tree.root.transcript();
  const result = items.find((item) => item.kind === "tool_result" && item.name === tool)!;
  const at = { kind: "message", seq: result.index + 1 } as const;
  const { thread } = await h.runtime.threads.fork(h.tree.id, { at, policy: { strategy: "replay" } });
  return thread.id;
}

describe.each(STORES)("a fork that is cut inside a run, on %s", (store) => {
  test("C5.5 C9.3 inherits what was pinned by the last run that is left before it", async () => {
    const script = [say("1"), say("2"), say("3"), call("list_agents"), say("4"), repeat(say("later"))];
    await using h = await harness({ store, scripts: { "/root": script } });
    const { threads } = h.runtime;
    await threads.pin(h.tree.id, "decisions", "a pin that is left");
    await run(h, "q1;");
    await run(h, "q2;");
    await threads.pin(h.tree.id, "decisions", "a pin that goes");
    await run(h, "q3;");
    await threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal: 2 } });
    await run(h, "q4;");
    const fork = await forkAfter(h, "list_agents");
    await run(h, "f1;", fork);
    expect((await threads.context(fork))!.decisions.map(({ text }) => text)).toEqual(["a pin that is left"]);
    expect(sent(h)).not.toContain("a pin that goes");
  });

  test("C5.5 C15.7 S2-23 is told neither later pins, nor the checkpoint, nor the end of that run", async () => {
    const pin = call("pin_context", { section: "decisions", text: "a later pin" });
    const script = [say("1"), call("list_agents"), pin, say("2"), repeat(say("later"))];
    await using h = await harness({ store, scripts: { "/root": script } });
    await run(h, "q1;");
    await run(h, "q2;");
    const fork = await forkAfter(h, "list_agents");
    await run(h, "f1;", fork);
    const [first, second] = await h.store.read((view) =>
      [1, 2].map((ordinal) => view.runAt(h.tree.id, ordinal)!.checkpoint!.id),
    );
    const told = sent(h);
    for (const part of ["a later pin", second!, "runs 1 to 2 (scripted)"]) expect(told).not.toContain(part);
    for (const part of [first!, "run 1 (scripted): completed", "run 2 (scripted): running"])
      expect(told).toContain(part);
  });

  test("C7.7 files that the parent changed in the rest of that run are conflicts too", async () => {
    const write = defineTool({
      name: "write_file",
      description: "Writes a file.",
      input: z.object({ path: z.string() }),
      effects: ["write"],
      run: () => Promise.resolve("written"),
    });
    const both = call("write_file", { path: "both.txt" });
    const script = [call("list_agents"), both, say("1"), both, say("fork"), repeat(say("later"))];
    await using h = await harness({ store, runtime: { tools: [write] }, scripts: { "/root": script } });
    await run(h, "q1;");
    const fork = await forkAfter(h, "list_agents");
    await run(h, "f1;", fork);
    await h.runtime.threads.mergeBack(fork);
    await run(h, "q2;");
    expect(sent(h)).toMatch(/Conflicts.*both\.txt/);
  });
});

describe.each(STORES)("a fork of a fork that has not run yet, on %s", (store) => {
  test("C5.22 C5.1 is a fork of the nearest ancestor whose own the point is", async () => {
    const script = [say("1"), call("list_agents"), say("2"), repeat(say("later"))];
    await using h = await harness({ store, scripts: { "/root": script } });
    const { threads } = h.runtime;
    await run(h, "q1;");
    await run(h, "q2;");
    const whole = (await threads.fork(h.tree.id)).thread.id;
    const inside = await forkAfter(h, "list_agents");
    await run(h, "q3;");
    for (const [of, at, expected] of [
      [whole, undefined, whole],
      [inside, undefined, inside],
      [(await threads.fork(whole)).thread.id, undefined, whole],
      [whole, { kind: "message", seq: 3 }, { ordinal: 1, items: 3 }],
    ] as const) {
      const { thread, transfer } = await threads.fork(of, at === undefined ? {} : { at });
      const { ordinal, items } =
        typeof expected === "string" ? (await threads.get(expected)).forkedFrom!.point : expected;
      expect(thread.lineage.parentThreadId).toBe(h.tree.id);
      expect(transfer.sourcePoint).toMatchObject({ threadId: h.tree.id, ordinal, items });
      await run(h, "f1;", thread.id);
      expect(sent(h)).not.toContain("q3;");
    }
    const beyond = threads.fork(whole, { at: { kind: "message", seq: 90 } });
    await expect(beyond).rejects.toMatchObject({ code: "SOURCE_POINT_NOT_FOUND" });
  });
});

test("C6.8 C5.22 threads that are further up than a text goes are counted in it", async () => {
  await using h = await harness({ scripts: { "/root": [repeat(say("ok"))] } });
  await run(h, "deep0;");
  let at = h.tree.id;
  for (let n = 1; n <= 12; n += 1) {
    at = (await h.runtime.threads.fork(at, { policy: { strategy: "replay" } })).thread.id;
    await run(h, `deep${n};`, at);
  }
  const told = sent(h);
  const missing = Array.from({ length: 13 }, (_, n) => n).filter((n) => !told.includes(`deep${n};`));
  expect(missing).toEqual([0]);
  expect(told).toContain("1 threads further up");
});
