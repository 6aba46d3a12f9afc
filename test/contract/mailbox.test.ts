/** MBX-1 to MBX-7: how mail is kept, ordered, drained and followed. */
import { describe, expect, test } from "vitest";
import {
  end,
  followUp,
  gate,
  list,
  say,
  type Script,
  send,
  spawn,
  together,
} from "../../src/providers/scripted/script.ts";
import type { RuntimeEvent } from "../../src/protocol/events.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const payloads = (texts: readonly string[]): readonly string[] =>
  texts.filter((text) => !text.startsWith("[runtime: ")).map((text) => text.split("Payload:\n").at(-1)!);

/** What came in with one request of an agent: payloads of mail and input, in order. */
const inputs = (h: Harness, path: string, request: number) => payloads(look(h).inputs(path, request));

async function idleChild(h: Harness, name: string) {
  const { agent, work } = await h.tree.root.spawn(name, "first task");
  await work.outcome();
  await h.tree.idle();
  return agent;
}

describe.each(STORES)("the mailbox on %s", (store) => {
  test("MBX-1 mail is there after a kill right behind its acknowledgement, and not before", async () => {
    for (const fault of ["crash_before", "crash_after"] as const) {
      await using h = await harness({ store, scripts: { "*": [say("ok"), say("read")] } });
      const w = await idleChild(h, "w");
      const acknowledged = await w.tell("one");
      h.onWrite = () => ({ kind: fault });
      await expect(w.tell("two")).rejects.toThrow("Crashed");
      h.onWrite = () => null;
      await h.crash();
      expect(await h.tree.receipt(acknowledged.id)).toMatchObject({
        state: "accepted",
        recipient: "/root/w",
      });
      await (await (await h.tree.agent("/root/w")).send("read")).outcome();
      const stored = fault === "crash_after" ? ["one", "two"] : ["one"];
      expect(inputs(h, "/root/w", -1)).toEqual([...stored, "read"]);
    }
  });

  test("MBX-2 per recipient in commit order without a gap, per sender in the order of sending", async () => {
    const many = (name: string) =>
      together(...Array.from({ length: 5 }, (_, at) => send("/root/w", `${name}${at}`)));
    await using h = await harness({
      store,
      scripts: {
        "/root": [together(spawn("a", "go"), spawn("b", "go")), say("started"), say("woken"), say("woken")],
        "/root/a": [gate("both"), many("a"), say("done")],
        "/root/b": [gate("both"), many("b"), say("done")],
        "/root/w": [say("ok"), say("read")],
      },
    });
    const w = await idleChild(h, "w");
    const asked = await h.tree.root.send("start");
    await h.provider.gates.arrived("both", 2);
    h.provider.gates.open("both");
    await asked.outcome();
    await (await w.send("read")).outcome();
    const mail = await look(h).mail("/root/w");
    expect(mail.map(({ seq }) => seq)).toEqual(mail.map((_, at) => at + 1));
    const read = inputs(h, "/root/w", -1).filter((text) => text !== "read");
    expect(read).toEqual(mail.filter(({ kind }) => kind === "message").map(({ content }) => content.text));
    for (const name of ["a", "b"]) {
      expect(read.filter((text) => text.startsWith(name))).toEqual(
        Array.from({ length: 5 }, (_, at) => `${name}${at}`),
      );
    }
    const accepted = (await look(h).events("mail.accepted", "/root/w")).map(({ data }) => data["seq"]);
    expect(accepted).toEqual(mail.map(({ seq }) => seq));
  });

  test("MBX-3 U-8 queue-only mail starts no run, loads nobody and holds no slot; trigger-turn mail starts an idle agent", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      scripts: { "/root": [send("/root/w", "from an agent"), say("done")], "*": [say("ok"), say("again")] },
    });
    const w = await idleChild(h, "w");
    await idleChild(h, "other");
    await w.tell("from a user");
    await h.ask("write to it");
    await h.clock.advance(60_000);
    await h.tree.idle();
    expect(await w.summary()).toMatchObject({ resident: false, unread: 2, status: { kind: "idle" } });
    expect((await look(h).runs("/root/w")).length).toBe(1);
    expect((await look(h).events("agent.loaded", "/root/w")).length).toBe(1);
    // The one slot is free for whoever has something to do.
    await (await (await h.tree.agent("/root/other")).send("go")).outcome();
    await (await w.send("go")).outcome();
    expect(inputs(h, "/root/w", -1)).toEqual(["from a user", "from an agent", "go"]);
  });

  test("MBX-3 trigger-turn mail joins the run under way at a step boundary: one run, no second", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/w": [gate("in"), list(), say("both")],
        "/root": [followUp("w", "more"), say("asked"), say("woken")],
      },
    });
    const { agent, work } = await h.tree.root.spawn("w", "task");
    await h.provider.gates.arrived("in");
    const asked = await h.tree.root.send("ask it more");
    await look(h).until("it was asked", async () => (await agent.summary()).unread === 1);
    h.provider.gates.open("in");
    await expect(work.outcome()).resolves.toMatchObject({ text: "both", shared: true });
    await asked.outcome();
    expect((await look(h).runs("/root/w")).length).toBe(1);
    expect(inputs(h, "/root/w", 0)).toEqual(["task"]);
    expect(inputs(h, "/root/w", 1)).toEqual(["more"]);
  });

  test("MBX-4 the first request takes what is pending, oldest first, up to the limit; the rest at the next boundaries", async () => {
    await using h = await harness({
      store,
      tree: { limits: { mailPerRequestBytes: 25 } },
      scripts: { "/root/w": [say("ok"), list(), say("early"), say("early"), say("last")] },
    });
    const w = await idleChild(h, "w");
    // Ten bytes each: two fit; the larger one goes alone, since one always does.
    await w.tell("a".repeat(10));
    await w.tell("b".repeat(10));
    await w.tell("c".repeat(100));
    const work = await w.send("the task!!");
    await w.tell("later".repeat(2));
    const outcome = await work.outcome();
    expect([1, 2, 3].map((request) => inputs(h, "/root/w", request))).toEqual([
      ["a".repeat(10), "b".repeat(10)],
      ["c".repeat(100)],
      ["the task!!", "laterlater"],
    ]);
    // Answers that were given before the task was in are intermediate ones.
    expect(outcome).toMatchObject({ ending: "completed" });
    const [, run] = await look(h).runs("/root/w");
    expect(run!.serves).toEqual([work.id]);
    const phases = (await look(h).items("/root/w")).flatMap((item) =>
      item.kind === "assistant" && item.runId === run!.id ? [item.phase] : [],
    );
    expect(phases).toEqual(["tools", "intermediate", "answer"]);
    expect(outcome.text).toBe("early");
  });

  test("MBX-4 the default limit is a quarter of the context window", async () => {
    // 100 tokens of window: a quarter is 25 tokens, about 100 bytes.
    await using h = await harness({
      store,
      scripted: { models: { tiny: { contextWindow: 100 } } },
      scripts: { "/root/w": [say("ok"), list(), say("done")] },
    });
    const w = await idleChild(h, "w");
    for (const letter of ["a", "b", "c"]) await w.tell(letter.repeat(45));
    await (await w.send("go")).outcome();
    expect(inputs(h, "/root/w", 1)).toEqual(["a".repeat(45), "b".repeat(45)]);
    expect(inputs(h, "/root/w", 2)).toEqual(["c".repeat(45), "go"]);
  });

  test("MBX-4 input that was queued for the next run is all taken by it, in batches", async () => {
    await using h = await harness({
      store,
      tree: { limits: { mailPerRequestBytes: 10 } },
      scripts: { "/root": [gate("in"), say("first"), say("half"), say("second")] },
    });
    const first = await h.tree.root.send("one");
    await h.provider.gates.arrived("in");
    const two = await h.tree.root.send("two".repeat(3), { onBusy: "queue" });
    const three = await h.tree.root.send("three".repeat(2), { onBusy: "queue" });
    h.provider.gates.open("in");
    await expect(first.outcome()).resolves.toMatchObject({ text: "first" });
    await expect(two.outcome()).resolves.toMatchObject({ text: "second", shared: true });
    await expect(three.outcome()).resolves.toMatchObject({ text: "second", shared: true });
    expect((await look(h).runs("/root")).length).toBe(2);
  });

  test("MBX-4 no work ends completed by a run that has not taken its request", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/w": [gate("in"), say("first"), say("second")] },
    });
    const { agent, work } = await h.tree.root.spawn("w", "task");
    await h.provider.gates.arrived("in");
    const late = await agent.send("late", { onBusy: "queue" });
    const w = await look(h).caller("/root/w", "call");
    await expect(
      h.tree.control.reportResult(w, { workId: late.id, text: "seven", status: "completed" }),
    ).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    h.provider.gates.open("in");
    const [one, two] = [await work.outcome(), await late.outcome()];
    const [firstRun, secondRun] = await look(h).runs("/root/w");
    expect([one.text, one.runId, two.text, two.runId]).toEqual([
      "first",
      firstRun!.id,
      "second",
      secondRun!.id,
    ]);
  });

  test("MBX-5 mail that comes while the final answer is given waits; trigger-turn mail starts the next run by itself", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [followUp("w", "task two"), say("asked"), say("woken")],
        "/root/w": [gate("answering"), say("one"), say("two")],
      },
    });
    const { agent, work } = await h.tree.root.spawn("w", "task one");
    await h.provider.gates.arrived("answering");
    await agent.tell("queue-only");
    const asked = await h.tree.root.send("ask");
    await look(h).until("it was asked", async () => (await agent.summary()).unread === 2);
    h.provider.gates.open("answering");
    await expect(work.outcome()).resolves.toMatchObject({ text: "one", shared: false });
    await asked.outcome();
    expect((await look(h).runs("/root/w")).map(({ status }) => status)).toEqual(["completed", "completed"]);
    expect(inputs(h, "/root/w", 1)).toEqual(["queue-only", "task two"]);
  });

  test("MBX-5 queue-only mail after the answer starts nothing; a steer reopens the run, and it takes all that is there", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/w": [gate("answering"), say("one"), gate("again"), say("two"), say("three")] },
    });
    const { agent, work } = await h.tree.root.spawn("w", "task");
    await h.provider.gates.arrived("answering");
    await agent.tell("note");
    const steer = await agent.send("steer");
    h.provider.gates.open("answering");
    await h.provider.gates.arrived("again");
    expect(inputs(h, "/root/w", 1)).toEqual(["note", "steer"]);
    await agent.tell("too late");
    h.provider.gates.open("again");
    await expect(work.outcome()).resolves.toMatchObject({ text: "two" });
    await expect(steer.outcome()).resolves.toMatchObject({ text: "two" });
    await h.tree.idle();
    expect((await look(h).runs("/root/w")).length).toBe(1);
    expect(await agent.summary()).toMatchObject({ unread: 1 });
    const answers = (await look(h).items("/root/w")).flatMap((item) =>
      item.kind === "assistant" ? [item.phase] : [],
    );
    expect(answers).toEqual(["intermediate", "answer"]);
  });

  test("MBX-5 an empty answer still lets a new tool call's boundary take mail", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/w": [gate("first"), list(), gate("second"), list(), end()] },
    });
    const { agent, work } = await h.tree.root.spawn("w", "task");
    await h.provider.gates.arrived("first");
    await agent.tell("one");
    h.provider.gates.open("first");
    await h.provider.gates.arrived("second");
    await agent.tell("two");
    h.provider.gates.open("second");
    await work.outcome();
    expect([1, 2].map((request) => inputs(h, "/root/w", request))).toEqual([["one"], ["two"]]);
  });

  test.for(["run.settled", "agent.unloaded", "work.ended", "run.accepted"] as const)(
    "MBX-6 mail from inside `%s` is never lost and needs no nudge",
    async (type) => {
      await using h = await harness({
        store,
        runtime: { limits: { residents: 1 } },
        scripts: { "*": [say("ok"), say("ok"), say("ok")] as Script },
      });
      const sent: Promise<unknown>[] = [];
      const { tree } = h.tree.control;
      using _observer = tree.events.observe(
        (event) => {
          if (sent.length > 0 || event.type !== type || (event as RuntimeEvent).path !== "/root/w") return;
          sent.push(h.tree.agent("/root/w").then((agent) => Promise.all([agent.tell("a"), agent.send("b")])));
        },
        () => undefined,
      );
      await (await h.tree.root.spawn("w", "go")).work.outcome();
      await (await h.tree.root.spawn("v", "go")).work.outcome();
      await look(h).until("the event came", () => sent.length > 0);
      const [[, work]] = (await Promise.all(sent)) as [[unknown, { outcome(): Promise<unknown> }]];
      await expect(work.outcome()).resolves.toMatchObject({ ending: "completed" });
      await h.tree.idle();
      const mail = await look(h).mail("/root/w");
      expect(mail.map(({ content, state }) => [content.text, state])).toEqual([
        ["go", "settled"],
        ["a", "settled"],
        ["b", "settled"],
      ]);
    },
  );

  test.for(["steer", "queue"] as const)(
    "MBX-6 every moment between two commits is such a moment (%s)",
    async (onBusy) => {
      for (let moment = 0; moment < 12; moment += 1) {
        await using h = await harness({
          store,
          scripts: { "*": [say("ok"), say("ok"), say("ok"), say("ok")] },
        });
        const { agent, work } = await h.tree.root.spawn("w", "go");
        const first = h.faulty.writes;
        const sent: Promise<{ outcome(): Promise<unknown> }>[] = [];
        h.onWrite = (write) => {
          if (write === first + moment && sent.length === 0) sent.push(agent.send("more", { onBusy }));
          return null;
        };
        await work.outcome();
        if (sent.length === 0) sent.push(agent.send("more", { onBusy }));
        await expect((await sent[0]!).outcome()).resolves.toMatchObject({ ending: "completed" });
        await h.tree.idle();
        expect((await agent.summary()).unread).toBe(0);
      }
    },
  );

  test("MBX-7 accepted, delivered with the provider's acceptance and not before, settled with the run", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/w": [gate("before", { beforeAcceptance: true }), gate("after"), say("ok")] },
    });
    const { agent, work } = await h.tree.root.spawn("w", "go");
    const receipt = await agent.tell("hello");
    expect(receipt).toEqual({
      id: receipt.id,
      recipient: "/root/w",
      seq: 2,
      state: "accepted",
      reason: null,
      runId: null,
    });
    await h.provider.gates.arrived("before");
    expect(await h.tree.receipt(receipt.id)).toEqual(receipt);
    h.provider.gates.open("before");
    await h.provider.gates.arrived("after");
    const [run] = await look(h).runs("/root/w");
    expect(await h.tree.receipt(receipt.id)).toEqual({ ...receipt, state: "delivered", runId: run!.id });
    h.provider.gates.open("after");
    await work.outcome();
    expect(await h.tree.receipt(receipt.id)).toEqual({ ...receipt, state: "settled", runId: run!.id });
    expect(await h.tree.receipt("msg_0123456789abcdefghijk")).toBeNull();
    const told = await agent.tell("never read");
    await agent.close();
    expect(await h.tree.receipt(told.id)).toMatchObject({
      state: "dead_lettered",
      reason: "closed",
      runId: null,
    });
    // Nothing moves back, after a restart either.
    await h.crash();
    expect(await h.tree.receipt(receipt.id)).toMatchObject({ state: "settled" });
    expect(await h.tree.receipt(told.id)).toMatchObject({ state: "dead_lettered" });
  });
});
