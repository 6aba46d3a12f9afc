/** The provider for ACP with a program of ours on the other side: what it starts, tells, refuses and ends. */
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/platform/clock.ts";
import { unregisteredProcesses } from "../../../src/platform/process-group.ts";
import { type Effect, EFFECTS } from "../../../src/protocol/agent.ts";
import type { NativeAnswer, NativeEvent } from "../../../src/protocol/native-events.ts";
import { type AcpOptions, createAcpProvider } from "../../../src/providers/acp/acp-provider.ts";
import type { NativePolicy, NativeSession, NativeSessionInput } from "../../../src/providers/port.ts";
import { virtualClock } from "../../../src/testing/virtual-clock.ts";
import { waitUntil } from "../../../src/testing/wait-until.ts";
import { type FakeAgent, fakeAgent } from "../../support/acp.ts";

const until = (what: string, there: () => boolean) => waitUntil(what, there, { steps: 200_000 });
const LOOK = {
  name: "look",
  description: "Looks.",
  parameters: { type: "object", properties: { at: { type: "string" } } },
  effects: [],
};
const INPUT: NativeSessionInput = {
  treeId: "tree",
  threadId: "thread",
  path: "/root",
  model: null,
  workspace: null,
  instructions: null,
  effects: EFFECTS,
  tools: [LOOK],
  transportWaitMs: 45_000,
  startProcess: unregisteredProcesses(systemClock, 2_000),
};
const POLICY: NativePolicy = {
  model: null,
  effort: null,
  effects: EFFECTS,
  workspace: null,
  maxOutputTokens: null,
};

interface Opened {
  readonly agent: FakeAgent;
  readonly session: NativeSession;
  /** The events of one turn. */
  readonly turn: (
    steps: readonly object[],
    more?: {
      readonly policy?: Partial<NativePolicy>;
      readonly hear?: (event: NativeEvent) => Promise<void>;
    },
  ) => Promise<NativeEvent[]>;
}

async function open(
  ways: object = {},
  options: Partial<AcpOptions> = {},
  input: Partial<NativeSessionInput> = {},
): Promise<Opened> {
  const agent = fakeAgent();
  const session = await agent.adapter(ways, options).openSession({ ...INPUT, ...input });
  onTestFinished(() => session.close());
  const events = session.events()[Symbol.asyncIterator]();
  const thread = await session.ensureThread({ model: null, effort: null });
  let key = 0;
  return {
    agent,
    session,
    async turn(steps, { policy, hear = async () => undefined } = {}) {
      const told: NativeEvent[] = [];
      const started = session.startTurn({
        thread: thread.ref,
        key: `t${(key += 1)}`,
        userMessage: `go <<${JSON.stringify(steps)}>>`,
        preambles: [],
        policy: { ...POLICY, ...policy },
        signal: new AbortController().signal,
      });
      const refused = started.then(
        () => new Promise<never>(() => undefined),
        (error: unknown) => Promise.reject(error as Error),
      );
      for (;;) {
        const { value, done } = await Promise.race([events.next(), refused]);
        if (done === true) throw new Error("the events have ended");
        told.push(value);
        await hear(value);
        if (value.type === "turn.terminal") return told;
      }
    },
  };
}

const failure = (pending: Promise<unknown>): Promise<unknown> =>
  pending.then(
    () => expect.unreachable("it did not fail"),
    (error: unknown) => error,
  );
const items = (events: readonly NativeEvent[]) =>
  events.flatMap((event) => (event.type === "item" ? [event.item] : []));
const requests = (events: readonly NativeEvent[]) =>
  events.flatMap((event) => (event.type === "request" ? [event.request] : []));

