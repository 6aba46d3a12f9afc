/** What a wait costs and what an early end of it harms: nothing (WAI-5, WAI-6), and short transports (WAI-7). */
import { describe, expect, test, vi } from "vitest";
import { gate, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import type { Scripts } from "../../src/providers/scripted/provider.ts";
import { hostTools } from "../../src/tools/host-tools.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const NONE = { fork_turns: "none" };

function inWait(look: Look, path: string): Promise<void> {
  return look.until(`${path} waits`, async () => (await look.status(path)) === "waiting");
}

/** A line of agents in which each waits for the next, and the last one stands at a gate. */
function line(depth: number): Scripts {
  const scripts: Record<string, Scripts[string]> = {};
  for (let at = 0, path = "/root"; at <= depth; path += `/a${at}`, at += 1) {
    scripts[path] =
      at === depth
        ? [gate("last"), say("bottom")]
        : [spawn(`a${at}`, "go on", NONE), wait({ targets: [`a${at}`] }), say(`level ${at}`)];
  }
  return scripts;
}

describe.each(STORES)("waits on %s", (store) => {
  test("WAI-5 a tree of waiting parents does not deadlock at one permit and one resident", async () => {
    await using h = await harness({
      store,
      scripts: line(5),
      runtime: { limits: { residents: 1 } },
      tree: { limits: { running: 1 } },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("last");
    await look.until("the others have made room", async () => (await h.tree.counts()).resident === 1);
    expect(await h.tree.counts()).toMatchObject({ registered: 6, resident: 1, running: 1, queued: 0 });
    expect(h.tree.control.tree.permits.inUse).toBe(1);
    expect((await h.tree.list()).agents.filter((agent) => agent.status.kind === "waiting")).toHaveLength(5);
    h.provider.gates.open("last");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "level 0" });
    expect(h.tree.control.tree.permits.inUse).toBe(0);
    for (const path of ["/root", "/root/a0", "/root/a0/a1/a2/a3"]) {
      expect(await look.runs(path)).toHaveLength(1);
    }
  });

  test("WAI-5 wide trees come through one permit as well, and two waits of one step end together", async () => {
    const names = ["a", "b", "c", "d"];
    await using h = await harness({
      store,
      runtime: { limits: { residents: 2 } },
      tree: { limits: { running: 1 } },
      scripts: {
        "/root": [
          together(...names.map((name) => spawn(name, "go", NONE))),
          together(wait({ targets: ["a", "b"] }), wait({ targets: ["c", "d"] })),
          say("all in"),
        ],
        ...Object.fromEntries(
          names.flatMap((name) => [
            [`/root/${name}`, [spawn("sub", "help", NONE), wait({ targets: ["sub"] }), say(name)]],
            [`/root/${name}/sub`, [say("ok")]],
          ]),
        ),
      },
    });
    const look = new Look(h);
    expect(await h.ask("go")).toMatchObject({ ending: "completed", text: "all in" });
    expect(h.provider.requests("/root")).toHaveLength(3);
    const outputs = await look.outputs("/root", "wait_agent");
    expect(outputs.map(({ output }) => output["ended_by"])).toEqual(["settled", "settled"]);
  });

  test("WAI-5 while it waits there is no request, no poll of the store and no commit", async () => {
    await using h = await harness({ store, scripts: line(1) });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("last");
    await inWait(look, "/root");
    await h.clock.settle();
    const commits: number[] = [];
    h.onWrite = (write, kind) => {
      if (kind === "commit") commits.push(write);
      return null;
    };
    // An owner looks once after what it has done itself.
    await h.clock.advance(1_000);
    const reads = vi.spyOn(h.faulty, "read");
    await h.clock.advance(28_000);
    expect(reads).not.toHaveBeenCalled();
    expect(commits).toEqual([]);
    expect(h.provider.requests("/root")).toHaveLength(2);
    h.provider.gates.open("last");
    await work.outcome();
  });

  test("WAI-6 out of time is a result that says what still runs and what it last did; the child goes on", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "look", NONE),
          wait({ targets: ["worker"], timeout_ms: 12_000 }),
          say("not yet"),
          say("now"),
        ],
        "/root/worker": [spawn("sub", "help", NONE), gate("work"), say("found it")],
        "/root/worker/sub": [say("ok")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("work");
    await inWait(look, "/root");
    await h.clock.advance(11_999);
    expect(await look.status("/root")).toBe("waiting");
    await h.clock.advance(1);
    await look.until("it has ended", async () => (await look.outputs("/root", "wait_agent")).length === 1);
    const [timedOut] = await look.outputs("/root", "wait_agent");
    const child = await look.work("/root/worker");
    expect(timedOut).toEqual({
      isError: false,
      output: {
        ended_by: "timed_out",
        timed_out: true,
        results: [],
        open: [
          {
            work_id: child.id,
            agent: "/root/worker",
            state: "running",
            last_active_ms_ago: expect.any(Number),
            last_step: expect.stringMatching(/^step 1: spawn_agent returned \d+ bytes$/),
          },
        ],
        cursor: "",
      },
    });
    expect(child.state).toBe("running");
    h.provider.gates.open("work");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "now" });
    expect(look.inputs("/root", -1).join("\n")).toContain("found it");
  });

  test("WAI-6 without targets too, and a time below the minimum is raised to it and said", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "look", NONE), wait({ timeout_ms: 1 }), say("not yet"), say("now")],
        "/root/worker": [gate("work"), say("found it")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("work");
    await inWait(look, "/root");
    await h.clock.advance(9_999);
    expect(await look.status("/root")).toBe("waiting");
    await h.clock.advance(1);
    await look.until("it has ended", async () => (await look.outputs("/root", "wait_agent")).length === 1);
    const [timedOut] = await look.outputs("/root", "wait_agent");
    expect(timedOut).toMatchObject({
      isError: false,
      output: {
        message: "The wait ran out of time. The time-out was raised to 10000 ms.",
        timed_out: true,
        still_running: [{ agent: "/root/worker", state: "running" }],
      },
    });
    h.provider.gates.open("work");
    await work.outcome();
  });

  test("WAI-6 an abort of the waiter harms nobody: the child goes on and its result still arrives", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "look", NONE), wait({ targets: ["worker"] }), say("second run")],
        "/root/worker": [gate("work"), say("found it")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("work");
    await inWait(look, "/root");
    await h.tree.root.interrupt();
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    expect((await look.events("wait.ended", "/root")).map((event) => event.data["end"])).toEqual(["aborted"]);
    expect(await look.status("/root/worker")).toBe("running");
    h.provider.gates.open("work");
    await h.tree.idle();
    expect(await look.work("/root/worker")).toMatchObject({ outcome: { ending: "completed" } });
    expect((await look.mail("/root")).at(-1)).toMatchObject({ state: "accepted", trigger: false });
    await h.ask("and?");
    expect(look.inputs("/root", -1).join("\n")).toContain("found it");
  });

  test("WAI-6 giving up on an outcome ends that wait and nothing else", async () => {
    await using h = await harness({ store, scripts: { "/root": [gate("work"), say("done")] } });
    const work = await h.tree.root.send("go");
    const giveUp = new AbortController();
    const reason = new Error("no more");
    const outcome = work.outcome({ signal: giveUp.signal });
    giveUp.abort(reason);
    await expect(outcome).rejects.toBe(reason);
    h.provider.gates.open("work");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
  });

  test.each(["default", "codex"] as const)(
    "WAI-7 through a short transport one wait lasts 45 s and goes on by its cursor (%s)",
    async (profile) => {
      await using h = await harness({
        store,
        tree: { hostDriven: true, profile },
        scripts: { "*": [gate("work"), say("found it"), repeat(say("more"))] },
      });
      const tools = hostTools(h.tree.control, h.tree.root.threadId, { shortTransport: true });
      const tool = (name: string) => tools.find((one) => one.name === name)!;
      await tool("spawn_agent").call({ task_name: "worker", message: "look", fork_turns: "none" });
      await h.provider.gates.arrived("work");
      const timers = h.clock.pending().length;
      const first = tool("wait_agent").call({ timeout_ms: 120_000 });
      let answered = false;
      void first.then(() => (answered = true));
      await h.clock.settle();
      expect(h.clock.pending().length).toBe(timers + 1);
      await h.clock.advance(44_999);
      expect(answered).toBe(false);
      await h.clock.advance(1);
      const cut = (await first).output as Record<string, unknown>;
      if (profile === "default")
        expect(cut).toMatchObject({ ended_by: "cut_short", timed_out: false, messages: [] });
      else expect(cut).toMatchObject({ message: "The wait ran out of time.", timed_out: true, messages: [] });
      const again = tool("wait_agent").call({
        timeout_ms: 75_000,
        ...(cut["cursor"] === null ? {} : { cursor: cut["cursor"] }),
      });
      h.provider.gates.open("work");
      const second = (await again).output as Record<string, unknown>;
      expect(second).toMatchObject({ timed_out: false, messages: [{ from: "/root/worker" }] });
      expect(JSON.stringify(second["messages"])).toContain("found it");
      // The cursor proves that the message was taken in: it is not told twice.
      const third = tool("wait_agent").call({ timeout_ms: 10_000, cursor: second["cursor"] });
      await h.clock.advance(10_000);
      expect((await third).output).toMatchObject({ timed_out: true, messages: [] });
    },
  );

  test("WAI-7 inside our own loop no transport cuts a wait short", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "look", NONE),
          wait({ targets: ["worker"], timeout_ms: 120_000 }),
          say("end"),
        ],
        "/root/worker": [gate("work"), say("found it")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await inWait(look, "/root");
    await h.clock.advance(119_999);
    expect(await look.status("/root")).toBe("waiting");
    h.provider.gates.open("work");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "end" });
  });
});
