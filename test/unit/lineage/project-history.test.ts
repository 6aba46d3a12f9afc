/** SPN-5: what a child sees of its parent's transcript. */
import { describe, expect, test } from "vitest";
import {
  inheritedItems,
  parseForkTurns,
  projectHistory,
  type HistoryRequest,
  type Inheritance,
} from "../../../src/lineage/project-history.ts";
import { redact } from "../../../src/platform/redact.ts";
import type { RunId } from "../../../src/protocol/ids.ts";
import type { ItemBody, TranscriptItem } from "../../../src/protocol/transcript.ts";

const user = (text: string): ItemBody => ({
  kind: "user",
  text,
  mailId: "msg_1",
  workId: "wrk_1",
  inherited: false,
});
const says = (phase: "answer" | "intermediate" | "tools", text: string): ItemBody => ({
  kind: "assistant",
  phase,
  parts: [
    { type: "reasoning", text: "thought" },
    { type: "text", text, provider: { signature: "x" } },
    ...(phase === "tools" ? [{ type: "tool_call" as const, callId: "c", name: "look", input: "{}" }] : []),
  ],
  model: "small",
  inherited: false,
});
const result: ItemBody = {
  kind: "tool_result",
  callId: "c",
  name: "look",
  output: "seen",
  isError: false,
  mailIds: [],
  waitId: null,
  elapsedMs: 1,
};
const mail = (text: string): ItemBody => ({
  kind: "mail",
  mailId: "msg_2",
  mail: "message",
  author: "/root/a",
  recipient: "/root",
  workId: null,
  resultOf: null,
  text,
});
const hint: ItemBody = { kind: "context", topic: "mode_hint", text: "hint" };

/** Runs by number; a null run is what the thread began with. */
function transcript(
  ...rows: readonly (readonly [run: number | null, step: number, body: ItemBody])[]
): TranscriptItem[] {
  return rows.map(([run, step, body], index) => ({
    ...body,
    index,
    runId: run === null ? null : runId(run),
    step,
    at: index,
  }));
}
const runId = (ordinal: number): RunId => `run_${ordinal}`;
const run = (ordinal: number, woken = false) => ({ id: runId(ordinal), ordinal, woken });

/** Run 1 by the user, run 2 woken by a result, run 3 by mail, run 4 by the user: it makes the call. */
const items = transcript(
  [1, 1, hint],
  [1, 1, user("one")],
  [1, 1, says("tools", "let me look")],
  [1, 1, result],
  [1, 2, says("intermediate", "half")],
  [1, 3, says("answer", "first answer")],
  [2, 1, mail("a result")],
  [2, 1, says("answer", "second answer")],
  [3, 1, mail("a task")],
  [3, 1, says("answer", "third answer")],
  [4, 1, user("four")],
  [4, 1, says("tools", "an earlier call")],
  [4, 1, result],
  [4, 2, user("steered")],
  [4, 2, says("tools", "spawn a, spawn b")],
  [4, 2, user("too late")],
);
const base: HistoryRequest = {
  items,
  before: 14,
  runs: [run(1), run(2, true), run(3), run(4)],
  currentRun: runId(4),
  turns: "all",
};

const inherited = (request: HistoryRequest, more: Partial<Inheritance> = {}): readonly ItemBody[] =>
  inheritedItems({
    kept: projectHistory(request),
    pinned: "",
    leftOut: 0,
    parent: "/root",
    redact,
    toOtherProvider: false,
    ...more,
  });

const texts = (request: HistoryRequest): string[] =>
  inherited(request).map((item) => {
    if (item.kind === "user" || item.kind === "mail") return item.text;
    if (item.kind === "assistant")
      return item.parts.map((part) => ("text" in part ? part.text : part.name)).join("|");
    return item.kind === "context" ? item.topic : item.name;
  });

describe("fork_turns", () => {
  test.for([
    [undefined, "all"],
    [null, "all"],
    ["", "all"],
    ["  ", "all"],
    [" ALL ", "all"],
    ["None", "none"],
    ["1", 1],
    [" 12 ", 12],
    ["9".repeat(400), Number.MAX_SAFE_INTEGER],
  ] as const)("SPN-5 '%s' is %s", ([word, turns]) => {
    expect(parseForkTurns(word)).toBe(turns);
  });

  test.for(["0", "00", "-1", "1.5", "1e3", "+2", "banana", "all 3", "٣"])("SPN-5 '%s' is refused", (word) => {
    expect(() => parseForkTurns(word)).toThrow(
      expect.objectContaining({
        code: "INVALID_ARGUMENT",
        details: expect.objectContaining({ argument: "fork_turns" }),
      }),
    );
  });
});

