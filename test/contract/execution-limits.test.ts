/** Limits hold at every instant and for every entry (EXE-4). */
import { describe, expect, test } from "vitest";
import { ask, gate, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { hostTools } from "../../src/tools/host-tools.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const NONE = { fork_turns: "none" };
const MORE = repeat(say("more"));

describe.each(STORES)("limits at every instant on %s", (store) => {
  test("EXE-4 tools, library and hosts share the limit, whatever they ask and however fast", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 3 } },
      scripts: {
        "/root": [
          together(...["a", "b", "c", "d"].map((name) => spawn(name, "look", NONE))),
          say("started"),
          MORE,
        ],
        "*": [spawn("sub", "help", NONE), wait({ targets: ["sub"] }), say("ok"), MORE],
        ...Object.fromEntries(
          ["a", "b", "c", "d", "e", "f"].map((name) => [`/root/${name}/sub`, [gate("work"), say("sub")]]),
        ),
      },
    });
    const { permits } = h.tree.control.tree;
    let most = 0;
    const seen = async (): Promise<void> => {
      most = Math.max(most, permits.inUse, (await h.tree.counts()).running);
    };
    const watching = (async () => {
      for await (const _ of h.tree.events()) await seen();
    })();
    const asked = [await h.tree.root.send("go")];
    for (const name of ["e", "f"]) asked.push((await h.tree.root.spawn(name, "look")).work);
    for (let at = 1; at <= 6; at += 1) {
      await h.provider.gates.arrived("work", at);
      await seen();
      expect(h.provider.gates.waiting("work")).toBeLessThanOrEqual(3);
      h.provider.gates.letThrough("work", 1);
    }
    for (const work of asked) expect(await work.outcome()).toMatchObject({ ending: "completed" });
    await h.tree.idle();
    expect(most).toBe(3);
    expect(permits.inUse).toBe(0);
    await h.tree.close();
    await watching;
  });

  test("EXE-4 a wait answers only once its permit is back", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 1 } },
      scripts: {
        "/root": [spawn("boss", "lead", NONE), spawn("other", "stand", NONE), say("started"), MORE],
        "/root/boss": [
          spawn("w", "look", NONE),
          wait({ targets: ["w"], timeout_ms: 10_000 }),
          say("end"),
          MORE,
        ],
        "/root/boss/w": [gate("w"), say("ok")],
        "/root/other": [gate("other"), say("ok")],
      },
    });
    const look = new Look(h);
    await h.tree.root.send("go");
    await look.until("the boss waits", async () => (await look.status("/root/boss")) === "waiting");
    const first = h.provider.gates.waiting("w") === 1 ? "w" : "other";
    await h.provider.gates.arrived(first);
    await h.clock.advance(10_000);
    // Out of time; the permit is another's.
    expect((await look.events("wait.ended", "/root/boss"))[0]!.data).toMatchObject({ end: "timed_out" });
    expect(await look.outputs("/root/boss", "wait_agent")).toEqual([]);
    expect(h.tree.control.tree.permits).toMatchObject({ inUse: 1 });
    h.provider.gates.open(first);
    await look.until(
      "it has its answer",
      async () => (await look.outputs("/root/boss", "wait_agent")).length === 1,
    );
    h.provider.gates.open("w");
    h.provider.gates.open("other");
    await h.tree.idle();
  });

  test("EXE-4 the wait of a host, which holds no permit, answers on time whatever is in use", async () => {
    await using h = await harness({
      store,
      tree: { hostDriven: true, limits: { running: 1, transportWaitMs: 5_000 } },
      scripts: { "*": [gate("work"), say("ok")] },
    });
    const tools = hostTools(h.tree.control, h.tree.root.threadId, { shortTransport: true });
    const tool = (name: string) => tools.find((one) => one.name === name)!;
    for (const name of ["a", "b"]) {
      await tool("spawn_agent").call({ task_name: name, message: "look", fork_turns: "none" });
    }
    await h.provider.gates.arrived("work");
    const waiting = tool("wait_agent").call({ timeout_ms: 60_000 });
    await h.clock.advance(5_000);
    expect((await waiting).output).toMatchObject({ ended_by: "cut_short" });
    expect(h.tree.control.tree.permits).toMatchObject({ inUse: 1 });
    expect(await h.tree.counts()).toMatchObject({ running: 1, queued: 1 });
    h.provider.gates.open("work");
    await h.tree.idle();
  });

  test("EXE-4 a run that waits for an answer lends its permit, not its slot, and counts as in a wait", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 2 } },
      tree: { limits: { running: 1 } },
      scripts: {
        "/root": [together(spawn("asks", "one", NONE), spawn("other", "two", NONE)), say("started"), MORE],
        "/root/asks": [ask("which?"), say("thanks")],
        "/root/other": [gate("other"), say("ok")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await look.until("it asks", async () => (await look.status("/root/asks")) === "awaiting_approval");
    await h.provider.gates.arrived("other");
    expect(await h.tree.counts()).toMatchObject({ running: 1, resident: 2 });
    expect((await (await h.tree.agent("asks")).summary()).resident).toBe(true);
    expect((await h.tree.root.summary()).resident).toBe(false);
    const [opened] = await look.events("request.opened");
    await h.tree.answer(opened!.data["requestId"] as `req_${string}`, "this one");
    await h.clock.settle();
    // The permit is in use: the answer waits for it.
    expect(h.provider.requests("/root/asks")).toHaveLength(1);
    expect(h.tree.control.tree.permits).toMatchObject({ inUse: 1 });
    h.provider.gates.open("other");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
  });
});