describe("starting its program", { timeout: 60_000 }, () => {
  test.for([
    ["another version", { version: 2 }, "PROVIDER_PROTOCOL", "version 2"],
    ["no message", { start: { raw: "hello\n" } }, "PROVIDER_PROTOCOL", "no message"],
    ["half a line", { start: { raw: '{"jsonrpc"', exit: 0 } }, "PROVIDER_UNAVAILABLE", "before it said"],
    ["a line of 100 MB", { start: { long: 100_000_000 } }, "PROVIDER_PROTOCOL", "too long"],
    ["its end", { start: { exit: 3 } }, "PROVIDER_UNAVAILABLE", "exit code 3"],
  ] as const)("%s is told, with the command to run", async ([, ways, code, words]) => {
    const agent = fakeAgent();
    const error = await failure(agent.adapter(ways).openSession(INPUT));
    expect(error).toMatchObject({ code, message: expect.stringContaining(words) });
    expect(error).toMatchObject({ message: expect.stringContaining(`run: ${process.execPath}`) });
    await until("it is gone", () => agent.processes().length === 0);
  });

  test("a program that is missing is told, and nothing is left of its place at the bridge", async () => {
    const adapter = createAcpProvider({ command: "no-such-agent", args: ["--acp"] });
    expect(await failure(adapter.openSession(INPUT))).toMatchObject({
      code: "PROVIDER_UNAVAILABLE",
      message: expect.stringMatching(/no program no-such-agent.*run: no-such-agent --acp$/),
    });
  });

  test("one that never answers is given up at the deadline, and ended though it stays", async () => {
    const clock = virtualClock();
    const agent = fakeAgent();
    const ways = { silent: ["initialize"], stays: true };
    const opening = failure(agent.adapter(ways, { clock, deadlineMs: 5_000 }).openSession(INPUT));
    await until("it is asked", () => agent.heard("initialize").length === 1);
    await clock.advance(5_000);
    await until("it is given time to end", () => clock.pending().length > 0);
    await clock.advance(2_000);
    expect(await opening).toMatchObject({
      code: "PROVIDER_STALLED",
      message: expect.stringContaining("initialize in 5000 ms"),
    });
    expect(agent.processes()).toEqual([]);
  });

  test("it is offered no files and no terminals, and is refused them when it asks", async () => {
    const { agent, turn } = await open();
    expect(agent.heard("initialize")[0]!.params).toMatchObject({
      protocolVersion: 1,
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    });
    const events = await turn([{ files: true }, { tell: true }]);
    expect(JSON.stringify(items(events))).toContain("Method not found");
  });

  test("one that wants its user to sign in says so", async () => {
    const agent = fakeAgent();
    const session = await agent.adapter({ signedOut: true }).openSession(INPUT);
    onTestFinished(() => session.close());
    expect(await failure(session.ensureThread({ model: null, effort: null }))).toMatchObject({
      code: "PROVIDER_UNAVAILABLE",
      message: expect.stringContaining("Sign in to it first"),
    });
  });

  test("arguments that are none are refused", () => {
    const wrong = { command: "x", modes: { all: ["everything"] } } as unknown as AcpOptions;
    expect(() => createAcpProvider(wrong)).toThrow(/arguments of createAcpProvider are wrong/);
  });
});

