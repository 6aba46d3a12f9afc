/** The session that a fork's provider is opened with: what the fork may do, and never what its source may (lineage C5.21). */
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type { NativeSessionInput } from "../../src/providers/port.ts";
import type { ScriptContext } from "../../src/providers/scripted/context.ts";
import { turnFork } from "../../src/providers/scripted/native/provider.ts";
import { call, say } from "../../src/providers/scripted/script.ts";
import { EFFECTS } from "../../src/protocol/agent.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { harness, STORES } from "../support/harness.ts";

describe.each(STORES)("a fork on %s", (store) => {
  test("S2-27 C5.21 the fork's session is fresh: its own tools and policy, whatever the source's has", async () => {
    const written: string[] = [];
    const write = defineTool({
      name: "write_note",
      input: z.strictObject({}),
      effects: ["write"],
      run: (_, { threadId }) => {
        written.push(threadId);
        return "written";
      },
    });
    const asked = ({ inputs, ownSteps }: ScriptContext) =>
      inputs.at(-1) === "write" ? call("write_note", {}) : say(`answer ${ownSteps}`);
    const native = turnFork({ "/root": asked });
    let wide = "";
    const h = await harness({
      store,
      scripts: { "/root": [call("fork_thread", () => ({ thread_id: wide })), say("done")] },
      others: { native },
      runtime: { tools: [write], threadTools: { allow: "all", approval: "none" } },
      tree: { effects: ["read"] },
    });
    onTestFinished(() => h[Symbol.asyncDispose]());
    const source = await h.runtime.openTree({ provider: "native" });
    wide = source.id;
    await (await source.root.send("write")).outcome();
    await h.ask("fork it");
    const { rows } = await h.runtime.threads.list({ state: "any" }, { limit: 10 });
    const fork = rows.find(({ id }) => id !== source.id && id !== h.tree.id)!;
    const tree = await h.runtime.openTree({ id: fork.id });
    await (await tree.root.send("write")).outcome();
    await (await source.root.send("write")).outcome();
    const opened = native.calls("openSession").map(({ input }) => input as NativeSessionInput);
    expect(opened.map(({ threadId, effects }) => [threadId, effects])).toEqual([
      [source.id, EFFECTS],
      [fork.id, ["read"]],
    ]);
    expect(opened.map(({ tools }) => tools.some(({ name }) => name === "write_note"))).toEqual([true, false]);
    expect(written).toEqual([source.id, source.id]);
    const [ours, theirs] = [await source.root.runs(), await tree.root.runs()];
    expect(theirs.rows[0]!.policyHash).not.toBe(ours.rows[0]!.policyHash);
    expect(theirs.rows[0]!.binding).toMatchObject({
      id: fork.id,
      contextRevision: 0,
      inherited: { threadId: source.id, revision: 1 },
    });
  });
});
