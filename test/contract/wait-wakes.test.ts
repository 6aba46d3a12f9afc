/** Results that wake whoever asked (WAI-1), and wakes that are held for a question (WAI-2). */
import { describe, expect, test } from "vitest";
import {
  approve,
  ask,
  gate,
  list,
  repeat,
  say,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const DETACHED = { detached: true, fork_turns: "none" };

describe.each(STORES)("wakes on %s", (store) => {
  test("WAI-1 a result is queue-only while a composed run lives, and the settle of that run turns it", async () => {
    await using h = await harness({
      store,
      scripts: {
        // The gate stands after the request was composed, so the result cannot join it.
        "/root": [spawn("worker", "look", DETACHED), gate("busy"), say("first"), say("second")],
        "/root/worker": [gate("work"), say("found it")],
      },
    });
    const look = new Look(h);
    const first = await h.tree.root.send("go");
    await h.provider.gates.arrived("busy");
    h.provider.gates.open("work");
    await look.until("the worker has ended", async () => (await look.work("/root/worker")).state === "ended");
    expect((await look.mail("/root")).at(-1)).toMatchObject({ trigger: false, state: "accepted" });
    expect(await look.runs("/root")).toHaveLength(1);
    h.provider.gates.open("busy");
    expect(await first.outcome()).toMatchObject({ ending: "completed", text: "first" });
    await h.tree.idle();

    const mail = (await look.mail("/root")).at(-1)!;
    expect(mail).toMatchObject({ trigger: true, state: "settled" });
    const [settled] = await look.events("run.settled", "/root");
    const [turned] = await look.events("mail.triggered", "/root");
    expect(turned).toMatchObject({ data: { mailId: mail.id, trigger: true }, at: settled!.at });
    const runs = await look.runs("/root");
    expect(runs).toHaveLength(2);
    expect(runs[1]).toMatchObject({ woken: true, status: "completed", text: "second", serves: [] });
    expect(look.inputs("/root", -1).join("\n")).toContain("found it");
  });

  test("WAI-1 `settled_only` is queue-only beside a composed run that asked for it, and wakes no wait for another", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(spawn("a", "look", { fork_turns: "none" }), spawn("b", "look", { fork_turns: "none" })),
          wait({ targets: ["a"] }),
          say("done"),
        ],
        "/root/a": [gate("a"), say("from a")],
        "/root/b": [gate("b"), say("from b")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await look.until("the root waits", async () => (await look.events("wait.started", "/root")).length === 1);
    await h.provider.gates.arrived("b");
    h.provider.gates.open("b");
    await look.until("b has ended", async () => (await look.work("/root/b")).state === "ended");
    expect((await look.mail("/root")).at(-1)).toMatchObject({ trigger: false, state: "accepted" });
    expect(await look.events("wait.ended", "/root")).toEqual([]);
    h.provider.gates.open("a");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "done" });
    const [waited] = await look.outputs("/root", "wait_agent");
    expect(waited!.output).toMatchObject({ ended_by: "settled", results: [{ text: "from a" }] });
  });

  test("WAI-1 `always` is trigger-turn mail at once and joins the run at its next step boundary", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "look", { wake: "always", fork_turns: "none" }),
          together(gate("busy"), list()),
          say("done"),
        ],
        "/root/worker": [gate("work"), say("found it")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("busy");
    h.provider.gates.open("work");
    await look.until("the worker has ended", async () => (await look.work("/root/worker")).state === "ended");
    expect((await look.mail("/root")).at(-1)).toMatchObject({ trigger: true, state: "accepted" });
    h.provider.gates.open("busy");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "done" });
    expect(await look.runs("/root")).toHaveLength(1);
    expect(look.inputs("/root", -1).join("\n")).toContain("found it");
  });

  test("WAI-1 `always` that comes after the last composed request starts the next run", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "look", { wake: "always", fork_turns: "none" }),
          gate("busy"),
          say("a"),
          say("b"),
        ],
        "/root/worker": [gate("work"), say("found it")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("busy");
    h.provider.gates.open("work");
    await look.until("the worker has ended", async () => (await look.work("/root/worker")).state === "ended");
    h.provider.gates.open("busy");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "b" });
    expect((await look.runs("/root")).map((run) => run.woken)).toEqual([false, true]);
    expect(await look.events("mail.triggered", "/root")).toEqual([]);
  });

  test("WAI-1 `never` stays queue-only and wakes nobody, but is read with the next run", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "look", { ...DETACHED, wake: "never" }), say("one"), say("two")],
        "/root/worker": [gate("work"), say("found it")],
      },
    });
    const look = new Look(h);
    await h.ask("go");
    h.provider.gates.open("work");
    await h.tree.idle();
    expect((await look.mail("/root")).at(-1)).toMatchObject({ trigger: false, state: "accepted" });
    expect(await look.runs("/root")).toHaveLength(1);
    await h.ask("again");
    expect(look.inputs("/root", -1).join("\n")).toContain("found it");
    expect(await look.runs("/root")).toHaveLength(2);
  });

  test("WAI-1 an awaiting work is woken by the results under it, whatever their `wake` says", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "look", { wake: "never", fork_turns: "none" }), say("one"), say("two")],
        "/root/worker": [gate("work"), say("found it")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await look.until(
      "the root awaits",
      async () => (await h.tree.root.status()).kind === "awaiting_children",
    );
    h.provider.gates.open("work");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "two" });
  });

  test("WAI-1 results that arrive before a run's first request is composed join that run", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(spawn("a", "look", { fork_turns: "none" }), spawn("b", "look", { fork_turns: "none" })),
          say("started"),
          say("both"),
        ],
        "/root/a": [gate("a"), say("from a")],
        "/root/b": [gate("b"), say("from b")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("a");
    await h.provider.gates.arrived("b");
    await look.until(
      "the root awaits",
      async () => (await h.tree.root.status()).kind === "awaiting_children",
    );
    // The look that would compose the woken run's first request waits at the store.
    const { tree } = h.tree.control;
    const ask = tree.look.bind(tree);
    const go = Promise.withResolvers<void>();
    let held = false;
    tree.look = async (plan) => {
      if (!held && (await look.runs("/root")).length === 2) {
        held = true;
        await go.promise;
      }
      return ask(plan);
    };
    h.provider.gates.open("a");
    await look.until("the request is about to be composed", () => held);
    h.provider.gates.open("b");
    await look.until("b has ended", async () => (await look.work("/root/b")).state === "ended");
    expect((await look.mail("/root")).at(-1)).toMatchObject({ trigger: true });
    go.resolve();
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "both" });
    await h.tree.idle();
    expect(await look.runs("/root")).toHaveLength(2);
    const inputs = look.inputs("/root", -1).join("\n");
    expect(inputs).toContain("from a");
    expect(inputs).toContain("from b");
  });

  test("WAI-1 a result of a work that ended meanwhile wakes nobody, with a run or without", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "look", { wake: "always", fork_turns: "none" }), say("one"), say("two")],
        "/root/worker": [gate("work"), say("found it")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("work");
    await look.until(
      "the root awaits",
      async () => (await h.tree.root.status()).kind === "awaiting_children",
    );
    // No run of the root is there: the interrupt ends what awaits and makes its last outcome `interrupted`.
    await h.tree.root.interrupt();
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    expect((await h.tree.root.record()).lastOutcome).toMatchObject({ status: "interrupted" });
    h.provider.gates.open("work");
    await h.tree.idle();
    expect(await look.work("/root/worker")).toMatchObject({ outcome: { ending: "completed" } });
    expect((await look.mail("/root")).at(-1)).toMatchObject({ trigger: false, state: "accepted" });
    expect(await look.runs("/root")).toHaveLength(1);
  });

  test("WAI-1 a detached result wakes only a recipient whose last outcome is `completed`", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "look", { ...DETACHED, wake: "always" }),
          gate("busy"),
          say("one"),
          say("two"),
        ],
        "/root/worker": [gate("work"), say("found it")],
      },
    });
    const look = new Look(h);
    await h.tree.root.send("go");
    await h.provider.gates.arrived("busy");
    await h.tree.root.interrupt();
    h.provider.gates.open("work");
    await h.tree.idle();
    expect((await look.mail("/root")).at(-1)).toMatchObject({ trigger: false, state: "accepted" });
    expect(await look.runs("/root")).toHaveLength(1);
  });

  test("WAI-1 wakes have no cap of their own", async () => {
    const rounds = 12;
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          ...Array.from({ length: rounds }, (_, at) => [
            spawn(`w${at}`, "look", { fork_turns: "none" }),
            say(`round ${at}`),
          ]).flat(),
          say("enough"),
        ],
        "*": [repeat(say("ok"))],
      },
    });
    const look = new Look(h);
    expect(await h.ask("go")).toMatchObject({ ending: "completed", text: "enough" });
    expect((await look.runs("/root")).map((run) => run.woken)).toEqual([false, ...Array(rounds).fill(true)]);
  });

  test.each([
    ["a question", ask("which one?"), "question"],
    ["an approval", approve("may I?"), "approval"],
  ] as const)(
    "WAI-2 while %s is pending wakes are held, and its answer lets them in",
    async (_, asking, kind) => {
      await using h = await harness({
        store,
        scripts: {
          "/root": [spawn("worker", "look", { fork_turns: "none" }), say("started"), say("end")],
          "/root/worker": [spawn("sub", "help", { wake: "always", fork_turns: "none" }), asking, say("done")],
          "/root/worker/sub": [gate("sub"), say("helped")],
        },
      });
      const look = new Look(h);
      const work = await h.tree.root.send("go");
      await look.until(
        "the worker asks",
        async () => (await look.events("request.opened", "/root/worker")).length === 1,
      );
      await look.until(
        "its run waits",
        async () => (await (await h.tree.agent("worker")).status()).kind === "awaiting_approval",
      );
      h.provider.gates.open("sub");
      await look.until("sub has ended", async () => (await look.work("/root/worker/sub")).state === "ended");
      await h.clock.settle();
      expect((await look.mail("/root/worker")).at(-1)).toMatchObject({ trigger: true, state: "accepted" });
      expect(await (await h.tree.agent("worker")).status()).toEqual({ kind: "awaiting_approval" });
      expect(h.provider.requests("/root/worker")).toHaveLength(2);
      const [opened] = await look.events("request.opened");
      expect(opened!.data).toMatchObject({ kind });
      await h.tree.answer(opened!.data["requestId"] as `req_${string}`, "the red one");
      expect(await work.outcome()).toMatchObject({ ending: "completed" });
      expect(await look.runs("/root/worker")).toHaveLength(1);
      const last = h.provider.requests("/root/worker").at(-1)!;
      expect(JSON.stringify(last.messages)).toContain("the red one");
      expect(look.inputs("/root/worker", -1).join("\n")).toContain("helped");
    },
  );

  test("WAI-2 a step that waits and asks goes on when both have ended, not with the first", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "look", { fork_turns: "none" }),
          together(approve("may I?"), wait({ targets: ["worker"] })),
          say("done"),
        ],
        "/root/worker": [gate("work"), say("found it")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await look.until("the run waits", async () => (await look.events("run.waiting", "/root")).length === 1);
    h.provider.gates.open("work");
    await look.until("the wait is over", async () => (await look.events("wait.ended", "/root")).length === 1);
    await h.clock.settle();
    expect(await h.tree.root.status()).toEqual({ kind: "awaiting_approval" });
    // It has not been woken to find that out: what it waited on has no permit and may be put away.
    expect(await look.events("run.resumed", "/root")).toEqual([]);
    expect(h.provider.requests("/root")).toHaveLength(2);
    const [opened] = await look.events("request.opened");
    await h.tree.answer(opened!.data["requestId"] as `req_${string}`, "allow");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "done" });
    expect(h.provider.requests("/root")).toHaveLength(3);
  });

  test("WAI-2 the commit that cancels a question starts the run of what was held", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "look", { fork_turns: "none" }),
          say("started"),
          say("end"),
          repeat(say("more")),
        ],
        "/root/worker": [ask("which one?"), gate("next"), say("second answer")],
      },
    });
    const look = new Look(h);
    await h.tree.root.send("go");
    await look.until(
      "the worker asks",
      async () => (await look.events("run.waiting", "/root/worker")).length === 1,
    );
    const worker = await h.tree.agent("worker");
    const queued = await worker.send("another thing", { onBusy: "queue" });
    await h.clock.settle();
    expect(h.provider.requests("/root/worker")).toHaveLength(1);
    await worker.interrupt();
    const [closed] = await look.events("request.closed");
    expect(closed!.data).toMatchObject({ status: "cancelled" });
    h.provider.gates.open("next");
    expect(await queued.outcome()).toMatchObject({ ending: "completed", text: "second answer" });
    const [cancelled, next] = await look.runs("/root/worker");
    expect(cancelled!.status).toBe("interrupted");
    expect(next!.causes.map((cause) => cause.workId)).toEqual([queued.id]);
  });
});