describe("what a turn tells", { timeout: 60_000 }, () => {
  test("pieces of a message are one text; another message, a thought, a call and a plan end it", async () => {
    const { turn } = await open();
    const call = { sessionUpdate: "tool_call", toolCallId: "c1", title: "ls", kind: "execute" };
    const events = await turn([
      { think: "hm" },
      { say: "I will ", id: "m1" },
      { say: "look.", id: "m1" },
      { update: { ...call, status: "pending", rawInput: { command: "ls" } } },
      { update: { sessionUpdate: "available_commands_update", availableCommands: [] } },
      {
        update: {
          sessionUpdate: "tool_call_update",
          toolCallId: "c1",
          status: "completed",
          content: [{ type: "content", content: { type: "text", text: "a.txt" } }],
        },
      },
      { update: { sessionUpdate: "plan", entries: [{ content: "one" }] } },
      { say: "Warning: old", id: "m2" },
      { say: "done", id: "m3" },
    ]);
    expect(items(events)).toMatchObject([
      { kind: "reasoning", text: "hm" },
      { kind: "text", text: "I will look." },
      { kind: "tool", name: "execute", input: '{"command":"ls"}', output: "a.txt", isError: false },
      { kind: "tool", name: "plan", input: '{"entries":[{"content":"one"}]}' },
      { kind: "text", text: "Warning: old" },
      { kind: "text", text: "done" },
    ]);
    expect(events.flatMap((event) => (event.type === "delta" ? [event.text] : []))).toHaveLength(4);
    expect(events.at(-1)).toMatchObject({ outcome: "completed", usage: null, error: null });
  });

  test("changes of files are told as such, and a call without an end as one", async () => {
    const { turn } = await open();
    const diff = { type: "diff", path: "/w/a", oldText: null, newText: "new" };
    const events = await turn([
      {
        update: {
          sessionUpdate: "tool_call",
          toolCallId: "c1",
          title: "Edit",
          kind: "edit",
          status: "completed",
          content: [diff, { ...diff, path: "/w/b", oldText: "old" }],
        },
      },
      { update: { sessionUpdate: "tool_call", toolCallId: "c2", title: "sleep", status: "in_progress" } },
    ]);
    expect(items(events)).toMatchObject([
      { kind: "file_change", path: "/w/a", change: "added", summary: "new" },
      { kind: "file_change", path: "/w/b", change: "changed" },
      { kind: "tool", name: "sleep", isError: true, output: { outcome: expect.stringContaining("unknown") } },
    ]);
  });

  test("a call of a tool of ours is told once, as it comes over the bridge", async () => {
    const { session, turn } = await open();
    const shown = { sessionUpdate: "tool_call", toolCallId: "c1", title: "mcp.coppice.look" };
    const events = await turn(
      [
        { update: { ...shown, status: "in_progress" } },
        { call: "look", input: { at: "a" } },
        { update: { ...shown, status: "completed" } },
        { tell: true },
      ],
      {
        async hear(event) {
          if (event.type !== "request") return;
          await session.respond(event.request.ref, { kind: "tool", output: "seen", isError: false });
        },
      },
    );
    expect(requests(events)).toMatchObject([{ kind: "tool", name: "look", input: '{"at":"a"}' }]);
    expect(items(events)).toMatchObject([{ kind: "text", text: "seen" }]);
  });

  test.for([
    [{ inputTokens: 7, outputTokens: 2, cachedReadTokens: 5, totalTokens: 9 }, [7, 5]],
    [{ inputTokens: 2, outputTokens: 2, cachedReadTokens: 5, totalTokens: 9 }, [7, 5]],
    [{ inputTokens: 7, outputTokens: 2 }, [7, 0]],
  ] as const)("its figures count what was cached among the input (%o)", async ([usage, [input, cached]]) => {
    const { turn } = await open();
    const events = await turn([{ say: "x" }, { end: { stopReason: "end_turn", usage } }]);
    expect(events.at(-1)).toMatchObject({
      usage: { inputTokens: input, cachedInputTokens: cached, outputTokens: 2, reasoningTokens: 0 },
    });
  });

  test("a failure that is told as a good end is one", async () => {
    const { turn } = await open();
    const inError = { codex: { threadStatus: { type: "systemError" } } };
    const events = await turn([
      { say: "half", id: "m1" },
      { update: { sessionUpdate: "session_info_update", _meta: inError } },
      { say: "API Error: 429 slow down" },
    ]);
    expect(items(events)).toMatchObject([{ kind: "text", text: "half" }]);
    expect(events.at(-1)).toMatchObject({
      outcome: "failed",
      error: { code: "PROVIDER_OVERLOADED", message: expect.stringContaining("slow down") },
    });
  });

  test.for([
    [{ end: { stopReason: "refusal" } }, "PROVIDER_REFUSED"],
    [{ end: { stopReason: "max_tokens" } }, "PROVIDER_REFUSED"],
    [{ end: { stopReason: "new_reason" } }, "PROVIDER_REFUSED"],
    [{ end: {} }, "PROVIDER_PROTOCOL"],
    [{ fail: { code: -32603, message: "Internal error: API Error: 400 no" } }, "PROVIDER_REFUSED"],
    [
      { fail: { code: -32603, message: "Internal error", data: { message: "HTTP 401" } } },
      "PROVIDER_UNAVAILABLE",
    ],
    [
      { fail: { code: -32603, message: "Internal error", data: { details: "lost" } } },
      "PROVIDER_UNREACHABLE",
    ],
  ] as const)("%o is a failure of its kind", async ([step, code]) => {
    const { turn } = await open();
    const events = await turn([{ say: "half" }, step]);
    expect(items(events)).toMatchObject([{ kind: "text", text: "half" }]);
    expect(events.at(-1)).toMatchObject({ outcome: "failed", error: { code } });
  });
});

