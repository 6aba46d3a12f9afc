/** The provider of OpenCode: its words and ours, and a server of ours on the other side that behaves as none should. */
import { describe, expect, onTestFinished, test } from "vitest";
import { seededRandom } from "../../../src/platform/ids.ts";
import { type Effect, EFFECTS } from "../../../src/protocol/agent.ts";
import type { NativeEvent } from "../../../src/protocol/native-events.ts";
import { OpenCodeClient } from "../../../src/providers/opencode/client.ts";
import { firstRemoved, historyOf, turnsOf } from "../../../src/providers/opencode/history.ts";
import { isolatedEnvironment } from "../../../src/providers/opencode/isolation.ts";
import { createOpenCodeProvider } from "../../../src/providers/opencode/opencode-provider.ts";
import { effectiveEffects, policyOf } from "../../../src/providers/opencode/policy.ts";
import {
  failureOf,
  messageIdAfter,
  modelOf,
  refOf,
  retriedFailure,
  usageOf,
} from "../../../src/providers/opencode/translate.ts";
import { OpenCodeTurn } from "../../../src/providers/opencode/turn.ts";
import { virtualClock } from "../../../src/testing/virtual-clock.ts";
import { listen } from "../../support/model-wire/loopback.ts";
import { fakeOpenCode } from "../../support/opencode.ts";
import { decide, failure, INPUT, open, until } from "../../support/opencode-session.ts";

const SEAT = { server: "c", nativeAgents: false };

