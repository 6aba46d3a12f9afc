/** One boundary of ours, in each provider's own words (lineage 3.2): what is sent, and what is left of the conversation. */
import { describe, expect, test } from "vitest";
import type { NativeThread, NativeTurn } from "../../../src/protocol/native-events.ts";
import type { Boundary } from "../../../src/protocol/provider-capabilities.ts";
import type { NativeRef } from "../../../src/protocol/provider-thread.ts";
import { isDriverOf, nativeCall } from "../../../src/providers/native-call.ts";
import type { NativeSession } from "../../../src/providers/port.ts";
import { crashAfter, hang, refuse, unauthenticated } from "../../../src/providers/scripted/native/faults.ts";
import {
  exclusiveFork,
  headFork,
  itemFork,
  mute,
  noFork,
  type ScriptedNativeProvider,
  turnFork,
} from "../../../src/providers/scripted/native/provider.ts";
import { repeat, say } from "../../../src/providers/scripted/script.ts";

const SCRIPTS = { "*": [repeat(say((context) => `re: ${context.inputs.at(-1)}`))] };

interface Spoken {
  readonly native: ScriptedNativeProvider;
  readonly session: NativeSession;
  readonly thread: NativeThread;
  readonly turns: readonly (NativeTurn & { readonly ref: NativeRef })[];
  readonly fork: (boundary: Boundary) => Promise<NativeThread>;
  readonly rollback: (boundary: Boundary) => Promise<NativeThread>;
  /** The user's messages that a conversation holds. */
  readonly said: (thread: Pick<NativeThread, "ref">) => readonly string[];
}

const OPENING = {
  treeId: "thread_a",
  path: "/root",
  model: null,
  workspace: null,
  effects: [],
  instructions: null,
  tools: [],
  transportWaitMs: 45_000,
  startProcess: () => Promise.reject(new Error("it has no processes")),
};

/** A conversation of three turns: a, b, c. */
async function speak(native: ScriptedNativeProvider): Promise<Spoken> {
  const session = await native.openSession({ ...OPENING, threadId: "thread_a" });
  const thread = await session.ensureThread({ model: null, effort: null });
  const events = session.events()[Symbol.asyncIterator]();
  const turns: Spoken["turns"][number][] = [];
  for (const [at, userMessage] of ["a", "b", "c"].entries()) {
    void session.startTurn({
      thread: thread.ref,
      key: userMessage,
      userMessage,
      preambles: [],
      policy: { model: null, effort: null, effects: [], workspace: null, maxOutputTokens: null },
      signal: new AbortController().signal,
    });
    for (;;) {
      const { value } = await events.next();
      if (value?.type !== "turn.terminal") continue;
      turns.push({ ordinal: at + 1, ref: value.turn! });
      break;
    }
  }
  return {
    native,
    session,
    thread,
    turns,
    fork: (boundary) =>
      nativeCall(session, "forkThread")({ source: thread.ref, boundary, turns, intentId: "int_a" }),
    rollback: (boundary) => nativeCall(session, "rollbackThread")({ thread: thread.ref, boundary, turns }),
    said: ({ ref }) =>
      native.conversations
        .find(ref.driver, ref.nativeId)!
        .items.flatMap(({ message }) => (message.role === "user" ? [message.text] : [])),
  };
}

const after = ({ turns }: Spoken, ordinal: number): Boundary => ({
  kind: "after_turn",
  turn: turns[ordinal - 1]!.ref,
  laterTerminalTurns: turns.length - ordinal,
});

const before = ({ turns }: Spoken, ordinal: number): Boundary => ({
  kind: "before_turn",
  turn: turns[ordinal - 1]!.ref,
  laterTerminalTurns: turns.length - ordinal + 1,
});

const nameless = (boundary: Boundary): Boundary =>
  "turn" in boundary ? { ...boundary, turn: { ...boundary.turn, strength: "none" } } : boundary;

