/**
 * Each tool of an agent × each kind of bad input: a refusal as the call's result, which names what is wrong and what to do;
 * nothing else is changed, and the run goes on.
 */
import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../../src/protocol/json.ts";
import { call, gate, say, together } from "../../src/providers/scripted/script.ts";
import { everything } from "../support/everything.ts";
import { harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const LONE = "a\ud800b";
/** Over what a message may have in these trees; what a model may send is bounded by the same. */
const MOST_BYTES = 100_000;
const HUGE = "x".repeat(10 * MOST_BYTES);
const NOBODY = `thread_${"a".repeat(21)}`;

type Case = readonly [kind: string, change: JsonObject, code: string, words: RegExp];

interface Bad {
  /** Would be taken as it is. `$name` stands for an id that only the store knows. */
  readonly input: JsonObject;
  readonly cases: readonly Case[];
}

const wrong = (kind: string, change: JsonObject, words: RegExp): Case => [
  kind,
  change,
  "INVALID_ARGUMENT",
  words,
];
const nobody = (change: JsonObject, words = /list the agents of this tree/): Case => [
  "unknown target",
  change,
  "AGENT_NOT_FOUND",
  words,
];
const foreign = (field: string): Case => [
  "target of another tree",
  { [field]: "$foreign" },
  "AGENT_NOT_FOUND",
  /is in this tree; list the agents/,
];
const outside = (field: string): Case => [
  "target in an unknown tree",
  { [field]: NOBODY },
  "AGENT_NOT_FOUND",
  /is in this tree; list the agents/,
];
const ofGrammar = (field: string): Case =>
  wrong("name out of grammar", { [field]: "No Such!" }, new RegExp(`${field}.*lowercase`));
const lone = (field: string): Case =>
  wrong("text that is not well formed", { [field]: LONE }, new RegExp(`${field} is not well-formed`));
const huge = (field: string): Case =>
  wrong(
    "too large",
    { [field]: HUGE },
    /bytes and at most \d+ are taken; send less, or a reference to a file/,
  );
const unknown = wrong("unknown field", { extra: 1 }, /unknown field `extra`. Accepted fields: /);
const noNumber = (field: string): Case =>
  wrong("wrong type", { [field]: 5 }, new RegExp(`${field}: .*received number`));
const blank = (field: string): Case => wrong("blank text", { [field]: " \n" }, new RegExp(`${field}.*blank`));

const asking: readonly Case[] = [
  unknown,
  noNumber("message"),
  blank("message"),
  huge("message"),
  lone("message"),
  lone("idempotency_key"),
  wrong("blank key", { idempotency_key: "" }, /idempotency_key: /),
];
const targeted: readonly Case[] = [
  nobody({ target: "/root/nobody" }),
  foreign("target"),
  outside("target"),
  ofGrammar("target"),
  noNumber("target"),
  lone("target"),
  wrong("blank text", { target: " \n" }, /target.*lowercase/),
];
const requested: readonly Case[] = [
  nobody({ reply_to: "nobody" }),
  foreign("reply_to"),
  wrong("no such word", { wake: "soon" }, /wake: .*"always"/),
  wrong("wrong type", { output_schema: "text" }, /output_schema: /),
  wrong("no schema", { output_schema: { type: "nothing" } }, /output_schema/),
  wrong("a name too long", { model: "m".repeat(257) }, /model has 257 bytes and at most 256/),
];

const TOOLS: Readonly<Record<string, Bad>> = {
  spawn_agent: {
    input: { task_name: "other", message: "look" },
    cases: [
      ...asking,
      ...requested,
      ofGrammar("task_name"),
      noNumber("task_name"),
      wrong("blank text", { task_name: " " }, /task_name/),
      wrong("a name too long", { task_name: "n".repeat(129) }, /task_name.*128/),
      wrong("number out of range", { fork_turns: "0" }, /fork_turns.*`none`, `all`/),
      wrong("number out of range", { budgets: { tokens: -1 } }, /budgets\.tokens: .*>=0/),
      wrong(
        "unknown field",
        { budgets: { token: 1 } },
        /budgets: unknown field `token`. Accepted fields of budgets/,
      ),
      wrong("no such effect", { effects: ["all"] }, /effects\.0: /),
      ["unknown provider", { provider: "nobody" }, "INVALID_ARGUMENT", /provider/],
      ["unknown role", { agent_type: "nobody" }, "INVALID_ARGUMENT", /agent_type|role/],
    ],
  },
  send_message: { input: { target: "worker", message: "look" }, cases: [...asking, ...targeted] },
  followup_task: {
    input: { target: "worker", message: "look" },
    cases: [...asking, ...targeted, ...requested],
  },
  wait_agent: {
    input: { targets: ["worker"] },
    cases: [
      unknown,
      wrong("wrong type", { targets: "worker" }, /targets: .*expected array/),
      wrong("number out of range", { timeout_ms: 1e12 }, /timeout_ms.*above the maximum of \d+; wait again/),
      wrong("wrong type", { timeout_ms: 1.5 }, /timeout_ms: .*int/),
      wrong("number out of range", { mode: 0 }, /mode: /),
      wrong("number out of range", { mode: 3 }, /mode 3 is out of range: 1 works .*`any`, `all`/),
      nobody({ targets: ["nobody"] }),
      nobody({ targets: ["$foreign"] }, /is in this tree; list the agents/),
      wrong("name out of grammar", { targets: ["No Such!"] }, /targets.*lowercase/),
      wrong("unknown work", { works: [`wrk_${"a".repeat(21)}`] }, /works|work/),
      wrong("a work among agents", { targets: [`wrk_${"a".repeat(21)}`] }, /is a work; give it in `works`/),
      wrong("work of another tree", { works: ["$foreignWork"] }, /works|work/),
      wrong("too large", { targets: [HUGE] }, /at most \d+ are taken/),
      wrong("text that is not well formed", { targets: [LONE] }, /targets is not well-formed/),
      lone("cursor"),
    ],
  },
  interrupt_agent: {
    input: { target: "worker" },
    cases: [
      unknown,
      ...targeted,
      huge("target"),
      wrong("no such word", { cascade: "all" }, /cascade: /),
      wrong("no id", { run_id: "latest" }, /run_id is no id of a run; use one/),
    ],
  },
  list_agents: {
    input: {},
    cases: [
      unknown,
      noNumber("path_prefix"),
      ofGrammar("path_prefix"),
      lone("path_prefix"),
      huge("path_prefix"),
      wrong("number out of range", { limit: 0 }, /limit: .*>=1/),
      wrong("number out of range", { limit: 101 }, /limit: .*<=100/),
      wrong("no cursor", { after: "nobody" }, /is no place in this list/),
    ],
  },
  report_result: {
    input: { result: "done", status: "completed" },
    cases: [
      unknown,
      wrong("wrong type", { result: 5 }, /result: must be text, a JSON object or a list/),
      wrong("unknown work", { work_id: `wrk_${"a".repeat(21)}` }, /work_id|work/),
      wrong("work of another tree", { work_id: "$foreignWork" }, /work_id|work/),
      wrong("no such word", { status: "done" }, /status: .*"completed"/),
      huge("result"),
      lone("result"),
      lone("work_id"),
    ],
  },
  read_artifact: {
    input: { id: `art_${"a".repeat(21)}` },
    cases: [
      unknown,
      noNumber("id"),
      wrong("no id", { id: "latest" }, /id is no reference of an artifact; use one/),
      wrong("unknown", {}, /artifact/),
      wrong("number out of range", { offset: -1 }, /offset: .*>=0/),
      wrong("number out of range", { max_bytes: 1 }, /max_bytes: .*>=16/),
      lone("id"),
      huge("id"),
    ],
  },
  pin_context: {
    input: { section: "decisions", text: "Use UTC." },
    cases: [
      unknown,
      noNumber("text"),
      blank("text"),
      wrong("no such word", { section: "secrets" }, /section: .*"decisions"/),
      wrong("too long", { text: "x".repeat(5_000) }, /4,?096/),
      huge("text"),
      lone("text"),
    ],
  },
  create_thread: {
    input: { threads: [{ message: "look" }] },
    cases: [
      unknown,
      wrong("none", { threads: [] }, /threads: .*>=1/),
      wrong("too many", { threads: Array<Json>(21).fill({ message: "x" }) }, /threads: .*<=20/),
      wrong("wrong type", { threads: [{ message: 5 }] }, /threads\.0\.message: /),
      wrong("unknown field", { threads: [{ message: "x", extra: 1 }] }, /unknown field `extra`/),
      wrong("blank text", { threads: [{ message: " " }] }, /blank/),
      wrong("blank text", { threads: [{ message: "x", title: " " }] }, /blank/),
      wrong("too large", { threads: [{ message: HUGE }] }, /at most \d+ are taken/),
      wrong("text that is not well formed", { threads: [{ message: LONE }] }, /threads is not well-formed/),
    ],
  },
  send_message_to_thread: {
    input: { thread_id: "$foreign", message: "look" },
    cases: [
      ...asking,
      ["unknown target", { thread_id: NOBODY }, "THREAD_NOT_FOUND", /thread/],
      ["an agent below a root", { thread_id: "$foreignChild" }, "INVALID_ARGUMENT", /root/],
      wrong("an agent of the own tree", { thread_id: "$worker" }, /tree/),
      ["name out of grammar", { thread_id: "No Such!" }, "THREAD_NOT_FOUND", /thread/],
      lone("thread_id"),
    ],
  },
  read_thread: {
    input: {},
    cases: [
      unknown,
      ["unknown target", { thread_id: NOBODY }, "THREAD_NOT_FOUND", /thread/],
      wrong("number out of range", { limit: 0 }, /limit: .*>=1/),
      wrong("no place", { before: "nowhere" }, /before/),
      lone("thread_id"),
      huge("thread_id"),
    ],
  },
  wait_threads: {
    input: { thread_ids: ["$foreign"], timeout_ms: 0 },
    cases: [
      unknown,
      wrong("none", { thread_ids: [] }, /thread_ids: .*>=1/),
      ["unknown target", { thread_ids: [NOBODY] }, "THREAD_NOT_FOUND", /thread/],
      wrong("number out of range", { timeout_ms: -1 }, /timeout_ms: .*>=0/),
      wrong("number out of range", { timeout_ms: 1e12 }, /timeout_ms: /),
      wrong("text that is not well formed", { thread_ids: [LONE] }, /thread_ids is not well-formed/),
      wrong("too large", { thread_ids: [HUGE] }, /at most \d+ are taken/),
    ],
  },
  fork_thread: {
    input: {},
    cases: [
      unknown,
      ["unknown target", { thread_id: NOBODY }, "THREAD_NOT_FOUND", /thread/],
      wrong("no id", { thread_id: "$foreign", run_id: "latest" }, /run_id/),
      wrong("no such word", { strategy: "guess" }, /strategy: .*"auto"/),
      wrong("blank text", { thread_id: "$foreign", title: " " }, /blank/),
      wrong("blank text", { thread_id: "$foreign", message: " " }, /blank/),
      lone("title"),
      huge("message"),
    ],
  },
  merge_back: {
    input: { fork_thread_id: "$foreign" },
    cases: [
      unknown,
      ["unknown target", { fork_thread_id: NOBODY }, "THREAD_NOT_FOUND", /thread/],
      ["no fork", {}, "MERGE_BACK_NOT_A_FORK", /fork/],
      noNumber("fork_thread_id"),
      lone("fork_thread_id"),
      huge("fork_thread_id"),
    ],
  },
};

describe.each(STORES)("bad input on %s", (store) => {
  test.each(Object.entries(TOOLS))(
    "BUD-3 SPN-1 MBX-3 %s refuses it, and changes nothing",
    async (tool, bad) => {
      const ids: Record<string, string> = {};
      const filled = (input: JsonObject): JsonObject =>
        JSON.parse(
          JSON.stringify(input).replaceAll(/\$(\w+)/g, (_, name: string) => ids[name]!),
        ) as JsonObject;
      await using h = await harness({
        store,
        runtime: {
          threadTools: { allow: "all", approval: "none" },
          limits: { messageBytes: MOST_BYTES },
        },
        scripts: {
          "/root": [
            gate("before"),
            together(...bad.cases.map(([, change]) => call(tool, () => filled({ ...bad.input, ...change })))),
            together(gate("after"), say("done")),
          ],
          "/root/worker": [say("ready")],
          "/root/child": [say("ready")],
        },
      });
      const { agent, work } = await h.tree.root.spawn("worker", "look");
      await work.outcome();
      const other = await h.runtime.openTree();
      const theirs = await other.root.spawn("child", "look");
      await theirs.work.outcome();
      Object.assign(ids, {
        worker: agent.threadId,
        foreign: other.id,
        foreignChild: theirs.agent.threadId,
        foreignWork: theirs.work.id,
      });
      const asked = await h.tree.root.send("go");
      await h.provider.gates.arrived("before");
      const before = await everythingBut(h.tree.id);
      h.provider.gates.open("before");
      await h.provider.gates.arrived("after");
      const outputs = await look(h).outputs("/root", tool);
      const told = outputs.map(({ output, isError }) => [isError, output["code"], output["error"]]);
      expect(told.map((one, at) => [bad.cases[at]![0], ...one])).toEqual(
        bad.cases.map(([kind, , code, words]) => [kind, true, code, expect.stringMatching(words)]),
      );
      // What it is told is bounded, whatever it has sent.
      expect(told.filter(([, , message]) => (message as string).length > 2_000)).toEqual([]);
      expect(await everythingBut(h.tree.id)).toEqual(before);
      h.provider.gates.open("after");
      expect(await asked.outcome()).toMatchObject({ ending: "completed", text: "done" });

      /** Without what the run itself says and is told, its events, and what it uses: that is charged to its works. */
      async function everythingBut(threadId: string): Promise<unknown> {
        return (await everything(h.store)).map(
          ({ agents, works, mailOf, transfers, tree, handoffOf, of }) => ({
            tree: { ...tree, usage: null },
            others: agents.filter((one) => one.threadId !== threadId),
            thread: agents.find((one) => one.threadId === threadId)?.thread,
            works: works.map((work) => ({ ...work, usage: null })),
            mailOf,
            transfers,
            handoffOf,
            drafts: of.map(({ draft }) => draft),
          }),
        );
      }
    },
  );
});