describe("words of OpenCode", () => {
  test("a message is named behind all that there are, whatever the clock says", () => {
    const random = seededRandom(1);
    const now = Date.UTC(2026, 10, 30);
    const first = messageIdAfter(null, now, random);
    expect(first).toMatch(/^msg_[0-9a-f]{26}$/);
    const later = messageIdAfter(first, now, random);
    const behind = messageIdAfter(later, now - 60_000, random);
    expect([behind, first, later].toSorted()).toEqual([first, later, behind]);
    expect(messageIdAfter(first, now + 1, random) > later).toBe(true);
  });

  test("a model is named with its provider", () => {
    expect(modelOf("openrouter/some/model")).toEqual({ providerID: "openrouter", modelID: "some/model" });
    for (const name of ["model", "/model", "provider/"])
      expect(() => modelOf(name)).toThrow(/are named with their provider/);
  });

  test.for([
    [{ input: 7, output: 2, reasoning: 3, cache: { read: 5, write: 1 }, total: 18 }, [13, 5, 5, 3]],
    [{ input: 7, output: 5, reasoning: 3, cache: { read: 5, write: 1 }, total: 18 }, [13, 5, 5, 3]],
    [{ input: 7, output: 2, reasoning: 3, cache: { read: 0, write: 0 } }, [7, 0, 5, 3]],
  ] as const)(
    "what was cached counts among the input, what was thought among the output (%o)",
    ([used, is]) => {
      const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens } = usageOf(used);
      expect([inputTokens, cachedInputTokens, outputTokens, reasoningTokens]).toEqual(is);
    },
  );

  test.for([
    ["APIError", 400, "no", "PROVIDER_REFUSED"],
    ["APIError", 401, "no", "PROVIDER_UNAVAILABLE"],
    ["APIError", 403, "no", "PROVIDER_UNAVAILABLE"],
    ["APIError", 429, "no", "PROVIDER_OVERLOADED"],
    ["APIError", 500, "no", "PROVIDER_UNREACHABLE"],
    ["ProviderAuthError", undefined, "no key", "PROVIDER_UNAVAILABLE"],
    ["ContextOverflowError", undefined, "too long", "PROVIDER_REFUSED"],
    ["UnknownError", undefined, "Model not found: a/b.", "PROVIDER_REFUSED"],
    ["UnknownError", undefined, "", "PROVIDER_UNREACHABLE"],
  ] as const)("%s %s %s is %s", ([name, statusCode, message, code]) => {
    const status = statusCode === undefined ? {} : { statusCode };
    expect(failureOf({ name, data: { message: `${message}\n    at somewhere`, ...status } })).toMatchObject({
      code,
      message: expect.not.stringContaining("somewhere"),
    });
  });

  test.for([
    ["Rate limit exceeded", "PROVIDER_OVERLOADED"],
    ["529 Overloaded", "PROVIDER_OVERLOADED"],
    ["Internal server error", "PROVIDER_UNREACHABLE"],
  ])("what it would try again for (%s) is %s", ([words, code]) => {
    expect(retriedFailure(words!).code).toBe(code);
  });

  test("rules take what the effects do not name, other agents' tools, and nothing of this agent's own", () => {
    /** The last rule that fits holds. */
    const can = (effects: readonly Effect[], approvals: "never" | "on-request" | "untrusted", tool: string) =>
      policyOf(effects, approvals, { server: "coppice_mine", nativeAgents: false }).rules.findLast(
        ({ permission }) =>
          permission === "*" ||
          permission === tool ||
          (permission.endsWith("*") && tool.startsWith(permission.slice(0, -1))),
      )?.action ?? "as set";
    const all = ["read", "edit", "bash", "webfetch", "task", "custom", "external_directory"];
    const told = (effects: readonly Effect[], approvals: Parameters<typeof can>[1] = "never") =>
      all.map((tool) => can(effects, approvals, tool)).join(" ");
    expect(told([])).toBe("deny deny deny deny deny deny deny");
    expect(told(["read", "write"])).toBe("allow allow deny deny deny deny deny");
    expect(told(["network"], "untrusted")).toBe("deny deny deny allow deny deny deny");
    expect(told(EFFECTS)).toBe("allow allow allow allow deny allow allow");
    expect(told(EFFECTS, "on-request")).toBe("as set as set as set as set deny as set as set");
    expect(told(EFFECTS, "untrusted")).toBe("allow ask ask ask deny ask ask");
    for (const effects of [[], EFFECTS] as const)
      expect(["coppice_mine_look", "coppice_other_look"].map((tool) => can(effects, "never", tool))).toEqual([
        "allow",
        "deny",
      ]);
    expect([policyOf(EFFECTS, "never", SEAT).asks, policyOf(EFFECTS, "on-request", SEAT).asks]).toEqual([
      false,
      true,
    ]);
    expect(policyOf(["read"], "untrusted", SEAT).asks).toBe(false);
  });

  test("POL-2 only one that is isolated is held to less than all effects, and commands take all of them", () => {
    expect(effectiveEffects(["read"], true)).toEqual(["read"]);
    expect(effectiveEffects(["execute"], true)).toEqual(EFFECTS);
    expect(effectiveEffects([], false)).toEqual(EFFECTS);
  });

  test("what acts by itself is off beside settings that are there, and such as cannot be read are refused", () => {
    const { OPENCODE_CONFIG_CONTENT: content, OPENCODE_PURE: pure } = isolatedEnvironment({
      OPENCODE_CONFIG_CONTENT: '{"model":"a/b","lsp":true}',
    });
    expect([JSON.parse(content!), pure]).toEqual([{ model: "a/b", lsp: false, formatter: false }, "1"]);
    expect(() => isolatedEnvironment({ OPENCODE_CONFIG_CONTENT: "{// no" })).toThrow(/no object of JSON/);
  });

  test("turns begin with what was asked, and not with what it tells itself", () => {
    const said = (id: string, role: "user" | "assistant", parts: object[], more: object = {}) => ({
      info: { id, role, time: {}, ...more },
      parts: parts.map((part) => ({ id: `p-${id}`, messageID: id, type: "text", ...part })),
    });
    const turns = turnsOf([
      said("m1", "user", [{ text: "one" }]),
      said("m2", "assistant", [{ text: "first" }], { finish: "stop" }),
      said("m3", "user", [{ text: "Go on.", synthetic: true }]),
      said("m4", "assistant", [{ text: "more" }], { error: { name: "MessageAbortedError", data: {} } }),
      said("m5", "user", [{ text: "two" }]),
    ]);
    const history = historyOf(turns, true).turns;
    expect(history.map(({ ref, status }) => [ref.nativeId, status])).toEqual([
      ["m1", "interrupted"],
      ["m5", "running"],
    ]);
    expect(history[0]!.items.map(({ text }) => text)).toEqual(["one", "first", "Go on.", "more"]);
    const cut = (kind: "after_turn" | "before_turn", id: string) =>
      firstRemoved({ kind, turn: refOf(id), laterTerminalTurns: 0 }, turns, []);
    expect([cut("after_turn", "m1"), cut("before_turn", "m5"), cut("after_turn", "m5")]).toEqual([
      "m5",
      "m5",
      null,
    ]);
    expect(firstRemoved({ kind: "start" }, turns, [])).toBe("m1");
    expect(() => cut("after_turn", "m4")).toThrow(/has no turn m4/);
    expect(() => firstRemoved({ kind: "after_item", item: refOf("p-m2") }, turns, [])).toThrow(
      /threads.fork/,
    );
  });
});

const items = (events: readonly NativeEvent[]) =>
  events.flatMap((event) => (event.type === "item" ? [event.item] : []));
