/** What an interrupt ends and what goes on, in every state of a run (INT-8). */
import { describe, expect, test } from "vitest";
import { gate, list, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const NONE = { fork_turns: "none" };
const MORE = repeat(say("more"));

describe.each(STORES)("what an interrupt ends on %s", (store) => {
  test("INT-8 it ends the works which the run serves and those that await, and children go on, detached", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/boss": [
          spawn("first", "look", NONE),
          say("delegated"),
          spawn("second", "look", NONE),
          gate("boss"),
          say("never"),
          MORE,
        ],
        "/root/boss/first": [gate("first"), say("from first")],
        "/root/boss/second": [gate("second"), say("from second")],
      },
    });
    const look = new Look(h);
    const { agent, work: awaiting } = await h.tree.root.spawn("boss", "one");
    await look.until("it awaits", async () => (await look.status("/root/boss")) === "awaiting_children");
    const served = await agent.send("two");
    await h.provider.gates.arrived("boss");
    expect(await Promise.all([awaiting.record(), served.record()])).toMatchObject([
      { state: "awaiting_children" },
      { state: "running" },
    ]);
    await agent.interrupt();
    const at = h.clock.now();
    for (const work of [awaiting, served]) {
      expect(await work.outcome()).toMatchObject({ ending: "interrupted", endedAt: at });
    }
    expect(await look.work("/root/boss/first")).toMatchObject({ state: "running", holds: [] });
    expect(await look.work("/root/boss/second")).toMatchObject({ state: "running", holds: [] });
    expect((await look.events("work.detached")).map((event) => `${event.path}`).toSorted()).toEqual([
      "/root/boss/first",
      "/root/boss/second",
    ]);
    for (const name of ["first", "second"]) h.provider.gates.open(name);
    await h.tree.idle();
    expect(await look.work("/root/boss/first")).toMatchObject({ outcome: { ending: "completed" } });
    // Their results wake nobody: what they were asked under is over.
    expect(await look.runs("/root/boss")).toHaveLength(2);
    expect((await h.tree.root.owed()).length).toBe(0);
  });

  test("INT-8 a run that is only queued ends so, its request dead-lettered", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 1 } },
      scripts: { "/root/a": [gate("a"), say("a")], "/root/b": [say("b")] },
    });
    const look = new Look(h);
    await h.tree.root.spawn("a", "look");
    await h.provider.gates.arrived("a");
    const { agent, work } = await h.tree.root.spawn("b", "look");
    await agent.tell("by the way");
    expect(await agent.interrupt()).toMatchObject([
      {
        previous: { kind: "queued", position: 1 },
        status: { kind: "idle", last: "interrupted" },
        runId: null,
      },
    ]);
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    expect((await look.mail("/root/b")).map((mail) => [mail.state, mail.reason])).toEqual([
      ["dead_lettered", "work_ended"],
      ["accepted", null],
    ]);
    expect((await h.tree.counts()).queued).toBe(0);
    h.provider.gates.open("a");
    await h.tree.idle();
    expect(await look.runs("/root/b")).toEqual([]);
    expect(h.provider.requests("/root/b")).toEqual([]);
  });

  test("INT-8 one that is not yet accepted too; what else was drained is accepted again, queue-only", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/w": [gate("w", { beforeAcceptance: true }), say("never"), MORE] },
    });
    const look = new Look(h);
    const { agent, work } = await h.tree.root.spawn("w", "look");
    await h.provider.gates.arrived("w");
    await agent.tell("by the way");
    const [run] = await look.runs("/root/w");
    expect(await agent.interrupt({ runId: run!.id })).toMatchObject([
      { previous: { kind: "starting" }, status: { kind: "idle", last: "interrupted" } },
    ]);
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    expect((await look.runs("/root/w"))[0]).toMatchObject({ status: "interrupted", acceptedAt: null });
    expect((await look.mail("/root/w")).map((mail) => [mail.state, mail.reason, mail.trigger])).toEqual([
      ["dead_lettered", "work_ended", true],
      ["accepted", null, false],
    ]);
    expect(h.tree.control.tree.permits.inUse).toBe(0);
    expect(await look.items("/root/w")).toEqual([]);
  });

  test("INT-8 a run ended in a parked wait is settled from the store: no slot, no permit, no load", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      tree: { limits: { running: 1 } },
      scripts: {
        "/root/boss": [spawn("w", "look", NONE), wait({ targets: ["w"] }), say("never"), MORE],
        "/root/boss/w": [gate("w"), say("ok"), MORE],
      },
    });
    const look = new Look(h);
    const { agent, work } = await h.tree.root.spawn("boss", "lead");
    await h.provider.gates.arrived("w");
    expect((await agent.summary()).resident).toBe(false);
    const loads = (await look.events("agent.loaded", "/root/boss")).length;
    expect(await agent.interrupt()).toMatchObject([
      { previous: { kind: "waiting", on: ["/root/boss/w"] }, status: { kind: "idle", last: "interrupted" } },
    ]);
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    const runId = (await look.runs("/root/boss"))[0]!.id;
    expect(await look.view((view) => view.waitsOfRun(runId))).toMatchObject([
      { end: "aborted", endedAt: h.clock.now() },
    ]);
    expect(await look.events("agent.loaded", "/root/boss")).toHaveLength(loads);
    expect((await agent.summary()).resident).toBe(false);
    expect((await look.items("/root/boss")).slice(-2)).toMatchObject([
      { kind: "tool_result", name: "wait_agent", isError: true },
      { kind: "context", topic: "interrupted" },
    ]);
    h.provider.gates.open("w");
    await h.tree.idle();
    expect(await (await agent.send("again")).outcome()).toMatchObject({ ending: "completed" });
  });

  test("INT-8 one whose wait has ended and that waits for its permit is taken out of the queue", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 1 } },
      scripts: {
        "/root/boss": [spawn("w", "look", NONE), wait({ timeout_ms: 10_000 }), say("never"), say("again")],
        "/root/boss/w": [gate("w"), say("ok"), MORE],
      },
    });
    const look = new Look(h);
    const { agent } = await h.tree.root.spawn("boss", "lead");
    await h.provider.gates.arrived("w");
    await h.clock.advance(10_000);
    expect((await look.events("wait.ended")).map((event) => event.data["end"])).toEqual(["timed_out"]);
    expect(h.tree.control.tree.lane.size).toBe(1);
    await agent.interrupt();
    expect(h.tree.control.tree.lane.size).toBe(0);
    h.provider.gates.open("w");
    await h.tree.idle();
    expect(h.tree.control.tree.permits.inUse).toBe(0);
    expect(await (await agent.send("again")).outcome()).toMatchObject({ ending: "completed", text: "never" });
  });

  test("INT-8 a budget that is spent ends a run in its wait in the same way", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/boss": [spawn("w", "look", NONE), wait({ targets: ["w"] }), say("never"), MORE],
        "/root/boss/w": [gate("w"), list(), say("never"), MORE],
      },
    });
    const look = new Look(h);
    const { work } = await h.tree.root.spawn("boss", "lead", { budgets: { wallClockMs: 5_000 } });
    await h.provider.gates.arrived("w");
    await look.until("it waits", async () => (await look.status("/root/boss")) === "waiting");
    await h.clock.advance(5_000);
    h.provider.gates.open("w");
    expect(await work.outcome()).toMatchObject({ ending: "budget_exhausted" });
    expect((await look.events("wait.ended", "/root/boss")).map((event) => event.data["end"])).toEqual([
      "aborted",
    ]);
    expect((await look.runs("/root/boss"))[0]).toMatchObject({
      status: "failed",
      reason: "budget_exhausted",
    });
    await h.tree.idle();
    expect(h.tree.control.tree.permits.inUse).toBe(0);
  });

  test("INT-8 trigger-turn mail not yet in the run starts the next run by itself", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/w": [gate("w"), say("never"), say("the other")] },
    });
    const look = new Look(h);
    const { agent, work } = await h.tree.root.spawn("w", "one");
    await h.provider.gates.arrived("w");
    const other = await agent.send("two", { onBusy: "queue" });
    const joining = await agent.send("three");
    await agent.interrupt();
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    h.provider.gates.open("w");
    for (const one of [other, joining]) expect(await one.outcome()).toMatchObject({ ending: "completed" });
    const runs = await look.runs("/root/w");
    expect(runs.map((run) => run.status)).toEqual(["interrupted", "completed"]);
    expect(runs[1]!.serves).toEqual([other.id, joining.id]);
  });

  test("INT-8 `pending: cancel` ends those works as cancelled as well, and nothing starts", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/w": [gate("w"), say("never"), say("later")] },
    });
    const look = new Look(h);
    const { agent, work } = await h.tree.root.spawn("w", "one");
    await h.provider.gates.arrived("w");
    const other = await agent.send("two", { onBusy: "queue" });
    await agent.interrupt({ pending: "cancel" });
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    expect(await other.outcome()).toMatchObject({ ending: "cancelled" });
    expect((await look.mail("/root/w")).at(-1)).toMatchObject({
      state: "dead_lettered",
      reason: "work_ended",
    });
    h.provider.gates.open("w");
    await h.tree.idle();
    expect(await look.runs("/root/w")).toHaveLength(1);
    expect(await agent.status()).toEqual({ kind: "idle", last: "interrupted" });
  });

  test("INT-8 with `subtree` and `cancel` a whole tree of every state comes to rest", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 2 } },
      runtime: { limits: { residents: 2 } },
      scripts: {
        "/root/top": [
          together(spawn("a", "look", NONE), spawn("b", "look", NONE), spawn("c", "look", NONE)),
          wait({ targets: ["a", "b", "c"] }),
          say("never"),
        ],
        "*": [spawn("sub", "help", NONE), gate("work"), say("ok"), MORE],
        ...Object.fromEntries(["a", "b", "c"].map((name) => [`/root/top/${name}/sub`, [gate("sub"), MORE]])),
      },
    });
    const look = new Look(h);
    const { agent } = await h.tree.root.spawn("top", "lead");
    await h.provider.gates.arrived("work", 2);
    const touched = await agent.interrupt({ cascade: "subtree", pending: "cancel" });
    const depths = touched.map((one) => one.path.split("/").length);
    expect(depths).toEqual(depths.toSorted((a, b) => b - a));
    await h.tree.idle();
    h.provider.gates.openAll();
    await h.clock.settle();
    expect(await h.tree.counts()).toMatchObject({ running: 0, queued: 0 });
    expect(h.tree.control.tree.permits.inUse).toBe(0);
    expect((await look.works()).filter((work) => work.state !== "ended")).toEqual([]);
    const { agents } = await h.tree.list();
    expect(agents.filter((one) => one.status.kind !== "idle")).toEqual([]);
  });
});
