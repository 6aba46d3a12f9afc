/** Loads that fail (RES-8), and providers and tools that are not configured (RES-9). */
import { mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { RejectedError, TransientError } from "../../src/protocol/errors.ts";
import type { OwnLoopAdapter } from "../../src/providers/port.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { call, gate, list, repeat, say, spawn, wait } from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const NONE = { fork_turns: "none" };
const MORE = repeat(say("more"));

/** A provider whose sessions cannot be opened as often as said. */
function failing(times: number, error: () => Error, path = "/root/w") {
  const inner = scripted({
    "/root": [spawn("w", "look", NONE), say("started"), MORE],
    "/root/w": [say("ok"), MORE],
    "*": [MORE],
  });
  const tried: number[] = [];
  let left = times;
  const adapter: OwnLoopAdapter = {
    ...inner,
    openSession: async (input) => {
      if (input.path === path && left > 0) {
        left -= 1;
        tried.push(left);
        throw error();
      }
      return inner.openSession(input);
    },
  };
  return { adapter, inner, tried, failNow: (count: number) => (left = count) };
}

const outage = () => new TransientError("PROVIDER_UNREACHABLE", "no route to it");
const refusal = () => new RejectedError("PROVIDER_REFUSED", "no such account");

describe.each(STORES)("loads that fail on %s", (store) => {
  test("RES-8 a retryable one is tried three times with back-off, then the pending works fail, typed", async () => {
    const { adapter, tried } = failing(Infinity, outage);
    await using h = await harness({ store, runtime: { providers: { adapter } } });
    const look = new Look(h);
    await h.tree.root.send("go");
    await look.until("the first try", () => tried.length === 1);
    await (await h.tree.agent("w")).tell("for later");
    await look.until("it is noted", async () => (await look.events("agent.load_failed")).length === 1);
    expect(await h.tree.counts()).toMatchObject({ registered: 2, resident: 1, running: 0 });
    expect(h.tree.control.tree.permits.inUse).toBe(0);
    expect((await look.work("/root/w")).state).toBe("queued");
    await h.clock.advance(499);
    expect(tried).toHaveLength(1);
    await h.clock.advance(1);
    await look.until("the second", async () => (await look.events("agent.load_failed")).length === 2);
    await h.clock.advance(999);
    expect(tried).toHaveLength(2);
    await h.clock.advance(1);
    await look.until("the third", async () => (await look.events("agent.load_failed")).length === 3);
    expect(await look.work("/root/w")).toMatchObject({
      outcome: { ending: "failed", error: { code: "LOAD_FAILED" } },
    });
    expect((await look.work("/root/w")).outcome!.error!.message).toContain("provider_unavailable");
    await h.clock.advance(60_000);
    expect(tried).toHaveLength(3);
    // Queue-only mail stays, and the agent stays addressable.
    expect((await look.mail("/root/w")).at(-1)).toMatchObject({ state: "accepted", trigger: false });
    expect(await look.status("/root/w")).toBe("idle");
    expect((await (await h.tree.agent("w")).why()).reasons.join("\n")).toContain(
      "it could not be loaded (failure 3)",
    );
  });

  test("RES-8 one that comes back in time is no failure, and the count begins anew", async () => {
    const { adapter, inner, failNow } = failing(2, outage);
    await using h = await harness({ store, runtime: { limits: { residents: 1 }, providers: { adapter } } });
    const look = new Look(h);
    const { agent, work } = await h.tree.root.spawn("w", "look");
    for (let step = 0; step < 3; step += 1) await h.clock.advance(1_000);
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "ok" });
    expect(await look.events("agent.load_failed")).toHaveLength(2);
    await (await h.tree.root.spawn("x", "look")).work.outcome();
    failNow(2);
    const again = await agent.send("again");
    for (let step = 0; step < 3; step += 1) await h.clock.advance(1_000);
    expect(await again.outcome()).toMatchObject({ ending: "completed" });
    expect(inner.requests("/root/w")).toHaveLength(2);
  });

  test("RES-8 one that is not retryable is not tried again", async () => {
    const { adapter, tried } = failing(Infinity, refusal);
    await using h = await harness({ store, runtime: { providers: { adapter } } });
    const { work } = await h.tree.root.spawn("w", "look");
    expect(await work.outcome()).toMatchObject({ ending: "failed", error: { code: "LOAD_FAILED" } });
    await h.clock.advance(60_000);
    expect(tried).toHaveLength(1);
    expect(h.tree.control.tree.residency.count).toBe(0);
  });

  test("RES-8 a parked run whose agent cannot be loaded any more fails with its works", async () => {
    const { adapter, inner, failNow } = failing(0, refusal, "/root");
    inner.append("/root/y", gate("y"), say("ok"));
    await using h = await harness({ store, runtime: { limits: { residents: 1 }, providers: { adapter } } });
    inner.append(
      "/root/boss",
      spawn("y", "look", NONE),
      wait({ targets: ["y"] }),
      say("never"),
      say("later"),
    );
    const boss = failing(0, refusal, "/root/boss");
    expect(boss.tried).toEqual([]);
    const look = new Look(h);
    const { agent, work } = await h.tree.root.spawn("boss", "lead");
    inner.append("/root/boss/y", gate("y"), say("ok"));
    await inner.gates.arrived("y");
    expect((await agent.summary()).resident).toBe(false);
    // From now on the boss cannot be loaded.
    const inward = adapter.openSession.bind(adapter);
    let broken = true;
    Object.assign(adapter, {
      openSession: async (input: Parameters<OwnLoopAdapter["openSession"]>[0]) => {
        if (broken && input.path === "/root/boss") throw refusal();
        return inward(input);
      },
    });
    inner.gates.open("y");
    expect(await work.outcome()).toMatchObject({ ending: "failed", error: { code: "LOAD_FAILED" } });
    expect((await look.runs("/root/boss"))[0]).toMatchObject({ status: "failed", reason: "failed" });
    expect(await agent.status()).toEqual({ kind: "idle", last: "failed" });
    broken = false;
    failNow(0);
    expect(await (await agent.send("again")).outcome()).toMatchObject({ ending: "completed" });
    const { messages } = inner.requests("/root/boss").at(-1)!;
    expect(messages.filter((message) => message.role === "tool")).toHaveLength(2);
  });

  test("RES-8 a workspace that is gone is `workspace_missing`", async () => {
    const folder = mkdtempSync(join(tmpdir(), "coppice-workspace-"));
    await using h = await harness({
      store,
      tree: { workspace: folder },
      scripts: { "*": [MORE] },
    });
    const look = new Look(h);
    await h.ask("go");
    await h.crash();
    rmdirSync(folder);
    const work = await h.tree.root.send("again");
    expect(await work.outcome()).toMatchObject({ ending: "failed", error: { code: "LOAD_FAILED" } });
    expect((await look.events("agent.load_failed"))[0]!.data).toMatchObject({
      failures: 1,
      retryable: false,
    });
    expect((await work.record()).outcome!.error!.message).toContain("workspace_missing");
  });

  test.runIf(store === "sqlite")("RES-8 a record that cannot be read is `record_corrupt`", async () => {
    await using h = await harness({ store, scripts: { "*": [MORE] } });
    await h.ask("go");
    const { threadId } = h.tree.root;
    await h.runtime.close();
    h.damageItems(threadId);
    await h.crash();
    const work = await h.tree.root.send("again");
    expect(await work.outcome()).toMatchObject({ ending: "failed", error: { code: "LOAD_FAILED" } });
    expect((await work.record()).outcome!.error!.message).toContain("record_corrupt");
    expect(await h.tree.counts()).toMatchObject({ resident: 0 });
  });

  test("RES-8 a reload widens nothing: the stored policy within what the ancestors may now", async () => {
    const tools = (["write_it", "read_it"] as const).map((name) =>
      defineTool({
        name,
        input: z.object({}),
        effects: [name === "write_it" ? "write" : "read"],
        run: () => name,
      }),
    );
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 }, tools },
      scripts: { "/root/w": [say("one"), call("write_it"), say("two")], "*": [MORE] },
    });
    const look = new Look(h);
    const offered = () =>
      h.provider
        .requests("/root/w")
        .at(-1)!
        .tools.flatMap((tool) => (tool.name.endsWith("_it") ? [tool.name] : []));
    const { agent, work } = await h.tree.root.spawn("w", "look");
    await work.outcome();
    expect(offered().toSorted()).toEqual(["read_it", "write_it"]);
    await (await h.tree.root.spawn("x", "look")).work.outcome();
    expect((await agent.summary()).resident).toBe(false);
    const before = (await agent.record()).config;
    await h.tree.control.tree.transact((tx) => {
      const root = tx.agent(h.tree.id);
      tx.putAgent(root, { config: { ...root.config, effects: ["read"] } });
    });
    await (await agent.send("again")).outcome();
    expect(offered()).toEqual(["read_it"]);
    expect((await look.outputs("/root/w", "write_it"))[0]).toMatchObject({ isError: true });
    expect((await agent.record()).config).toEqual(before);
  });
});