describe("a provider with inclusive turn ids", () => {
  test.each(["legacy", "paginated"] as const)(
    "S0-49 S0-50 S2-11 forks at a native turn with one call, %s history",
    async (history) => {
      const spoken = await speak(turnFork(SCRIPTS, { history }));
      const fork = await spoken.fork(after(spoken, 2));
      const { nativeId } = spoken.turns[1]!.ref;
      expect(spoken.native.wire().slice(1)).toEqual([
        { method: "thread/fork", params: { threadId: spoken.thread.ref.nativeId, lastTurnId: nativeId } },
      ]);
      expect(spoken.said(fork)).toEqual(["a", "b"]);
      expect(spoken.said(spoken.thread)).toEqual(["a", "b", "c"]);
      expect(spoken.said(await spoken.fork(before(spoken, 2)))).toEqual(["a"]);
    },
  );

  test("S0-51 without a turn's id, a fork of the head is cut back, and the source is not touched", async () => {
    const spoken = await speak(turnFork(SCRIPTS, { history: "legacy" }));
    const fork = await spoken.fork(nameless(after(spoken, 1)));
    expect(spoken.native.wire().slice(1)).toEqual([
      { method: "thread/fork", params: { threadId: spoken.thread.ref.nativeId } },
      { method: "thread/rollback", params: { threadId: fork.ref.nativeId, numTurns: 2 } },
    ]);
    expect(spoken.said(fork)).toEqual(["a"]);
    expect(spoken.said(spoken.thread)).toEqual(["a", "b", "c"]);
  });

  test("S0-52 paginated history cannot be cut back so: it fails, and the orphan is told and found", async () => {
    const spoken = await speak(turnFork(SCRIPTS));
    const error = await spoken.fork(nameless(after(spoken, 1))).catch((failed: unknown) => failed);
    const [orphan] = await nativeCall(spoken.session, "findForks")(spoken.thread.ref);
    expect(error).toMatchObject({ code: "FORK_NATIVE_FAILED", details: { orphan: orphan!.ref.nativeId } });
    expect(spoken.native.wire().map(({ method }) => method)).not.toContain("thread/rollback");
    expect(orphan!.forkedFrom).toEqual(spoken.thread.ref);
  });

  test("S0-53 what an adapter is given has a neutral boundary and the turns, and no field of a provider's own", async () => {
    const spoken = await speak(turnFork(SCRIPTS));
    await spoken.fork(after(spoken, 2));
    const [{ input }] = spoken.native.calls("forkThread") as unknown as [{ input: object }];
    expect(Object.keys(input).toSorted()).toEqual(["boundary", "intentId", "source", "turns"]);
    expect(input).toMatchObject({
      boundary: { kind: "after_turn", laterTerminalTurns: 1 },
      turns: spoken.turns,
    });
  });

  test("S0-54 legacy history is rolled back by count", async () => {
    const spoken = await speak(turnFork(SCRIPTS, { history: "legacy" }));
    await spoken.rollback(after(spoken, 1));
    expect(spoken.native.wire().at(-1)).toEqual({
      method: "thread/rollback",
      params: { threadId: spoken.thread.ref.nativeId, numTurns: 2 },
    });
    expect(spoken.said(spoken.thread)).toEqual(["a"]);
  });

  test("S0-55 the history is looked at first, and paginated one is reverted, never rolled back", async () => {
    const spoken = await speak(turnFork(SCRIPTS));
    await spoken.rollback(before(spoken, 2));
    expect(spoken.native.wire().slice(1)).toEqual([
      { method: "thread/read", params: { threadId: spoken.thread.ref.nativeId, includeTurns: false } },
      {
        method: "thread/revert",
        params: { threadId: spoken.thread.ref.nativeId, beforeTurnId: spoken.turns[1]!.ref.nativeId },
      },
    ]);
    expect(spoken.said(spoken.thread)).toEqual(["a"]);
  });

  test("C9.5 a turn without a name is cut at by nobody who would have to name it", async () => {
    for (const make of [turnFork, itemFork]) {
      const { session, thread, turns, said } = await speak(make(SCRIPTS));
      const unnamed = turns.map((turn, at) => (at === 1 ? { ...turn, ref: null } : turn));
      const boundary: Boundary =
        make === turnFork
          ? { kind: "after_turn", turn: turns[0]!.ref, laterTerminalTurns: 2 }
          : { kind: "before_turn", turn: turns[2]!.ref, laterTerminalTurns: 1 };
      await expect(
        nativeCall(session, "rollbackThread")({ thread: thread.ref, boundary, turns: unnamed }),
      ).rejects.toMatchObject({ code: "ROLLBACK_TURN_UNAVAILABLE" });
      expect(said(thread)).toEqual(["a", "b", "c"]);
    }
  });

  test("S0-56 paginated history without a revert is refused, and nothing is changed", async () => {
    const spoken = await speak(turnFork(SCRIPTS, { revert: false }));
    await expect(spoken.rollback(after(spoken, 1))).rejects.toMatchObject({
      code: "ROLLBACK_NATIVE_UNSUPPORTED",
    });
    expect(spoken.native.wire().at(-1)!.method).toBe("thread/read");
    expect(spoken.said(spoken.thread)).toEqual(["a", "b", "c"]);
  });

  test("S2-43 records under an earlier name of its driver are its own", async () => {
    const spoken = await speak(turnFork(SCRIPTS));
    expect(isDriverOf(spoken.native, "tf")).toBe(true);
    expect(isDriverOf(spoken.native, "item-fork")).toBe(false);
    const resumed = await spoken.session.resumeThread({ ...spoken.thread.ref, driver: "turn-fork-early" });
    expect(resumed.ref).toEqual(spoken.thread.ref);
    await expect(
      spoken.session.resumeThread({ ...spoken.thread.ref, driver: "item-fork" }),
    ).rejects.toMatchObject({ code: "PROVIDER_RESUME_FAILED" });
  });

  test("two sessions never write to one conversation", async () => {
    const spoken = await speak(turnFork(SCRIPTS));
    const other = turnFork(SCRIPTS, { conversations: spoken.native.conversations });
    const session = await other.openSession({ ...OPENING, threadId: "thread_b" });
    await expect(session.resumeThread(spoken.thread.ref)).rejects.toMatchObject({
      code: "PROVIDER_WRITER_BUSY",
    });
    await spoken.session.close();
    await expect(session.resumeThread(spoken.thread.ref)).resolves.toMatchObject({ ref: spoken.thread.ref });
  });
});