const call = (tool: string, state: object) => ({ part: { type: "tool", callID: "c1", tool, state } });

describe("a turn of OpenCode's", { timeout: 60_000 }, () => {
  test("tells what is whole, what was used, its own calls, and ours once, as they come over the bridge", async () => {
    const { session, turn, server } = await open({}, {}, { instructions: "Speak in verse." });
    const { body } = server.asked("POST /mcp")[0]!;
    const events = await turn(
      [
        { think: "hm" },
        { say: "I will look." },
        call(`${body.name}_look`, { status: "completed", input: {}, output: "seen" }),
        { call: "look", input: { at: "a" } },
        call("bash", { status: "completed", input: { command: "ls" }, output: "a.txt" }),
        call("write", { status: "completed", input: { filePath: "/w/a" }, metadata: { exists: false } }),
        call("grep", { status: "running", input: {} }),
        { say: "half", open: true },
        { usage: { input: 7, output: 2, reasoning: 0, cache: { read: 5, write: 0 } } },
      ],
      async (event) => {
        if (event.type === "request")
          await session.respond(event.request.ref, { kind: "tool", output: "seen", isError: false });
      },
    );
    expect(events[0]).toMatchObject({ type: "turn.accepted", turn: { nativeId: /^msg_/ } });
    expect(events.filter(({ type }) => type === "request")).toHaveLength(1);
    expect(items(events)).toMatchObject([
      { kind: "reasoning", text: "hm" },
      { kind: "text", text: "I will look." },
      { kind: "tool", name: "bash", input: '{"command":"ls"}', output: "a.txt", isError: false },
      { kind: "file_change", path: "/w/a", change: "added" },
      { kind: "text", text: "half" },
      { kind: "tool", name: "grep", isError: true, output: { outcome: expect.stringContaining("unknown") } },
    ]);
    expect(events.filter(({ type }) => type === "usage")).toMatchObject([{ usage: { inputTokens: 12 } }]);
    expect(events.at(-1)).toMatchObject({ outcome: "completed", error: null });
    expect(server.asked("POST /session/:id/prompt_async")[0]!.body).toMatchObject({
      system: "Speak in verse.",
      model: { providerID: "mock", modelID: "default" },
      parts: [{ text: "the note" }, { text: expect.stringContaining("go") }],
    });
  });

  test("is over when it has stopped, and not when it is said to stop; the next one is not taken for it", async () => {
    const { session, thread, turn } = await open();
    const stop = async (event: NativeEvent) => {
      if (event.type === "delta") await session.interruptTurn(thread.ref, event.key!);
    };
    const stopped = await turn([{ say: "one" }, { hold: true }], stop);
    expect(stopped.at(-1)).toMatchObject({ outcome: "interrupted", usage: null, error: null });
    const bare = await turn([{ say: "one" }, { hold: true, bare: true }], stop);
    expect(bare.at(-1)).toMatchObject({ outcome: "interrupted", error: null });
    expect((await turn([{ say: "two" }])).at(-1)).toMatchObject({ outcome: "completed" });
  });

  test("that was stopped before it has begun is stopped when it begins", async () => {
    let stops = 0;
    const told: NativeEvent[] = [];
    const turn = new OpenCodeTurn({
      key: "t1",
      id: "msg_1",
      toolPrefix: "coppice_",
      asks: true,
      tell: (event) => told.push(event),
      reply: () => Promise.resolve(),
      stop: async () => (stops += 1),
      onEnded: () => undefined,
      server: { listen: () => undefined, leave: () => undefined },
    });
    const status = (type: string) => turn.heard({ type: "session.status", of: { status: { type } } });
    turn.heard({ type: "message.updated", of: { info: { id: "msg_1", role: "user", time: {} } } });
    const stopped = turn.interrupt();
    // Of the turn before.
    status("idle");
    expect([stops, told.map(({ type }) => type)]).toEqual([0, ["turn.accepted"]]);
    status("busy");
    await stopped;
    status("idle");
    expect([stops, told.at(-1)]).toMatchObject([1, { outcome: "interrupted" }]);
  });

  test("has failed when it would be tried for the third time", async () => {
    const { turn, server } = await open();
    const retry = (attempt: number) => ({
      event: { type: "session.status", of: { status: { type: "retry", attempt, message: "Rate limit" } } },
    });
    const events = await turn([retry(1), retry(2), retry(3), { hold: true, bare: true }]);
    expect(events.at(-1)).toMatchObject({ outcome: "failed", error: { code: "PROVIDER_OVERLOADED" } });
    expect(server.asked("POST /session/:id/abort")).toHaveLength(1);
  });

  test("fails with what its session says where it has no answer, such as a model that is not there", async () => {
    const { turn } = await open();
    const data = { message: "Model not found: a/b." };
    const events = await turn([{ nothing: true, fail: { name: "UnknownError", data } }]);
    expect(events.at(-1)).toMatchObject({ outcome: "failed", error: { code: "PROVIDER_REFUSED" } });
  });

  test.for([
    ["approved", null, { reply: "once" }],
    ["denied", "not there", { reply: "reject", message: "not there" }],
    ["denied", null, { reply: "reject", message: "The user has denied this." }],
  ] as const)(
    "an approval that is %s (%s) is answered for once, and with words",
    async ([verdict, note, body]) => {
      const { session, turn, server } = await open();
      const events = await turn([{ ask: "permission.asked" }], async (event) => {
        if (event.type === "request") await session.respond(event.request.ref, decide(verdict, note));
      });
      expect(events.find(({ type }) => type === "request")).toMatchObject({
        request: { kind: "approval", about: { tool: "bash", input: '{"command":"ls"}' } },
      });
      expect(server.asked("POST /permission/:id/reply")).toMatchObject([{ body }]);
    },
  );

  test("POL-2 what an agent of less than all effects asks for is denied, and nobody is asked", async () => {
    const { turn, server } = await open({}, { isolated: true }, { effects: ["read"] });
    const policy = { effects: ["read"] as const };
    const events = await turn([{ ask: "permission.asked" }], undefined, policy);
    expect(events.filter(({ type }) => type === "request")).toEqual([]);
    expect(server.asked("POST /permission/:id/reply")).toMatchObject([{ body: { reply: "reject" } }]);
    // Told with the conversation, and again only when they change.
    expect(server.asked("PATCH /session/:id")).toEqual([]);
    await turn([], undefined, { effects: [] });
    expect(server.asked("PATCH /session/:id")).toHaveLength(1);
  });

  test("what somebody else has answered is taken back", async () => {
    const { turn, session } = await open();
    const replied = { type: "question.replied", of: { requestID: "que_1" } };
    const asked = { type: "question.asked", of: { id: "que_1", questions: [{ question: "Which?" }] } };
    const events = await turn([{ event: asked }, { event: replied }]);
    expect(events.map(({ type }) => type)).toContain("withdrawn");
    expect(await failure(session.respond(refOf("que_1"), { kind: "answer", text: "red" }))).toMatchObject({
      code: "REQUEST_NOT_RESUMABLE",
    });
  });

  test("nothing is sent while a turn is under way, of this session's or of somebody else's", async () => {
    const one = await open();
    const held = one.start([{ say: "one" }, { hold: true }]);
    await held;
    expect(await failure(one.start([]))).toMatchObject({ code: "PROVIDER_REFUSED" });
    expect(one.server.asked("POST /session/:id/prompt_async")).toHaveLength(1);
    const busy = await open({ answers: { "POST /session/:id/prompt_async": { status: 409, body: {} } } });
    expect(await failure(busy.start([]))).toMatchObject({ code: "PROVIDER_WRITER_BUSY" });
  });

  test("a model without its provider's name is refused before anything is sent", async () => {
    const { start, server } = await open();
    expect(await failure(start([], { model: "gpt" }))).toMatchObject({ code: "PROVIDER_REFUSED" });
    expect(server.asked("POST /session/:id/prompt_async")).toEqual([]);
  });
});

