/** Interrupts of one agent in whatever it does (INT-1 to INT-6). */
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { OwnLoopAdapter } from "../../src/providers/port.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import {
  approve,
  ask,
  call,
  gate,
  ignoreAbort,
  interrupt,
  list,
  repeat,
  say,
  spawn,
  stall,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const NONE = { fork_turns: "none" };
const MORE = repeat(say("more"));

describe.each(STORES)("interrupts on %s", (store) => {
  test("INT-1 the receipt names every agent it touched, with previous and new status", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/w": [gate("w"), say("never"), say("back")] },
    });
    const look = new Look(h);
    const { agent, work } = await h.tree.root.spawn("w", "look");
    await h.provider.gates.arrived("w");
    const [run] = await look.runs("/root/w");
    expect(await agent.interrupt()).toEqual([
      {
        path: "/root/w",
        threadId: agent.threadId,
        runId: run!.id,
        previous: { kind: "running" },
        status: { kind: "idle", last: "interrupted" },
      },
    ]);
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    // There is nothing left to interrupt, and the agent can be given more.
    expect(await agent.interrupt()).toEqual([]);
    h.provider.gates.open("w");
    const again = await agent.send("go on");
    expect(await again.outcome()).toMatchObject({ ending: "completed" });
    expect(look.inputs("/root/w", -1).join("\n")).toMatch(/interrupted on purpose[^]*go on/);
  });

  test("INT-1 as a tool it says the same; the root and oneself can be interrupted", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("w", "look", NONE),
          gate("root"),
          interrupt("w"),
          interrupt("w"),
          say("started"),
          MORE,
        ],
        "/root/w": [gate("w"), say("never")],
        "/root/self": [interrupt("/root/self"), say("never"), say("back")],
      },
    });
    const look = new Look(h);
    await h.tree.root.send("go");
    await h.provider.gates.arrived("root");
    await h.provider.gates.arrived("w");
    const [run] = await look.runs("/root/w");
    h.provider.gates.open("root");
    await look.until(
      "both were called",
      async () => (await look.outputs("/root", "interrupt_agent")).length === 2,
    );
    const [first, second] = await look.outputs("/root", "interrupt_agent");
    const { threadId } = await h.tree.agent("w");
    expect(first).toEqual({
      isError: false,
      output: {
        touched: [
          {
            agent: "/root/w",
            thread_id: threadId,
            run_id: run!.id,
            previous_status: { kind: "running" },
            status: { kind: "idle", last: "interrupted" },
          },
        ],
      },
    });
    expect(second!.output).toMatchObject({ touched: [] });
    const { agent, work } = await h.tree.root.spawn("self", "look");
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    await look.until("it is drained", () => h.tree.control.tree.runs.size === 0);
    expect(await (await agent.send("go on")).outcome()).toMatchObject({ ending: "completed" });
  });

  test("INT-1 `none` leaves those below alone; `subtree` takes them, leaves first", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/a": [spawn("b", "look", NONE), gate("a"), say("a")],
        "/root/a/b": [spawn("c", "look", NONE), gate("b"), say("b")],
        "/root/a/b/c": [gate("c"), say("c"), MORE],
      },
    });
    const look = new Look(h);
    const { agent } = await h.tree.root.spawn("a", "look");
    for (const name of ["a", "b", "c"]) await h.provider.gates.arrived(name);
    expect((await agent.interrupt()).map((one) => one.path)).toEqual(["/root/a"]);
    expect(await look.status("/root/a/b")).toBe("running");
    expect(await look.status("/root/a/b/c")).toBe("running");
    const touched = await agent.interrupt({ cascade: "subtree" });
    expect(touched.map((one) => one.path)).toEqual(["/root/a/b/c", "/root/a/b"]);
    expect((await look.events("agent.interrupted")).map((event) => event.path)).toEqual([
      "/root/a",
      "/root/a/b/c",
      "/root/a/b",
    ]);
    expect((await h.tree.counts()).running).toBe(0);
  });

  test("INT-2 with a run's id it does nothing to a later run, nor to those below", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/w": [say("one"), spawn("x", "look", NONE), gate("w"), say("two"), MORE],
        "/root/w/x": [gate("x"), say("x")],
      },
    });
    const look = new Look(h);
    const { agent, work } = await h.tree.root.spawn("w", "look");
    await work.outcome();
    const again = await agent.send("again");
    await h.provider.gates.arrived("w");
    await h.provider.gates.arrived("x");
    const [first, second] = await look.runs("/root/w");
    const before = await look.snapshot();
    expect(await agent.interrupt({ runId: first!.id })).toEqual([]);
    expect(await agent.interrupt({ runId: first!.id, cascade: "subtree" })).toEqual([]);
    expect(await look.snapshot()).toEqual(before);
    expect((await agent.interrupt({ runId: second!.id, cascade: "subtree" })).map((one) => one.path)).toEqual(
      ["/root/w/x", "/root/w"],
    );
    expect(await again.outcome()).toMatchObject({ ending: "interrupted" });
  });

  test("INT-3 it is acknowledged at once; a provider that ignores it is cut off after the grace time", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { interruptGraceMs: 5_000 } },
      scripts: {
        "/root/w": ({ inputs }) =>
          inputs.includes("again")
            ? say("next")
            : together(say("so far"), ignoreAbort("deaf"), say(" and more")),
      },
    });
    const look = new Look(h);
    const { agent, work } = await h.tree.root.spawn("w", "look");
    await h.provider.gates.arrived("deaf");
    const at = h.clock.now();
    await agent.interrupt();
    expect(await work.outcome()).toMatchObject({ ending: "interrupted", text: "so far", endedAt: at });
    expect(await agent.status()).toEqual({ kind: "idle", last: "interrupted" });
    expect(h.tree.control.tree.permits.inUse).toBe(0);
    // The next run does not overlap with what is being cut off.
    const again = await agent.send("again");
    await h.clock.advance(4_999);
    expect((await again.record()).state).toBe("queued");
    expect(h.provider.requests("/root/w")).toHaveLength(1);
    await h.clock.advance(1);
    expect(await again.outcome()).toMatchObject({ ending: "completed", text: "next" });
    const items = await look.items("/root/w");
    h.provider.gates.open("deaf");
    await h.clock.settle();
    // What it says in the end is nobody's any more.
    expect(await look.items("/root/w")).toEqual(items);
    expect(JSON.stringify(items)).not.toContain("and more");
  });

  test("INT-3 one that ends in time is not waited for longer", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/w": [gate("w"), say("never"), say("never"), MORE] },
    });
    const { agent } = await h.tree.root.spawn("w", "look");
    await h.provider.gates.arrived("w");
    const timers = h.clock.pending().length;
    await agent.interrupt();
    h.provider.gates.open("w");
    expect(await (await agent.send("again")).outcome()).toMatchObject({ ending: "completed" });
    expect(h.clock.pending().length).toBeLessThanOrEqual(timers);
  });

  test("INT-4 the signal reaches the request, tools and the agent's own waits", async () => {
    const signals: AbortSignal[] = [];
    const inTool = Promise.withResolvers<void>();
    const tool = defineTool({
      name: "drill",
      input: z.object({}),
      run: (_input, { signal }) => {
        signals.push(signal);
        inTool.resolve();
        return new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
        );
      },
    });
    const inner = scripted({
      "/root/asks": [stall(), MORE],
      "/root/drills": [call("drill"), MORE],
      "/root/waits": [spawn("x", "look", NONE), wait({ targets: ["x"] }), MORE],
      "/root/waits/x": [gate("x"), say("ok")],
    });
    const requested = new Map<string, AbortSignal>();
    const watching: OwnLoopAdapter = {
      ...inner,
      openSession: async (input) => {
        const session = await inner.openSession(input);
        return {
          ...session,
          step: (request, signal) => {
            requested.set(request.path, signal);
            return session.step(request, signal);
          },
        };
      },
    };
    await using h = await harness({ store, runtime: { tools: [tool], providers: { watching } } });
    const look = new Look(h);
    for (const name of ["asks", "drills", "waits"]) await h.tree.root.spawn(name, "look");
    await inTool.promise;
    await inner.gates.arrived("x");
    await look.until("it waits", async () => (await look.status("/root/waits")) === "waiting");
    await look.until("it asks", async () => (await look.status("/root/asks")) === "running");
    for (const name of ["asks", "drills", "waits"]) await (await h.tree.agent(name)).interrupt();
    expect(requested.get("/root/asks")!.aborted).toBe(true);
    expect(requested.get("/root/asks")!.reason).toMatchObject({ code: "RUN_INTERRUPTED" });
    expect(signals.map((signal) => signal.aborted)).toEqual([true]);
    expect((await look.events("wait.ended", "/root/waits")).map((event) => event.data["end"])).toEqual([
      "aborted",
    ]);
    const [closed] = await look.outputs("/root/drills", "drill");
    expect(closed).toMatchObject({ isError: true });
    inner.gates.open("x");
    await h.tree.idle();
  });

  test("INT-4 listeners do not pile up over steps, tools and runs", async () => {
    const counted: number[] = [];
    const tool = defineTool({
      name: "look",
      input: z.object({}),
      run: (_input, { signal }) => {
        counted.push(getEventListeners(signal, "abort").length);
        return "seen";
      },
    });
    const inner = scripted({ "*": [repeat(call("look"), 30), say("done")] });
    const counting: OwnLoopAdapter = {
      ...inner,
      openSession: async (input) => {
        const session = await inner.openSession(input);
        return {
          ...session,
          step: (request, signal) => {
            counted.push(getEventListeners(signal, "abort").length);
            return session.step(request, signal);
          },
        };
      },
    };
    await using h = await harness({ store, runtime: { tools: [tool], providers: { counting } } });
    await h.ask("go");
    expect(counted).toHaveLength(61);
    expect(Math.max(...counted)).toBeLessThanOrEqual(1);
    await h.clock.settle();
    expect(h.clock.pending().length).toBeLessThanOrEqual(3);
  });

  test("INT-5 the requester learns of it by a result that says so", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("w", "look", NONE), say("started"), say("so it was stopped")],
        "/root/w": [list(), together(say("half of it"), gate("w")), say("never")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("w");
    await (await h.tree.agent("w")).interrupt();
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "so it was stopped" });
    const result = (await look.mail("/root")).at(-1)!;
    expect(result).toMatchObject({ kind: "final_answer", resultOf: (await look.work("/root/w")).id });
    expect(result.content.text).toMatch(/^\[interrupted\][^]*half of it/);
    expect(await look.transfers("subagent_result")).toHaveLength(1);
  });

  test.each([
    ["question", ask("which?")],
    ["approval", approve("may I?")],
  ] as const)("INT-6 a pending %s of what is interrupted becomes cancelled", async (kind, asking) => {
    await using h = await harness({
      store,
      scripts: { "/root": [asking, say("next run")] },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await look.until("it asks", async () => (await look.status("/root")) === "awaiting_approval");
    const [opened] = await look.events("request.opened");
    const id = opened!.data["requestId"] as `req_${string}`;
    expect((await h.tree.root.interrupt())[0]).toMatchObject({
      previous: { kind: "awaiting_approval" },
      status: { kind: "idle", last: "interrupted" },
    });
    expect(await look.view((view) => view.request(id))).toMatchObject({
      kind,
      status: "cancelled",
      answer: null,
      answeredAt: h.clock.now(),
    });
    await expect(h.tree.answer(id, "too late")).rejects.toMatchObject({ code: "REQUEST_NOT_RESUMABLE" });
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    expect((await h.tree.root.record()).openRequests).toBe(0);
    expect(await h.ask("again")).toMatchObject({ ending: "completed", text: "next run" });
  });
});
