/** Limits of a run: steps and wall clock, each after one offered wrap-up step (RUN-3). */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/tools/define-tool.ts";
import {
  ask,
  call,
  gate,
  ignoreAbort,
  list,
  pause,
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
const WRAP_UP = /^\[runtime: wrap_up\]/;

describe.each(STORES)("limits of a run on %s", (store) => {
  test("RUN-3 the limit of steps ends a run as `turn_limit` after one wrap-up step without tools", async () => {
    await using h = await harness({
      store,
      tree: { limits: { stepsPerRun: 2 } },
      scripts: { "/root": [list(), list(), say("what I have"), say("never asked")] },
    });
    const look = new Look(h);
    expect(await h.ask("go")).toMatchObject({ ending: "turn_limit", text: "what I have" });
    const requests = h.provider.requests("/root");
    expect(requests).toHaveLength(3);
    expect(requests.map((request) => request.tools.length > 0)).toEqual([true, true, false]);
    expect(look.inputs("/root", 2)).toEqual([expect.stringMatching(WRAP_UP)]);
    expect(look.inputs("/root", 2)[0]).toContain("number of steps");
    expect(await look.runs("/root")).toMatchObject([
      { status: "failed", reason: "turn_limit", steps: 3, wrapUpOffered: true, text: "what I have" },
    ]);
  });

  test("RUN-3 one wrap-up step is offered and no second", async () => {
    await using h = await harness({
      store,
      tree: { limits: { stepsPerRun: 2 } },
      scripts: { "/root": [repeat(together(say("still at it"), list()))] },
    });
    const look = new Look(h);
    expect(await h.ask("go")).toMatchObject({ ending: "turn_limit", text: "still at it" });
    expect(h.provider.requests("/root")).toHaveLength(3);
    expect(
      (await look.items("/root")).filter((item) => item.kind === "context" && item.topic === "wrap_up"),
    ).toHaveLength(1);
  });

  test("RUN-3 what the wrap-up step asks for is refused: no tool runs, and the run waits for nobody", async () => {
    let ran = 0;
    const effect = defineTool({
      name: "effect",
      input: z.strictObject({}),
      effects: [],
      run: () => ((ran += 1), "done"),
    });
    const asks = together(call("effect"), spawn("x", "go", NONE), wait({ timeout_ms: 60_000 }), ask("Well?"));
    await using h = await harness({
      store,
      runtime: { tools: [effect] },
      tree: { limits: { stepsPerRun: 1 }, tools: ["effect"] },
      scripts: { "/root": [call("effect"), asks, say("never asked")] },
    });
    const look = new Look(h);
    expect(await h.ask("go")).toMatchObject({ ending: "turn_limit" });
    expect(ran).toBe(1);
    expect(await look.status("/root/x")).toBeNull();
    expect(await look.outputs("/root", "wait_agent")).toEqual([
      { output: expect.stringContaining("last step"), isError: true },
    ]);
    expect((await look.events("request.closed"))[0]).toMatchObject({ data: { status: "expired" } });
    expect((await h.tree.root.record()).openRequests).toBe(0);
  });

  test("RUN-3 a request that hangs is cut off at the limit, its text kept, and the run wraps up", async () => {
    await using h = await harness({
      store,
      tree: { limits: { runWallClockMs: 10_000 } },
      scripts: {
        "/root": [together(pause(6_000), list()), together(say("so far"), stall()), say("what I have")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.clock.advance(9_999);
    expect((await look.runs("/root"))[0]!.status).toBe("running");
    await h.clock.advance(1);
    expect(await work.outcome()).toMatchObject({ ending: "time_limit", text: "what I have" });
    expect(look.inputs("/root", -1)).toEqual([expect.stringMatching(WRAP_UP)]);
    expect(look.inputs("/root", -1)[0]).toContain("The time allowed");
    expect(h.provider.requests("/root").map((request) => request.tools.length > 0)).toEqual([
      true,
      true,
      false,
    ]);
    const items = (await look.items("/root")).filter((item) => item.step > 0);
    expect(items.map((item) => (item.kind === "assistant" ? item.phase : item.kind))).toEqual([
      "tool_result",
      "partial",
      "context",
      "answer",
    ]);
    expect(h.clock.pending().filter((timer) => timer.at > h.clock.now() + 10_000)).toEqual([]);
  });

  test("RUN-3 an agent without any tools has time to wrap up as well", async () => {
    await using h = await harness({
      store,
      runtime: { profile: "codex" },
      scripted: { models: { alone: { collaborates: false } } },
      tree: { limits: { runWallClockMs: 10_000, wrapUpMs: 3_000 } },
      scripts: {
        "/root": [together(say("so far"), stall()), together(pause(2_000), say("what I have")), say("no")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.clock.advance(10_000);
    await h.clock.advance(2_000);
    expect(await work.outcome()).toMatchObject({ ending: "time_limit", text: "what I have" });
    expect(h.provider.requests("/root").map((request) => request.tools)).toEqual([[], []]);
    expect(look.inputs("/root", -1)).toEqual([expect.stringMatching(WRAP_UP)]);
  });

  test("RUN-3 so is a tool that hangs, and a request that no provider accepts", async () => {
    const seen: AbortSignal[] = [];
    const tool = defineTool({
      name: "drill",
      input: z.object({}),
      run: (_input, { signal }) => {
        seen.push(signal);
        return new Promise(() => undefined);
      },
    });
    await using h = await harness({
      store,
      runtime: { tools: [tool] },
      tree: { limits: { runWallClockMs: 10_000 } },
      scripts: {
        "/root": [
          call("drill"),
          say("drilled"),
          gate("never", { beforeAcceptance: true }),
          say("no"),
          say("no"),
        ],
      },
    });
    const look = new Look(h);
    const drilled = await h.tree.root.send("go");
    await h.clock.advance(10_000);
    expect(await drilled.outcome()).toMatchObject({ ending: "time_limit", text: "drilled" });
    expect(seen[0]!.aborted).toBe(true);
    const [output] = await look.outputs("/root", "drill");
    expect(output!.isError).toBe(true);
    const unaccepted = await h.tree.root.send("go");
    await h.provider.gates.arrived("never");
    await h.clock.advance(10_000);
    await h.provider.gates.arrived("never", 2);
    expect(look.inputs("/root", -1)).toEqual([expect.stringMatching(WRAP_UP), "go"]);
    h.provider.gates.open("never");
    expect(await unaccepted.outcome()).toMatchObject({ ending: "time_limit", text: "no" });
  });

  test.each([
    ["hangs", stall()],
    ["is deaf to the signal", together(ignoreAbort("deaf"), say("late"))],
  ])("RUN-3 a wrap-up step that %s is ended from the store", async (_, step) => {
    await using h = await harness({
      store,
      tree: { limits: { runWallClockMs: 10_000, wrapUpMs: 3_000 } },
      scripts: { "/root": [together(say("so far"), stall()), step, say("next run")] },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.clock.advance(12_999);
    expect((await look.runs("/root"))[0]!.status).toBe("running");
    await h.clock.advance(1);
    expect(await work.outcome()).toMatchObject({
      ending: "time_limit",
      text: "so far",
      error: { code: "LIMIT_REACHED" },
    });
    expect((await look.runs("/root"))[0]).toMatchObject({ status: "failed", reason: "time_limit" });
    h.provider.gates.open("deaf");
    await h.ask("again");
    expect(await look.runs("/root")).toHaveLength(2);
  });

  test("RUN-3 time in a wait does not count for a run's wall clock; the tree's counts", async () => {
    await using h = await harness({
      store,
      tree: { limits: { runWallClockMs: 10_000, treeWallClockMs: 100_000 } },
      scripts: {
        "/root": [
          spawn("worker", "look", NONE),
          wait({ timeout_ms: 60_000 }),
          wait({ timeout_ms: 60_000 }),
          say("never asked"),
        ],
        "/root/worker": [wait({ timeout_ms: 600_000 }), say("found it")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await look.until("both wait", async () => (await look.events("run.waiting")).length === 2);
    await h.clock.advance(60_000);
    await look.until(
      "the second wait",
      async () => (await look.events("wait.started", "/root")).length === 2,
    );
    expect((await look.runs("/root"))[0]).toMatchObject({ waitedMs: 60_000, wrapUpOffered: false });
    await h.clock.advance(60_000);
    // The run itself has used no time; the tree is out of its own.
    expect(await work.outcome()).toMatchObject({ ending: "budget_exhausted" });
    expect((await look.runs("/root"))[0]).toMatchObject({ waitedMs: 120_000, reason: "budget_exhausted" });
  });
});