const OPTIONS = [
  { optionId: "yes-ever", kind: "allow_always" },
  { optionId: "yes", kind: "allow_once" },
  { optionId: "no", kind: "reject_once" },
];
const RM = { toolCallId: "c1", title: "rm -rf x", kind: "execute", rawInput: { command: "rm -rf x" } };

describe("what it asks", { timeout: 60_000 }, () => {
  const asking = (toolCall: object = RM) => [{ ask: { toolCall, options: OPTIONS } }, { tell: true }];
  const decide = (verdict: "approved" | "denied"): NativeAnswer => ({
    kind: "decision",
    decision: { verdict, note: null },
  });

  test.for([
    ["approved", "yes"],
    ["denied", "no"],
  ] as const)("an approval that is %s is one for once", async ([verdict, said]) => {
    const { session, turn } = await open();
    const events = await turn(asking(), {
      hear: async (event) =>
        event.type === "request" ? session.respond(event.request.ref, decide(verdict)) : undefined,
    });
    expect(requests(events)).toMatchObject([
      { kind: "approval", text: "rm -rf x", about: { tool: "execute", input: '{"command":"rm -rf x"}' } },
    ]);
    expect(items(events)).toMatchObject([{ kind: "text", text: said }]);
  });

  test("calls of our tools are not asked for twice, and a command that is called like one is asked for", async () => {
    const { session, turn } = await open();
    const ours = await turn(asking({ toolCallId: "c1", name: "mcp__coppice__look", title: "look" }));
    expect(requests(ours)).toEqual([]);
    expect(items(ours)).toMatchObject([{ text: "yes" }]);
    const theirs = [
      { toolCallId: "c2", name: "Bash", title: "coppice_look" },
      { toolCallId: "c3", title: "coppice_look; rm -rf x" },
      { toolCallId: "c4", title: "coppice_other" },
    ];
    for (const call of theirs) {
      const events = await turn(asking(call), {
        hear: async (event) =>
          event.type === "request" ? session.respond(event.request.ref, decide("denied")) : undefined,
      });
      expect(requests(events)).toHaveLength(1);
    }
  });

  test("a turn that is stopped waits for nothing", async () => {
    const { agent, session, turn } = await open();
    const events = await turn([...asking(), { hold: true }], {
      async hear(event) {
        if (event.type !== "request") return;
        await session.interruptTurn({ driver: "acp", nativeId: "x", strength: "strong" }, "t1");
        const late = session.respond(event.request.ref, decide("approved"));
        await expect(late).rejects.toMatchObject({ code: "REQUEST_NOT_RESUMABLE" });
      },
    });
    expect(events.at(-1)).toMatchObject({ outcome: "interrupted" });
    expect(agent.heard("session/cancel")).toHaveLength(1);
    expect(agent.heard().some(({ result }) => result?.outcome?.outcome === "cancelled")).toBe(true);
  });

  test("a call that waits ends with its turn", async () => {
    const { session, turn } = await open();
    const events = await turn([{ call: "look" }, { hold: true }], {
      async hear(event) {
        if (event.type !== "request") return;
        await session.interruptTurn({ driver: "acp", nativeId: "x", strength: "strong" }, "t1");
      },
    });
    expect(events.at(-1)).toMatchObject({ outcome: "interrupted" });
  });
});

