/** ACC-7, of a restart under another version: of the host's tools, of a provider, and of the store. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { RejectedError } from "../../src/protocol/errors.ts";
import type { Effect } from "../../src/protocol/agent.ts";
import { call, repeat, say } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { SCHEMA_VERSION } from "../../src/store/sqlite/schema.ts";
import { harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const toldBack = say((context) => context.lastToolText ?? "nothing");

describe.each(STORES)("acceptance of recovery on %s", (store) => {
  test("ACC-7 recovery under another version: no authority grows, a failure has its reason, and none is success", async () => {
    const called: string[] = [];
    const tool = (name: string, effects: Effect[]) =>
      defineTool({ name, input: z.strictObject({}), effects, run: () => (called.push(name), name) });
    const gone = tool("gone", ["read"]);
    const second = scripted({ "*": [repeat(say("done"))] });
    await using h = await harness({
      store,
      scripts: {
        "/root/parent": [repeat(say("ok"))],
        "/root/parent/careful": [call("note"), toldBack, call("note"), toldBack],
        "/root/tooled": [say("first"), call("gone"), toldBack],
      },
      others: { second },
      runtime: { tools: [tool("note", ["read"]), gone] },
      tree: { tools: ["note"] },
    });
    const { agent: parent, work } = await h.tree.root.spawn("parent", "work");
    await work.outcome();
    const made = [
      await parent.spawn("careful", "note it", { effects: ["read"] }),
      await h.tree.root.spawn("tooled", "work", { tools: ["gone"] }),
      await h.tree.root.spawn("moved", "work", { provider: "second" }),
    ];
    for (const one of made) expect((await one.work.outcome()).ending).toBe("completed");
    expect(called).toEqual(["note"]);

    // The next version of the program: one tool does more, one is not there, and a provider is too old for what is installed.
    const wider = tool("note", ["read", "write"]);
    const refusing = {
      ...second,
      openSession: () =>
        Promise.reject(new RejectedError("PROVIDER_PROTOCOL", "version 3 is installed and 2 is known")),
    };
    const providers = { scripted: h.provider, second: refusing };
    await h.crash({ tools: [wider], providers });
    const careful = await h.tree.agent("/root/parent/careful");
    const outcome = await (await careful.send("note it again")).outcome();
    expect(outcome.text).toContain("AUTHORITY_ESCALATION_DENIED");
    expect(called).toEqual(["note"]);
    expect((await careful.record()).config.effects).toEqual(["read"]);
    // It needed nobody above it for that: its parent was not loaded at all.
    expect((await (await h.tree.agent("parent")).summary()).resident).toBe(false);

    const tooled = await h.tree.agent("tooled");
    const waiting = await tooled.send("again");
    await look(h).until(
      "it is told",
      async () => (await look(h).events("agent.blocked", "/root/tooled")).length > 0,
    );
    expect((await look(h).works("/root/tooled")).at(-1)).toMatchObject({ state: "queued", outcome: null });
    expect((await tooled.why()).reasons.join("\n")).toContain("TOOL_NOT_CONFIGURED");

    const lost = await (await (await h.tree.agent("moved")).send("again")).outcome();
    expect(lost).toMatchObject({ ending: "failed", text: "", error: { code: "LOAD_FAILED" } });
    expect(lost.error!.message).toMatch(/provider_unavailable.*version 3 is installed and 2 is known/);

    // With what it was made with, what had to wait goes on; what had failed has failed.
    await h.crash();
    expect(await h.tree.work(waiting.id).outcome()).toMatchObject({ ending: "completed", text: "gone" });
    expect(await h.tree.work((await look(h).works("/root/moved")).at(-1)!.id).outcome()).toEqual(lost);
    const again = await (await (await h.tree.agent("moved")).send("once more")).outcome();
    expect(again).toMatchObject({ ending: "completed", text: "done" });
  });
});

test("ACC-7 recovery of a store that a newer version has written: it is refused with its versions, and left as it is", async () => {
  await using h = await harness({ store: "sqlite", scripts: { "/root": [say("first"), say("second")] } });
  await h.ask("go");
  // That it was opened stands in its log, and nothing else.
  const { events: _before, ...before } = await look(h).snapshot();
  h.edit("PRAGMA user_version = 999");
  await expect(h.crash()).rejects.toMatchObject({
    code: "STORE_VERSION",
    details: { version: 999, known: SCHEMA_VERSION },
  });
  h.edit(`PRAGMA user_version = ${SCHEMA_VERSION}`);
  await h.crash();
  const { events: _after, ...after } = await look(h).snapshot();
  expect(after).toEqual(before);
  expect(await h.ask("go on")).toMatchObject({ ending: "completed", text: "second" });
});
