/** Waits that could never end (WAI-8): refused when asked for, broken when a commit closes the loop. */
import { describe, expect, test } from "vitest";
import { gate, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const NONE = { fork_turns: "none" };
const MORE = repeat(say("more"));

function inWait(look: Look, path: string): Promise<void> {
  return look.until(`${path} waits`, async () => (await look.status(path)) === "waiting");
}

describe.each(STORES)("cycles on %s", (store) => {
  test("WAI-8 a wait on oneself is refused, naming the loop", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "look", NONE), say("started"), MORE],
        "/root/worker": [wait({ targets: ["/root/worker"] }), say("fine")],
      },
    });
    const look = new Look(h);
    await h.ask("go");
    const work = await look.work("/root/worker");
    const [refused] = await look.outputs("/root/worker", "wait_agent");
    expect(refused).toMatchObject({
      isError: true,
      output: { error: expect.stringMatching(/^WAIT_CYCLE: /) },
    });
    expect(JSON.stringify(refused!.output)).toContain(`/root/worker → /root/worker (${work.id})`);
    expect(work.outcome).toMatchObject({ ending: "completed", text: "fine" });
    expect(await look.events("wait.started", "/root/worker")).toEqual([]);
  });

  test("WAI-8 a wait that would close a cycle over another wait is refused, naming the loop", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("boss", "lead", NONE), say("started"), MORE],
        "/root/boss": [spawn("worker", "look", NONE), wait({ targets: ["worker"] }), say("end")],
        "/root/boss/worker": [gate("ask"), wait({ targets: ["/root/boss"] }), say("found it")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await inWait(look, "/root/boss");
    h.provider.gates.open("ask");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    const boss = await look.work("/root/boss");
    const worker = await look.work("/root/boss/worker");
    const [refused] = await look.outputs("/root/boss/worker", "wait_agent");
    expect(refused).toMatchObject({
      isError: true,
      output: { error: expect.stringMatching(/^WAIT_CYCLE: /) },
    });
    expect(JSON.stringify(refused!.output)).toContain(
      `/root/boss/worker → /root/boss (${boss.id}) → /root/boss/worker (${worker.id})`,
    );
    const [kept] = await look.outputs("/root/boss", "wait_agent");
    expect(kept!.output).toMatchObject({ ended_by: "settled", results: [{ text: "found it" }] });
  });

  test("WAI-8 so is one that goes through an awaiting work to the works under it", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("boss", "lead", NONE), say("started"), MORE],
        "/root/boss": [spawn("worker", "look", NONE), say("delegated"), say("end")],
        "/root/boss/worker": [gate("ask"), wait({ targets: ["/root/boss"] }), say("found it")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await look.until(
      "the boss awaits",
      async () => (await look.status("/root/boss")) === "awaiting_children",
    );
    h.provider.gates.open("ask");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    const [refused] = await look.outputs("/root/boss/worker", "wait_agent");
    expect(refused).toMatchObject({
      isError: true,
      output: { error: expect.stringMatching(/^WAIT_CYCLE: /) },
    });
  });

  test("WAI-8 so is one on a work whose request waits in the mailbox of who waits", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 1 } },
      scripts: {
        "/root": [together(spawn("a", "one", NONE), spawn("b", "two", NONE)), say("started"), MORE],
        // `b` is queued behind `a`; nothing in it waits yet, so waiting for it is no cycle.
        "/root/a": [wait({ targets: ["/root/b"] }), say("a")],
        "/root/b": [wait({ targets: ["/root/a"] }), say("b")],
      },
    });
    const look = new Look(h);
    expect(await h.ask("go")).toMatchObject({ ending: "completed" });
    const [first] = await look.outputs("/root/a", "wait_agent");
    const [second] = await look.outputs("/root/b", "wait_agent");
    expect(first!.output).toMatchObject({ ended_by: "settled", results: [{ text: "b" }] });
    expect(second).toMatchObject({
      isError: true,
      output: { error: expect.stringMatching(/^WAIT_CYCLE: /) },
    });
  });

  test("WAI-8 a settle that closes a cycle ends the youngest wait in it with that error", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("boss", "lead", NONE), say("started"), MORE],
        "/root/boss": [spawn("worker", "look", NONE), gate("boss"), say("delegated"), say("end")],
        "/root/boss/worker": [spawn("sub", "help", NONE), wait({ targets: ["sub"] }), say("found it")],
        "/root/boss/worker/sub": [gate("sub"), wait({ targets: ["/root/boss"] }), say("helped")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("boss");
    await inWait(look, "/root/boss/worker");
    await h.clock.advance(1000);
    h.provider.gates.open("sub");
    // The boss is in a request: waiting for it is no cycle yet.
    await inWait(look, "/root/boss/worker/sub");
    h.provider.gates.open("boss");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    const boss = await look.work("/root/boss");
    const [broken] = await look.outputs("/root/boss/worker/sub", "wait_agent");
    expect(broken).toMatchObject({ isError: true, output: { code: "WAIT_CYCLE" } });
    expect(JSON.stringify(broken!.output)).toContain(boss.id);
    expect((await look.events("wait.ended")).map((event) => [event.path, event.data["end"]])).toEqual([
      ["/root/boss/worker/sub", "cycle"],
      ["/root/boss/worker", "settled"],
    ]);
    const [settle] = await look.events("work.awaiting", "/root/boss");
    const [ended] = await look.events("wait.ended");
    // One commit: nothing of another transition stands between them.
    expect(ended!.seq - settle!.seq).toBeLessThan(3);
  });

  test("WAI-8 a settle of merged works closes a cycle over each of them", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("boss", "lead", NONE), gate("root"), say("started"), MORE],
        "/root/boss": [
          gate("first"),
          spawn("early", "look", NONE),
          spawn("late", "look", NONE),
          gate("boss"),
          say("delegated"),
          MORE,
        ],
        "/root/boss/early": [say("early")],
        "/root/boss/late": [gate("late"), wait({ targets: ["/root/boss"] }), say("found it")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("first");
    // A second work joins the run; what is asked from then on is under both.
    const merged = await (await h.tree.agent("boss")).send("that as well");
    h.provider.gates.open("first");
    await h.provider.gates.arrived("boss");
    h.provider.gates.open("late");
    await inWait(look, "/root/boss/late");
    const [wait0] = await look.events("wait.started", "/root/boss/late");
    expect(wait0!.data["works"]).toEqual([merged.id]);
    expect((await look.work("/root/boss/late")).parents).toHaveLength(2);
    h.provider.gates.open("boss");
    h.provider.gates.open("root");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    const [broken] = await look.outputs("/root/boss/late", "wait_agent");
    expect(broken).toMatchObject({ isError: true, output: { code: "WAIT_CYCLE" } });
    expect(await merged.outcome()).toMatchObject({ ending: "completed" });
  });

  test.each([
    ["any", true],
    [1, true],
    [2, false],
    ["all", false],
  ] as const)("WAI-8 with mode %s only if too few targets lie outside", async (mode, allowed) => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [together(spawn("boss", "lead", NONE), spawn("other", "stand", NONE)), say("started"), MORE],
        "/root/boss": [spawn("worker", "look", NONE), wait({ targets: ["worker"] }), say("end")],
        "/root/boss/worker": [
          gate("ask"),
          wait({ targets: ["/root/boss", "/root/other"], mode }),
          say("found it"),
        ],
        "/root/other": [gate("other"), say("other")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await inWait(look, "/root/boss");
    await h.provider.gates.arrived("other");
    h.provider.gates.open("ask");
    if (allowed) await inWait(look, "/root/boss/worker");
    h.provider.gates.open("other");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    const [output] = await look.outputs("/root/boss/worker", "wait_agent");
    if (allowed)
      expect(output!.output).toMatchObject({ ended_by: "settled", results: [{ agent: "/root/other" }] });
    else
      expect(output).toMatchObject({
        isError: true,
        output: { error: expect.stringMatching(/^WAIT_CYCLE: /) },
      });
  });

  test("WAI-8 waits that lead over ever more ways to the same works are judged at once", async () => {
    // Each of two agents waits for the two of the next layer: 2^30 ways from the first layer to the last.
    const layers = 30;
    const pair = (layer: number): string[] => [`/root/l${layer}_a`, `/root/l${layer}_b`];
    const all = Array.from({ length: layers }, (_, layer) => pair(layer)).flat();
    const next = (path: string): number => Number(/\d+/.exec(path)![0]) + 1;
    await using h = await harness({
      store,
      scripts: {
        "/root": [wait({ targets: pair(0), timeout_ms: 60_000 }), say("all is in")],
        ...Object.fromEntries(
          all.map((path) => [
            path,
            next(path) === layers
              ? [gate("last"), say("end")]
              : [wait({ targets: pair(next(path)), timeout_ms: 60_000 }), say("on")],
          ]),
        ),
      },
      runtime: {
        limits: { running: 100, directChildren: null, spawnsPerMinute: null, runsPerMinute: null },
      },
    });
    const look = new Look(h);
    for (const path of all.toReversed()) {
      await h.tree.root.spawn(path.slice("/root/".length), "go");
      if (next(path) < layers) await inWait(look, path);
    }
    const work = await h.tree.root.send("go");
    await inWait(look, "/root");
    h.provider.gates.open("last");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "all is in" });
  });
});
