/** What Claude's adapter works out for itself: places and turns in a conversation, policy, and a turn that goes on. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Effect, EFFECTS } from "../../../src/protocol/agent.ts";
import type { NativeEvent } from "../../../src/protocol/native-events.ts";
import type { Boundary } from "../../../src/protocol/provider-capabilities.ts";
import { keptOf } from "../../../src/providers/claude/boundary.ts";
import { turnsOf } from "../../../src/providers/claude/history.ts";
import { permit } from "../../../src/providers/claude/permission.ts";
import { effectiveEffects, toolsOf } from "../../../src/providers/claude/policy.ts";
import { loadClaudeSdk } from "../../../src/providers/claude/sdk.ts";
import { ClaudeTranscripts } from "../../../src/providers/claude/transcripts.ts";
import { ClaudeToolServer, type ToolCall } from "../../../src/providers/claude/tool-server.ts";
import { failureOf, refOf } from "../../../src/providers/claude/translate.ts";
import { ClaudeTurnUnderWay } from "../../../src/providers/claude/turn.ts";
import { type ClaudeMessage, messageOf } from "../../../src/providers/claude/wire.ts";
import { NOTHING_USED } from "../../../src/providers/turn-told.ts";

describe("what Claude may do", () => {
  test.for<[readonly Effect[], readonly string[]]>([
    [[], ["AskUserQuestion"]],
    [["read"], ["AskUserQuestion", "Read", "Glob", "Grep"]],
    [["write"], ["AskUserQuestion", "Write"]],
    [["network"], ["AskUserQuestion", "WebFetch", "WebSearch"]],
    [
      ["write", "read"],
      ["AskUserQuestion", "Read", "Glob", "Grep", "Write", "Edit", "NotebookEdit"],
    ],
  ])("POL-2 %j", ([effects, tools]) => {
    expect(toolsOf(effects)).toEqual(tools);
    expect(new Set(effectiveEffects(effects))).toEqual(new Set(effects));
  });

  test("POL-2 a command can do anything", () => {
    expect(effectiveEffects(["execute"])).toEqual(EFFECTS);
    expect(toolsOf(EFFECTS)).toContain("Bash");
  });

  test("a tool of ours is not asked about, one of its own is, and without an answer it is not called", async () => {
    const nobody = async () => ({ kind: "cancelled" }) as const;
    const asked = { toolUseID: "t" };
    const allowed = { behavior: "allow", updatedInput: {} };
    expect(await permit("mcp__coppice__look", {}, asked, "on-request", nobody)).toEqual(allowed);
    expect(await permit("Bash", {}, asked, "never", nobody)).toEqual(allowed);
    expect(await permit("Bash", {}, asked, "on-request", nobody)).toMatchObject({ behavior: "deny" });
    expect(await permit("AskUserQuestion", {}, asked, "never", nobody)).toMatchObject({ behavior: "deny" });
  });
});

describe("a conversation of Claude's", () => {
  const message = (uuid: string, type: "user" | "assistant", content: string | { type: string }[]) => ({
    uuid,
    type,
    message: { content },
  });
  const piece = { type: "text", text: "words" };
  const prompt = (uuid: string) => ({ type: "user", uuid, promptSource: "sdk" });
  const conversation = {
    rows: [
      prompt("p1"),
      { type: "assistant", uuid: "a1" },
      // Put into the first turn after its answer.
      prompt("s1"),
      { type: "assistant", uuid: "a2" },
      prompt("p2"),
      { type: "assistant", uuid: "a3", error: "server_error" },
      prompt("p3"),
      { type: "user", uuid: "m3", isMeta: true },
      prompt("p4"),
      { type: "user", uuid: "i4" },
    ],
    said: [
      message("p1", "user", "one"),
      message("a1", "assistant", [piece]),
      message("s1", "user", [piece]),
      message("a2", "assistant", [piece]),
      message("p2", "user", "two"),
      message("a3", "assistant", [piece]),
      message("p3", "user", "three"),
      message("m3", "user", "say something"),
      message("p4", "user", "four"),
      message("i4", "user", [piece]),
    ],
  };
  const turns = turnsOf(conversation);

  test("its turns begin with prompts, and what is put into one is none", () => {
    expect(turns.map(({ id, status, said }) => [id, status, said.length])).toEqual([
      ["p1", "completed", 4],
      ["p2", "failed", 2],
      ["p3", "completed", 2],
      ["p4", "interrupted", 2],
    ]);
  });

  test.for<[Boundary, unknown]>([
    [{ kind: "head" }, "all"],
    [{ kind: "after_turn", turn: refOf("p1"), laterTerminalTurns: 3 }, { upTo: "a2" }],
    [{ kind: "after_turn", turn: refOf("p4"), laterTerminalTurns: 0 }, "all"],
    [{ kind: "before_turn", turn: refOf("p2"), laterTerminalTurns: 2 }, { upTo: "a2" }],
    [{ kind: "before_turn", turn: refOf("p1"), laterTerminalTurns: 3 }, "nothing"],
    [{ kind: "after_item", item: refOf("a1") }, { upTo: "a1" }],
    [{ kind: "before_item", item: refOf("s1") }, { upTo: "a1" }],
    [{ kind: "start" }, "nothing"],
  ])("%j", ([boundary, kept]) => {
    expect(keptOf(boundary, turns, [])).toEqual(kept);
  });

  test("a place that it does not have is refused", () => {
    const boundary: Boundary = { kind: "after_turn", turn: refOf("nobody"), laterTerminalTurns: 0 };
    expect(() => keptOf(boundary, turns, [])).toThrow(expect.objectContaining({ code: "PROVIDER_REFUSED" }));
  });

  test("a name that is none of Claude's is no path", async () => {
    const sdk = { query: never, getSessionMessages: never, forkSession: never };
    const transcripts = new ClaudeTranscripts({ HOME: tmpdir() });
    expect(await transcripts.read(sdk, "../../etc/passwd")).toBeNull();
    expect(await transcripts.fork(sdk, "nobody", null)).toBeNull();
  });
});

function never(): never {
  throw new Error("nobody asks it");
}

describe("a turn of Claude's", () => {
  const told: NativeEvent[] = [];
  const result = (ids: readonly string[], more: object = {}) =>
    messageOf({ type: "result", subtype: "success", user_message_uuids: ids, ...more }) as ClaudeMessage;
  const requesting = (ids: readonly string[]) =>
    messageOf({ type: "system", subtype: "status", user_message_uuids: ids }) as ClaudeMessage;

  test("it goes on until what was put into it is answered, and tells its end once", () => {
    const turn = new ClaudeTurnUnderWay("key", "one", (event) => told.push(event));
    expect(turn.heard(result(["another"]), NOTHING_USED)).toBe(false);
    expect(turn.heard(requesting(["one"]), null)).toBe(false);
    turn.steered("two");
    const used = { ...NOTHING_USED, inputTokens: 10, outputTokens: 2 };
    expect(turn.heard(result(["one"]), used)).toBe(false);
    expect(turn.heard(result(["two"]), used)).toBe(true);
    expect(told.map(({ type }) => type)).toEqual(["turn.accepted", "turn.terminal"]);
    expect(told.at(-1)).toMatchObject({ outcome: "completed", usage: { inputTokens: 20, outputTokens: 4 } });
  });

  test("it is interrupted when it was stopped, and what was put into it goes with it", () => {
    const turn = new ClaudeTurnUnderWay("key", "one", (event) => told.push(event));
    turn.heard(requesting(["one"]), null);
    turn.steered("two");
    turn.stop();
    const stopped = {
      subtype: "error_during_execution",
      is_error: true,
      terminal_reason: "aborted_streaming",
    };
    expect(turn.heard(result(["one"], stopped), NOTHING_USED)).toBe(true);
    expect(told.at(-1)).toMatchObject({ outcome: "interrupted", error: null });
  });

  test("a request is told after its call, and is withdrawn when it is waited for no longer", async () => {
    told.length = 0;
    const turn = new ClaudeTurnUnderWay("key", "one", (event) => told.push(event));
    turn.heard(requesting(["one"]), null);
    const waited = new AbortController();
    const request = { kind: "question", ref: refOf("call"), text: "Which?", about: null } as const;
    const answer = turn.ask(request, waited.signal);
    await Promise.resolve();
    expect(told.map(({ type }) => type)).toEqual(["turn.accepted"]);
    const content = [{ type: "tool_use", id: "call", name: "AskUserQuestion", input: {} }];
    turn.heard(messageOf({ type: "assistant", uuid: "a", message: { content } }) as ClaudeMessage, null);
    await Promise.resolve();
    await Promise.resolve();
    expect(told.at(-1)).toMatchObject({ type: "request", request });
    waited.abort();
    expect(await answer).toEqual({ kind: "cancelled" });
    expect(told.at(-1)).toMatchObject({ type: "withdrawn" });
    expect(turn.answer("call", { kind: "answer", text: "late" })).toBe(false);
  });
});

test("a call of a tool that does not say which one it is is refused at once, and waits for nothing", async () => {
  const called: ToolCall[] = [];
  const sent: object[] = [];
  const both = Promise.withResolvers<void>();
  const server = new ClaudeToolServer([], async (call) => {
    called.push(call);
    return { kind: "tool", output: "seen", isError: false };
  });
  const transport = {
    onmessage: (_message: unknown) => {},
    start: async () => {},
    send: async (message: object) => {
      if (sent.push(message) === 2) both.resolve();
    },
  };
  await server.connect(transport);
  const params = { name: "look", arguments: {} };
  transport.onmessage({ id: 1, method: "tools/call", params });
  const _meta = { "claudecode/toolUseId": "toolu_1" };
  transport.onmessage({ id: 2, method: "tools/call", params: { ...params, _meta } });
  await both.promise;
  expect(called).toEqual([{ callId: "toolu_1", name: "look", input: "{}" }]);
  expect(sent).toContainEqual(expect.objectContaining({ id: 1, error: expect.objectContaining({}) }));
  expect(sent).toContainEqual(expect.objectContaining({ id: 2, result: expect.objectContaining({}) }));
});

test.for([
  ["authentication_failed", /not signed in.*\/login/u],
  ["billing_error", /cannot be billed: no credit$/u],
  ["account_on_hold", /on hold: no credit$/u],
  ["verification_required", /verified first: no credit$/u],
] as const)("%s is told as what it is", ([kind, told]) => {
  const result = messageOf({
    type: "result",
    subtype: "success",
    is_error: true,
    result: "no credit",
    api_error_status: 403,
  });
  const error = failureOf(result as Extract<ClaudeMessage, { type: "result" }>, kind);
  expect(error).toMatchObject({ code: "PROVIDER_UNAVAILABLE", details: { kind } });
  expect(error.message).toMatch(told);
});

test("what to install is said when the SDK is not there", () => {
  const folder = mkdtempSync(join(tmpdir(), "coppice-claude-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  expect(() => loadClaudeSdk([folder])).toThrow(
    expect.objectContaining({
      code: "PROVIDER_NOT_CONFIGURED",
      message: expect.stringContaining("npm install @anthropic-ai/claude-agent-sdk"),
    }),
  );
});
