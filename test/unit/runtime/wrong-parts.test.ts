/** What a program gives by mistake is refused where it is given, with words that say what to give instead. */
import { expect, test } from "vitest";
import { z } from "zod";
import {
  answerAnthropicToolUse,
  answerMcpCall,
  answerOpenAICall,
  commandTree,
  CoppiceError,
  createMemoryStore,
  createModelProvider,
  createRuntime,
  defineTool,
  loadModel,
  loadRoles,
  openSqliteStore,
  readRoleFolder,
  scripted,
  stderrLogger,
  toAiSdkTools,
  toAnthropicTools,
  toMcpTools,
  toOpenAITools,
} from "../../../src/index.ts";
import { gate, say, together } from "../../../src/providers/scripted/script.ts";
import { harness } from "../../support/harness.ts";

/** The refusal of a call whose types are not looked at, however it is answered. */
async function refusalOf(call: () => unknown): Promise<CoppiceError> {
  try {
    await call();
  } catch (error) {
    if (CoppiceError.is(error)) return error;
    throw error;
  }
  throw new Error("it was taken");
}

/** A method of anything, to be called as a program without types would. */
function loose(of: object, name: string): (...given: unknown[]) => unknown {
  return (...given) => (of as Record<string, (...all: unknown[]) => unknown>)[name]!(...given);
}

test.for([
  ["nothing", null, /expected object, received null.*Accepted fields: store, providers, tools/],
  [
    "an option that there is not",
    { provider: {} },
    /unknown field `provider`. Accepted fields: store, providers/,
  ],
  ["a store that nobody awaited", { store: Promise.resolve(createMemoryStore()) }, /await openSqliteStore/],
  ["a path in place of a store", { store: "./agents.db" }, /store: is no store/],
  ["a list of providers", { providers: [] }, /providers: is no record/],
  ["a model in place of an adapter", { providers: { openai: {} } }, /providers\.openai: is no adapter/],
  ["a tool that is none", { tools: [{ name: "read_note" }] }, /tools\.0: is no tool/],
  ["no tool at all", { tools: [null] }, /tools\.0: is no tool/],
  [
    "a limit that there is not",
    { limits: { depths: 1 } },
    /limits: unknown field `depths`. Accepted fields of limits: depth/,
  ],
  ["a price that is none", { prices: { "openai/gpt-5": { input: "1" } } }, /prices\.openai\/gpt-5\.input/],
  ["roles by name", { roles: ["worker"] }, /give what `loadRoles` returns/],
  ["a logger that is none", { logger: "debug" }, /logger: is no logger/],
  ["an inspector that is none", { inspect: true }, /inspect: is no inspector/],
] as const)("createRuntime refuses %s", async ([, options, words]) => {
  const error = await refusalOf(() => loose({ createRuntime }, "createRuntime")(options));
  expect(error.code).toBe("INVALID_ARGUMENT");
  expect(error.message).toMatch(words);
});

test.for([
  ["no schema", { name: "read_note", run: (): null => null }, /input: is no schema of zod 4/],
  [
    "a JSON schema",
    { name: "read_note", input: { type: "object" }, run: (): null => null },
    /z\.strictObject/,
  ],
  [
    "a schema without JSON",
    { name: "read_note", input: z.strictObject({ at: z.date() }), run: (): null => null },
    /input of the tool read_note has no JSON Schema: .*Date/,
  ],
  ["a text for input", { name: "read_note", input: z.string(), run: (): null => null }, /is no object/],
  [
    "a list for input",
    { name: "read_note", input: z.array(z.string()), run: (): null => null },
    /is no object/,
  ],
  ["nothing to run", { name: "read_note", input: z.strictObject({}) }, /run: is no function/],
  [
    "a name of the runtime's",
    { name: "wait_agent", input: z.object({}), run: (): null => null },
    /another name/,
  ],
  [
    "an unknown effect",
    { name: "a", input: z.object({}), run: (): null => null, effects: ["all"] },
    /effects\.0/,
  ],
  ["nothing", undefined, /Accepted fields: name, description, input, effects, run/],
] as const)("defineTool refuses %s", async ([, definition, words]) => {
  const error = await refusalOf(() => loose({ defineTool }, "defineTool")(definition));
  expect(error).toMatchObject({ code: "INVALID_ARGUMENT", message: expect.stringMatching(words) });
});

const tool = { call: (): null => null };

