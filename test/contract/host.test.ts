/** Host-driven roots: who drives them, what they cost, what becomes of their works (HDR-1, HDR-4, HDR-5). */
import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../../src/protocol/json.ts";
import { gate, repeat, say, send, spawn, together, usage } from "../../src/providers/scripted/script.ts";
import { callByName, type HostTool } from "../../src/tools/host-tools.ts";
import { type Harness, harness, type HarnessOptions, STORES, type StoreKind } from "../support/harness.ts";
import { look } from "../support/look.ts";

function hosted(store: StoreKind, options: HarnessOptions = {}): Promise<Harness> {
  return harness({
    store,
    scripts: { "*": [together(gate("work"), say("seven")), repeat(say("more"))] },
    ...options,
    tree: { hostDriven: true, ...options.tree },
  });
}

async function use(tools: readonly HostTool[], name: string, input: JsonObject = {}): Promise<JsonObject> {
  return (await callByName(tools, name, input)).output as JsonObject;
}

describe.each(STORES)("a host-driven root on %s", (store) => {
  test("HDR-1 has a token, a mailbox and works, and no runs: nothing that comes wakes it", async () => {
    await using h = await hosted(store);
    using host = await h.runtime.actAs(await h.tree.root.token());
    const tools = host.tools();
    const spawned = await use(tools, "spawn_agent", {
      task_name: "worker",
      message: "count",
      wake: "always",
    });
    const work = h.tree.work(spawned["work_id"] as `wrk_${string}`);
    expect(await work.record()).toMatchObject({
      requester: { kind: "agent", threadId: h.tree.id, path: "/root" },
      replyTo: { threadId: h.tree.id },
      parents: [],
      holds: [],
      originRunId: null,
    });
    expect(await h.tree.root.owed()).toHaveLength(1);
    h.provider.gates.open("work");
    await work.outcome();
    await h.tree.root.tell("a word of the user");
    await h.tree.idle();
    const mail = await look(h).mail("/root");
    expect(mail.map(({ kind, trigger, state }) => [kind, trigger, state])).toEqual([
      ["final_answer", false, "accepted"],
      ["user", false, "accepted"],
    ]);
    expect(await look(h).runs("/root")).toEqual([]);
    expect(await h.tree.root.status()).toEqual({ kind: "idle", last: null });
    expect(h.provider.requests("/root")).toEqual([]);
    await expect(h.tree.root.send("input")).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
  });

  test("HDR-1 children write to it as to any agent, and their trigger-turn mail stays queue-only", async () => {
    await using h = await hosted(store, {
      scripts: { "/root/worker": [send("/root", "half way"), say("done")] },
    });
    const tools = h.tree.root.tools();
    await use(tools, "spawn_agent", { task_name: "worker", message: "count" });
    await h.tree.idle();
    const waited = await use(tools, "wait_agent", { timeout_ms: 10_000 });
    const messages = waited["messages"] as readonly Record<string, Json>[];
    expect(messages.map(({ type, from, text }) => [type, from, text])).toEqual([
      ["message", "/root/worker", "half way"],
      ["final_answer", "/root/worker", "done"],
    ]);
    expect(messages[1]).toMatchObject({ usage: { complete: true, cost: null } });
    expect(await look(h).runs("/root")).toEqual([]);
  });

  test("HDR-4 its works go on when the last connection closes, and results wait for the next", async () => {
    await using h = await hosted(store);
    const token = await h.tree.root.token();
    const first = await h.runtime.actAs(token, { host: "editor" });
    const second = await h.runtime.actAs(token, { host: "editor" });
    await use(first.tools(), "spawn_agent", { task_name: "worker", message: "count" });
    await h.provider.gates.arrived("work");
    first.close();
    second.close();
    await h.clock.advance(600_000);
    h.provider.gates.open("work");
    await h.tree.idle();
    using later = await h.runtime.actAs(token);
    const waited = await use(later.tools(), "wait_agent");
    expect(waited["messages"]).toMatchObject([{ type: "final_answer", text: "seven" }]);
  });

  test("HDR-4 with `interrupt` they are interrupted after the grace time, unless a host comes back", async () => {
    await using h = await hosted(store, { tree: { onHostGone: "interrupt", limits: { hostGraceMs: 5000 } } });
    const token = await h.tree.root.token();
    const first = await h.runtime.actAs(token, { host: "editor" });
    const second = await h.runtime.actAs(token, { host: "editor" });
    await use(first.tools(), "spawn_agent", { task_name: "worker", message: "count" });
    await h.provider.gates.arrived("work");
    first.close();
    first.close();
    await h.clock.advance(6000);
    expect((await look(h).work("/root/worker")).state).toBe("running");
    second.close();
    await h.clock.advance(4999);
    const back = await h.runtime.actAs(token);
    await h.clock.advance(10_000);
    expect((await look(h).work("/root/worker")).state).toBe("running");
    back.close();
    await h.clock.advance(5000);
    await h.tree.idle();
    expect((await look(h).work("/root/worker")).outcome?.ending).toBe("interrupted");
    // The result says so, and waits.
    using later = await h.runtime.actAs(token);
    const waited = await use(later.tools(), "wait_agent");
    expect(waited["messages"]).toMatchObject([
      { type: "final_answer", text: expect.stringContaining("ended as `interrupted`") },
    ]);
  });

  test("HDR-5 one host at a time: the second gets NOT_OWNER, whatever way it comes", async () => {
    await using h = await hosted(store);
    const token = await h.tree.root.token();
    const first = await h.runtime.actAs(token, { host: "editor" });
    const refused = { code: "NOT_OWNER", retryable: true, message: expect.stringContaining("editor") };
    await expect(h.runtime.actAs(token, { host: "terminal" })).rejects.toMatchObject(refused);
    await expect(h.runtime.actAs(token)).rejects.toMatchObject(refused);
    expect(() => h.tree.root.tools()).toThrow(expect.objectContaining(refused));
    first.close();
    using second = await h.runtime.actAs(token, { host: "terminal" });
    expect(await use(second.tools(), "list_agents")).toMatchObject({ agents: [{ agent: "/root" }] });
    // What the first one holds does not work any more.
    expect(await use(first.tools(), "list_agents")).toMatchObject({ code: "TOKEN_INVALID" });
  });

  test("HDR-4 HDR-5 this program leaves the place of the host with the last of its tools, to another or for good", async () => {
    await using h = await hosted(store, { tree: { onHostGone: "interrupt", limits: { hostGraceMs: 5000 } } });
    const token = await h.tree.root.token();
    const refused = { code: "NOT_OWNER", message: expect.stringContaining("this program") };
    const tools = h.tree.root.tools();
    {
      using more = h.tree.root.tools({ shortTransport: true });
      await use(more, "spawn_agent", { task_name: "worker", message: "count" });
    }
    await h.provider.gates.arrived("work");
    await expect(h.runtime.actAs(token, { host: "editor" })).rejects.toMatchObject(refused);
    tools[Symbol.dispose]();
    expect(await use(tools, "list_agents")).toMatchObject({ code: "NOT_OWNER" });
    const editor = await h.runtime.actAs(token, { host: "editor" });
    // Once more leaves nobody else's place.
    tools[Symbol.dispose]();
    await expect(h.runtime.actAs(token, { host: "terminal" })).rejects.toMatchObject({ code: "NOT_OWNER" });
    editor.close();
    using again = h.tree.root.tools();
    await h.clock.advance(10_000);
    expect((await look(h).work("/root/worker")).state).toBe("running");
    again[Symbol.dispose]();
    await h.clock.advance(5000);
    await h.tree.idle();
    expect((await look(h).work("/root/worker")).outcome?.ending).toBe("interrupted");
  });

  test("HDR-5 another process is no second host either: the tree has one owner", async () => {
    await using h = await hosted(store);
    const token = await h.tree.root.token();
    const other = await h.newRuntime({ provenDead: () => false });
    await expect(other.actAs(token)).rejects.toMatchObject({ code: "NOT_OWNER" });
    await expect(other.openTree({ id: h.tree.id })).rejects.toMatchObject({ code: "NOT_OWNER" });
    await other.close();
  });

  test("HDR-5 takes no permit, and has none to lend while it waits", async () => {
    await using h = await hosted(store, { tree: { limits: { running: 1 } } });
    const tools = h.tree.root.tools();
    await use(tools, "spawn_agent", { task_name: "worker", message: "count" });
    await h.provider.gates.arrived("work");
    expect(await h.tree.counts()).toMatchObject({ running: 1, resident: 1 });
    const waiting = use(tools, "wait_agent", { targets: ["worker"] });
    await use(tools, "spawn_agent", { task_name: "second", message: "count" });
    await h.clock.settle();
    expect(await h.tree.counts()).toMatchObject({ running: 1, queued: 1 });
    h.provider.gates.open("work");
    expect(await waiting).toMatchObject({ ended_by: "settled" });
  });

  test("HDR-5 budgets count what the host reports; until it does the tree's figures are partial", async () => {
    await using h = await hosted(store, {
      scripts: { "*": [repeat(together(usage({ inputTokens: 1000, outputTokens: 100 }), say("ok")))] },
      tree: { model: "priced", limits: { tokensPerTree: 100_000 } },
      runtime: { prices: { "scripted/priced": { input: 10, cachedInput: 1, output: 100 } } },
    });
    const { work } = await h.tree.root.spawn("worker", "count");
    await work.outcome();
    expect(await h.tree.root.usage()).toMatchObject({ inputTokens: 1000, complete: false });
    using host = await h.runtime.actAs(await h.tree.root.token());
    await host.usage({ inputTokens: 10_000, cachedInputTokens: 5000, outputTokens: 1000 });
    const reported = await h.tree.root.usage();
    expect(reported).toMatchObject({ inputTokens: 11_000, outputTokens: 1100, complete: true });
    // 0.155 of the host, 0.02 of the worker.
    expect(reported.cost).toBeCloseTo(0.175, 6);
    await h.tree.root.usage({ inputTokens: 90_000, outputTokens: 0, cost: 1 });
    expect((await h.tree.root.usage()).cost).toBeCloseTo(1.175, 6);
    const worker = await h.tree.agent("worker");
    expect((await (await worker.send("more")).outcome()).ending).toBe("budget_exhausted");
    await expect(host.usage({ inputTokens: -1, outputTokens: 0 })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    await expect(worker.usage({ inputTokens: 1, outputTokens: 1 })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
  });

  test("HDR-1 spawning asks no run of it, and a child of a child is no business of its host", async () => {
    await using h = await hosted(store, {
      scripts: {
        "/root/worker": [spawn("below", "part"), repeat(say("done"))],
        "/root/worker/below": [say("part")],
      },
    });
    const { work_id: id } = await use(h.tree.root.tools(), "spawn_agent", {
      task_name: "worker",
      message: "x",
    });
    expect((await h.tree.work(id as `wrk_${string}`).outcome()).ending).toBe("completed");
    await h.tree.idle();
    expect((await look(h).mail("/root")).map(({ author }) => (author as { path: string }).path)).toEqual([
      "/root/worker",
    ]);
    expect(
      (await h.tree.log(0, 1000)).filter(({ type, path }) => type === "run.reserved" && path === "/root"),
    ).toEqual([]);
  });
});
