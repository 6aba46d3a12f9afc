/** MBX-14 to MBX-16: start options of merged mail, requests that are refused, and mail of works that have ended. */
import { describe, expect, test } from "vitest";
import { fail, followUp, gate, say, spawn, stall, together } from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";
import { occupyPermits, ONE_PERMIT } from "../support/permits.ts";

const refused = fail({ code: "PROVIDER_REFUSED", message: "content policy", status: 400 });

describe.each(STORES)("refused and ended requests on %s", (store) => {
  test("MBX-14 the latest trigger's choice starts the run, queue-only mail has no say, and every cause is kept", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 1 } },
      scripted: { models: { one: {}, two: { efforts: ["low", "high"] }, three: {} } },
      scripts: {
        "/root": [
          together(
            followUp("/root/w", "A", { model: "two", reasoning_effort: "high" }),
            followUp("/root/w", "B", { model: "three" }),
          ),
          say("asked"),
          say("woken"),
        ],
        "/root/w": [say("ok"), say("all"), say("plain")],
        "/root/busy": [gate("busy"), say("ok")],
      },
    });
    const w = await h.tree.root.spawn("w", "go");
    await w.work.outcome();
    // The only permit is taken, so that both requests are there before the run begins.
    await h.tree.root.spawn("busy", "go");
    await h.provider.gates.arrived("busy");
    const asked = await h.tree.root.send("ask twice");
    await look(h).until("both are there", async () => (await w.agent.summary()).unread === 2);
    await w.agent.tell("queue-only");
    h.provider.gates.open("busy");
    await asked.outcome();
    const [, run] = await look(h).runs("/root/w");
    const [root] = await look(h).runs("/root");
    const works = await look(h).works("/root/w");
    const [, a, b] = await look(h).mail("/root/w");
    expect(run).toMatchObject({
      model: "three",
      effort: null,
      parentRunId: root!.id,
      rootRunId: root!.rootRunId,
      woken: false,
      causes: [
        { mailId: a!.id, workId: works[1]!.id },
        { mailId: b!.id, workId: works[2]!.id },
      ],
    });
    // Different parents, one of them none: none is kept. A latest trigger without a choice clears it.
    await (await w.agent.send("by the user")).outcome();
    const [, , last] = await look(h).runs("/root/w");
    expect(last).toMatchObject({ model: "one", parentRunId: null, rootRunId: last!.id });
  });

  test("MBX-15 a run that fails before acceptance ends its works and dead-letters their requests; other mail stays, queue-only", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [followUp("/root/w", "task"), say("asked"), say("told")],
        "/root/w": [say("ok"), refused, say("later")],
      },
    });
    const w = await h.tree.root.spawn("w", "go");
    await w.work.outcome();
    const note = await w.agent.tell("note");
    await h.ask("ask");
    const [, work] = await look(h).works("/root/w");
    expect(work).toMatchObject({
      state: "ended",
      outcome: {
        ending: "provider_error",
        error: {
          code: "PROVIDER_REFUSED",
          message: expect.stringContaining("content policy") as string,
          status: 400,
        },
      },
    });
    expect(await h.tree.receipt(work!.requestMailId)).toMatchObject({
      state: "dead_lettered",
      reason: "not_delivered",
    });
    expect(await h.tree.receipt(note.id)).toMatchObject({ state: "accepted" });
    expect((await look(h).runs("/root/w"))[1]).toMatchObject({
      status: "failed",
      reason: "provider_error",
      acceptedAt: null,
    });
    // It starts nothing by itself for what was refused.
    await h.clock.advance(60_000);
    await h.tree.idle();
    expect((await look(h).runs("/root/w")).length).toBe(2);
    await (await w.agent.send("go on")).outcome();
    expect(await h.tree.receipt(note.id)).toMatchObject({ state: "settled" });
  });

  test("MBX-15 a woken run that fails so ends the awaiting works, and the result stays, queue-only", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/w": [spawn("c", "go"), say("waiting for c"), refused, say("later")],
        "/root/w/c": [gate("c"), say("seven")],
      },
    });
    const w = await h.tree.root.spawn("w", "go");
    await look(h).until("it awaits", async () => (await w.work.record()).state === "awaiting_children");
    h.provider.gates.open("c");
    const outcome = await w.work.outcome();
    // What it had said before is kept with it.
    expect(outcome).toMatchObject({
      ending: "provider_error",
      text: "waiting for c",
      error: { status: 400 },
    });
    await h.clock.advance(60_000);
    await h.tree.idle();
    expect((await look(h).runs("/root/w")).length).toBe(2);
    const result = (await look(h).mail("/root/w")).find(({ kind }) => kind === "final_answer")!;
    expect(result).toMatchObject({ state: "accepted", trigger: false });
    await (await w.agent.send("go on")).outcome();
    expect(look(h).inputs("/root/w", -1).join()).toContain("seven");
  });

  test("MBX-15 a run for a new work and a result together ends both works: nothing is asked again by itself", async () => {
    await using h = await harness({
      store,
      tree: { limits: { running: 2 } },
      scripts: {
        "/root/w": [spawn("c", "go"), say("waiting"), refused, say("never")],
        "/root/w/c": [gate("c"), say("seven")],
        "/root/busy": [gate("busy"), say("ok")],
      },
    });
    const w = await h.tree.root.spawn("w", "go");
    await look(h).until("it awaits", async () => (await w.work.record()).state === "awaiting_children");
    await h.tree.root.spawn("busy", "go");
    await h.provider.gates.arrived("busy");
    const more = await w.agent.send("more");
    h.provider.gates.open("c");
    await expect(more.outcome()).resolves.toMatchObject({ ending: "provider_error" });
    await expect(w.work.outcome()).resolves.toMatchObject({ ending: "provider_error" });
    h.provider.gates.open("busy");
    await h.clock.advance(60_000);
    await h.tree.idle();
    expect(h.provider.requests("/root/w").length).toBe(3);
  });

  test("MBX-15 after three refused runs in a row queue-only mail is kept out; accepted so, it is dead-lettered, of results a stub goes in", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/w": [
          spawn("c", "go", { wake: "never", detached: true }),
          say("ok"),
          refused,
          refused,
          refused,
          say("at last"),
          say("after"),
        ],
        "/root/w/c": [say("poison")],
      },
    });
    const w = await h.tree.root.spawn("w", "go");
    await w.work.outcome();
    await h.tree.idle();
    const note = await w.agent.tell("note");
    for (let run = 1; run <= 3; run += 1) {
      await expect((await w.agent.send(`try ${run}`)).outcome()).resolves.toMatchObject({
        ending: "provider_error",
      });
      expect((await w.agent.record()).refusals).toBe(run);
      expect(look(h).inputs("/root/w", -1).join()).toContain("note");
    }
    await expect((await w.agent.send("try 4")).outcome()).resolves.toMatchObject({
      ending: "completed",
      text: "at last",
    });
    const input = look(h).inputs("/root/w", -1).join("\n");
    expect(input).not.toMatch(/note|poison/);
    const work = await look(h).work("/root/w/c");
    expect(input).toContain(`Work id: ${work.id}`);
    expect(input).toMatch(/\[completed\] The result is kept out/);
    expect(await h.tree.receipt(note.id)).toMatchObject({
      state: "dead_lettered",
      reason: "provider_refused",
    });
    expect(await h.tree.receipt(work.resultMailId!)).toMatchObject({ state: "settled" });
    expect((await w.agent.record()).refusals).toBe(0);
    // Once: the next run has no stub, and takes queue-only mail again.
    await w.agent.tell("new note");
    await (await w.agent.send("try 5")).outcome();
    expect(look(h).inputs("/root/w", -1).join("\n")).toMatch(/^(?![^]*kept out)[^]*new note/);
  });

  test("MBX-15 with a reference where the result is large", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/w": [
          spawn("c", "go", { wake: "never", detached: true }),
          say("ok"),
          refused,
          refused,
          refused,
          say("at last"),
        ],
        "/root/w/c": [say("p".repeat(70_000))],
      },
    });
    const w = await h.tree.root.spawn("w", "go");
    await w.work.outcome();
    await h.tree.idle();
    for (let run = 1; run <= 4; run += 1) await (await w.agent.send(`try ${run}`)).outcome();
    const { outcome } = await look(h).work("/root/w/c");
    expect(look(h).inputs("/root/w", -1).join("\n")).toContain(`read_artifact: ${outcome!.artifactId}`);
  });

  test("MBX-15 errors that may be retried never count", async () => {
    const outage = fail({ code: "PROVIDER_OVERLOADED", status: 429, times: 2 });
    await using h = await harness({
      store,
      runtime: { limits: { retries: 1 } },
      scripts: { "/root/w": [say("ok"), outage, outage, outage, outage, say("at last")] },
    });
    const w = await h.tree.root.spawn("w", "go");
    await w.work.outcome();
    const note = await w.agent.tell("note");
    for (let run = 1; run <= 4; run += 1) {
      const work = await w.agent.send(`try ${run}`);
      const outcome = work.outcome();
      await look(h).until("it has ended", async () => {
        await h.clock.advance(10_000);
        return (await work.record()).state === "ended";
      });
      await expect(outcome).resolves.toMatchObject({
        ending: "provider_error",
        error: { code: "PROVIDER_OVERLOADED", status: 429 },
      });
      expect((await w.agent.record()).refusals).toBe(0);
    }
    const last = await w.agent.send("try 5");
    await look(h).until("it has ended", async () => {
      await h.clock.advance(10_000);
      return (await last.record()).state === "ended";
    });
    expect(look(h).inputs("/root/w", -1)).toContain("note");
    expect(await h.tree.receipt(note.id)).toMatchObject({ state: "settled" });
  });

  test("MBX-16 a work that ends undelivered takes its request to the dead letters, and its mail starts no run", async () => {
    await using h = await harness({
      store,
      runtime: ONE_PERMIT,
      scripts: { "*": [say("never")] },
    });
    await occupyPermits(h);
    const w = await h.tree.root.spawn("w", "go");
    const [request] = await look(h).mail("/root/w");
    await w.agent.interrupt();
    await expect(w.work.outcome()).resolves.toMatchObject({ ending: "interrupted" });
    expect(await h.tree.receipt(request!.id)).toMatchObject({ state: "dead_lettered", reason: "work_ended" });
    await h.tree.idle();
    expect(await w.agent.summary()).toMatchObject({
      unread: 0,
      status: { kind: "idle", last: "interrupted" },
    });
    await h.crash();
    expect(h.provider.requests("/root/w")).toEqual([]);
  });

  test.for(["interrupt", "failure", "budget"] as const)(
    "MBX-16 results that a run had drained when it ended before acceptance by %s are accepted again, queue-only",
    async (how) => {
      await using h = await harness({
        store,
        scripts: {
          "/root/w": [
            together(spawn("c", "go", { detached: true }), spawn("d", "go", { detached: true })),
            say("ok"),
            ...(how === "failure"
              ? [gate("in", { beforeAcceptance: true }), refused]
              : [gate("in", { beforeAcceptance: true }), stall()]),
            say("read"),
          ],
          "/root/w/c": [gate("c"), say("result c")],
          "/root/w/d": [gate("d"), say("result d")],
        },
      });
      const w = await h.tree.root.spawn("w", "go");
      await w.work.outcome();
      h.provider.gates.open("c");
      h.provider.gates.open("d");
      await h.provider.gates.arrived("in");
      await look(h).until("both results are there", async () => (await w.agent.summary()).unread === 2);
      if (how === "interrupt") await w.agent.interrupt();
      if (how === "failure") h.provider.gates.open("in");
      if (how === "budget") {
        const { exhaust } = await import("../../src/control/budget.ts");
        await h.tree.control.tree.transact((tx) =>
          exhaust(tx, { path: "/root/w", budget: "tokens" }, () => ""),
        );
      }
      await look(h).until("the run is over", async () => (await w.agent.record()).currentRun === null);
      await h.clock.advance(60_000);
      await h.tree.idle();
      expect((await look(h).runs("/root/w")).length).toBe(2);
      const results = (await look(h).mail("/root/w")).filter(({ kind }) => kind === "final_answer");
      expect(results.map(({ state, trigger }) => [state, trigger])).toEqual([
        ["accepted", false],
        ["accepted", false],
      ]);
      if (how === "budget") await w.agent.raiseBudget("tokens", null);
      h.provider.gates.open("in");
      await (await w.agent.send("read")).outcome();
      expect(look(h).inputs("/root/w", -1).join()).toMatch(/result [cd][^]*result [cd]/);
    },
  );

  test("MBX-16 `codex`: the text of a request so ended goes to the transcript, before the abort marker", async () => {
    await using h = await harness({
      store,
      tree: { profile: "codex" },
      scripts: { "/root/w": [gate("in", { beforeAcceptance: true }), say("never")] },
    });
    const w = await h.tree.root.spawn("w", "the old task");
    await h.provider.gates.arrived("in");
    await w.agent.interrupt();
    h.provider.gates.open("in");
    await h.tree.idle();
    const texts = (await look(h).items("/root/w")).flatMap((item) => ("text" in item ? [item.text] : []));
    const task = texts.findIndex((text) => text.includes("the old task"));
    const marker = texts.findIndex((text) => text.includes("interrupted on purpose"));
    expect([task, marker]).toEqual([expect.any(Number), task + 1]);
    expect(task).toBeGreaterThanOrEqual(0);
  });
});
