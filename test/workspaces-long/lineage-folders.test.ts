/** A checkpoint that is written back has its folder alone, whichever tree or path an agent comes by (lineage C1.18). */
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { gitCapture } from "../../src/platform/workspace/git-capture.ts";
import type { WorkspaceCapture } from "../../src/platform/workspace/port.ts";
import { gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { harness, STORES } from "../support/harness.ts";
import { temporaryFolder, TestRepository } from "../support/repository.ts";

/** Real processes, on a machine that may be busy. */
const processes = { timeout: 120_000 };

/** Stops before it writes anything back until it is let go. */
function held(): {
  readonly capture: WorkspaceCapture;
  readonly begun: Promise<void>;
  readonly go: () => void;
} {
  const git = gitCapture();
  const begun = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const capture: WorkspaceCapture = {
    ...git,
    async restore(...given) {
      begun.resolve();
      await released.promise;
      return git.restore(...given);
    },
  };
  return { capture, begun: begun.promise, go: released.resolve };
}

describe.each(STORES)("folders on %s", processes, (store) => {
  async function open() {
    const above = temporaryFolder();
    const [same, beside, link] = [join(above, "repo"), join(above, "repo-beside"), join(above, "link")];
    for (const folder of [same, beside]) mkdirSync(folder);
    symlinkSync(same, link);
    const r = new TestRepository(same);
    r.commit({ "a.txt": "a\n", "sub/b.txt": "b\n" });
    const { capture, begun, go } = held();
    const b = scripted({ "*": [repeat(together(gate("b"), say("b is done")))] });
    const h = await harness({
      store,
      others: { b },
      runtime: { workspaceCapture: capture },
      tree: { workspace: same },
      scripts: { "/root": [repeat(say("done"))], "/root/kid": [together(gate("kid"), say("kid is done"))] },
    });
    onTestFinished(() => h[Symbol.asyncDispose]());
    onTestFinished(go);
    await h.ask("one");
    await h.tree.control.tree.jobs.of(h.tree.id);
    const [first] = (await h.runtime.threads.checkpoints(h.tree.id)).rows;
    const restore = () => h.runtime.threads.restoreCheckpoint(h.tree.id, { run: first!.runId });
    const at = { "link/sub": join(link, "sub"), above, beside };
    return { h, b, restore, begun, go, at };
  }

  test.for(["link/sub", "above"] as const)(
    "C1.18 nothing is written back while a run of another tree is active there: %s",
    async (where) => {
      const { h, b, restore, go, at } = await open();
      go();
      const other = await h.runtime.openTree({ workspace: at[where], provider: "b" });
      const work = await other.root.send("go");
      await b.gates.arrived("b");
      const [run] = await h.store.read((view) => view.openRuns(other.id));
      const busy = { code: "THREAD_BUSY", details: { executionId: run!.id } };
      await expect(restore()).rejects.toMatchObject(busy);
      b.gates.openAll();
      await work.outcome();
      await other.control.tree.jobs.of(other.id);
      expect(await restore()).toMatchObject({ status: "ready" });
    },
  );

  test("C1.18 nor while a run of a fork is; a run in a folder beside it is in nobody's way", async () => {
    const { h, b, restore, go, at } = await open();
    go();
    const beside = await h.runtime.openTree({ workspace: at.beside, provider: "b" });
    await beside.root.send("go");
    await b.gates.arrived("b");
    expect(await restore()).toMatchObject({ status: "ready" });
    const { thread } = await h.runtime.threads.fork(h.tree.id);
    const work = await h.runtime.threads.continue(thread.id, "go", { provider: "b" });
    await b.gates.arrived("b", 2);
    await expect(restore()).rejects.toMatchObject({ code: "THREAD_BUSY" });
    b.gates.openAll();
    await work.outcome();
  });

  test("C1.18 a child, and another tree, that are to begin there meanwhile begin when it is written back", async () => {
    const { h, b, restore, begun, go, at } = await open();
    const restoring = restore();
    await begun;
    await h.tree.root.spawn("kid", "go");
    const other = await h.runtime.openTree({ workspace: at["link/sub"], provider: "b" });
    const work = await other.root.send("go");
    await h.clock.settle();
    expect([h.provider.requests("/root/kid").length, b.requests("/root").length]).toEqual([0, 0]);
    go();
    expect(await restoring).toMatchObject({ status: "ready" });
    await h.provider.gates.arrived("kid");
    await b.gates.arrived("b");
    h.provider.gates.openAll();
    b.gates.openAll();
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    await h.tree.idle();
  });
});
