/** Runs of providers that own their loop (RUN-5), on both stores: everything but the provider is real. */
import { describe, expect, test } from "vitest";
import { refuse } from "../../src/providers/scripted/native/faults.ts";
import {
  exclusiveFork,
  headFork,
  itemFork,
  mute,
  noFork,
  turnFork,
} from "../../src/providers/scripted/native/provider.ts";
import { changeFile, ownTool } from "../../src/providers/scripted/native/words.ts";
import {
  approve,
  ask,
  call,
  fail,
  gate,
  ignoreAbort,
  repeat,
  say,
  spawn,
  stall,
  think,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { TransientError } from "../../src/protocol/errors.ts";
import { harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const KINDS = { turnFork, itemFork, exclusiveFork, headFork, noFork, mute };

describe.each(STORES)("native runs on %s", (store) => {
  type Native = ReturnType<typeof turnFork>;
  const open = (native: Native, more: HarnessOptions = {}) =>
    harness({
      store,
      ...more,
      others: { native, ...more.others },
      tree: { provider: "native", ...more.tree },
    });

  test.each(Object.entries(KINDS))(
    "RUN-5 a root on %s answers, spawns, waits and goes on",
    async (_name, make) => {
      const native = make({
        "/root": [
          together(think("hm"), say("first a look"), ownTool("shell", { command: "ls" }, "a b")),
          changeFile("a.txt", "one line"),
          spawn("worker", "count", { model: "scripted/scripted", fork_turns: "none" }),
          wait({ targets: ["worker"] }),
          say((context) => `the worker said ${context.lastToolText}`),
          say((context) => `again: ${context.inputs.at(-1)}`),
        ],
      });
      await using h = await open(native, { scripts: { "/root/worker": [say("seven")] } });
      const look = new Look(h);
      const outcome = await h.ask("go");
      expect(outcome).toMatchObject({ ending: "completed" });
      expect(outcome.text).toContain("seven");
      expect((await h.ask("more")).text).toMatch(/^again: .*more$/s);
      expect(await look.runs("/root")).toHaveLength(2);
      expect(native.calls("ensureThread")).toHaveLength(1);
      const [first] = await look.runs("/root");
      expect(first).toMatchObject({ status: "completed", steps: 5 });
      expect(first!.usage.complete).toBe(true);
      expect(first!.usage.outputTokens).toBeGreaterThan(0);
      const items = (await look.items("/root")).filter((item) => item.runId === first!.id);
      expect(items.map((item) => item.kind)).toEqual([
        "context",
        "user",
        "assistant",
        "tool_result",
        "assistant",
        "tool_result",
        "assistant",
        "tool_result",
        "assistant",
        "tool_result",
        "assistant",
      ]);
      expect(items[2]).toMatchObject({
        phase: "tools",
        parts: [{ text: "hm" }, { text: "first a look" }, {}],
      });
      expect(items.at(-1)).toMatchObject({ phase: "answer" });
    },
  );

  test("RUN-5 children run natively below a root of ours, and their results wake it", async () => {
    const native = itemFork({ "/root/n": [say((context) => `done: ${context.inputs.at(-1)}`)] });
    await using h = await harness({
      store,
      others: { native },
      scripts: {
        "/root": [
          spawn("n", "build it", { model: "native/any", fork_turns: "none" }),
          say("started"),
          say((c) => c.inputs.join()),
        ],
      },
    });
    expect((await h.ask("go")).text).toContain("done:");
    expect(turn(native).userMessage).toContain("build it");
  });

  test("S2-49 S2-50 a question waits for its answer without parking, and the run resumes", async () => {
    const native = turnFork({
      "/root": [ask("red or blue?"), say((context) => `took ${context.lastToolText}`)],
    });
    await using h = await open(native);
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.clock.settle();
    expect((await look.runs("/root"))[0]!.status).toBe("waiting");
    expect((await h.tree.root.summary()).resident).toBe(true);
    const [request] = await h.tree.requests();
    expect(request).toMatchObject({ kind: "question", text: "red or blue?" });
    await h.tree.answer(request!.id, "blue");
    expect((await work.outcome()).text).toBe("took blue");
    expect(native.calls("respond")).toHaveLength(1);
  });

  test("MBX-5 mail that comes during a turn is put in where the provider takes it, and else waits", async () => {
    const script = [
      together(gate("g"), call("list_agents")),
      say((c) => `heard ${JSON.stringify(c.messages).includes("psst")}`),
      say("later"),
    ];
    const steered = turnFork({ "/root": script });
    await using h = await open(steered);
    const work = await h.tree.root.send("go");
    await steered.gates.arrived("g");
    await h.tree.root.tell("psst");
    await h.clock.settle();
    expect(steered.calls("steerTurn")).toHaveLength(1);
    steered.gates.open("g");
    expect((await work.outcome()).text).toBe("heard true");
    expect((await new Look(h).mail("/root")).at(-1)).toMatchObject({ state: "settled" });

    const deaf = noFork({ "/root": script });
    await using other = await open(deaf);
    const first = await other.tree.root.send("go");
    await deaf.gates.arrived("g");
    await other.tree.root.tell("psst");
    deaf.gates.open("g");
    expect((await first.outcome()).text).toBe("heard false");
    expect(JSON.stringify(deaf.calls("respond"))).toContain("1 unread message from library");
    expect((await new Look(other).mail("/root")).at(-1)).toMatchObject({ state: "accepted" });
    await other.ask("and now");
    expect(JSON.stringify(deaf.calls("startTurn").at(-1))).toContain("psst");
  });

  test("MBX-4 input that is to steer the run gets another turn of it where it cannot join this one", async () => {
    const native = headFork({
      "/root": [together(gate("g"), say("one")), say((c) => `two: ${c.inputs.at(-1)}`)],
    });
    await using h = await open(native);
    const work = await h.tree.root.send("go");
    await native.gates.arrived("g");
    await h.tree.root.send("more", { onBusy: "steer" });
    native.gates.open("g");
    expect((await work.outcome()).text).toContain("two: more");
    expect(await new Look(h).runs("/root")).toHaveLength(1);
    expect(native.calls("startTurn")).toHaveLength(2);
  });

  test("INT-8 an interrupt settles at once and stops the turn; the next run goes to the same conversation", async () => {
    const native = turnFork({
      "/root": [together(say("so far"), stall()), say((c) => JSON.stringify(c.messages))],
    });
    await using h = await open(native);
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.clock.settle();
    await h.tree.root.interrupt();
    expect((await work.outcome()).ending).toBe("interrupted");
    await h.clock.settle();
    expect(native.calls("interruptTurn")).toHaveLength(1);
    expect((await look.items("/root")).map((item) => item.kind)).toEqual([
      "context",
      "user",
      "assistant",
      "context",
    ]);
    const again = await h.ask("again");
    expect(again.text).toContain("interrupted on purpose");
    expect(again.text).toContain("so far");
    expect(native.calls("ensureThread")).toHaveLength(1);
    expect(native.calls("openSession")).toHaveLength(1);
    expect((await look.runs("/root"))[0]!.usage.complete).toBe(false);
  });

  test("INT-3 a turn that ignores its interrupt is cut off with its session; the next run resumes", async () => {
    const native = turnFork({
      "/root": [together(say("x"), ignoreAbort("never"), say("late"))],
    });
    await using h = await open(native);
    const work = await h.tree.root.send("go");
    await native.gates.arrived("never");
    await h.clock.settle();
    await h.tree.root.interrupt();
    expect((await work.outcome()).ending).toBe("interrupted");
    await h.clock.advance(60_000);
    expect(native.calls("close")).toHaveLength(1);
    native.gates.open("never");
    expect((await h.ask("again")).text).toBe("late");
    expect(native.calls("resumeThread")).toHaveLength(1);
  });

  test("INT-6 an interrupt while a question is open cancels it and stops the turn beside it", async () => {
    const native = itemFork({ "/root": [approve("may I?"), say("no"), say("again")] });
    await using h = await open(native);
    const work = await h.tree.root.send("go");
    await h.clock.settle();
    const [request] = await h.tree.requests();
    await h.tree.root.interrupt();
    expect((await work.outcome()).ending).toBe("interrupted");
    await h.clock.settle();
    expect(native.calls("interruptTurn")).toHaveLength(1);
    await expect(h.tree.answer(request!.id, "yes")).rejects.toMatchObject({ code: "REQUEST_NOT_RESUMABLE" });
    const again = await h.tree.root.send("next");
    await h.clock.settle();
    const [asked] = await h.tree.requests();
    await h.tree.answer(asked!.id, "no");
    expect((await again.outcome()).text).toBe("no");
  });

  test("RUN-4 a refusal before acceptance is retried, one after it is not", async () => {
    const native = turnFork({ "/root": [say("at last"), together(say("half"), fail({ accepted: true }))] });
    native.fault("startTurn", refuse(new TransientError("PROVIDER_OVERLOADED", "busy", {})), 2);
    await using h = await open(native);
    const look = new Look(h);
    const first = await h.tree.root.send("go");
    for (let step = 0; step < 50; step += 1) await h.clock.advance(1_000);
    expect((await first.outcome()).text).toBe("at last");
    expect(native.calls("startTurn")).toHaveLength(3);
    const outcome = await h.ask("more");
    expect(outcome).toMatchObject({ ending: "provider_error", error: { code: "PROVIDER_OVERLOADED" } });
    expect(native.calls("startTurn")).toHaveLength(4);
    expect((await look.items("/root")).at(-1)).toMatchObject({ phase: "partial", parts: [{ text: "half" }] });
  });

  test("RUN-4 a provider that dies in the middle of a turn fails the run; the next one resumes in a new session", async () => {
    const native = turnFork({ "/root": [together(say("half"), gate("g"), say("back"))] });
    await using h = await open(native);
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await native.gates.arrived("g");
    await h.clock.settle();
    native.kill();
    expect(await work.outcome()).toMatchObject({
      ending: "provider_error",
      error: { code: "PROVIDER_UNREACHABLE" },
    });
    native.gates.open("g");
    expect((await h.ask("again")).text).toBe("back");
    expect(native.calls("openSession")).toHaveLength(2);
    expect(native.calls("resumeThread")).toHaveLength(1);
    expect(await look.runs("/root")).toHaveLength(2);
  });

  test("RUN-4 a turn that ends while its run waits for an answer ends the run, with no call left open", async () => {
    const native = turnFork({ "/root": [ask("well?"), say("no"), say("next")] });
    await using h = await open(native);
    const work = await h.tree.root.send("go");
    await h.clock.settle();
    native.kill();
    expect((await work.outcome()).ending).toBe("provider_error");
    expect(await h.tree.requests()).toEqual([]);
    expect((await new Look(h).items("/root")).map((item) => item.kind)).toContain("tool_result");
  });

  test.each(["notify", "retry"] as const)(
    "RUN-5 REC-1 a lost native run ends runtime_lost, or is retried: %s",
    async (onLostRun) => {
      const native = turnFork({ "/root": [ownTool("shell"), together(gate("g"), say("done"))] });
      await using h = await open(native, { tree: { onLostRun } });
      const look = new Look(h);
      const work = await h.tree.root.send("go");
      await native.gates.arrived("g");
      await h.clock.settle();
      native.kill();
      native.gates.open("g");
      await h.crash();
      const outcome = await h.tree.work(work.id).outcome();
      expect(outcome.ending).toBe(onLostRun === "notify" ? "runtime_lost" : "completed");
      const [lost] = await look.runs("/root");
      expect(lost).toMatchObject({
        status: "interrupted",
        reason: "runtime_lost",
        usage: { complete: false },
      });
      // What it had done by then is there.
      expect(JSON.stringify(await look.items("/root"))).toContain("shell");
      if (onLostRun === "retry") expect(native.calls("resumeThread")).toHaveLength(1);
    },
  );

  test("WRK-8 an answer that misses its schema is asked for again in another turn", async () => {
    const native = mute({ "/root": [say("seven"), say('{"n":7}')] });
    await using h = await open(native);
    const work = await h.tree.root.send("count", {
      outputSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
    });
    expect(await work.outcome()).toMatchObject({ ending: "completed", value: { n: 7 } });
    expect(turn(native).userMessage).toContain("does not satisfy its JSON Schema");
  });

  test("RUN-3 a limit of steps stops the turn, and one more is offered to wrap up", async () => {
    const native = turnFork({
      "/root": [ownTool("one"), ownTool("two"), together(ownTool("three"), stall()), say("so far")],
    });
    await using h = await open(native, { tree: { limits: { stepsPerRun: 3 } } });
    const outcome = await h.ask("go");
    expect(outcome).toMatchObject({ ending: "turn_limit", text: "so far" });
    expect(native.calls("startTurn")).toHaveLength(2);
    expect(turn(native).userMessage).toContain("wrap_up");
  });

  test("RUN-3 the turn to wrap up is given no results, and none is waited for", async () => {
    const native = turnFork({
      "/root": [
        together(ownTool("one"), stall()),
        together(call("wait_agent", { timeout_ms: 60_000 }), ask("Well?")),
        say("so far"),
      ],
    });
    await using h = await open(native, { tree: { limits: { stepsPerRun: 1 } } });
    expect(await h.ask("go")).toMatchObject({ ending: "turn_limit", text: "so far" });
    expect(native.calls("respond").map(({ input }) => (input as { answer: unknown }).answer)).toEqual([
      { kind: "tool", output: expect.stringContaining("last step"), isError: true },
      { kind: "cancelled" },
    ]);
  });

  test("RUN-3 a turn that outlasts the time of its run is stopped, and one more is offered to wrap up", async () => {
    const native = headFork({ "/root": [together(ownTool("shell"), stall()), say("so far")] });
    await using h = await open(native, { tree: { limits: { runWallClockMs: 60_000 } } });
    const work = await h.tree.root.send("go");
    await h.clock.settle();
    await h.clock.advance(60_000);
    expect(await work.outcome()).toMatchObject({ ending: "time_limit", text: "so far" });
    expect(native.calls("interruptTurn")).toHaveLength(1);
  });

  test("INT-8 MBX-16 an interrupt before acceptance gives the turn up; nothing of it is kept", async () => {
    const native = turnFork({ "/root": [together(gate("g", { beforeAcceptance: true }), say("x"))] });
    await using h = await open(native);
    const work = await h.tree.root.send("go");
    await native.gates.arrived("g");
    await h.clock.settle();
    await h.tree.root.interrupt();
    expect((await work.outcome()).ending).toBe("interrupted");
    await h.clock.settle();
    expect(native.conversations.all().map(({ turns }) => turns)).toEqual([[]]);
    native.gates.open("g");
    expect((await h.ask("again")).text).toBe("x");
    // The conversation that was made and not used served the next run.
    expect(native.calls("ensureThread")).toHaveLength(1);
  });

  test("REC-5 a provider that dies before it has accepted is opened again and told that this may be a repetition", async () => {
    const native = turnFork({
      "/root": [
        together(
          gate("g", { beforeAcceptance: true }),
          say((c) => JSON.stringify(c.messages)),
        ),
      ],
    });
    await using h = await open(native);
    const work = await h.tree.root.send("go");
    await native.gates.arrived("g");
    await h.clock.settle();
    native.kill();
    native.gates.open("g");
    for (let step = 0; step < 50; step += 1) await h.clock.advance(1_000);
    expect((await work.outcome()).text).toContain("possibly_repeated");
    expect(native.calls("openSession")).toHaveLength(2);
    expect(await new Look(h).runs("/root")).toHaveLength(1);
  });

  test("C4.15 RUN-4 a conversation that cannot be resumed is given up for a new one, which is told of it", async () => {
    const native = turnFork({ "/root": [repeat(say("ok"))] });
    await using h = await open(native);
    await h.ask("go");
    native.lose(
      native.calls("startTurn").map(({ input }) => (input as { thread: { nativeId: string } }).thread)[0]!,
    );
    native.kill();
    const work = await h.tree.root.send("more");
    for (let step = 0; step < 200; step += 1) await h.clock.advance(1_000);
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    expect(native.calls("ensureThread")).toHaveLength(2);
    expect(native.calls("startTurn")).toHaveLength(2);
    const { preambles } = native.calls("startTurn")[1]!.input as { preambles: readonly { text: string }[] };
    expect(preambles[0]!.text).toContain("go");
  });

  test("MBX-11 C6.10 mail takes no channel above the user's, notes take the best; a mute provider gets both as words", async () => {
    for (const make of [turnFork, exclusiveFork, mute]) {
      const native = make({ "/root": [repeat(say("ok"))] });
      await using h = await open(native, { scripts: { "/root/w": [say("w")] } });
      await h.ask("go");
      await h.tree.root.tell("a note for later");
      await h.tree.root.spawn("w", "look", { model: "scripted/scripted" });
      await h.tree.idle();
      await h.ask("and now");
      const { preambles, userMessage } = turn(native);
      const channels = preambles.map(({ kind, channel }) => [kind, channel]);
      expect(userMessage).toContain("and now");
      if (make === turnFork) expect(channels).toEqual([["note", "system"]]);
      if (make === exclusiveFork) expect(channels).toEqual([["note", "synthetic_user"]]);
      if (make === mute) expect(preambles).toEqual([]);
      if (make === mute) expect(userMessage).toContain("[runtime: children]");
    }
  });

  test("RES-3 an agent is not unloaded during a turn, is when it rests, and goes on in the same conversation", async () => {
    const native = exclusiveFork({
      "/root/n": [
        together(gate("g"), say("one")),
        say((c) => `two after ${JSON.stringify(c.messages).includes("one")}`),
      ],
    });
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      others: { native },
      scripts: { "*": [say("ok"), say("ok")] },
    });
    const { work } = await h.tree.root.spawn("n", "go", { model: "native/any" });
    await native.gates.arrived("g");
    const { work: other } = await h.tree.root.spawn("m", "look", { model: "scripted/scripted" });
    await h.clock.settle();
    expect((await other.record()).state).toBe("queued");
    native.gates.open("g");
    expect((await work.outcome()).text).toBe("one");
    await other.outcome();
    expect((await (await h.tree.agent("n")).summary()).resident).toBe(false);
    expect(native.calls("close")).toHaveLength(1);
    expect((await (await (await h.tree.agent("n")).send("more")).outcome()).text).toBe("two after true");
    expect(native.calls("resumeThread")).toHaveLength(1);
    expect(native.calls("ensureThread")).toHaveLength(1);
  });

  test("INT-7 closing an agent in the middle of a turn ends its turn and its session", async () => {
    const native = headFork({ "/root/n": [stall()] });
    await using h = await harness({ store, others: { native } });
    const { work } = await h.tree.root.spawn("n", "go", { model: "native/any" });
    await h.clock.settle();
    const turns = () => native.conversations.all().flatMap((one) => one.turns.map(({ status }) => status));
    expect(turns()).toEqual(["running"]);
    await (await h.tree.agent("n")).close();
    expect((await work.outcome()).ending).toBe("cancelled");
    await h.clock.settle();
    expect(native.calls("close")).toHaveLength(1);
    expect(turns()).toEqual(["interrupted"]);
  });
});

interface Turn {
  readonly userMessage: string;
  readonly preambles: readonly { readonly kind: string; readonly channel: string; readonly text: string }[];
}

/** What the newest turn was given. */
function turn(native: ReturnType<typeof turnFork>): Turn {
  return native.calls("startTurn").at(-1)!.input as Turn;
}