describe("the projection", () => {
  test("SPN-5 all: input of the user and final answers of earlier runs, input of this run, then the notice", () => {
    expect(texts(base)).toEqual([
      "one",
      "first answer",
      "second answer",
      "third answer",
      "four",
      "steered",
      "inherited_history",
    ]);
  });

  test("SPN-5 nothing of the step that makes the call, and nothing appended later", () => {
    expect(JSON.stringify(inherited(base))).not.toMatch(/spawn|too late|earlier call/);
  });

  test.for([
    [1, ["four", "steered"]],
    [2, ["third answer", "four", "steered"]],
    [3, ["one", "first answer", "second answer", "third answer", "four", "steered"]],
    [9, ["one", "first answer", "second answer", "third answer", "four", "steered"]],
  ] as const)(
    "SPN-5 %i counts runs that input or trigger-turn mail started; a woken run goes along",
    ([turns, kept]) => {
      expect(texts({ ...base, turns })).toEqual([...kept, "inherited_history"]);
    },
  );

  test("SPN-5 a woken run that makes the call goes with the one before it", () => {
    const request = { ...base, currentRun: runId(2), before: 7, turns: 1 };
    expect(texts(request)).toEqual(["one", "first answer", "inherited_history"]);
  });

  test("SPN-5 none carries nothing, and so does an empty history", () => {
    expect(inherited({ ...base, turns: "none" })).toEqual([]);
    expect(inherited({ ...base, items: [], before: 0 })).toEqual([]);
  });

  test("SPN-5 inherited input is marked, detached from its mail, and free of provider data", () => {
    const projected = inherited(base);
    expect(projected[0]).toEqual({ kind: "user", text: "one", mailId: null, workId: null, inherited: true });
    expect(projected[1]).toEqual({
      kind: "assistant",
      phase: "answer",
      parts: [{ type: "text", text: "first answer" }],
      model: "small",
      inherited: true,
    });
  });

  test("SPN-5 the notice names the parent, denies authority and disowns pending work", () => {
    const notice = inherited(base, { parent: "/root/lead" }).at(-1);
    expect(notice).toMatchObject({ kind: "context", topic: "inherited_history" });
    expect(JSON.stringify(notice)).toMatch(
      /background.*no permission.*open in it belongs to \/root\/lead, not to you/,
    );
  });

  test("SPN-5 what the parent has inherited comes with all, and not with a number", () => {
    const inherited = transcript(
      [null, 0, { kind: "user", text: "old", mailId: null, workId: null, inherited: true }],
      [null, 0, { kind: "context", topic: "inherited_history", text: "old notice" }],
      [1, 1, user("new")],
      [1, 1, says("tools", "spawn")],
    );
    const request = { ...base, items: inherited, before: 3, runs: [run(1)], currentRun: runId(1) };
    expect(texts(request)).toEqual(["old", "new", "inherited_history"]);
    expect(texts({ ...request, turns: 5 })).toEqual(["new", "inherited_history"]);
  });

  test("SPN-5 answers that the parent has inherited come along where no run asks for the child", () => {
    const before = transcript([null, 0, { ...says("answer", "old answer"), inherited: true } as ItemBody]);
    const request = { ...base, items: before, before: 1, runs: [], currentRun: null };
    expect(texts(request)).toEqual(["old answer", "inherited_history"]);
  });

  test("SPN-5 C6.4 what is pinned comes first, and the notice says what had no room", () => {
    const items = inherited(base, { pinned: "\n== Decisions ==\n- use tabs\n", leftOut: 3 });
    expect(items[0]).toEqual({
      kind: "context",
      topic: "inherited_history",
      text: "Pinned by /root:\n== Decisions ==\n- use tabs",
    });
    expect(JSON.stringify(items.at(-1))).toContain("3 of its messages had no room and are left out.");
  });

  test("SEC-3 the items are redacted for another provider only", () => {
    const secret = transcript([1, 1, user("password=hunter2")], [2, 1, says("tools", "spawn")]);
    const request = { ...base, items: secret, before: 1, runs: [run(1), run(2)], currentRun: runId(2) };
    expect(inherited(request)[0]).toMatchObject({ text: "password=hunter2" });
    expect(inherited(request, { toOtherProvider: true })[0]).toMatchObject({ text: "password=***" });
  });
});