test.for([
  [{ scripted }, [], /scripts: .*expected record/],
  [{ scripted }, [{ "/root": say("a") }], /scripts\.\/root: is no script/],
  [{ scripted }, [{ "/root": ["a"] }], /is no script/],
  [
    { scripted },
    [{}, { gate: true }],
    /unknown field `gate`. Accepted fields of options: clock, gates, models/,
  ],
  [{ createModelProvider }, [], /expected object, received undefined.*Accepted fields: models, defaultModel/],
  [{ createModelProvider }, [{ models: "gpt-5" }], /models: is neither models by name/],
  [{ createModelProvider }, [{ models: {}, stall: 1 }], /unknown field `stall`/],
  [
    { createModelProvider },
    [{ models: { a: { model: {}, context: 1 } } }],
    /models\.a are wrong: unknown field `context`/,
  ],
  [{ loadModel }, [], /spec: .*environment: is no environment/],
  [{ openSqliteStore }, [], /received undefined. Accepted fields: path, synchronous/],
  [{ openSqliteStore }, ["./x.db"], /expected object, received string. Accepted fields: path/],
  [{ openSqliteStore }, [{ file: "./x.db" }], /path: .*unknown field `file`. Accepted fields: path/],
  [{ createMemoryStore }, [{ freeze: true }], /unknown field `freeze`. Accepted fields: clock, deepFreeze/],
  [{ loadRoles }, ["./roles"], /files: .*expected array/],
  [{ loadRoles }, [undefined], /files: .*expected array/],
  [{ loadRoles }, [null], /files: .*expected array/],
  [{ readRoleFolder }, [], /folder: /],
  [{ stderrLogger }, ["loud"], /level: /],
  [{ toAiSdkTools }, [undefined], /expected array/],
  [{ toOpenAITools }, [[{}]], /0: is no tool/],
  [{ toAnthropicTools }, ["spawn_agent"], /expected array/],
  [{ toMcpTools }, [[null]], /0: is no tool/],
  [{ answerOpenAICall }, [[tool], { name: "a" }], /call\.call_id: .*call\.arguments: /],
  [{ answerAnthropicToolUse }, [[tool]], /use: /],
  [{ answerMcpCall }, [[tool], { name: "a" }, { signal: 5 }], /options\.signal: is no AbortSignal/],
  [{ commandTree }, [null, "a", "stop"], /store: is no store.*treeId: .*verb: .*args: /],
] as const)("%o refuses %o", async ([of, given, words]) => {
  const [name] = Object.keys(of);
  const error = await refusalOf(() => loose(of, name!)(...given));
  expect(error).toMatchObject({ code: "INVALID_ARGUMENT", message: expect.stringMatching(words) });
  expect(error.message).toContain(`the arguments of ${name}`);
});

const NO_SIGNAL = [
  [[{ signal: 5 }], /signal: is no AbortSignal/],
  [[{ timeout: 5 }], /unknown field `timeout`. Accepted fields: signal/],
] as const;

/** Of each method that takes anything: what is wrong, and a word of the refusal. */
const WRONG: Readonly<
  Record<string, Readonly<Record<string, readonly (readonly [readonly unknown[], RegExp])[]>>>