describe("what an agent may do", { timeout: 60_000 }, () => {
  const MODES = { "read-only": ["read"], workspace: ["read", "write", "execute"] } as const;
  const effective = (effects: readonly Effect[], modes = {}) =>
    createAcpProvider({ command: "x", modes }).effectiveEffects(effects);

  test("POL-2 without modes it can do all, and with them as much as the best of these lets it", () => {
    expect(effective(["read"])).toEqual(EFFECTS);
    expect(effective(["read"], MODES)).toEqual(["read"]);
    expect(effective(["read", "write"], MODES)).toEqual(["read"]);
    expect(effective(["execute", "write", "read"], MODES)).toEqual(["read", "write", "execute"]);
    expect(effective([], MODES)).toEqual(EFFECTS);
    expect(effective(EFFECTS, MODES)).toEqual(EFFECTS);
  });

  test("POL-2 its mode is set before its first turn, and nothing is asked that would widen it", async () => {
    const { agent, turn } = await open({}, { modes: MODES, mode: "full" });
    const narrow = { policy: { effects: ["read"] as const } };
    const events = await turn([{ ask: { toolCall: RM, options: OPTIONS } }, { tell: true }], narrow);
    expect(requests(events)).toEqual([]);
    expect(items(events)).toMatchObject([{ text: "no" }]);
    const left = { sessionUpdate: "current_mode_update", currentModeId: "full" };
    await turn([{ update: left }], narrow);
    await turn([], narrow);
    await turn([]);
    const modes = agent.heard("session/set_mode").map(({ params }) => params.modeId);
    expect(modes).toEqual(["read-only", "read-only", "full"]);
  });

  test("POL-2 no turn begins in a mode that the program does not have", async () => {
    const { agent, turn } = await open({ modes: ["ask"] }, { mode: "full" });
    expect(await failure(turn([]))).toMatchObject({ code: "PROVIDER_REFUSED" });
    expect(agent.heard("session/prompt")).toEqual([]);
  });
});

describe("its conversation", { timeout: 60_000 }, () => {
  test("instructions stand before the first words of a new one", async () => {
    const { agent, turn } = await open({}, {}, { instructions: "Be brief." });
    await turn([]);
    await turn([]);
    const [first, second] = agent.heard("session/prompt").map(({ params }) => params.prompt.length);
    expect(agent.heard("session/prompt")[0]!.params.prompt[0].text).toContain("Be brief.");
    expect([first, second]).toEqual([2, 1]);
  });

  test("model and effort are set where it lets them be chosen, back to what they were, and else refused", async () => {
    const session = {
      configOptions: [{ id: "m", category: "model", type: "select", currentValue: "small" }],
    };
    const { agent, turn } = await open({ session });
    await turn([], { policy: { model: "small" } });
    await turn([], { policy: { model: "big" } });
    await turn([], { policy: { model: "big" } });
    await turn([]);
    expect(agent.heard("session/set_config_option").map(({ params }) => params)).toMatchObject([
      { configId: "m", value: "big" },
      { configId: "m", value: "small" },
    ]);
    expect(await failure(turn([], { policy: { effort: "high" } }))).toMatchObject({
      code: "PROVIDER_REFUSED",
      message: expect.stringContaining("effort"),
    });
  });

  test("one that cannot be taken up again says so, and its name is worth less", async () => {
    const { session } = await open({ can: {} });
    expect(session.negotiated.identity.thread).toBe("weak");
    const ref = { driver: "acp", nativeId: "session-1", strength: "strong" } as const;
    expect(await failure(session.resumeThread(ref))).toMatchObject({ code: "PROVIDER_RESUME_FAILED" });
  });

  test("a program that says nonsense in a turn is over, with its reason", async () => {
    const { agent, session, turn } = await open({ stays: true });
    expect(await failure(turn([{ say: "x" }, { raw: "nonsense\n" }, { never: true }]))).toMatchObject({
      code: "PROVIDER_PROTOCOL",
    });
    await until("it is gone", () => agent.processes().length === 0);
    await session.close();
  });
});
