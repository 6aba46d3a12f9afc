/** WRK-5 to WRK-8: the one result of a work, to whom it goes, what it says without text, and its schema. */
import { describe, expect, test } from "vitest";
import {
  call,
  end,
  fail,
  followUp,
  gate,
  list,
  say,
  spawn,
  stall,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { handoffOf } from "../../src/lineage/transfer.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import { hostTools } from "../../src/tools/host-tools.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";
import { occupyPermits, ONE_PERMIT } from "../support/permits.ts";

/** Exactly one transfer and one mail for each ended work that an agent asked for, none for a user's; one event for all. */
async function expectOneResultEach(h: Harness): Promise<void> {
  const works = await look(h).works();
  const transfers = await look(h).transfers("subagent_result");
  const ended = await look(h).events("work.ended");
  const { agents } = await h.tree.list({ limit: 100, closed: true });
  const mail = (await Promise.all(agents.map(({ path }) => look(h).mail(path)))).flat();
  for (const work of works) {
    const owed = work.replyTo === null ? 0 : 1;
    const results = mail.filter(({ resultOf, kind }) => resultOf === work.id && kind === "final_answer");
    expect([
      work.executorPath,
      work.state,
      results.length,
      transfers.filter(({ workId }) => workId === work.id).length,
      ended.filter(({ workId }) => workId === work.id).length,
    ]).toEqual([work.executorPath, "ended", owed, owed, 1]);
    if (owed === 0) continue;
    expect(work).toMatchObject({
      resultMailId: results[0]!.id,
      resultTransferId: expect.stringMatching(/^xfr_/) as string,
    });
    expect(results[0]!.recipient).toBe(work.replyTo!.threadId);
  }
}

describe.each(STORES)("results of works on %s", (store) => {
  test("WRK-5 one transfer and one mail to the requester; a user's work ends with event and receipt", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(spawn("a", "ask b"), spawn("b", "stand by")),
          say("started"),
          say("woken"),
          say("woken"),
          say("woken"),
        ],
        "/root/a": [followUp("/root/b", "for a"), say("waiting"), say("thanks")],
        "/root/b": [say("ready"), say("for a"), say("more")],
      },
    });
    const outcome = await h.ask("go");
    await h.tree.idle();
    await expectOneResultEach(h);
    expect(outcome.ending).toBe("completed");
    // Asked by a sibling, it answers the sibling, not the parent.
    const forA = (await look(h).works("/root/b")).find(({ objective }) => objective === "for a")!;
    expect(forA.replyTo).toMatchObject({ path: "/root/a" });
    const [transfer] = (await look(h).transfers("subagent_result")).filter(
      ({ workId }) => workId === forA.id,
    );
    expect(transfer).toMatchObject({
      status: "consumed",
      sourceThreadId: forA.executor,
      targetThreadId: forA.replyTo!.threadId,
      note: forA.outcome!.ending,
    });
    const handoff = await look(h).view((view) => view.handoff(handoffOf(transfer!)!));
    expect(handoff!.summaryText).toBe(forA.outcome!.text);
  });

  test.for(["crash_before", "crash_after"] as const)(
    "WRK-5 never none and never two, whatever write it dies at (%s)",
    async (fault) => {
      for (let at = 1; ; at += 1) {
        await using h = await harness({
          store,
          seed: at,
          scripts: {
            "/root": [spawn("w", "go"), say("started"), say("woken"), say("woken")],
            "/root/w": [list(), say("seven"), say("again")],
          },
        });
        const first = h.faulty.writes;
        h.onWrite = (write) => (write === first + at ? { kind: fault } : null);
        const asked = await h.tree.root.send("go").catch(() => null);
        const over = async (): Promise<boolean> => {
          const works = await look(h)
            .works()
            .catch(() => []);
          return (
            h.faulty.crashed ||
            (asked !== null && works.length > 0 && works.every(({ state }) => state === "ended"))
          );
        };
        await look(h).until("it is over, or dead", over);
        if (!h.faulty.crashed) {
          expect(at).toBeGreaterThan(8);
          return;
        }
        h.onWrite = () => null;
        await h.crash();
        await look(h).until("all is over", async () =>
          (await look(h).works()).every(({ state }) => state === "ended"),
        );
        await h.tree.idle();
        await expectOneResultEach(h);
      }
    },
  );

  test("WRK-5 what is asked with a host's token is that root's request: its result is mail to it", async () => {
    await using h = await harness({
      store,
      tree: { hostDriven: true },
      scripts: { "*": [say("for the host")] },
    });
    const tool = hostTools(h.tree.control, h.tree.id).find(({ name }) => name === "spawn_agent")!;
    await tool.call({ task_name: "w", message: "go" });
    await h.tree.idle();
    await expectOneResultEach(h);
    expect(await look(h).work("/root/w")).toMatchObject({
      requester: { path: "/root" },
      replyTo: { path: "/root" },
      parents: [],
      originRunId: null,
    });
    expect((await look(h).mail("/root")).map(({ trigger, content }) => [trigger, content.text])).toEqual([
      [false, "for the host"],
    ]);
    // What its user asks in nobody's name is not.
    const { work } = await h.tree.root.spawn("v", "go");
    await work.outcome();
    await expectOneResultEach(h);
    expect((await look(h).mail("/root")).length).toBe(1);
  });

  test("WRK-5 a run that serves no open work ends with transcript and event only", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/w": [spawn("c", "go", { detached: true }), say("done"), say("woken for nobody")],
        "/root/w/c": [gate("c"), say("late")],
      },
    });
    const { work } = await h.tree.root.spawn("w", "go");
    await work.outcome();
    h.provider.gates.open("c");
    await look(h).until("it was woken", async () => (await look(h).runs("/root/w")).length === 2);
    await h.tree.idle();
    const [, run] = await look(h).runs("/root/w");
    expect(run).toMatchObject({ status: "completed", serves: [], text: "woken for nobody" });
    expect((await look(h).works()).length).toBe(2);
    await expectOneResultEach(h);
    expect((await look(h).events("run.settled", "/root/w")).length).toBe(2);
    expect((await look(h).items("/root/w")).at(-1)).toMatchObject({ kind: "assistant", runId: run!.id });
    expect(await look(h).mail("/root")).toEqual([]);
  });

  test("WRK-5 `codex`: one final answer per settled run, to the path parent; none for an interrupted one", async () => {
    await using h = await harness({
      store,
      tree: { profile: "codex" },
      scripts: {
        "/root/a": [followUp("/root/b", "for a"), say("a done")],
        "/root/b": [gate("first"), list(), say("b done"), gate("second"), say("never")],
      },
    });
    const b = await h.tree.root.spawn("b", "go");
    await h.provider.gates.arrived("first");
    await h.tree.root.spawn("a", "go");
    await look(h).until("b was asked", async () => (await b.agent.summary()).unread === 1);
    h.provider.gates.open("first");
    await h.tree.idle();
    const answers = async () =>
      (await look(h).mail("/root")).map(({ author, trigger, content }) =>
        [author.kind === "agent" ? author.path : author.kind, trigger, content.text].join(),
      );
    // Two works, one run: one answer; and the requester /root/a gets none.
    expect(new Set(await answers())).toEqual(new Set(["/root/a,false,a done", "/root/b,false,b done"]));
    expect((await look(h).mail("/root/a")).filter(({ kind }) => kind === "final_answer")).toEqual([]);
    await b.agent.send("again");
    await h.provider.gates.arrived("second");
    await b.agent.interrupt();
    await h.tree.idle();
    expect((await answers()).length).toBe(2);
  });

  test("WRK-6 the result for a closed agent goes to its nearest living ancestor, marked, and wakes nobody", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/top": [spawn("mid", "go", { detached: true, wake: "never" }), say("ok")],
        "/root/top/mid": [spawn("asker", "go", { detached: true, wake: "never" }), say("ok")],
        "/root/top/mid/asker": [followUp("/root/b", "for the asker"), gate("never"), say("no")],
        "/root/b": [say("ready"), gate("b"), say("too late")],
      },
    });
    await (await h.tree.root.spawn("b", "stand by")).work.outcome();
    const top = await h.tree.root.spawn("top", "go");
    await top.work.outcome();
    await h.provider.gates.arrived("b");
    await h.provider.gates.arrived("never");
    await (await h.tree.agent("/root/top/mid")).close();
    const runs = (await look(h).runs("/root/top")).length;
    h.provider.gates.open("b");
    await h.tree.idle();
    const [, work] = await look(h).works("/root/b");
    const result = (await look(h).mail("/root/top")).find(({ resultOf }) => resultOf === work!.id)!;
    expect(result).toMatchObject({
      redirectedFrom: "/root/top/mid/asker",
      trigger: false,
      state: "accepted",
      content: { text: "too late" },
    });
    expect((await look(h).events("mail.redirected"))[0]!.data).toEqual({
      mailId: result.id,
      to: "/root/top",
    });
    expect((await look(h).runs("/root/top")).length).toBe(runs);
    await h.tree.root.tell("and the root got none");
    expect((await look(h).mail("/root")).every(({ resultOf }) => resultOf !== work!.id)).toBe(true);
    h.provider.append("/root/top", say("read"));
    await (await top.agent.send("read")).outcome();
    expect(look(h).inputs("/root/top", -1).join()).toContain("Redirected from: /root/top/mid/asker");
  });

  test("WRK-6 the result for a closed agent passes by an ancestor that closes in the same commit", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/a": [spawn("y", "stand by", { detached: true, wake: "never" }), say("ok")],
        "/root/a/x": [followUp("/root/a/y", "for x"), gate("never"), say("no")],
        "/root/a/y": [say("ready"), together(say("half"), gate("y"))],
      },
    });
    const a = await h.tree.root.spawn("a", "go");
    await a.work.outcome();
    await h.tree.idle();
    await a.agent.spawn("x", "go");
    await h.provider.gates.arrived("y");
    await h.provider.gates.arrived("never");
    await (await h.tree.agent("/root/a/x")).close();
    await a.agent.close();
    const [, work] = await look(h).works("/root/a/y");
    expect(work!.outcome).toMatchObject({ ending: "cancelled" });
    const results = (await look(h).mail("/root")).filter(({ resultOf }) => resultOf === work!.id);
    expect(results).toMatchObject([{ redirectedFrom: "/root/a/x", state: "accepted" }]);
  });

  test("WRK-6 with no living ancestor it stays in the tree's inbox, which outlives the root", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/a": [followUp("/root/b", "for a"), gate("never"), say("no")],
        "/root/b": [say("ready"), together(say("half"), gate("b"))],
        "*": [say("ok")],
      },
    });
    await (await h.tree.root.spawn("b", "stand by")).work.outcome();
    const a = await h.tree.root.spawn("a", "go");
    await h.provider.gates.arrived("b");
    await h.provider.gates.arrived("never");
    await a.agent.close();
    expect(await h.tree.inbox()).toEqual([]);
    await h.tree.root.close();
    const [, work] = await look(h).works("/root/b");
    expect(work!.outcome).toMatchObject({ ending: "cancelled", text: "half" });
    for (const restart of [false, true]) {
      if (restart) await h.crash();
      const inbox = await h.tree.inbox();
      expect(inbox.map(({ resultOf, redirectedFrom, state }) => [resultOf, redirectedFrom, state])).toEqual([
        [work!.id, "/root/a", "accepted"],
      ]);
      expect((await look(h).view((view) => view.tree(h.tree.id)))!.inbox).toBe(1);
      await expect(h.tree.root.tell("hello")).rejects.toMatchObject({ code: "AGENT_CLOSED" });
    }
  });

  test("WRK-6 what was passed on to the root stays in the inbox when the root closes before it has read it", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/a": [followUp("/root/b", "for a"), gate("never"), say("no")],
        "/root/b": [say("ready"), gate("b"), say("seven")],
      },
    });
    await (await h.tree.root.spawn("b", "stand by")).work.outcome();
    const a = await h.tree.root.spawn("a", "go");
    await h.provider.gates.arrived("b");
    await a.agent.close();
    h.provider.gates.open("b");
    await h.tree.idle();
    const other = await h.tree.root.tell("plain mail");
    await h.tree.root.close();
    expect((await h.tree.inbox()).map(({ content }) => content.text)).toEqual(["seven"]);
    expect(await h.tree.receipt(other.id)).toMatchObject({ state: "dead_lettered", reason: "closed" });
  });

  const NOTHING: readonly [
    string,
    Parameters<typeof harness>[0],
    ((h: Harness) => Promise<unknown>) | null,
  ][] = [
    ["empty_result", { scripts: { "/root/w": [list(), end()] } }, null],
    [
      "provider_error",
      { scripts: { "/root/w": [list(), fail({ code: "PROVIDER_REFUSED", message: "no", status: 400 })] } },
      null,
    ],
    [
      "interrupted",
      { scripts: { "/root/w": [list(), gate("in"), stall()] } },
      async (h) => (await h.tree.agent("/root/w")).interrupt(),
    ],
    [
      "cancelled",
      { scripts: { "/root/w": [list(), gate("in"), stall()] } },
      async (h) => (await h.tree.agent("/root/w")).close(),
    ],
    ["runtime_lost", { scripts: { "/root/w": [list(), gate("in"), stall()] } }, (h) => h.crash()],
    [
      "turn_limit",
      { scripts: { "/root/w": [list(), list(), end()] }, tree: { limits: { stepsPerRun: 2 } } },
      null,
    ],
  ];
  test.for(NOTHING)(
    "WRK-7 %s without text says so, with the last steps, and never reads as clean",
    async ([ending, options, act]) => {
      await using h = await harness({
        store,
        ...options,
        scripts: {
          ...options!.scripts,
          "/root": [spawn("w", "go", { wake: "never", detached: true })].concat(say("started"), say("read")),
        },
      });
      await h.ask("go");
      if (act !== null) {
        await h.provider.gates.arrived("in");
        await act(h);
      }
      await look(h).until("it has ended", async () => (await look(h).work("/root/w")).state === "ended");
      await h.tree.idle();
      const work = await look(h).work("/root/w");
      expect(work.outcome).toMatchObject({
        ending,
        text: "",
        salvage: {
          lastSteps: expect.arrayContaining([
            expect.stringMatching(/^step \d: called list_agents/),
            expect.stringMatching(/^step \d: list_agents returned/),
          ]) as string[],
        },
      });
      const [result] = (await look(h).mail("/root")).filter(({ kind }) => kind === "final_answer");
      expect(result!.content.text).toContain(`No text came back: the work ended as \`${ending}\``);
      expect(result!.content.text).toMatch(/Do not take this for success[^]*called list_agents/);
      h.provider.gates.openAll();
    },
  );

  test("WRK-7 a work of which no run began says that too", async () => {
    await using h = await harness({
      store,
      runtime: ONE_PERMIT,
      scripts: { "/root": [spawn("w", "go", { wake: "never", detached: true }), say("started")] },
    });
    await occupyPermits(h);
    await h.ask("go");
    await (await h.tree.agent("/root/w")).interrupt();
    const [result] = (await look(h).mail("/root")).filter(({ kind }) => kind === "final_answer");
    expect(result!.content.text).toMatch(
      /No text came back: the work ended as `interrupted`[^]*Nothing is known of what was done/,
    );
  });

  const SCHEMA = {
    type: "object",
    properties: { n: { type: "number" } },
    required: ["n"],
    additionalProperties: false,
  };
  const schemas: readonly [string, readonly string[], number | null, JsonObject][] = [
    ["met at once", ['{"n": 1}'], null, { ending: "completed", value: { n: 1 } }],
    ["met in a fence", ['```json\n{"n": 2}\n```'], null, { ending: "completed", value: { n: 2 } }],
    ["met by the one repair", ["prose", '{"n": 3}'], null, { ending: "completed", value: { n: 3 } }],
    ["not met", ["prose", '{"n": "x"}'], null, { ending: "schema_failed", value: null, text: '{"n": "x"}' }],
    ["not met, no repair", ["prose"], 0, { ending: "schema_failed", value: null, text: "prose" }],
    ["met by the second repair", ["prose", "prose", '{"n": 4}'], 2, { ending: "completed", value: { n: 4 } }],
  ];
  test.for(schemas)("WRK-8 a declared schema: %s", async ([, answers, repairs, outcome]) => {
    await using h = await harness({
      store,
      tree: { limits: repairs === null ? {} : { schemaRepairs: repairs } },
      scripts: {
        "/root": [
          spawn("w", "go", { output_schema: SCHEMA }),
          wait({ targets: ["w"], timeout_ms: 60_000 }),
          say("done"),
        ],
        "/root/w": answers.map((answer) => say(answer)),
      },
    });
    await h.ask("go");
    const work = await look(h).work("/root/w");
    expect(work.outcome).toMatchObject(outcome);
    expect(work.schemaRepairs).toBe(answers.length - 1);
    expect(look(h).inputs("/root/w", 0).join()).toContain('"additionalProperties":false');
    if (answers.length > 1) {
      expect(look(h).inputs("/root/w", 1).join()).toMatch(/schema_repair\][^]*not JSON[^]*with JSON alone/);
    }
    const [waited] = await look(h).outputs("/root", "wait_agent");
    expect(waited!.output["results"]).toMatchObject([{ state: outcome["ending"] }]);
    expect(h.provider.unconsumedSteps()).toEqual([]);
  });

  test("WRK-8 it is checked with the end of the work, not while children are open; a report must meet it", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("w", "go", { output_schema: SCHEMA }), say("started"), say("woken")],
        "/root/w": [
          spawn("c", "go"),
          ({ messages }) =>
            call("report_result", {
              work_id: /wrk_\w{21}/.exec(JSON.stringify(messages))![0],
              result: "prose",
            }),
          say("only started"),
          say('{"n": 7}'),
        ],
        "/root/w/c": [gate("c"), say("ok")],
      },
    });
    const asked = await h.tree.root.send("go");
    await look(h).until(
      "it awaits",
      async () => (await look(h).works("/root/w"))[0]?.state === "awaiting_children",
    );
    h.provider.gates.open("c");
    await asked.outcome();
    const [report] = await look(h).outputs("/root/w", "report_result");
    expect(report).toMatchObject({
      isError: true,
      output: { code: "INVALID_ARGUMENT", details: { argument: "result" } },
    });
    expect((await look(h).work("/root/w")).outcome).toMatchObject({ ending: "completed", value: { n: 7 } });
    expect((await look(h).work("/root/w")).schemaRepairs).toBe(0);
  });

  test("WRK-8 a schema that cannot be checked is refused to the asker; `codex` has none", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [spawn("w", "go", { output_schema: { type: "nonsense" } }), say("done")] },
    });
    await h.ask("go");
    const [refused] = await look(h).outputs("/root", "spawn_agent");
    expect(refused).toMatchObject({
      isError: true,
      output: { code: "INVALID_ARGUMENT", details: { argument: "output_schema" } },
    });
    await using c = await harness({
      store,
      tree: { profile: "codex" },
      scripts: { "/root/w": [say("prose")] },
    });
    const { work } = await c.tree.root.spawn("w", "go", { outputSchema: SCHEMA });
    await expect(work.outcome()).resolves.toMatchObject({ ending: "completed", text: "prose" });
  });
});
