/** Commands in the inbox of a tree about what it cannot carry out: threads of another tree, rows that cannot be read (REC-2). */
import { describe, expect, test } from "vitest";
import { gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { sampleCommand } from "../../src/testing/store-records.ts";
import { harness, STORES } from "../support/harness.ts";
import { heldCapture } from "../support/held-capture.ts";
import { look } from "../support/look.ts";
import { temporaryFolder } from "../support/repository.ts";

// Only a file has transfers that can be damaged.
test("REC-2 INT-3 REC-1 a command about a transfer that cannot be read keeps no other command of the tree from being carried out, nor after a crash", async () => {
  await using h = await harness({
    store: "sqlite",
    scripts: { "/root/a": [together(gate("a"), say("done")), repeat(say("more"))] },
  });
  await h.tree.root.spawn("a", "go");
  await h.provider.gates.arrived("a");
  const [transfer] = await look(h).transfers("subagent_spawn");
  h.edit("UPDATE transfers SET body = substr(body, 1, 9) WHERE id = ?", transfer!.id);
  const bad = sampleCommand(h.tree.id, 1, { verb: "inject", arguments: { transfer: transfer!.id } });
  const stop = sampleCommand(h.tree.id, 2, { verb: "interrupt", arguments: { target: "/root/a" } });
  const title = sampleCommand(h.tree.id, 3, { verb: "rename", arguments: { thread: h.tree.id, title: "b" } });
  for (const command of [bad, stop, title]) await h.store.command(command);
  const states = () => h.store.read((view) => [bad, stop, title].map(({ id }) => view.command(id)!.state));
  for (let n = 0; n < 100; n += 1) await h.clock.advance(100);
  const before = await states();
  await h.crash();
  for (let n = 0; n < 100; n += 1) await h.clock.advance(100);
  expect([before, await states()]).toEqual([
    ["refused", "done", "done"],
    ["refused", "done", "done"],
  ]);
});

describe.each(STORES)(
  "a command in the inbox of a tree about a thread of another process's tree on %s",
  (store) => {
    async function two() {
      const { capture, held, removed } = heldCapture();
      const h = await harness({
        store,
        scripts: { "/root": [say("one"), together(gate("busy"), say("two"))] },
        runtime: { workspaceCapture: capture },
        tree: { workspace: temporaryFolder() },
      });
      // `h.tree` is owned by h.runtime; `other` by another process.
      await h.ask("one");
      await h.clock.settle();
      await h.tree.control.tree.jobs.of(h.tree.id);
      const second = await h.newRuntime({ provenDead: () => false });
      const mine = await second.openTree({});
      const { runId } = (await h.runtime.threads.checkpoints(h.tree.id)).rows[0]!;
      return { h, held, removed, second, mine, runId };
    }

    test("REC-2 C1.18 removes nothing of it", async () => {
      const { h, removed, second, mine, runId } = await two();
      await using _ = h;
      const bad = sampleCommand(mine.id, 1, {
        verb: "remove_checkpoint",
        arguments: { thread: h.tree.id, run: runId },
      });
      await h.store.command(bad);
      await look(h).until("answered", async () => {
        await h.clock.advance(50);
        return (await h.store.read((view) => view.command(bad.id)))!.state !== "pending";
      });
      const row = (await h.store.read((view) => view.command(bad.id)))!;
      const listed = (await h.runtime.threads.checkpoints(h.tree.id)).rows[0]!.status;
      await second.close().catch(() => undefined);
      // Refused, and nothing done; or done, and said so. Not: gone, refused, and listed as ready.
      expect({ state: row.state, removed: removed.length, listed }).toEqual({
        state: "refused",
        removed: 0,
        listed: "ready",
      });
    });

    test("REC-2 C1.18 writes nothing into its folder while its own run is active there", async () => {
      const { h, held, second, mine, runId } = await two();
      await using _ = h;
      await h.tree.root.send("two");
      await h.provider.gates.arrived("busy");
      const bad = sampleCommand(mine.id, 1, {
        verb: "restore_checkpoint",
        arguments: { thread: h.tree.id, run: runId },
      });
      await h.store.command(bad);
      for (let n = 0; n < 20; n += 1) await h.clock.advance(50);
      const begun = held.length;
      for (const go of held) go();
      h.provider.gates.openAll();
      await h.clock.settle();
      await second.close().catch(() => undefined);
      expect(begun).toBe(0);
    });
  },
);