> = {
  Runtime: {
    openTree: [
      [[{ titel: "a" }], /unknown field `titel`. Accepted fields: id, title/],
      [[{ id: "a" }], /root's thread id/],
      [["thread_1"], /expected object/],
    ],
    trees: [
      [[{ before: "a" }], /unknown field `before`. Accepted fields: after, limit/],
      [[{ limit: 0 }], /limit: /],
    ],
    openPending: [
      [[{ limit: 0 }], /limit: /],
      [[5], /expected object/],
    ],
    actAs: [
      [[5], /token: /],
      [["tok_1", { hosts: "a" }], /Accepted fields of options: host/],
    ],
    close: NO_SIGNAL,
  },
  TreeHandle: {
    agent: [[[5], /expected string/]],
    counts: NO_SIGNAL,
    snapshot: NO_SIGNAL,
    records: NO_SIGNAL,
    close: NO_SIGNAL,
    work: [[["run_1"], /wrk_/]],
    list: [
      [[{ under: "worker" }], /under: is no path of an agent/],
      [[{ limits: 1 }], /Accepted fields: under, closed, after, limit/],
    ],
    works: [[[{ limit: 0 }], /limit: /]],
    receipt: [[["wrk_1"], /msg_/]],
    inbox: [[[{ after: null }], /after: /]],
    events: [
      [[{ since: 1 }], /unknown field `since`. Accepted fields: after, signal, progress/],
      [[{ signal: 5 }], /signal: is no AbortSignal/],
    ],
    log: [[["1"], /after: /]],
    idle: [...NO_SIGNAL, [[new AbortController().signal], /Accepted fields: signal/]],
    requests: [[["wrk_1"], /thread_/]],
    answer: [
      [["wrk_1", 5], /request: .*answer: /],
      [["req_1", "a", { keys: "a" }], /Accepted fields of options: commandId/],
    ],
  },
  Agent: {
    send: [
      [[5], /message: /],
      [["a", { onBusy: "wait" }], /options\.onBusy: /],
      [["a", { replyTo: "/root" }], /unknown field `replyTo`. Accepted fields of options: onBusy, commandId/],
      [["a", null], /options: .*received null. Accepted fields of options: onBusy/],
    ],
    tell: [[["a", { onBusy: "queue" }], /unknown field `onBusy`/]],
    spawn: [
      [["a", "b", { fork: "all" }], /unknown field `fork`. Accepted fields of options: provider, model/],
      [["a", "b", { effects: ["all"] }], /options\.effects\.0/],
      [["a", "b", { budgets: { token: 1 } }], /Accepted fields of options\.budgets: tokens/],
      [["a"], /message: /],
    ],
    tools: [[[{ short: true }], /Accepted fields: shortTransport/]],
    interrupt: [
      [[{ cascade: true }], /cascade: /],
      [[{ run: "run_1" }], /unknown field `run`. Accepted fields: runId/],
    ],
    close: [[[{ force: true }], /Accepted fields: politely, commandId/]],
    usage: [[[{ inputTokens: -1, outputTokens: 1 }], /inputTokens: /]],
    transcript: [[[-1], /from: /]],
    mail: [[[{ limit: "all" }], /limit: /]],
    runs: [[[{ before: 1 }], /Accepted fields: after, limit/]],
    ...Object.fromEntries(
      ["token", "injectMail", "summary", "status", "record", "owed", "owes", "why"].map((name) => [
        name,
        NO_SIGNAL,
      ]),
    ),
    raiseBudget: [
      [["time", 5], /budget: /],
      [["tokens", -5], /limit: /],
      [["tokens", 5, "key"], /options: /],
    ],
  },
  Work: {
    record: NO_SIGNAL,
    outcome: [
      [[{ signal: 5 }], /signal: is no AbortSignal/],
      [[{ timeout: 5 }], /Accepted fields: signal/],
    ],
  },
  Connection: {
    tools: [[[{ short: true }], /Accepted fields: shortTransport/]],
    usage: [[[], /Accepted fields of used: inputTokens/]],
  },
  HostTool: { call: [[[{}, { abortSignal: 5 }], /unknown field `abortSignal`. Accepted fields: signal/]] },
};

test("every method that takes something refuses what is wrong or unknown, and nothing happens", async () => {
  await using h = await harness({ scripts: { "*": [together(gate("open"), say("done"))] } });
  const child = await h.tree.root.spawn("child", "look");
  await h.provider.gates.arrived("open");
  const hosted = await h.runtime.openTree({ hostDriven: true });
  using connection = await h.runtime.actAs(await hosted.root.token());
  const handles: Record<string, object> = {
    Runtime: h.runtime,
    TreeHandle: h.tree,
    Agent: child.agent,
    Work: child.work,
    Connection: connection,
    HostTool: connection.tools()[0]!,
  };
  const before = await h.tree.log(0);
  for (const [kind, handle] of Object.entries(handles)) {
    const rows = WRONG[kind]!;
    const prototype: object = Object.getPrototypeOf(handle) as object;
    const methods = kind === "HostTool" ? ["call"] : Object.getOwnPropertyNames(prototype);
    const takers = methods.filter((name) => {
      const { value } = Object.getOwnPropertyDescriptor(kind === "HostTool" ? handle : prototype, name)!;
      return name !== "constructor" && typeof value === "function" && /^[^(]*\([^)]/.test(String(value));
    });
    expect([kind, ...Object.keys(rows).toSorted()]).toEqual([kind, ...takers.toSorted()]);
    for (const [name, cases] of Object.entries(rows)) {
      for (const [given, words] of cases) {
        const error = await refusalOf(() => loose(handle, name)(...given));
        expect(error).toMatchObject({
          code: "INVALID_ARGUMENT",
          message: expect.stringMatching(words),
        });
        expect(error.message).toContain(`the arguments of ${kind}.${name} are wrong: `);
      }
    }
  }
  expect(await h.tree.log(0)).toEqual(before);
  h.provider.gates.open("open");
  await child.work.outcome();
});

test("HDR-2 tools and injected mail are a host-driven root's alone", async () => {
  await using h = await harness({ scripts: {} });
  const hosted = await h.runtime.openTree({ hostDriven: true });
  expect(hosted.root.tools().map(({ name }) => name)).toContain("spawn_agent");
  for (const call of [(): unknown => h.tree.root.tools(), (): unknown => h.tree.root.injectMail()]) {
    const error = await refusalOf(call);
    expect(error).toMatchObject({ code: "INVALID_ARGUMENT", details: { path: "/root" } });
    expect(error.message).toContain("/root is not host-driven");
    expect(error.message).toContain("openTree({ hostDriven: true })");
  }
  const child = await hosted.root.spawn("child", "look");
  expect((await refusalOf(() => child.agent.tools())).message).toContain("/root/child is not host-driven");
});
