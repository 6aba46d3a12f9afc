/** Permits and the queue before them (EXE-1, EXE-2, EXE-3). */
import { describe, expect, test } from "vitest";
import {
  call,
  followUp,
  gate,
  list,
  repeat,
  say,
  send,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import type { WorkspaceCapture } from "../../src/platform/workspace/port.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";
import { NO_CAPTURE } from "../support/no-capture.ts";

const NONE = { fork_turns: "none" };
const MORE = repeat(say("more"));
const names = (count: number): string[] => Array.from({ length: count }, (_, at) => `w${at}`);

describe.each(STORES)("permits on %s", (store) => {
  test("EXE-1 running children take permits of the tree; roots take none", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 2 } },
      scripts: {
        "/root": [
          together(...names(5).map((name) => spawn(name, "look", NONE))),
          gate("root"),
          say("started"),
          MORE,
        ],
        "*": [gate("work"), say("ok")],
      },
    });
    const look = new Look(h);
    const { permits } = h.tree.control.tree;
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("work", 2);
    await h.provider.gates.arrived("root");
    await h.clock.settle();
    expect(h.provider.gates.waiting("work")).toBe(2);
    expect(permits.inUse).toBe(2);
    expect((await h.tree.counts()).queued).toBe(3);
    h.provider.gates.open("root");
    for (let done = 1; done <= 3; done += 1) {
      h.provider.gates.letThrough("work", 1);
      await h.provider.gates.arrived("work", 2 + done);
      expect(permits.inUse).toBe(2);
    }
    h.provider.gates.open("work");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    expect(permits.inUse).toBe(0);
    expect((await look.events("run.reserved")).filter((event) => event.path !== "/root")).toHaveLength(5);
  });

  test("EXE-1 all trees of a runtime share one number", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { runningTotal: 1 } },
      scripts: {
        "/root": [spawn("w", "look", NONE), say("started"), MORE],
        "/root/w": [gate("work"), say("ok")],
      },
    });
    const other = await h.runtime.openTree();
    const works = [await h.tree.root.send("go"), await other.root.send("go")];
    await h.provider.gates.arrived("work");
    for (const tree of [h.tree, other]) {
      await new Look(h).until(
        "its root awaits",
        async () => (await tree.root.status()).kind === "awaiting_children",
      );
    }
    expect(h.provider.gates.waiting("work")).toBe(1);
    const counts = await Promise.all([h.tree.counts(), other.counts()]);
    expect(counts.map(({ running }) => running).toSorted((a, b) => a - b)).toEqual([0, 1]);
    expect(counts.map(({ queued }) => queued).toSorted((a, b) => a - b)).toEqual([0, 1]);
    h.provider.gates.letThrough("work");
    await h.provider.gates.arrived("work", 2);
    expect(h.provider.gates.waiting("work")).toBe(1);
    h.provider.gates.open("work");
    for (const work of works) expect(await work.outcome()).toMatchObject({ ending: "completed" });
  });

  test("EXE-1 joining a running agent takes none", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 1 } },
      scripts: {
        "/root": [spawn("w", "one", NONE), gate("root"), followUp("w", "two"), say("started"), MORE],
        "/root/w": [gate("work"), say("one"), say("both")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("work");
    h.provider.gates.open("root");
    await look.until("it was asked", async () => (await look.works("/root/w")).length === 2);
    expect(await h.tree.counts()).toMatchObject({ running: 1, queued: 0 });
    h.provider.gates.open("work");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
  });

  test("EXE-2 over the limit a work is queued, its position in sight", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 1 } },
      scripts: {
        "/root": [
          together(...names(4).map((name) => spawn(name, "look", NONE))),
          list(),
          say("started"),
          MORE,
        ],
        "*": [gate("work"), say("ok")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("work");
    await look.until("the root awaits", async () => (await look.status("/root")) === "awaiting_children");
    const statuses = await Promise.all(names(4).map(async (name) => (await h.tree.agent(name)).status()));
    const queued = statuses.flatMap((status) => (status.kind === "queued" ? [status.position] : []));
    expect(statuses.filter((status) => status.kind === "running")).toHaveLength(1);
    expect(queued.toSorted((a, b) => a - b)).toEqual([1, 2, 3]);
    expect((await look.works("/root/w3"))[0]).toMatchObject({ state: "queued" });
    // The queue is stored: another owner finds it.
    expect((await look.view((view) => view.triggered(h.tree.id))).length).toBe(3);
    const [listed] = await look.outputs("/root", "list_agents");
    expect(JSON.stringify(listed!.output)).toContain('"kind":"queued","position":');
    expect((await (await h.tree.agent("w3")).why()).reasons.join("\n")).toMatch(/number \d in the queue/);
    h.provider.gates.open("work");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
  });

  test.each([0, 2])(
    "EXE-2 the bound of the queue (%i) refuses new spawns, and nothing is stored",
    async (queue) => {
      await using h = await harness({
        store,
        tree: { limits: { running: 1, queue } },
        scripts: {
          "/root": [
            together(...names(queue + 3).map((name) => spawn(name, "look", NONE))),
            say("started"),
            MORE,
          ],
          "*": [gate("work"), say("ok")],
        },
      });
      const look = new Look(h);
      const work = await h.tree.root.send("go");
      await h.provider.gates.arrived("work");
      await look.until("the root awaits", async () => (await look.status("/root")) === "awaiting_children");
      const outputs = await look.outputs("/root", "spawn_agent");
      const refused = outputs.filter((one) => one.isError);
      // One runs, `queue` wait; those of one tick see each other.
      expect(refused).toHaveLength(2);
      for (const { output } of refused) {
        expect(output).toMatchObject({
          error: expect.stringMatching(/^QUEUE_FULL: /),
          details: { limit: "queue", value: queue, use: queue + 1 },
        });
      }
      expect(await h.tree.counts()).toMatchObject({ registered: queue + 2, queued: queue });
      expect(await look.works()).toHaveLength(queue + 2);
      h.provider.gates.open("work");
      expect(await work.outcome()).toMatchObject({ ending: "completed" });
    },
  );

  test("EXE-2 a follow-up over the bound is refused, and nothing is stored", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 1, queue: 0 } },
      scripts: {
        "/root": [spawn("idle", "one", NONE), say("first"), MORE],
        "/root/idle": [MORE],
        "/root/busy": [gate("busy"), say("done")],
      },
    });
    const look = new Look(h);
    await h.ask("go");
    await h.tree.root.spawn("busy", "look");
    await h.provider.gates.arrived("busy");
    const before = await look.snapshot();
    const asked = h.tree.control.followUp({ kind: "user", name: "cli" }, { target: "idle", message: "two" });
    await expect(asked).rejects.toMatchObject({
      code: "QUEUE_FULL",
      details: { limit: "queue", value: 0, use: 0 },
    });
    expect(await look.snapshot()).toEqual(before);
    h.provider.gates.open("busy");
    await h.tree.idle();
  });

  test("EXE-2 a wake is never refused, though the queue is full", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 2, queue: 1 } },
      scripts: {
        "/root/boss": [spawn("w", "look", NONE), say("delegated"), say("boss end")],
        "/root/boss/w": [gate("w"), say("ok")],
        "*": [gate("busy"), say("ok")],
      },
    });
    const look = new Look(h);
    const { work } = await h.tree.root.spawn("boss", "lead");
    await look.until(
      "the boss awaits",
      async () => (await look.status("/root/boss")) === "awaiting_children",
    );
    await h.tree.root.spawn("first", "look");
    await h.provider.gates.arrived("busy");
    await h.tree.root.spawn("second", "look");
    await expect(h.tree.root.spawn("third", "look")).rejects.toMatchObject({ code: "QUEUE_FULL" });
    expect((await h.tree.counts()).queued).toBe(1);
    h.provider.gates.open("w");
    expect(await h.provider.gates.arrived("busy", 1)).toBeUndefined();
    await look.until("the result is there", async () => (await look.mail("/root/boss")).length === 2);
    expect((await look.mail("/root/boss"))[1]).toMatchObject({ trigger: true });
    h.provider.gates.open("busy");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "boss end" });
  });

  test("EXE-2 a result and a return wait in the queue without being refused", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 1, queue: 1 } },
      scripts: {
        "/root": [spawn("boss", "lead", NONE), say("started"), MORE],
        "/root/boss": [
          spawn("w", "look", NONE),
          wait({ targets: ["w"] }),
          spawn("x", "look", NONE),
          say("delegated"),
          say("boss end"),
        ],
        "/root/boss/w": [spawn("y", "look", NONE), say("w done"), MORE],
        "*": [say("ok")],
      },
    });
    const look = new Look(h);
    expect(await h.ask("go")).toMatchObject({ ending: "completed" });
    expect(await look.work("/root/boss")).toMatchObject({
      outcome: { ending: "completed", text: "boss end" },
    });
    expect((await look.outputs("/root/boss", "wait_agent"))[0]!.output).toMatchObject({
      ended_by: "settled",
    });
    expect((await look.runs("/root/boss/w")).length).toBe(2);
  });

  test("EXE-2 with `admission: reject` it is refused before anything is stored", async () => {
    await using h = await harness({
      store,
      tree: { profile: "codex", limits: { running: 1 } },
      scripts: {
        "/root": [spawn("a", "look"), spawn("b", "look"), send("a", "psst"), say("started"), MORE],
        "/root/a": [gate("work"), say("ok")],
      },
    });
    const look = new Look(h);
    await h.tree.root.send("go");
    await look.until(
      "the root has ended",
      async () => (await look.events("run.settled", "/root")).length === 1,
    );
    const [, refused] = await look.outputs("/root", "spawn_agent");
    expect(refused).toMatchObject({ isError: true });
    expect(JSON.stringify(refused!.output)).toContain("AGENT_LIMIT_REACHED");
    expect(await look.works("/root/b")).toEqual([]);
    await expect(h.tree.agent("b")).rejects.toMatchObject({ code: "AGENT_NOT_FOUND" });
    h.provider.gates.open("work");
    await h.tree.idle();
    expect(h.tree.control.tree.permits.inUse).toBe(0);
  });

  test("EXE-2 slot and permit come together: who waits for one holds not the other", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 2 } },
      tree: { limits: { running: 2 } },
      scripts: {
        "/root": [
          together(spawn("a", "look", NONE), spawn("b", "look", NONE)),
          gate("root"),
          say("started"),
          MORE,
        ],
        "*": [gate("work"), say("ok")],
      },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("work");
    await h.provider.gates.arrived("root");
    await h.clock.settle();
    // A permit is free, but the root and `a` have both slots.
    expect(h.tree.control.tree.permits.inUse).toBe(1);
    expect(await h.tree.counts()).toMatchObject({ resident: 2, running: 1, queued: 1 });
    h.provider.gates.open("root");
    await h.provider.gates.arrived("work", 2);
    expect(await h.tree.counts()).toMatchObject({ resident: 2, running: 2, queued: 0 });
    h.provider.gates.open("work");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
  });

  // In `codex` an agent that waits keeps its place in memory, and there are as many of these as permits.
  test.for([
    ["default", 1],
    ["codex", 2],
  ] as const)(
    "EXE-2 who waits for what its last run has left to be captured holds no permit (profile %s)",
    async ([profile, running]) => {
      const held = Promise.withResolvers<void>();
      const workspaceCapture: WorkspaceCapture = {
        ...NO_CAPTURE,
        async capture() {
          await held.promise;
          return { status: "missing", reason: "it was held", lasting: false };
        },
      };
      await using h = await harness({
        store,
        runtime: { workspaceCapture },
        tree: { profile, workspace: "/work", limits: { running } },
        scripts: { "*": [MORE] },
      });
      using _ = { [Symbol.dispose]: () => held.resolve() };
      const a = await h.tree.root.spawn("a", "look");
      await a.work.outcome();
      const again = await a.agent.send("again");
      await h.clock.settle();
      expect((await a.agent.status()).kind).toBe("queued");
      expect(h.tree.control.tree.permits.inUse).toBe(0);
      // What is free is another's meanwhile.
      const b = await h.tree.root.spawn("b", "look");
      await h.clock.settle();
      expect((await b.work.record()).outcome).toMatchObject({ ending: "completed" });
      held.resolve();
      await h.clock.settle();
      expect((await again.record()).outcome).toMatchObject({ ending: "completed" });
      expect(h.tree.control.tree.permits.inUse).toBe(0);
    },
  );

  test("EXE-3 a wide branch does not starve a narrow one, and a return goes before all that are new", async () => {
    const wide = names(8);
    const order: string[] = [];
    await using h = await harness({
      store,
      tree: { limits: { running: 1 } },
      scripts: {
        "/root": [together(spawn("wide", "lead", NONE), spawn("narrow", "lead", NONE)), say("started"), MORE],
        "/root/wide": [
          together(...wide.map((name) => spawn(name, "look", NONE))),
          wait({ targets: [wide[0]!] }),
          (context) => {
            order.push("return");
            return say(`back ${(context.resultOf("wait_agent") as JsonObject)["ended_by"] as string}`);
          },
          MORE,
        ],
        "/root/narrow": [spawn("only", "look", NONE), say("delegated"), MORE],
        "*": (context) => {
          order.push(context.path.split("/").at(-1)!);
          return say("ok");
        },
      },
    });
    expect(await h.ask("go")).toMatchObject({ ending: "completed" });
    // The return of `wide` comes right after what it waited for; `only` is not behind the eight.
    expect(order[order.indexOf("w0") + 1]).toBe("return");
    expect(order.indexOf("only")).toBeLessThan(5);
    expect(order.filter((one) => one.startsWith("w"))).toHaveLength(8);
  });

  test("EXE-1 EXE-2 no permit is left behind by whatever happens", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 2 } },
      scripts: {
        "/root": [
          together(...names(3).map((name) => spawn(name, "look", NONE))),
          call("interrupt_agent", { target: "w0" }),
          call("interrupt_agent", { target: "w2" }),
          say("started"),
          MORE,
        ],
        "*": [gate("work"), say("ok"), MORE],
      },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("work", 2);
    h.provider.gates.open("work");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    await h.tree.idle();
    expect(h.tree.control.tree.permits).toMatchObject({ inUse: 0 });
    expect(await h.tree.counts()).toMatchObject({ running: 0, queued: 0 });
  });
});
