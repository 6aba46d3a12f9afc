/** One run a thread, and every step stored before the next (RUN-1, RUN-2). */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/tools/define-tool.ts";
import { call, gate, list, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const NONE = { fork_turns: "none" };

describe.each(STORES)("runs on %s", (store) => {
  test("RUN-1 a run is reserved, accepted, settled, and each is a commit", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [gate("reserved", { beforeAcceptance: true }), gate("accepted"), say("done")] },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("reserved");
    const reservedAt = h.clock.now();
    expect(await look.runs("/root")).toMatchObject([
      { status: "starting", reservedAt, acceptedAt: null, completedAt: null, serves: [], steps: 0 },
    ]);
    expect(await look.status("/root")).toBe("starting");
    expect((await work.record()).state).toBe("queued");
    await h.clock.advance(1000);
    h.provider.gates.open("reserved");
    await h.provider.gates.arrived("accepted");
    expect(await look.runs("/root")).toMatchObject([
      { status: "running", reservedAt, acceptedAt: reservedAt + 1000, completedAt: null, serves: [work.id] },
    ]);
    expect(await look.status("/root")).toBe("running");
    expect((await work.record()).state).toBe("running");
    await h.clock.advance(1000);
    h.provider.gates.open("accepted");
    await work.outcome();
    expect(await look.runs("/root")).toMatchObject([
      { status: "completed", acceptedAt: reservedAt + 1000, completedAt: reservedAt + 2000, steps: 1 },
    ]);
    expect(await look.status("/root")).toBe("idle");
  });

  test("RUN-1 a thread has one run at a time, whoever asks and however often", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [together(spawn("worker", "look", NONE)), repeat(say("ok"))],
        "/root/worker": [repeat(say("ok"))],
      },
    });
    const look = new Look(h);
    await h.ask("go");
    const worker = await h.tree.agent("worker");
    const asked = Array.from({ length: 24 }, (_, at) =>
      worker.send(`task ${at}`, { onBusy: at % 2 === 0 ? "queue" : "steer" }),
    );
    const works = await Promise.all(asked);
    const outcomes = await Promise.all(works.map((work) => work.outcome()));
    expect(outcomes.map((outcome) => outcome.ending)).toEqual(works.map(() => "completed"));
    let running: unknown = null;
    for (const event of await look.events(undefined, "/root/worker")) {
      if (event.type === "run.reserved") {
        expect(running).toBeNull();
        running = event.runId;
      }
      if (event.type === "run.accepted") expect(running).toBe(event.runId);
      if (event.type === "run.settled") {
        expect(running).toBe(event.runId);
        running = null;
      }
    }
    expect(running).toBeNull();
    const runs = await look.runs("/root/worker");
    expect(runs.map((run) => run.ordinal)).toEqual(runs.map((_, at) => at + 1));
  });

  test("RUN-2 a step is stored before its tools run, and its results before the next request", async () => {
    const inTool: unknown[] = [];
    const tool = defineTool({
      name: "look",
      input: z.object({}),
      run: async () => {
        inTool.push((await view()).map((item) => item.kind).slice(1));
        return "seen";
      },
    });
    await using h = await harness({
      store,
      runtime: { tools: [tool] },
      scripts: { "/root": [call("look"), gate("next"), say("done")] },
    });
    const look = new Look(h);
    const view = () => look.items("/root");
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("next");
    expect(inTool).toEqual([["user", "assistant"]]);
    // The first item is the runtime's hint about delegation.
    expect((await view()).slice(1).map((item) => [item.kind, item.step])).toEqual([
      ["user", 0],
      ["assistant", 0],
      ["tool_result", 1],
    ]);
    expect((await look.runs("/root"))[0]).toMatchObject({ steps: 1 });
    expect((await look.runs("/root"))[0]!.usage.inputTokens).toBeGreaterThan(0);
    h.provider.gates.open("next");
    await work.outcome();
  });

  test("RUN-2 a reload continues the run", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      scripts: {
        "/root": [list(), spawn("worker", "look", NONE), wait({ targets: ["worker"] }), list(), say("done")],
        "/root/worker": [say("found it")],
      },
    });
    const look = new Look(h);
    expect(await h.ask("go")).toMatchObject({ ending: "completed", text: "done" });
    expect(await look.events("agent.unloaded", "/root")).toHaveLength(1);
    expect(await look.runs("/root")).toMatchObject([{ status: "completed", steps: 5 }]);
  });

  test("RUN-2 after a restart the run ends lost, and the next one goes on from what was stored", async () => {
    const started = Promise.withResolvers<void>();
    const tool = defineTool({
      name: "drill",
      input: z.object({}),
      run: () => {
        started.resolve();
        return new Promise(() => undefined);
      },
    });
    await using h = await harness({
      store,
      runtime: { tools: [tool] },
      scripts: { "/root": [list(), call("drill"), say("went on")] },
    });
    const look = new Look(h);
    const lost = await h.tree.root.send("go");
    await started.promise;
    const before = await look.items("/root");
    await h.crash();
    const [run] = await look.runs("/root");
    expect(run).toMatchObject({ status: "interrupted", reason: "runtime_lost", steps: 2 });
    expect((await h.tree.work(lost.id).record()).outcome).toMatchObject({ ending: "runtime_lost" });
    const items = await look.items("/root");
    expect(items.slice(0, before.length)).toEqual(before);
    expect(items.at(before.length)).toMatchObject({ kind: "tool_result", name: "drill", isError: true });
    expect(JSON.stringify(items.at(before.length))).toContain("outcome unknown");
    expect(await h.ask("again")).toMatchObject({ ending: "completed", text: "went on" });
    const messages = h.provider.requests("/root").at(-1)!.messages;
    expect(messages.filter((message) => message.role === "user" && message.text === "go")).toHaveLength(1);
    expect(messages.filter((message) => message.role === "tool").map((message) => message.name)).toEqual([
      "list_agents",
      "drill",
    ]);
    expect((await look.mail("/root")).map((mail) => mail.state)).toEqual(["settled", "settled"]);
  });

  test("RUN-2 mail that was delivered is not delivered again; what no request was accepted with is", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          gate("first"),
          list(),
          gate("second", { beforeAcceptance: true }),
          say("never told"),
          say("after the restart"),
        ],
      },
    });
    const look = new Look(h);
    await h.tree.root.send("go");
    await h.provider.gates.arrived("first");
    await h.tree.root.tell("by the way");
    h.provider.gates.open("first");
    await h.provider.gates.arrived("second");
    expect(look.inputs("/root", -1).join("\n")).toContain("by the way");
    await h.crash();
    expect((await look.mail("/root")).map((mail) => [mail.content.text, mail.state])).toEqual([
      ["go", "settled"],
      ["by the way", "accepted"],
    ]);
    h.provider.gates.open("second");
    await h.ask("again");
    const delivered = await look.events("mail.delivered", "/root");
    expect(delivered.map((event) => event.data["seq"])).toEqual([1, 2, 3]);
  });
});
