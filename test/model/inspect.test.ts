/** `inspect` given to a runtime sees its sessions as actors, and nothing else changes (L3 of `session/lifecycle.ts`). */
import { describe, expect, test } from "vitest";
import {
  gate,
  ignoreAbort,
  list,
  repeat,
  say,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { type LifecycleState, nextState, type SessionInspection } from "../../src/session/lifecycle.ts";
import { type Harness, type HarnessOptions, harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const NONE = { fork_turns: "none" };
const MORE = repeat(say("more"));

/** Everything that a session can go through: waits that are parked, a reload, an interrupt, a cut, a close. */
async function live(h: Harness): Promise<void> {
  const look = new Look(h);
  await h.ask("go");
  const { agent } = await h.tree.root.spawn("deaf", "look");
  await h.provider.gates.arrived("deaf");
  await agent.interrupt();
  await h.clock.advance(5_000);
  h.provider.gates.open("deaf");
  await (await agent.send("again")).outcome();
  await agent.close();
  await (await (await h.tree.agent("w")).send("again")).outcome();
  await look.until("all is at rest", async () => (await h.tree.counts()).running === 0);
  await h.clock.settle();
}

const options = (store: (typeof STORES)[number]): HarnessOptions => ({
  store,
  runtime: { limits: { residents: 1 } },
  scripts: {
    "/root": [list(), spawn("w", "look", NONE), wait({ targets: ["w"] }), say("end"), MORE],
    "/root/w": [list(), gate("open"), say("ok"), MORE],
    "/root/deaf": ({ inputs }) =>
      inputs.includes("again") ? say("back") : together(say("so far"), ignoreAbort("deaf"), say("late")),
  },
});

/** The states of each session in turn, one list a load. */
function lives(seen: readonly SessionInspection[]): Map<string, LifecycleState[][]> {
  const found = new Map<string, LifecycleState[][]>();
  for (const event of seen) {
    const id = event.actorRef.id!;
    const ofThread = found.get(id) ?? [];
    found.set(id, ofThread);
    if (event.type === "@xstate.actor") ofThread.push([]);
    if (event.type !== "@xstate.event") continue;
    const states = ofThread.at(-1)!;
    const { type } = event.event!;
    if (type === "xstate.init") states.push("unloaded");
    else states.push(nextState(states.at(-1)!, type as Parameters<typeof nextState>[1]));
  }
  return found;
}

describe.each(STORES)("inspect on %s", (store) => {
  test("L3 an inspector of the runtime sees every session, load by load", async () => {
    const seen: SessionInspection[] = [];
    const base = options(store);
    await using h = await harness({
      ...base,
      runtime: { ...base.runtime, inspect: (event) => seen.push(event) },
    });
    h.provider.gates.open("open");
    await live(h);
    const found = lives(seen);
    const agents = await h.tree.records();
    expect([...found.keys()].toSorted()).toEqual(agents.map((agent) => agent.threadId).toSorted());
    const of = (path: string) => found.get(agents.find((agent) => agent.path === path)!.threadId)!;
    // Parked in its wait and loaded again into it.
    expect(of("/root").slice(0, 2)).toEqual([
      ["unloaded", "loading", "idle", "reserved", "running", "waiting", "unloading", "unloaded"],
      expect.arrayContaining(["unloaded", "loading", "idle", "waiting", "running"]),
    ]);
    expect(of("/root/deaf").flat()).toEqual(expect.arrayContaining(["interrupting", "closed"]));
    expect(of("/root/deaf").at(-1)!.at(-1)).toBe("closed");
    expect(of("/root/w").length).toBeGreaterThanOrEqual(2);
    for (const states of [...found.values()].flat()) expect(states[0]).toBe("unloaded");
  });

  test("L3 with it and without it the same happens", async () => {
    const logs: string[] = [];
    for (const inspect of [undefined, () => undefined]) {
      const base = options(store);
      await using h = await harness({
        ...base,
        runtime: { ...base.runtime, ...(inspect === undefined ? {} : { inspect }) },
      });
      h.provider.gates.open("open");
      await live(h);
      const events = await new Look(h).events();
      logs.push(
        events.map((event) => `${event.path} ${event.type} ${JSON.stringify(event.data)}`).join("\n"),
      );
    }
    expect(logs[1]).toBe(logs[0]);
  });
});