describe("providers that name messages", () => {
  test("S2-10 an exclusive id is that of the first message that is left out", async () => {
    const spoken = await speak(exclusiveFork(SCRIPTS));
    expect(spoken.said(await spoken.fork(after(spoken, 2)))).toEqual(["a", "b"]);
    expect(spoken.native.wire().at(-1)).toEqual({
      method: "POST /session/fork",
      params: { id: spoken.thread.ref.nativeId, messageID: spoken.turns[2]!.ref.nativeId },
    });
    // Behind the last there is none to name.
    expect(spoken.said(await spoken.fork(after(spoken, 3)))).toEqual(["a", "b", "c"]);
    expect(spoken.native.wire().at(-1)!.params).toEqual({ id: spoken.thread.ref.nativeId });
    expect(spoken.said(await spoken.fork(before(spoken, 3)))).toEqual(["a", "b"]);
    await spoken.rollback(before(spoken, 2));
    expect(spoken.said(spoken.thread)).toEqual(["a"]);
  });

  test("an inclusive id is that of the last message that is kept; a turn is its last message", async () => {
    const spoken = await speak(itemFork(SCRIPTS));
    expect(spoken.said(await spoken.fork(after(spoken, 2)))).toEqual(["a", "b"]);
    expect(spoken.native.wire().at(-1)).toEqual({
      method: "forkSession",
      params: { sessionId: spoken.thread.ref.nativeId, upToMessageId: spoken.turns[1]!.ref.nativeId },
    });
    expect(spoken.said(await spoken.fork(before(spoken, 2)))).toEqual(["a"]);
    await spoken.rollback(after(spoken, 1));
    expect(spoken.native.wire().at(-1)!.params).toMatchObject({
      resumeSessionAt: spoken.turns[0]!.ref.nativeId,
    });
    expect(spoken.said(spoken.thread)).toEqual(["a"]);
  });

  test.each([
    ["itemFork", itemFork],
    ["exclusiveFork", exclusiveFork],
  ] as const)("a message is a boundary for %s on either side", async (_name, make) => {
    const spoken = await speak(make(SCRIPTS));
    const { items } = spoken.native.conversations.find(spoken.thread.ref.driver, spoken.thread.ref.nativeId)!;
    const item = { ...spoken.thread.ref, nativeId: items[2]!.id };
    expect(spoken.said(await spoken.fork({ kind: "before_item", item }))).toEqual(["a"]);
    expect(spoken.said(await spoken.fork({ kind: "after_item", item }))).toEqual(["a", "b"]);
  });

  test("C9.8 back to the start is nothing at all", async () => {
    for (const make of [turnFork, itemFork, exclusiveFork]) {
      const spoken = await speak(make(SCRIPTS));
      const rolled = await spoken.rollback({ kind: "start" });
      expect(spoken.said(rolled)).toEqual([]);
    }
  });
});

