/** What calls itself interrupted, of a run that nobody has stopped (BUD-3, REC-3). */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { InterruptedError } from "../../src/protocol/errors.ts";
import { call, gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import type { TreeHandle } from "../../src/runtime/tree-handle.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

describe.each(STORES)("a run that nobody stops on %s", (store) => {
  test("BUD-3 is told that the tree which its tool has asked is closed, goes on, and gives its permit back", async () => {
    const others: TreeHandle[] = [];
    const delegate = defineTool({
      name: "delegate",
      input: z.strictObject({}),
      run: async () => (await (await others[0]!.root.send("do it")).outcome()).text,
    });
    await using h = await harness({
      store,
      runtime: { tools: [delegate] },
      scripts: { "/root/a": [call("delegate"), say("without it")], "*": [repeat(say("done"))] },
      tree: { limits: { running: 1 } },
    });
    others.push(await h.runtime.openTree({}));
    await others[0]!.close();
    const a = await h.tree.root.spawn("a", "go");
    const b = await h.tree.root.spawn("b", "go");
    await h.clock.settle();
    expect((await a.work.record()).outcome).toMatchObject({ ending: "completed", text: "without it" });
    expect(await look(h).outputs("/root/a", "delegate")).toEqual([
      {
        isError: true,
        output: { code: "RUNTIME_CLOSED", error: expect.stringContaining("RUNTIME_CLOSED: ") },
      },
    ]);
    expect((await b.work.record()).outcome).toMatchObject({ ending: "completed" });
  });

  test("REC-3 and whose commit fails so is lost by name, and keeps no permit", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/a": [together(gate("a"), say("never stored"))], "*": [repeat(say("done"))] },
      tree: { limits: { running: 1 } },
    });
    const a = await h.tree.root.spawn("a", "go");
    await h.provider.gates.arrived("a");
    const b = await h.tree.root.spawn("b", "go");
    let fails = 1;
    h.onWrite = (_write, kind) =>
      kind === "commit" && fails-- > 0
        ? { kind: "error", error: new InterruptedError("RUNTIME_CLOSED", "closed by somebody else") }
        : null;
    h.provider.gates.open("a");
    await h.clock.settle();
    expect((await a.work.record()).outcome).toMatchObject({ ending: "runtime_lost" });
    expect((await b.work.record()).outcome).toMatchObject({ ending: "completed" });
    expect(await h.tree.counts()).toMatchObject({ running: 0, queued: 0 });
  });
});
