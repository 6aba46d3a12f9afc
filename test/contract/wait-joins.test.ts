/** `wait_agent` of a run: what ends it, what it hands out, and that it looks before it waits (WAI-3, WAI-4). */
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/protocol/json.ts";
import {
  call,
  gate,
  fail,
  repeat,
  say,
  send,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import type { ScriptContext } from "../../src/providers/scripted/context.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const NONE = { fork_turns: "none" };
/** Output of the newest wait in a request. */
const waited = (context: ScriptContext): JsonObject => context.resultOf("wait_agent") as JsonObject;
const showWait = say((context) => JSON.stringify(waited(context)));

function inWait(look: Look, path: string): Promise<void> {
  return look.until(`${path} waits`, async () => (await look.status(path)) === "waiting");
}

describe.each(STORES)("joins on %s", (store) => {
  test("WAI-3 without targets it is the reference's: any mail ends it, and it only says so", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "look", NONE), wait(), showWait],
        "/root/worker": [gate("work"), say("found it")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await inWait(look, "/root");
    expect(await h.tree.root.status()).toEqual({ kind: "waiting", on: ["mail"] });
    h.provider.gates.open("work");
    const outcome = await work.outcome();
    expect(JSON.parse(outcome.text)).toEqual({ message: "There was activity.", timed_out: false });
    // The mail itself is drained as mail.
    expect(look.inputs("/root", -1).join("\n")).toContain("found it");
  });

  test.each([
    ["all", undefined, 3],
    ["all, by name", "all", 3],
    ["any", "any", 1],
    ["a number", 2, 2],
  ] as const)("WAI-3 mode %s ends when that many are settled", async (_, mode, need) => {
    const names = ["a", "b", "c"];
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(...names.map((name) => spawn(name, "look", NONE))),
          wait({ targets: names, ...(mode === undefined ? {} : { mode }) }),
          showWait,
          repeat(say("the rest")),
        ],
        ...Object.fromEntries(names.map((name) => [`/root/${name}`, [gate(name), say(`from ${name}`)]])),
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await inWait(look, "/root");
    for (const [at, name] of names.entries()) {
      expect(h.provider.requests("/root")).toHaveLength(at >= need ? 3 : 2);
      h.provider.gates.open(name);
      await look.until(`${name} ends`, async () => (await look.work(`/root/${name}`)).state === "ended");
      if (at + 1 === need)
        await look.until("the wait has ended", () => h.provider.requests("/root").length >= 3);
    }
    await work.outcome();
    const output = (await look.outputs("/root", "wait_agent"))[0]!.output;
    const works = await Promise.all(names.map((name) => look.work(`/root/${name}`)));
    const settled = works.slice(0, need);
    expect(output).toMatchObject({
      ended_by: "settled",
      timed_out: false,
      results: settled.map((one, at) => ({
        work_id: one.id,
        agent: `/root/${names[at]}`,
        state: "completed",
        text: `from ${names[at]}`,
      })),
      open: works.slice(need).map((one) => ({ work_id: one.id, agent: one.executorPath, state: "running" })),
      cursor: settled.map((one) => one.id).join(","),
    });
  });

  test("WAI-3 by cursor one event is reported once, and the results are bounded", async () => {
    const long = "x".repeat(100);
    await using h = await harness({
      store,
      tree: { limits: { resultReservationBytes: 64 } },
      scripts: {
        "/root": [
          together(spawn("a", "look", NONE), spawn("b", "look", NONE)),
          wait({ targets: ["a", "b"], mode: "any" }),
          call("wait_agent", (context) => ({
            targets: ["a", "b"],
            cursor: waited(context)["cursor"] as string,
          })),
          showWait,
        ],
        "/root/a": [say(long)],
        "/root/b": [gate("b"), say("from b")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await look.until(
      "the second wait",
      async () => (await look.events("wait.started", "/root")).length === 2,
    );
    await inWait(look, "/root");
    h.provider.gates.open("b");
    await work.outcome();
    const outputs = await look.outputs("/root", "wait_agent");
    const [first, second] = outputs.map(({ output }) => output["results"] as JsonObject[]);
    expect(first).toMatchObject([{ agent: "/root/a", text: "x".repeat(64) }]);
    expect(second).toMatchObject([{ agent: "/root/b", text: "from b" }]);
    const [a, b] = [await look.work("/root/a"), await look.work("/root/b")];
    expect(outputs.map(({ output }) => output["cursor"])).toEqual([a.id, `${a.id},${b.id}`]);
  });

  test("WAI-3 an agent stands for the caller's open works at it, or with none for its latest", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "one", NONE),
          wait({ targets: ["worker"] }),
          call("followup_task", { target: "worker", message: "two" }),
          call("followup_task", { target: "worker", message: "three" }),
          wait({ targets: ["worker"] }),
          wait({ targets: ["worker"] }),
          say("end"),
        ],
        "/root/worker": [say("one"), gate("more"), say("both")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("more");
    await inWait(look, "/root");
    h.provider.gates.open("more");
    await work.outcome();
    const works = (await look.works("/root/worker")).map((one) => one.id);
    const waits = await look.events("wait.started", "/root");
    expect(waits.map((event) => event.data["works"])).toEqual([[works[0]], [works[1], works[2]], [works[2]]]);
  });

  test("WAI-3 trigger-turn and user input end it early as `new_input`; other queue-only mail does not", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(spawn("boss", "lead", NONE), spawn("other", "wander", NONE)),
          say("started"),
          repeat(say("more")),
        ],
        "/root/boss": [
          spawn("worker", "look", NONE),
          wait({ targets: ["worker"] }),
          wait({ targets: ["worker"] }),
          say("end"),
        ],
        "/root/boss/worker": [gate("work"), say("found it")],
        "/root/other": [gate("tell"), send("/root/boss", "by the way"), say("told"), repeat(say("more"))],
      },
    });
    const look = new Look(h);
    await h.tree.root.send("go");
    await inWait(look, "/root/boss");
    h.provider.gates.open("tell");
    await look.until("it was told", async () => (await look.mail("/root/boss")).length === 2);
    await h.clock.settle();
    expect(await (await h.tree.agent("boss")).status()).toMatchObject({ kind: "waiting" });
    expect(await look.events("wait.ended", "/root/boss")).toEqual([]);
    await (await h.tree.agent("boss")).send("hurry up");
    await look.until(
      "the second wait",
      async () => (await look.events("wait.started", "/root/boss")).length === 2,
    );
    const [first] = await look.outputs("/root/boss", "wait_agent");
    expect(first!.output).toMatchObject({ ended_by: "new_input", timed_out: false, results: [] });
    expect(look.inputs("/root/boss", -1).join("\n")).toMatch(/by the way[^]*hurry up/);
    h.provider.gates.open("work");
    await h.tree.idle();
    expect(await look.work("/root/boss/worker")).toMatchObject({ outcome: { ending: "completed" } });
  });

  test.each([
    ["as a target", (): JsonObject => ({ targets: ["worker"] })],
    [
      "by its work",
      (context: ScriptContext): JsonObject => ({
        works: [(context.resultOf("spawn_agent") as JsonObject)["work_id"] as string],
      }),
    ],
  ] as const)("WAI-3 any mail of an agent awaited %s ends the wait as `new_input`", async (_, asked) => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "look", NONE), call("wait_agent", asked), showWait, repeat(say("more"))],
        "/root/worker": [gate("tell"), send("/root", "half way"), gate("work"), say("found it")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await inWait(look, "/root");
    h.provider.gates.open("tell");
    await look.until("the wait is over", () => h.provider.requests("/root").length === 3);
    const [first] = await look.outputs("/root", "wait_agent");
    expect(first!.output).toMatchObject({ ended_by: "new_input", results: [], open: [{ state: "running" }] });
    h.provider.gates.open("work");
    await work.outcome();
  });

  test("WAI-3 mail handed out is bound to the output, delivered with the request that holds it", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "look", NONE),
          wait({ targets: ["worker"] }),
          gate("before", { beforeAcceptance: true }),
          gate("after"),
          say("end"),
        ],
        "/root/worker": [say("found it")],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("before");
    const [run] = await look.runs("/root");
    expect((await look.mail("/root")).at(-1)).toMatchObject({ state: "accepted", boundRunId: run!.id });
    h.provider.gates.open("before");
    await h.provider.gates.arrived("after");
    expect((await look.mail("/root")).at(-1)).toMatchObject({ state: "delivered", runId: run!.id });
    expect(look.inputs("/root", -1).join("\n")).not.toContain("found it");
    expect(JSON.stringify(h.provider.requests("/root").at(-1)!.messages)).toContain("found it");
    h.provider.gates.open("after");
    await work.outcome();
    expect(await look.runs("/root")).toHaveLength(1);
    expect((await look.mail("/root")).at(-1)).toMatchObject({ state: "settled" });
  });

  test("WAI-3 mail handed out is pending again when that request is never accepted", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "look", NONE),
          wait({ targets: ["worker"] }),
          fail({ code: "PROVIDER_REFUSED", status: 400 }),
          say("second run"),
        ],
        "/root/worker": [say("found it")],
      },
    });
    const look = new Look(h);
    expect(await h.ask("go")).toMatchObject({ ending: "provider_error" });
    expect((await look.mail("/root")).at(-1)).toMatchObject({ state: "accepted" });
    await h.ask("again");
    expect((await look.mail("/root")).find((mail) => mail.resultOf !== null)).toMatchObject({
      state: "settled",
    });
    expect(look.inputs("/root", -1).join("\n")).toContain("found it");
  });

  test("WAI-3 WAI-4 what is settled already returns at once, for an unloaded agent too", async () => {
    await using h = await harness({
      store,
      runtime: { limits: { residents: 1 } },
      scripts: {
        "/root": [
          spawn("worker", "look", NONE),
          wait({ targets: ["worker"] }),
          wait({ targets: ["worker"] }),
          say("end"),
        ],
        "/root/worker": [say("found it")],
      },
    });
    const look = new Look(h);
    await h.ask("go");
    // The root, loaded last, has taken the worker's place.
    expect((await (await h.tree.agent("worker")).summary()).resident).toBe(false);
    const started = await look.events("wait.started", "/root");
    expect(started.map((event) => event.data["end"])).toEqual([null, "settled"]);
    expect(await look.events("wait.ended", "/root")).toHaveLength(1);
    expect(await look.events("run.waiting", "/root")).toHaveLength(1);
    const outputs = await look.outputs("/root", "wait_agent");
    expect(outputs[1]!.output).toMatchObject({
      ended_by: "settled",
      results: [{ text: "found it" }],
      open: [],
    });
  });

  test("WAI-4 an end between the call and the wait is not missed", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "look", NONE), wait({ targets: ["worker"] }), showWait],
        "/root/worker": [gate("work"), say("found it")],
      },
    });
    const look = new Look(h);
    // The wait is stored; the commit that would suspend the run waits at the store until the worker has ended.
    let seen = 0;
    h.onWrite = (_write, kind) => {
      if (kind !== "commit" || !opened) return null;
      seen += 1;
      return seen === 1 ? { kind: "hang" } : null;
    };
    let opened = false;
    const stream = h.tree.events();
    const started = (async () => {
      for await (const event of stream) {
        if (event.type !== "wait.started") continue;
        opened = true;
        return;
      }
    })();
    const work = await h.tree.root.send("go");
    await started;
    await look.until("the next commit hangs", () => seen > 0);
    h.provider.gates.open("work");
    await look.until("the worker ends", async () => (await look.work("/root/worker")).state === "ended");
    h.faulty.resume();
    const outcome = await work.outcome();
    expect(JSON.parse(outcome.text)).toMatchObject({ ended_by: "settled", results: [{ text: "found it" }] });
  });
});