describe.each(STORES)("what is not configured on %s", (store) => {
  test("RES-9 a missing provider leaves agent and mail untouched, and `why` says so", async () => {
    const second = scripted({ "*": [say("one"), say("two"), MORE] });
    const first = scripted({ "*": [list(), MORE] });
    const both = { first, second };
    await using h = await harness({ store, runtime: { providers: both } });
    const look = new Look(h);
    const { agent, work } = await h.tree.root.spawn("w", "look", { provider: "second" });
    await work.outcome();
    expect((await agent.record()).config.provider).toBe("second");
    await h.crash({ providers: { first } });
    const w = await h.tree.agent("w");
    const before = await w.record();
    const asked = await w.send("again");
    await w.tell("and this");
    await look.until("it is noted", async () => (await look.events("agent.blocked")).length === 1);
    await h.clock.advance(60_000);
    expect((await asked.record()).state).toBe("queued");
    expect((await look.mail("/root/w")).slice(1).map((mail) => [mail.state, mail.trigger])).toEqual([
      ["accepted", true],
      ["accepted", false],
    ]);
    expect(await look.runs("/root/w")).toHaveLength(1);
    expect(await w.record()).toMatchObject({ config: before.config, currentRun: null, loadFailures: 0 });
    expect((await w.why()).reasons.join("\n")).toContain("PROVIDER_NOT_CONFIGURED");
    expect(h.tree.control.tree.permits.inUse).toBe(0);
    expect(h.tree.control.tree.residency.count).toBe(0);
    await h.crash({ providers: both });
    expect(await h.tree.work(asked.id).outcome()).toMatchObject({ ending: "completed", text: "two" });
  });

  test("RES-9 REC-1 a run that waits is left as it is by an owner without its provider", async () => {
    const first = scripted({
      "/root": [spawn("a", "sub", NONE), wait({ targets: ["a"], timeout_ms: 3_600_000 }), say("joined")],
      "/root/a": [gate("never"), say("late"), say("A")],
    });
    const other = scripted({});
    await using h = await harness({ store, runtime: { providers: { first } } });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await look.until("the root waits", async () => (await look.status("/root")) === "waiting");
    await first.gates.arrived("never");
    const before = await look.runs("/root");
    await h.crash({ providers: { other } });
    await look.until("it is noted", async () => (await look.events("agent.blocked")).length === 1);
    expect(await look.runs("/root")).toEqual(before);
    expect((await h.tree.work(work.id).record()).state).toBe("running");
    expect((await h.tree.root.why()).reasons.join("\n")).toContain("PROVIDER_NOT_CONFIGURED");
    await h.crash({ providers: { first } });
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed", text: "joined" });
  });

  test("RES-9 a missing tool too", async () => {
    const tool = defineTool({ name: "look", input: z.object({}), run: () => "seen" });
    await using h = await harness({
      store,
      runtime: { tools: [tool] },
      scripts: { "/root": [say("one"), call("look"), say("two")] },
    });
    const look = new Look(h);
    await h.ask("go");
    expect((await h.tree.root.record()).config.tools).toEqual(["look"]);
    await h.crash({ tools: [] });
    const asked = await h.tree.root.send("again");
    await look.until("it is noted", async () => (await look.events("agent.blocked")).length === 1);
    expect((await look.events("agent.blocked"))[0]!.data).toMatchObject({ code: "TOOL_NOT_CONFIGURED" });
    expect((await h.tree.root.why()).reasons.join("\n")).toContain("TOOL_NOT_CONFIGURED");
    expect((await asked.record()).state).toBe("queued");
    expect((await look.mail("/root")).at(-1)).toMatchObject({ state: "accepted", trigger: true });
    await h.crash({ tools: [tool] });
    expect(await h.tree.work(asked.id).outcome()).toMatchObject({ ending: "completed", text: "two" });
  });
});
