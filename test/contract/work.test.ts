/** WRK-1 to WRK-3, WRK-9, WRK-10: what a work is, how it ends, and who owes it. */
import { describe, expect, test } from "vitest";
import {
  call,
  end,
  fail,
  followUp,
  gate,
  list,
  say,
  type Script,
  spawn,
  together,
  usage,
} from "../../src/providers/scripted/script.ts";
import { WORK_ENDINGS, type WorkEnding, type WorkRecord } from "../../src/protocol/work.ts";
import { totalTokens } from "../../src/protocol/usage.ts";
import { hostTools } from "../../src/tools/host-tools.ts";
import { type Harness, harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { look, textAt } from "../support/look.ts";

interface EndingCase {
  readonly ending: WorkEnding;
  readonly run: string | null;
  readonly reason: string | null;
  readonly script: Script;
  readonly options?: Omit<HarnessOptions, "store">;
  readonly act?: (h: Harness) => Promise<unknown>;
  readonly ask?: Record<string, unknown>;
  readonly text: string;
  readonly error?: Record<string, unknown>;
}

const SCHEMA = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
const step = together(say("half a result"), list());

/** Each ending, how it comes about, and the words of the run beside it (WRK-10). */
const CASES: readonly EndingCase[] = [
  { ending: "completed", run: "completed", reason: "completed", script: [step, say("done")], text: "done" },
  {
    ending: "empty_result",
    run: "completed",
    reason: "empty_result",
    script: [step, end()],
    text: "half a result",
  },
  {
    ending: "failed",
    run: "completed",
    reason: "completed",
    script: [
      step,
      call("report_result", ({ messages }) => {
        const [, id] =
          /Work id: (wrk_\w+)/.exec(messages.map((one) => ("text" in one ? one.text : "")).join("\n")) ?? [];
        return { work_id: id ?? "", result: "could not", status: "failed" };
      }),
      say("bye"),
    ],
    text: "could not",
  },
  {
    ending: "interrupted",
    run: "interrupted",
    reason: "interrupted",
    script: [step, together(say("and more"), gate("in")), say("never")],
    act: async (h) => {
      await h.provider.gates.arrived("in");
      await (await h.tree.agent("/root/w")).interrupt();
    },
    text: "and more",
  },
  {
    ending: "cancelled",
    run: "cancelled",
    reason: "closed",
    script: [step, gate("in"), say("never")],
    act: async (h) => {
      await h.provider.gates.arrived("in");
      await (await h.tree.agent("/root/w")).close();
    },
    text: "half a result",
  },
  {
    ending: "turn_limit",
    run: "failed",
    reason: "turn_limit",
    options: { tree: { limits: { stepsPerRun: 2 } } },
    script: [step, list(), say("what I have")],
    text: "what I have",
  },
  {
    ending: "time_limit",
    run: "failed",
    reason: "time_limit",
    options: { tree: { limits: { runWallClockMs: 1000 } } },
    script: [
      step,
      // The wrap-up is asked for without tools.
      ({ request }) => (request.tools.length === 0 ? say("out of time") : together(gate("in"), list())),
      say("out of time"),
    ],
    act: async (h) => {
      await h.provider.gates.arrived("in");
      await h.clock.advance(1000);
    },
    text: "out of time",
  },
  {
    ending: "budget_exhausted",
    run: "failed",
    reason: "budget_exhausted",
    script: [together(usage({ inputTokens: 100_000 }), step), say("never")],
    ask: { budgets: { tokens: 50_000 } },
    text: "half a result",
    error: { code: "BUDGET_EXHAUSTED" },
  },
  {
    ending: "provider_error",
    run: "failed",
    reason: "provider_error",
    script: [step, fail({ code: "PROVIDER_REFUSED", message: "no", status: 451 })],
    text: "half a result",
    error: { code: "PROVIDER_REFUSED", message: expect.stringContaining("no") as string, status: 451 },
  },
  {
    ending: "schema_failed",
    run: "failed",
    reason: "schema_failed",
    script: [step, say("no JSON"), say('{"n": "raw text"}')],
    ask: { output_schema: SCHEMA },
    text: '{"n": "raw text"}',
    error: { code: "INVALID_ARGUMENT" },
  },
  {
    ending: "runtime_lost",
    run: "interrupted",
    reason: "runtime_lost",
    script: [step, gate("in"), say("never")],
    act: async (h) => {
      await h.provider.gates.arrived("in");
      await h.crash();
    },
    text: "half a result",
  },
];

describe.each(STORES)("works on %s", (store) => {
  test("WRK-1 a spawn, a follow-up and a user's message are works with all that belongs to them", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("w", "the task", { output_schema: SCHEMA, acceptance: "short", wake: "always" }),
          followUp("w", "another"),
          say("started"),
          say("woken"),
          say("woken"),
        ],
        "/root/w": [gate("in"), say('{"n": 1}'), say("free text")],
      },
    });
    const asked = await h.tree.root.send("go");
    await h.provider.gates.arrived("in");
    await look(h).until(
      "both are asked",
      async () => (await look(h).outputs("/root", "followup_task")).length === 1,
    );
    const [ofUser, ofSpawn, ofFollowUp] = await look(h).works();
    const root = (await look(h).runs("/root"))[0]!;
    const w = await (await h.tree.agent("/root/w")).record();
    const rootAgent = { kind: "agent", threadId: h.tree.id, path: "/root" };
    expect(ofUser).toMatchObject({
      id: asked.id,
      requester: { kind: "user", name: "library" },
      executor: h.tree.id,
      executorPath: "/root",
      parents: [],
      originRunId: null,
      replyTo: null,
      objective: "go",
    });
    expect(ofSpawn).toMatchObject({
      requester: rootAgent,
      executor: w.threadId,
      executorPath: "/root/w",
      parents: [asked.id],
      originRunId: root.id,
      rootRunId: root.rootRunId,
      replyTo: rootAgent,
      objective: "the task",
      outputSchema: SCHEMA,
      acceptance: "short",
      wake: "always",
      artifacts: [],
      state: "running",
      runsServed: 1,
      voids: 0,
      lostRuns: 0,
      outcome: null,
    });
    expect(ofFollowUp).toMatchObject({
      requester: rootAgent,
      objective: "another",
      parents: [asked.id],
      state: "queued",
    });
    // Tools return its id; the request says it to the executor.
    const [spawned] = await look(h).outputs("/root", "spawn_agent");
    const [followed] = await look(h).outputs("/root", "followup_task");
    expect([spawned!.output["work_id"], followed!.output["work_id"]]).toEqual([ofSpawn!.id, ofFollowUp!.id]);
    const request = look(h).inputs("/root/w", 0).at(-1)!;
    expect(request).toContain(`Work id: ${ofSpawn!.id}`);
    expect(request).toMatch(/the task[^]*short/);
    h.provider.gates.open("in");
    await asked.outcome();
    const ended = (await look(h).works("/root/w"))[0]!;
    const run = (await look(h).runs("/root/w"))[0]!;
    expect(ended).toMatchObject({
      state: "ended",
      outcome: { ending: "completed", value: { n: 1 }, runId: run.id },
    });
    expect(ended.usage).toEqual(run.usage);
  });

  test("WRK-1 what is too long for a mail is among the work's artifacts", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("w", "go"), say("started"), say("woken")],
        "/root/w": [say("x".repeat(70_000))],
      },
    });
    await h.ask("go");
    const work = await look(h).work("/root/w");
    expect(work.artifacts).toEqual([work.outcome!.artifactId]);
    expect(work.outcome!.artifactId).toMatch(/^art_/);
  });

  test("WRK-1 `codex`: no ids in outputs", async () => {
    await using h = await harness({
      store,
      tree: { profile: "codex" },
      scripts: {
        "/root": [spawn("w", "go"), followUp("w", "more"), say("done")],
        "*": [gate("in"), say("ok"), say("ok")],
      },
    });
    await h.ask("go");
    expect((await look(h).outputs("/root", "spawn_agent"))[0]!.output).toEqual({ task_name: "/root/w" });
    expect((await look(h).outputs("/root", "followup_task"))[0]!.output).toBe("");
    h.provider.gates.openAll();
    await h.tree.idle();
  });

  test("WRK-2 works merged into one run settle with its outcome, marked as shared", async () => {
    await using h = await harness({ store, scripts: { "/root/w": [gate("in"), list(), say("for both")] } });
    const { agent, work } = await h.tree.root.spawn("w", "one");
    await h.provider.gates.arrived("in");
    const two = await agent.send("two");
    h.provider.gates.open("in");
    for (const one of [work, two])
      await expect(one.outcome()).resolves.toMatchObject({ text: "for both", shared: true });
    const [run] = await look(h).runs("/root/w");
    expect(run!.serves).toEqual([work.id, two.id]);
  });

  test("WRK-2 or one by one by `report_result`, which only takes what the run serves", async () => {
    const ids: string[] = [];
    const report = (at: number, result: string) => () =>
      call("report_result", { work_id: ids[at] ?? "wrk_0123456789abcdefghijk", result });
    await using h = await harness({
      store,
      scripts: {
        "/root/w": [
          gate("in"),
          list(),
          report(0, "for one"),
          report(0, "again"),
          report(2, "not mine"),
          together(say(""), list()),
          say("for two"),
        ],
      },
    });
    const { agent, work } = await h.tree.root.spawn("w", "one");
    await h.provider.gates.arrived("in");
    const two = await agent.send("two");
    ids.push(work.id, two.id);
    h.provider.gates.open("in");
    await expect(two.outcome()).resolves.toMatchObject({ ending: "completed", text: "for two" });
    const one = await work.outcome();
    expect(one).toMatchObject({ ending: "completed", text: "for one", shared: false });
    expect(
      (await look(h).outputs("/root/w", "report_result")).map((output) =>
        output.isError ? textAt(output, "code") : textAt(output, "state"),
      ),
    ).toEqual(["completed", "INVALID_ARGUMENT", "INVALID_ARGUMENT"]);
  });

  test.for(CASES)(
    "WRK-3 WRK-10 $ending: once, with partial text and usage, and the run's words beside it",
    async (one) => {
      await using h = await harness({
        store,
        ...one.options,
        scripts: {
          "/root": [
            spawn("w", "go", { wake: "never", detached: true, ...(one.ask as Record<string, never>) }),
            say("started"),
            say("told"),
          ],
          "/root/w": one.script,
        },
      });
      await h.ask("go");
      await one.act?.(h);
      await look(h).until(
        "the work has ended",
        async () => (await look(h).work("/root/w")).state === "ended",
      );
      await h.tree.idle();
      const work = await look(h).work("/root/w");
      expect(work.outcome).toMatchObject({
        ending: one.ending,
        text: one.text,
        artifactId: null,
        error: one.error ?? (one.ending === "failed" ? { message: "reported as failed by the agent" } : null),
      });
      expect(totalTokens(work.outcome!.usage.own)).toBeGreaterThan(0);
      expect(work.outcome!.usage.own).toEqual(work.usage);
      const [run] = await look(h).runs("/root/w");
      expect(run).toMatchObject({ status: one.run, reason: one.reason });
      expect(run!.id).toBe(work.outcome!.runId);
      // What has ended stays so, whatever comes.
      const agent = await h.tree.agent("/root/w");
      if (one.ending !== "cancelled") await agent.interrupt({ pending: "cancel" });
      await agent.close();
      await h.crash();
      expect(await look(h).work("/root/w")).toEqual(work);
      expect((await look(h).events("work.ended", "/root/w")).length).toBe(1);
      expect((await look(h).transfers("subagent_result")).length).toBe(1);
      h.provider.gates.openAll();
    },
  );

  test("WRK-3 these are all the endings there are", () => {
    expect(CASES.map(({ ending }) => ending).toSorted()).toEqual(WORK_ENDINGS.toSorted());
  });

  test("WRK-3 `failed` too when its agent cannot be loaded", async () => {
    await using h = await harness({ store, scripts: { "*": [say("never")] } });
    const { work } = await h.tree.root.spawn("w", "go", { workspace: "/nonexistent/folder" });
    await expect(work.outcome()).resolves.toMatchObject({ ending: "failed", error: { code: "LOAD_FAILED" } });
  });

  test("WRK-10 reserved is starting, accepted sets its time and running, settled is any terminal", async () => {
    await using h = await harness({
      store,
      scripts: { "/root/w": [gate("before", { beforeAcceptance: true }), gate("after"), say("ok")] },
    });
    await h.tree.root.spawn("w", "go");
    await h.provider.gates.arrived("before");
    expect((await look(h).runs("/root/w"))[0]).toMatchObject({
      status: "starting",
      acceptedAt: null,
      completedAt: null,
      reason: null,
    });
    await h.clock.advance(10);
    h.provider.gates.open("before");
    await h.provider.gates.arrived("after");
    expect((await look(h).runs("/root/w"))[0]).toMatchObject({
      status: "running",
      acceptedAt: h.clock.now(),
      completedAt: null,
      reason: null,
    });
    await h.clock.advance(10);
    h.provider.gates.open("after");
    await h.tree.idle();
    expect((await look(h).runs("/root/w"))[0]).toMatchObject({
      status: "completed",
      completedAt: h.clock.now(),
      reason: "completed",
    });
  });

  test("WRK-10 of works that end differently the run says what it did itself", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("w", "go", { output_schema: SCHEMA }), say("started"), say("told")],
        "/root/w": [gate("in"), list(), say("prose"), say("prose again")],
      },
    });
    const asked = await h.tree.root.send("go");
    await h.provider.gates.arrived("in");
    const second = await (await h.tree.agent("/root/w")).send("and this");
    h.provider.gates.open("in");
    await expect(second.outcome()).resolves.toMatchObject({ ending: "completed", text: "prose again" });
    await asked.outcome();
    expect((await look(h).works("/root/w"))[0]!.outcome!.ending).toBe("schema_failed");
    expect((await look(h).runs("/root/w"))[0]).toMatchObject({ status: "completed", reason: "completed" });
  });

  test("WRK-9 what is owed to an agent, and what it owes, either way", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [together(spawn("a", "go"), spawn("b", "go")), say("started"), say("woken"), say("woken")],
        "/root/a": [followUp("/root/b", "for a"), gate("a"), say("ok")],
        "/root/b": [gate("b"), say("ok"), say("ok")],
      },
    });
    const asked = await h.tree.root.send("go");
    await h.provider.gates.arrived("a");
    await h.provider.gates.arrived("b");
    await look(h).until("the root awaits", async () => (await asked.record()).state === "awaiting_children");
    const lines = async (path: string, way: "owed" | "owes") =>
      (await (await h.tree.agent(path))[way]()).map(({ work, executor, status }) => [
        work.objective,
        work.state,
        executor,
        status.kind,
      ]);
    const a = ["go", "running", "/root/a", "running"];
    const b = ["go", "running", "/root/b", "running"];
    const forA = ["for a", "queued", "/root/b", "running"];
    expect(await lines("/root", "owed")).toEqual([a, b]);
    expect(await lines("/root", "owes")).toEqual([["go", "awaiting_children", "/root", "awaiting_children"]]);
    expect(await lines("/root/a", "owed")).toEqual([forA]);
    expect(await lines("/root/a", "owes")).toEqual([a]);
    expect(await lines("/root/b", "owed")).toEqual([]);
    expect(await lines("/root/b", "owes")).toEqual([b, forA]);
    h.provider.gates.openAll();
    await asked.outcome();
    await h.tree.idle();
    for (const path of ["/root", "/root/a", "/root/b"])
      expect([await lines(path, "owed"), await lines(path, "owes")]).toEqual([[], []]);
  });

  test("WRK-9 a host-driven root is owed what it asked for", async () => {
    await using h = await harness({
      store,
      tree: { hostDriven: true },
      scripts: { "*": [gate("in"), say("ok")] },
    });
    const tool = hostTools(h.tree.control, h.tree.id).find(({ name }) => name === "spawn_agent")!;
    await tool.call({ task_name: "w", message: "go" });
    expect((await h.tree.root.owed()).map(({ work }: { work: WorkRecord }) => work.objective)).toEqual([
      "go",
    ]);
    h.provider.gates.openAll();
    await h.tree.idle();
    expect(await h.tree.root.owed()).toEqual([]);
  });
});