describe("providers that can do less", () => {
  test("S2-12 one forks as a whole and no finer, the others do not fork", async () => {
    const spoken = await speak(headFork(SCRIPTS));
    expect(spoken.said(await spoken.fork({ kind: "head" }))).toEqual(["a", "b", "c"]);
    await expect(spoken.fork(after(spoken, 1))).rejects.toMatchObject({
      code: "PROVIDER_CAPABILITY_MISSING",
      details: { capability: "threads.fork" },
    });
    for (const make of [noFork, mute]) {
      const other = await speak(make(SCRIPTS));
      expect(() => other.fork({ kind: "head" })).toThrow(/threads\.fork/);
      expect(other.native.calls("forkThread")).toEqual([]);
    }
  });
});

describe("what a scripted provider is told to do wrong", () => {
  test("it refuses, is not signed in, hangs, dies when it has done it, or has lost its conversation", async () => {
    const spoken = await speak(turnFork(SCRIPTS));
    const { native, session, thread } = spoken;
    native.fault("forkThread", refuse(new Error("no")));
    await expect(spoken.fork({ kind: "head" })).rejects.toThrow("no");
    native.fault("forkThread", unauthenticated());
    await expect(spoken.fork({ kind: "head" })).rejects.toMatchObject({
      code: "PROVIDER_UNAVAILABLE",
      details: { reason: "authentication" },
    });
    expect(await nativeCall(session, "findForks")(thread.ref)).toEqual([]);
    native.fault("forkThread", hang("fork"));
    const hanging = spoken.fork({ kind: "head" });
    await native.gates.arrived("fork");
    expect(await nativeCall(session, "findForks")(thread.ref)).toEqual([]);
    native.gates.open("fork");
    await hanging;
    native.fault("forkThread", crashAfter());
    await expect(spoken.fork({ kind: "head" })).rejects.toMatchObject({ code: "PROVIDER_UNREACHABLE" });
    const forks = native.conversations.all().filter(({ forkedFrom }) => forkedFrom === thread.ref.nativeId);
    expect(forks).toHaveLength(2);
    await expect(session.resumeThread(thread.ref)).rejects.toMatchObject({ code: "PROVIDER_UNREACHABLE" });
    const next = await native.openSession(native.calls("openSession")[0]!.input as never);
    native.lose(thread.ref);
    await expect(next.resumeThread(thread.ref)).rejects.toMatchObject({ code: "PROVIDER_RESUME_FAILED" });
  });
});
