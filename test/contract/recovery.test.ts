/** What a killed process leaves, and what the next one makes of it (REC-1, REC-5). */
import { describe, expect, test } from "vitest";
import type { WorkRecord } from "../../src/protocol/work.ts";
import {
  ask,
  call,
  followUp,
  gate,
  repeat,
  say,
  send,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import type { Fault } from "../../src/testing/faulty-store.ts";
import { invariants } from "../../src/testing/invariants.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type Harness, harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

/** A tree in which everything happens: parallel children, a join, a follow-up, plain mail, a wake, a question. */
const LIFE = {
  "/root": [
    together(spawn("one", "first"), spawn("two", "second", { wake: "always" })),
    wait({ targets: ["one"] }),
    together(followUp("one", "again"), send("two", "by the way")),
    wait({ targets: ["one", "two"], mode: "any" }),
    repeat(say((context) => `done ${context.ownSteps}`)),
  ],
  "/root/one": [spawn("deep", "third"), repeat(say((context) => `one ${context.ownSteps}`))],
  "/root/one/deep": [repeat(say("deep"))],
  "/root/two": [call("list_agents"), repeat(say((context) => `two ${context.ownSteps}`))],
};

async function live(h: Harness): Promise<WorkRecord> {
  const work = await h.tree.root.send("go");
  await h.tree.idle();
  return work.record();
}

/** Runs a life that is killed at one write, and holds what comes after it to every promise. */
async function killedAt(
  options: HarnessOptions,
  write: number,
  kind: "crash_before" | "crash_after",
): Promise<boolean> {
  await using h = await harness(options);
  const { id } = h.tree;
  const base = h.faulty.writes;
  const checker = invariants(id);
  const check = async (when: string): Promise<void> => {
    const broken = await h.store.read((view) => checker.check(view));
    expect(broken, `${kind} ${write}, ${when}`).toEqual([]);
  };
  h.onWrite = (number): Fault | null => (number === base + write ? { kind } : null);
  let ended = false;
  live(h).then(
    () => (ended = true),
    () => undefined,
  );
  await waitUntil("it has crashed or ended", () => h.faulty.crashed || ended);
  if (!h.faulty.crashed) return false;
  await check("dead");
  h.onWrite = () => null;
  await h.crash();
  await check("opened again");
  await h.tree.idle();
  await check("idle again");
  const works = await look(h).works();
  const asked = works.filter(({ replyTo }) => replyTo !== null);
  expect(
    works.filter(({ state }) => state !== "ended").map((work) => [work.executorPath, work.state]),
  ).toEqual([]);
  // One result and one transfer for each work that an agent asked for, neither none nor two.
  const all = (await h.tree.list()).agents;
  const results = (await Promise.all(all.map(({ path }) => look(h).mail(path))))
    .flat()
    .filter(({ kind: mail }) => mail === "final_answer")
    .map(({ resultOf }) => resultOf);
  expect(results.map(String).toSorted(), `results after ${kind} ${write}`).toEqual(
    asked.map((work) => work.id).toSorted(),
  );
  expect((await look(h).transfers("subagent_result")).length).toBe(asked.length);
  return true;
}

describe.each(STORES)("a kill on %s", (store) => {
  const step = store === "memory" ? 1 : 7;

  test.for([
    ["crash_after", "notify"],
    ["crash_before", "retry"],
  ] as const)(
    "REC-1 at every commit (%s), with %s: nothing lost, nothing twice, every promise kept",
    { timeout: 240_000 },
    async ([kind, onLostRun]) => {
      const options = {
        store,
        scripts: LIFE,
        tree: { onLostRun },
        runtime: { subagents: { onLostRun } },
      } satisfies HarnessOptions;
      let kills = 0;
      for (let write = 1; ; write += step) {
        if (!(await killedAt(options, write, kind))) break;
        kills += 1;
      }
      expect(kills).toBeGreaterThan(store === "memory" ? 40 : 6);
    },
  );
});

describe.each(STORES)("after a kill on %s", (store) => {
  test("REC-1 settled runs are as they were, with their times", async () => {
    await using h = await harness({ store, scripts: LIFE });
    await live(h);
    const before = await look(h).snapshot();
    await h.clock.advance(60_000);
    await h.crash();
    const after = (await look(h).snapshot()) as Record<string, unknown>;
    expect({ ...after, events: 0 }).toEqual({ ...(before as object), events: 0 });
    const told = await h.tree.log((before as { events: number }).events);
    expect(told.map(({ type }) => type)).toEqual(["tree.claimed"]);
  });

  test("REC-1 a run reserved and not accepted is voided: no work ends, nothing is sent, its mail starts one new run", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/worker": [together(gate("before", { beforeAcceptance: true }), say("seven"))] },
    });
    const { work } = await h.tree.root.spawn("worker", "count");
    await h.provider.gates.arrived("before");
    await h.crash();
    await h.provider.gates.arrived("before", 2);
    const [request, ...others] = await look(h).mail("/root/worker");
    expect([request!.state, others.length]).toEqual(["accepted", 0]);
    expect((await look(h).runs("/root/worker")).map(({ status, reason }) => [status, reason])).toEqual([
      ["cancelled", "not_accepted"],
      ["starting", null],
    ]);
    expect(await look(h).work("/root/worker")).toMatchObject({ state: "queued", voids: 1 });
    expect((await (await h.tree.agent("worker")).record()).lastOutcome).toBe(null);
    h.provider.gates.open("before");
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed", text: "seven" });
  });

  test.for(["voids", "lostRuns"] as const)(
    "REC-1 a runtime that is closed in order costs no attempt, however often: %s",
    async (counted) => {
      const beforeAcceptance = counted === "voids";
      await using h = await harness({
        store,
        scripts: { "/root/worker": [repeat(together(gate("before", { beforeAcceptance }), say("seven")))] },
        runtime: { subagents: { onLostRun: "retry" } },
      });
      const { work } = await h.tree.root.spawn("worker", "count");
      const again = async (times: number, how: "close" | "crash") => {
        await h.provider.gates.arrived("before", times);
        if (how === "crash") await h.crash();
        else {
          await h.runtime.close();
          h.runtime = await h.newRuntime();
          h.tree = await h.runtime.openTree({ id: h.tree.id });
        }
      };
      for (const times of [1, 2, 3, 4]) await again(times, "close");
      expect(await look(h).work("/root/worker")).toMatchObject({ [counted]: 0, outcome: null });
      const why = async () => (await (await h.tree.agent("worker")).why()).reasons.join("\n");
      expect(await why()).not.toContain("was lost");
      if (!beforeAcceptance) expect(await why()).toContain("its run was stopped with its runtime");
      // A crash after it counts as before.
      await again(5, "crash");
      await h.provider.gates.arrived("before", 6);
      expect(await look(h).work("/root/worker")).toMatchObject({ [counted]: 1, outcome: null });
      if (!beforeAcceptance) expect(await why()).toContain("its run was lost (1 of 3)");
      h.provider.gates.open("before");
      expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed", text: "seven" });
    },
  );

  test("REC-1 a work voided three times ends runtime_lost", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/worker": [together(gate("before", { beforeAcceptance: true }), say("seven"))] },
    });
    const { work } = await h.tree.root.spawn("worker", "count");
    for (const times of [1, 2, 3]) {
      await h.provider.gates.arrived("before", times);
      await h.crash();
    }
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "runtime_lost", text: "" });
    await h.tree.idle();
    expect(await look(h).runs("/root/worker")).toHaveLength(3);
    expect((await look(h).mail("/root/worker"))[0]).toMatchObject({
      state: "dead_lettered",
      reason: "work_ended",
    });
  });

  test("REC-1 C4.9 what the user has asked for with it is a draft then", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [together(gate("before", { beforeAcceptance: true }), say("seven"))] },
    });
    const work = await h.tree.root.send("count");
    for (const times of [1, 2, 3]) {
      await h.provider.gates.arrived("before", times);
      await h.crash();
    }
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "runtime_lost" });
    expect((await h.runtime.threads.draft(h.tree.id))!.text).toBe("count");
  });

  test("REC-1 an accepted run is settled runtime_lost, with one result per work it served; its steps stay", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "count"), say("started"), repeat(say("told"))],
        "/root/worker": [call("list_agents"), together(say("half"), gate("cut"), say("never"))],
      },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("cut");
    await (await h.tree.agent("worker")).send("and this");
    await h.crash();
    h.provider.gates.open("cut");
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed", text: "told" });
    await h.tree.idle();
    const [lost] = await look(h).runs("/root/worker");
    expect(lost).toMatchObject({ status: "interrupted", reason: "runtime_lost" });
    const works = await look(h).works("/root/worker");
    expect(works[0]!.outcome).toMatchObject({ ending: "runtime_lost", runId: lost!.id });
    // What had not been taken in was not lost with it.
    expect(works[1]!.outcome).toMatchObject({ ending: "completed" });
    const results = (await look(h).mail("/root")).filter(({ kind }) => kind === "final_answer");
    expect(results.map(({ resultOf }) => resultOf)).toEqual([works[0]!.id]);
    const kept = (await look(h).items("/root/worker")).filter(({ runId }) => runId === lost!.id);
    expect(kept.map(({ kind }) => kind).slice(-3)).toEqual(["mail", "assistant", "tool_result"]);
  });

  test("REC-1 RUN-2 an open call is closed with an unknown outcome, and is not made again", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(call("wait_agent", { timeout_ms: 60_000 }), call("pause_here")),
          repeat(say("ok")),
        ],
      },
      runtime: {
        tools: [
          {
            name: "pause_here",
            description: "Waits.",
            parameters: { type: "object" },
            effects: ["read"],
            call: () => h.provider.gates.pass("tool").then(() => "done"),
          },
        ],
      },
    });
    await h.tree.root.send("go");
    await h.provider.gates.arrived("tool");
    await waitUntil("the wait has begun", async () =>
      (await h.tree.log(0)).some(({ type }) => type === "wait.started"),
    );
    await h.crash();
    await h.tree.idle();
    // A wait beside another open call saves nothing: what the tool did is not known.
    expect((await look(h).runs("/root")).map(({ reason }) => reason)).toEqual(["runtime_lost"]);
    for (const tool of ["wait_agent", "pause_here"]) {
      const outputs = await look(h).outputs("/root", tool);
      // How long it took, nobody knows: the time until somebody looked is not told as that.
      const output = "outcome unknown: the runtime was stopped";
      expect(outputs).toMatchObject([{ isError: true, output }]);
    }
    await h.ask("again");
    expect(h.provider.gates.waiting("tool")).toBe(1);
  });

  test("REC-1 a run whose only open calls are waits is not lost; they are checked again", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(spawn("one", "1"), spawn("two", "2")),
          wait({ targets: ["one", "two"] }),
          say("joined"),
        ],
        "/root/one": [together(gate("one"), say("1 is done"))],
        "/root/two": [together(gate("two"), say("2 is done"))],
      },
      runtime: { subagents: { onLostRun: "retry" } },
    });
    const work = await h.tree.root.send("go");
    for (const name of ["one", "two"]) await h.provider.gates.arrived(name);
    await waitUntil("it waits", async () => (await h.tree.root.status()).kind === "waiting");
    await h.crash();
    for (const name of ["one", "two"]) await h.provider.gates.arrived(name, 2);
    expect(await h.tree.root.status()).toMatchObject({ kind: "waiting" });
    h.provider.gates.openAll();
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed", text: "joined" });
    expect((await look(h).runs("/root")).map(({ status }) => status)).toEqual(["completed"]);
    const [joined] = await look(h).outputs("/root", "wait_agent");
    expect(joined).toMatchObject({
      isError: false,
      output: { results: [{ text: "1 is done" }, { text: "2 is done" }] },
    });
  });

  test("REC-1 it is not lost between its wait and the word that it waits, nor when the wait has just ended", async () => {
    const options = {
      store,
      scripts: {
        "/root": [spawn("one", "1"), wait({ targets: ["one"] }), repeat(say("joined"))],
        "/root/one": [together(gate("one"), say("1 is done"))],
      },
    } satisfies HarnessOptions;
    for (const cut of ["wait.started", "wait.ended", "run.resumed"] as const) {
      await using h = await harness(options);
      const work = await h.tree.root.send("go");
      await h.provider.gates.arrived("one");
      const seen = (): Promise<boolean> =>
        h.store.read((view) => view.events(h.tree.id, 0, 1000).some(({ type }) => type === cut));
      // The write after the one that told it never happens.
      let over = false;
      h.onWrite = (): Fault | null => (over ? { kind: "crash_before" } : null);
      const commit = h.store.commit.bind(h.store);
      (h.store as { commit: typeof commit }).commit = async (lease, plan) => {
        const value = await commit(lease, plan);
        over ||= await seen();
        return value;
      };
      if (cut !== "wait.started") {
        await waitUntil("it waits", async () => (await h.tree.root.status()).kind === "waiting");
        h.provider.gates.open("one");
      }
      await waitUntil("it is dead", () => h.faulty.crashed || over);
      await h.clock.settle();
      h.onWrite = () => null;
      (h.store as { commit: typeof commit }).commit = commit;
      h.provider.gates.openAll();
      await h.crash();
      const outcome = await h.tree.work(work.id).outcome();
      expect([cut, outcome.ending, outcome.text]).toEqual([cut, "completed", "joined"]);
      const [run] = await look(h).runs("/root");
      expect([cut, run!.status]).toEqual([cut, "completed"]);
    }
  });

  test("REC-1 an awaiting work stays open, a question too, and queue-only mail waits", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "count"), say("started"), repeat(say("woken"))],
        "/root/worker": [ask("how far?"), say((context) => `up to ${context.lastToolText}`)],
      },
    });
    const work = await h.tree.root.send("go");
    await waitUntil("it awaits", async () => (await work.record()).state === "awaiting_children");
    const asking = await h.tree.agent("worker");
    await waitUntil("it asks", async () => (await asking.status()).kind === "awaiting_approval");
    await h.tree.root.tell("for later");
    await h.crash();
    expect(await h.tree.root.status()).toEqual({ kind: "awaiting_children" });
    expect((await h.tree.work(work.id).record()).openUnder).toBe(1);
    expect((await look(h).mail("/root")).at(-1)).toMatchObject({ state: "accepted", trigger: false });
    const worker = await h.tree.agent("worker");
    const [request] = await h.store.read((view) => view.openRequestsOf(worker.threadId));
    await h.tree.answer(request!.id, "ten");
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed", text: "woken" });
    expect((await look(h).work("/root/worker")).outcome?.text).toBe("up to ten");
  });

  test("REC-1 a second crash, at any write of the recovery, changes nothing further", async () => {
    const options = {
      store,
      scripts: {
        "/root": [spawn("worker", "count"), together(gate("cut"), say("never"))],
        "/root/worker": [together(gate("work"), say("seven"))],
      },
    } satisfies HarnessOptions;
    const stateOf = async (h: Harness) => {
      const works = await look(h).works();
      const runs = [...(await look(h).runs("/root")), ...(await look(h).runs("/root/worker"))];
      return {
        works: works.map(({ executorPath, state, outcome }) => [executorPath, state, outcome?.ending]),
        runs: runs.map(({ ordinal, status, reason }) => [ordinal, status, reason]),
        mail: (await look(h).mail("/root")).map(({ kind, state }) => [kind, state]),
      };
    };
    const recovered = async (kills: number): Promise<unknown> => {
      await using h = await harness(options);
      await h.tree.root.send("go");
      for (const name of ["cut", "work"]) await h.provider.gates.arrived(name);
      for (let kill = 0; kill < kills; kill += 1) {
        h.onWrite = (write, kind) =>
          kind === "commit" && write === 2 ? { kind: kill % 2 === 0 ? "crash_before" : "crash_after" } : null;
        await h.crash().catch(() => undefined);
      }
      h.onWrite = () => null;
      await h.crash();
      await h.tree.idle();
      return stateOf(h);
    };
    const once = await recovered(0);
    expect(once).toMatchObject({
      works: [
        ["/root", "ended", "runtime_lost"],
        ["/root/worker", "ended", "runtime_lost"],
      ],
    });
    for (const kills of [1, 2, 3]) expect(await recovered(kills)).toEqual(once);
  });

  test("REC-1 with `retry` the works stay open and get one notice that serves them all; three times at most", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/worker": [together(gate("cut"), say("seven"))] },
      runtime: { subagents: { onLostRun: "retry" } },
    });
    const { agent, work } = await h.tree.root.spawn("worker", "count");
    const second = await agent.send("and this");
    const works = [work.id, second.id];
    for (const times of [1, 2]) {
      await h.provider.gates.arrived("cut", times);
      await waitUntil(
        "both are served",
        async () => (await look(h).runs("/root/worker")).at(-1)!.serves.length === 2 || times === 1,
      );
      await h.crash();
      await h.provider.gates.arrived("cut", times + 1);
      const notices = (await look(h).mail("/root/worker")).filter(({ kind }) => kind === "notice");
      expect(notices).toHaveLength(times);
      expect(await look(h).runs("/root/worker")).toHaveLength(times + 1);
    }
    const [first] = await look(h).works("/root/worker");
    expect(first).toMatchObject({ state: "running", lostRuns: 2, outcome: null });
    expect((await look(h).mail("/root")).filter(({ kind }) => kind === "final_answer")).toEqual([]);
    await h.crash();
    expect(await h.tree.work(works[0]!).outcome()).toMatchObject({ ending: "runtime_lost" });
  });
});

describe.each(STORES)("a request of unknown fate on %s", (store) => {
  test("REC-5 of an exact provider is sent again with the same messages: the transcript is ours", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/worker": [together(say("said before the kill"), gate("cut"), say("seven"))] },
    });
    const { work } = await h.tree.root.spawn("worker", "count");
    const base = h.faulty.writes;
    // The provider has accepted the request; the commit that would say so never happens.
    h.onWrite = (write, kind) => (kind === "commit" && write > base ? { kind: "crash_before" } : null);
    await waitUntil("it is dead", () => h.faulty.crashed);
    h.onWrite = () => null;
    h.provider.gates.openAll();
    await h.crash();
    expect(await h.tree.work(work.id).outcome()).toMatchObject({ ending: "completed" });
    const [request] = await look(h).mail("/root/worker");
    const delivered = (await look(h).items("/root/worker")).filter(({ kind }) => kind === "mail");
    expect(delivered).toMatchObject([{ mailId: request!.id }]);
  });
});
