/** Codex's own agents below a turn, as its notifications tell of them (lineage C8.1). */
import { expect, test } from "vitest";
import type { NativeEvent } from "../../../src/protocol/native-events.ts";
import { CodexTurnUnderWay } from "../../../src/providers/codex/turn.ts";
import type { CodexListener } from "../../../src/providers/codex/server.ts";
import { notificationOf, requestOf, type CodexRequest } from "../../../src/providers/codex/wire.ts";

/** A turn of the thread `p`, and what its server is asked for. */
function turnOfParent() {
  const told: NativeEvent[] = [];
  const asked: object[] = [];
  const listeners = new Map<string, CodexListener>();
  const turn = new CodexTurnUnderWay(
    "key",
    {
      listen: (threadId, listener) => void listeners.set(threadId, listener),
      leave: (threadId) => void listeners.delete(threadId),
      ask: (method, params) => {
        asked.push({ method, ...params });
        return Promise.reject(new Error("gone"));
      },
    },
    (event) => told.push(event),
  );
  turn.accept("t");
  told.splice(0);
  return {
    turn,
    told,
    asked,
    listeners,
    /** Something in the turn itself. */
    heard: (method: string, params: object) =>
      turn.heard(notificationOf(method, { threadId: "p", turnId: "t", ...params }) as never, null),
    below: (threadId: string, method: string, params: object) =>
      listeners.get(threadId)?.heard(notificationOf(method, { threadId, turnId: "u", ...params })!),
  };
}

const activity = (kind: string, agentThreadId: string, agentPath: string) => ({
  item: { type: "subAgentActivity", id: `${kind}-${agentThreadId}`, kind, agentThreadId, agentPath },
});
const message = (text: string) => ({ item: { type: "agentMessage", id: "m", text } });
const ended = (status: string, error: object | null = null) => ({ turn: { id: "u", status, error } });
const inShort = (event: NativeEvent) =>
  event.type === "child.started"
    ? [event.key, event.child.nativeId, event.prompt]
    : event.type === "child.terminal"
      ? [event.key, event.child.nativeId, event.outcome, event.text]
      : [event.key, event.type];

test("C8.1 an agent of its own is told with its start and its end, and its words are none of its parent's", () => {
  const { told, listeners, heard, below, turn } = turnOfParent();
  heard("item/completed", activity("started", "c", "/root/alpha"));
  below("c", "turn/started", { turn: { id: "u" } });
  below("c", "item/agentMessage/delta", { delta: "par" });
  below("c", "item/completed", message("partial"));
  below("c", "item/completed", message("found it"));
  heard("item/completed", activity("completed", "c", "/root/alpha"));
  below("c", "turn/completed", ended("completed"));
  // A task that follows is a start of its own.
  below("c", "turn/started", { turn: { id: "u2" } });
  below("c", "turn/completed", ended("failed", { message: "no more" }));
  turn.completed({ id: "t", status: "completed", items: [] });
  expect(told.map(inShort)).toEqual([
    ["key", "c", "/root/alpha"],
    ["key", "c", "completed", "found it"],
    ["key", "c", "/root/alpha"],
    ["key", "c", "failed", "Codex: no more"],
    ["key", "turn.terminal"],
  ]);
  expect(listeners.size).toBe(0);
});

test("C8.1 INT-3 those that are at work at the end of the turn are stopped, and told as interrupted before it", () => {
  const { told, asked, heard, below, turn } = turnOfParent();
  heard("item/completed", activity("started", "c", "/root/alpha"));
  below("c", "turn/started", { turn: { id: "u" } });
  below("c", "item/completed", activity("started", "d", "/root/alpha/beta"));
  below("d", "item/completed", message("so far"));
  heard("item/completed", activity("interacted", "idle", "/root/gamma"));
  turn.completed({ id: "t", status: "interrupted", items: [] });
  expect(told.map(inShort)).toEqual([
    ["key", "c", "/root/alpha"],
    ["key", "d", "/root/alpha/beta"],
    ["key", "c", "interrupted", ""],
    ["key", "d", "interrupted", "so far"],
    ["key", "turn.terminal"],
  ]);
  expect(asked).toEqual(["c", "d"].map((threadId) => ({ method: "turn/interrupt", threadId, turnId: "u" })));
});

test("BUD-2 what they use is used by the turn, once", () => {
  const { told, heard, below } = turnOfParent();
  const figures = (inputTokens: number) => ({
    inputTokens,
    cachedInputTokens: 0,
    outputTokens: 1,
    reasoningOutputTokens: 0,
  });
  heard("item/completed", activity("started", "c", "/root/alpha"));
  // What it was given of its parent's is in the total.
  below("c", "thread/tokenUsage/updated", { tokenUsage: { total: figures(100), last: figures(10) } });
  below("c", "thread/tokenUsage/updated", { tokenUsage: { total: figures(120), last: figures(20) } });
  const used = told.flatMap((event) => (event.type === "usage" ? [event.usage.inputTokens] : []));
  expect(used).toEqual([10, 20]);
});

test("SEC-1 what they ask for is asked for by the turn; tools of the tree are none of theirs", async () => {
  const { told, turn, heard, listeners } = turnOfParent();
  heard("item/completed", activity("started", "c", "/root/alpha"));
  const of = { threadId: "c", turnId: "u" };
  const asked = (method: string, params: object): CodexRequest => requestOf(method, { ...of, ...params })!;
  const child = listeners.get("c")!;
  const approval = child.asked(
    asked("item/commandExecution/requestApproval", { itemId: "i", command: "ls", cwd: "/" }),
  );
  expect(told.at(-1)).toMatchObject({ type: "request", key: "key", request: { kind: "approval" } });
  turn.answer("i", { kind: "decision", decision: { verdict: "approved", note: null } });
  expect(await approval).toEqual({ decision: "accept" });
  await expect(
    child.asked(asked("item/tool/call", { callId: "x", tool: "spawn_agent", arguments: {} })),
  ).rejects.toThrow(/no tools of the tree/u);
});
