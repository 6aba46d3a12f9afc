/** How many sessions are loaded, and who makes room (RES-1, RES-2, RES-3, RES-7). */
import { describe, expect, test } from "vitest";
import type { OwnLoopAdapter } from "../../src/providers/port.ts";
import { hang } from "../../src/providers/scripted/native/faults.ts";
import { turnFork } from "../../src/providers/scripted/native/provider.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { gate, list, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const NONE = { fork_turns: "none" };
const MORE = repeat(say("more"));
const USER = { kind: "user", name: "library" } as const;

async function done(h: Harness, name: string): Promise<void> {
  const { work } = await h.tree.root.spawn(name, "look");
  await work.outcome();
  await h.clock.settle();
}

async function residents(h: Harness): Promise<string[]> {
  const { agents } = await h.tree.list();
  return agents.flatMap((agent) => (agent.resident ? [agent.path.split("/").at(-1)!] : []));
}

describe.each(STORES)("slots on %s", (store) => {
  test("RES-1 registered, resident and running are three numbers, all visible", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 2 } },
      scripts: {
        "/root": [list(), say("seen")],
        "/root/c": [gate("c"), say("ok")],
        "*": [say("ok")],
      },
    });
    const look = new Look(h);
    for (const name of ["a", "b"]) await done(h, name);
    await h.tree.root.spawn("c", "look");
    await h.provider.gates.arrived("c");
    expect(await h.tree.counts()).toEqual({ registered: 4, resident: 2, running: 1, queued: 0 });
    expect(await residents(h)).toEqual(["b", "c"]);
    h.provider.gates.open("c");
    await h.tree.idle();
    expect(await h.tree.counts()).toEqual({ registered: 4, resident: 2, running: 0, queued: 0 });
    await h.ask("list them");
    const shown = JSON.stringify((await look.outputs("/root", "list_agents"))[0]!.output);
    expect(shown.match(/"resident":true/g)).toHaveLength(2);
    expect(shown.match(/"resident":false/g)).toHaveLength(2);
  });

  test("RES-2 room is made from the least recently used", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 3 } },
      scripts: { "*": [MORE] },
    });
    const look = new Look(h);
    for (const name of ["a", "b", "c"]) await done(h, name);
    expect(await residents(h)).toEqual(["a", "b", "c"]);
    await (await (await h.tree.agent("a")).send("again")).outcome();
    await done(h, "d");
    expect(await residents(h)).toEqual(["a", "c", "d"]);
    await done(h, "e");
    expect(await residents(h)).toEqual(["a", "d", "e"]);
    expect((await look.events("agent.unloaded")).map((event) => event.path)).toEqual(["/root/b", "/root/c"]);
  });

  test("RES-2 no more than allowed are loaded at any instant, roots and pending loads counted", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 3 } },
      tree: { limits: { running: 8 } },
      scripts: {
        "/root": [
          together(...["a", "b", "c", "d"].map((name) => spawn(name, "look", NONE))),
          wait({ targets: ["a", "b", "c", "d"] }),
          say("all"),
        ],
        "*": [spawn("sub", "help", NONE), say("delegated"), MORE],
      },
    });
    const other = await h.runtime.openTree();
    const { residency } = h.tree.control.tree;
    let most = 0;
    const watching = (async () => {
      for await (const _ of h.tree.events()) most = Math.max(most, residency.count, residency.loaded);
    })();
    const works = [await h.tree.root.send("go"), await other.root.send("go")];
    for (const work of works) expect(await work.outcome()).toMatchObject({ ending: "completed" });
    await h.tree.idle();
    await h.tree.close();
    await watching;
    expect(most).toBe(3);
  });

  test("RES-2 when none may go the caller queues, and a root takes its slot like the others", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      scripts: { "/root": [say("root")], "*": [gate("work"), say("ok")] },
    });
    const look = new Look(h);
    await h.tree.root.spawn("a", "look");
    await h.provider.gates.arrived("work");
    const { work: b } = await h.tree.root.spawn("b", "look");
    const root = await h.tree.root.send("hello");
    await h.clock.settle();
    expect(await look.status("/root/b")).toBe("queued");
    expect(await h.tree.root.status()).toEqual({ kind: "queued", position: 1 });
    expect(await h.tree.counts()).toMatchObject({ resident: 1, running: 1 });
    h.provider.gates.open("work");
    await root.outcome();
    await b.outcome();
    expect((await look.events("agent.unloaded")).length).toBeGreaterThanOrEqual(2);
  });

  test("RES-2 a host-driven root is no session and takes no slot", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      tree: { hostDriven: true },
      scripts: { "*": [gate("work"), say("ok")] },
    });
    await h.tree.root.spawn("a", "look");
    await h.provider.gates.arrived("work");
    expect(await h.tree.counts()).toMatchObject({ registered: 2, resident: 1, running: 1 });
    h.provider.gates.open("work");
    await h.tree.idle();
  });

  test("RES-2 a wait is parked when room is wanted, and its return goes before all that are new", async () => {
    const order: string[] = [];
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      tree: { limits: { running: 1 } },
      scripts: {
        "/root/boss": [
          spawn("w", "look", NONE),
          wait({ targets: ["w"] }),
          () => {
            order.push("boss");
            return say("end");
          },
        ],
        "/root/boss/w": [gate("w"), say("ok")],
        "*": [
          ({ path }) => {
            order.push(path);
            return say("ok");
          },
        ],
      },
    });
    const look = new Look(h);
    const { work } = await h.tree.root.spawn("boss", "lead");
    await h.provider.gates.arrived("w");
    const [parked] = await look.events("agent.unloaded", "/root/boss");
    expect(parked!.runId).toBe((await look.runs("/root/boss"))[0]!.id);
    expect((await look.runs("/root/boss"))[0]).toMatchObject({ status: "waiting" });
    for (const name of ["x", "y"]) await h.tree.root.spawn(name, "look");
    h.provider.gates.open("w");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "end" });
    await h.tree.idle();
    expect(order).toEqual(["boss", "/root/x", "/root/y"]);
    expect(await look.runs("/root/boss")).toHaveLength(1);
  });

  test("RES-2 a parked wait comes back after a crash as well", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      scripts: {
        "/root": [spawn("w", "look", NONE), wait({ timeout_ms: 60_000, targets: ["w"] }), say("end"), MORE],
        "/root/w": [gate("w"), say("never told"), MORE],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("w");
    expect((await h.tree.root.summary()).resident).toBe(false);
    await h.crash();
    // The worker's run is lost, and its result is what the wait waited for.
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed", text: "end" });
    expect((await look.outputs("/root", "wait_agent"))[0]!.output).toMatchObject({
      ended_by: "settled",
      results: [{ state: "runtime_lost" }],
    });
    expect(await look.runs("/root")).toHaveLength(1);
  });

  test("RES-2 one that cannot be parked lends its slot and counts again, even over the limit", async () => {
    const provider = scripted({
      "/root": [spawn("w", "look", NONE), wait({ targets: ["w"] }), gate("root"), say("end"), MORE],
      "/root/w": [gate("w"), say("ok"), gate("w2"), say("ok")],
      "/root/later": [say("ok")],
    });
    const unparked: OwnLoopAdapter = {
      ...provider,
      capabilities: { ...provider.capabilities, parksWaits: false },
    };
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 }, providers: { unparked } },
    });
    const look = new Look(h);
    const { residency } = h.tree.control.tree;
    const work = await h.tree.root.send("go");
    await provider.gates.arrived("w");
    expect((await h.tree.root.summary()).resident).toBe(true);
    expect(residency).toMatchObject({ count: 1, loaded: 2 });
    const worker = await h.tree.agent("w");
    const more = await worker.send("and this", { onBusy: "queue" });
    provider.gates.open("w");
    await provider.gates.arrived("root");
    await provider.gates.arrived("w2");
    expect(residency).toMatchObject({ count: 2, loaded: 2, room: 0 });
    const { work: later } = await h.tree.root.spawn("later", "look");
    provider.gates.open("w2");
    await more.outcome();
    await h.clock.settle();
    // The worker went; the root alone is the limit, so nothing is loaded yet.
    expect((await later.record()).state).toBe("queued");
    provider.gates.open("root");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    expect(await later.outcome()).toMatchObject({ ending: "completed" });
    expect(residency.count).toBe(1);
    expect(await look.status("/root/later")).toBe("idle");
  });

  test("RES-3 those without mail go first; one with queue-only mail when no other can, its mail kept", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 2 } },
      scripts: { "/root/c": [gate("c"), say("ok")], "*": [MORE] },
    });
    const look = new Look(h);
    for (const name of ["a", "b"]) await done(h, name);
    await (await h.tree.agent("a")).tell("for later");
    await h.tree.root.spawn("c", "look");
    await h.provider.gates.arrived("c");
    expect(await residents(h)).toEqual(["a", "c"]);
    await done(h, "d");
    expect(await residents(h)).toEqual(["c", "d"]);
    expect((await look.mail("/root/a")).at(-1)).toMatchObject({ state: "accepted", trigger: false });
    h.provider.gates.open("c");
    await (await (await h.tree.agent("a")).send("now")).outcome();
    expect(look.inputs("/root/a", -1).join("\n")).toContain("for later");
  });

  test("RES-3 where only agents pinned by their mail could go, a spawn or follow-up is refused", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      tree: { pinPendingMail: true },
      scripts: { "*": [MORE] },
    });
    const look = new Look(h);
    await done(h, "other");
    await done(h, "a");
    await (await h.tree.agent("a")).tell("for later");
    const before = await look.snapshot();
    const refusal = { code: "AGENT_LIMIT_REACHED", details: { limit: "residents", pinned: true } };
    await expect(h.tree.root.spawn("b", "look")).rejects.toMatchObject(refusal);
    await expect(h.tree.control.followUp(USER, { target: "other", message: "again" })).rejects.toMatchObject(
      refusal,
    );
    expect(await look.snapshot()).toEqual(before);
    expect(await residents(h)).toEqual(["a"]);
    // It is loaded already: a follow-up to it needs no room.
    await h.tree.control.followUp(USER, { target: "a", message: "read it" });
    await h.tree.idle();
    await done(h, "b");
    expect(await residents(h)).toEqual(["b"]);
  });

  test("RES-3 a wake or a work already committed unloads the least recently used of them", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      tree: { pinPendingMail: true },
      scripts: {
        "/root": [spawn("a", "look", NONE), say("started"), say("end")],
        "/root/a": [gate("a"), say("ok"), MORE],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("a");
    await (await h.tree.agent("a")).tell("for later");
    h.provider.gates.open("a");
    // The result wakes the root, which takes the place of `a` although mail pins it.
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "end" });
    expect(await residents(h)).toEqual(["root"]);
    expect((await look.mail("/root/a")).at(-1)).toMatchObject({ state: "accepted" });
  });

  test.for(["forkThread", "startTurn"] as const)(
    "RES-3 an agent whose start is in the middle of a native fork, or of delivering a handoff (%s), is not unloaded",
    async (asked) => {
      const native = turnFork({ "/root": [repeat(say("native"))] });
      await using h = await harness({
        store,
        others: { native },
        runtime: { limits: { residents: 1 } },
        scripts: { "*": [MORE] },
        tree: { provider: asked === "forkThread" ? "native" : "scripted" },
      });
      await h.ask("begin");
      const { threads } = h.runtime;
      // A fork opens its source's conversation anew; a switch hands over what was said.
      const id = asked === "forkThread" ? (await threads.fork(h.tree.id)).thread.id : h.tree.id;
      const other = await h.runtime.openTree({ provider: "scripted" });
      native.fault(asked, hang("asked"));
      await threads.continue(id, "go on", { provider: "native" });
      await native.gates.arrived("asked");
      const starting = await h.runtime.openTree({ id });
      const { residency } = starting.control.tree;
      const work = await other.root.send("a place, please");
      await h.clock.advance(10_000);
      expect(residency.victims(9, true)).toEqual([]);
      expect(await starting.counts()).toMatchObject({ resident: 1 });
      expect([(await other.counts()).resident, (await other.root.runs()).rows]).toEqual([0, []]);
      native.gates.open("asked");
      expect(await work.outcome()).toMatchObject({ ending: "completed" });
      await starting.idle();
      expect((await starting.root.runs()).rows.at(-1)).toMatchObject({ status: "completed" });
      expect(native.calls(asked)).toHaveLength(1);
    },
  );

  test("RES-3 RES-7 what is in memory is bounded by residents, not by registered agents", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 2 } },
      tree: { limits: { spawnsPerMinute: null, runsPerMinute: null, directChildren: null } },
      scripts: { "*": [MORE] },
    });
    for (let at = 0; at < 40; at += 1) await done(h, `w${at}`);
    const { tree } = h.tree.control;
    expect(await h.tree.counts()).toMatchObject({ registered: 41, resident: 2 });
    expect(tree.residency.loaded).toBe(2);
    expect([tree.sessions.size, tree.mailboxes.size]).toEqual([2, 2]);
    expect([tree.runs.size, tree.starting.size, tree.loading.size, tree.lane.size]).toEqual([0, 0, 0, 0]);
    // Nothing waits for an idle agent either, but for the owner's own heartbeat.
    expect(h.clock.pending().length).toBeLessThanOrEqual(3);
  });
});