describe("a server that is none", { timeout: 60_000 }, () => {
  test.for([
    ["events that are none", [{ raw: "data: hello\n\n" }], "PROVIDER_PROTOCOL"],
    [
      "events of another form",
      [{ event: { type: "session.status", of: { status: "busy" } } }],
      "PROVIDER_PROTOCOL",
    ],
    ["its end", [{ exit: 3 }], "PROVIDER_UNREACHABLE"],
  ] as const)("%s end the session with an error of its kind, and the process", async ([, steps, code]) => {
    const { turn, server, start } = await open();
    expect(await failure(turn([{ say: "one" }, ...steps]))).toMatchObject({ code });
    expect(await failure(start([]))).toMatchObject({ code });
    await until("it is gone", () => server.processes().length === 0);
  });

  test.for([
    [{ "POST /session": { status: 200, raw: "no" } }, "PROVIDER_PROTOCOL"],
    [{ "POST /session": { status: 200, body: {} } }, "PROVIDER_PROTOCOL"],
    [{ "POST /session": { status: 500, body: {} } }, "PROVIDER_UNREACHABLE"],
    [{ "POST /session": { status: 400, body: {} } }, "PROVIDER_REFUSED"],
  ] as const)("an answer that is none (%o) is told by its kind", async ([answers, code]) => {
    const server = fakeOpenCode();
    const session = await server.adapter({ answers }).openSession(INPUT);
    onTestFinished(() => session.close());
    expect(await failure(session.ensureThread({ model: null, effort: null }))).toMatchObject({
      code,
      details: code === "PROVIDER_PROTOCOL" ? { version: "1" } : {},
    });
  });

  test("tools that it does not get to are told", async () => {
    const mcp = { status: "failed", error: "no way there" };
    expect(await failure(open({ mcp }))).toMatchObject({
      code: "PROVIDER_UNREACHABLE",
      message: expect.stringContaining("no way there"),
    });
  });

  test("one that never says where it listens, or never answers, is given up at the deadline and ended", async () => {
    const clock = virtualClock();
    const options = { clock, deadlineMs: 5_000 };
    const mute = fakeOpenCode();
    const opening = failure(mute.adapter({ mute: true }, options).openSession(INPUT));
    await until("it runs", () => mute.processes().length === 1 && clock.pending().length > 0);
    await clock.advance(5_000);
    expect(await opening).toMatchObject({ code: "PROVIDER_STALLED" });
    expect(mute.processes()).toEqual([]);

    for (const request of ["GET /global/event", "GET /global/health"]) {
      const deaf = fakeOpenCode();
      const answers = { [request]: { silent: true } };
      const meeting = failure(deaf.adapter({ answers }, options).openSession(INPUT));
      await until("it is asked", () => deaf.asked(request).length === 1);
      await clock.advance(5_000);
      expect(await meeting).toMatchObject({ code: "PROVIDER_STALLED" });
      expect(deaf.processes()).toEqual([]);
    }
  });

  test("one of somebody else's that does not answer is given up, and its events with it", async () => {
    const clock = virtualClock();
    for (const request of ["GET /global/event", "GET /global/health"]) {
      const deaf = fakeOpenCode();
      const url = await deaf.serve({ ways: { answers: { [request]: { silent: true } } } });
      const adapter = createOpenCodeProvider({ url, clock, deadlineMs: 5_000 });
      const meeting = failure(adapter.openSession(INPUT));
      await until("it is asked", () => deaf.asked(request).length === 1);
      await clock.advance(5_000);
      expect(await meeting).toMatchObject({ code: "PROVIDER_STALLED", details: { limitMs: 5_000 } });
      const heard = request === "GET /global/health" ? 1 : 0;
      await until("its events have ended", () => deaf.asked("end of events").length === heard);
      expect(deaf.processes()).toHaveLength(1);
    }
  });

  test("no connection outlives its request: the next server may listen where this one did", async () => {
    const connections = new Set<unknown>();
    await using server = await listen((incoming, outgoing) => {
      connections.add(incoming.socket);
      outgoing.end("{}");
    });
    const client = new OpenCodeClient({
      url: server.url,
      password: null,
      clock: virtualClock(),
      deadlineMs: 5_000,
    });
    for (let asked = 1; asked <= 3; asked += 1) {
      await client.ask("nothing", { path: "/" });
      expect(connections.size).toBe(asked);
    }
  });

  test.for([
    [{ exit: 3 }, "PROVIDER_UNAVAILABLE"],
    [{ exit: 3, says: "one moment" }, "PROVIDER_UNREACHABLE"],
  ] as const)("one that ends before it listens (%o) is told with why", async ([ways, code]) => {
    const opening = failure(fakeOpenCode().adapter(ways).openSession(INPUT));
    expect(await opening).toMatchObject({
      code,
      message: expect.stringContaining("it cannot begin"),
      details: { code: 3, stderr: "it cannot begin" },
    });
  });

  test("a program that is missing, and arguments that are none, are told", async () => {
    const missing = createOpenCodeProvider({ command: "no-such-program" });
    expect(await failure(missing.openSession(INPUT))).toMatchObject({ code: "PROVIDER_UNAVAILABLE" });
    const url = "http://127.0.0.1:4096";
    const ours = [{ isolated: true }, { command: "opencode" }, { args: [] }, { env: {} }];
    for (const wrong of [{ deadlineMs: 0 }, ...ours.map((one) => ({ url, ...one })), { password: "x" }])
      expect(() => createOpenCodeProvider(wrong)).toThrow(/arguments of createOpenCodeProvider are wrong/);
  });
});
