/**
 * What every provider that owns its loop owes the session (port.ts, P4 to P7), as checks that any test runner can run. Each
 * check opens an adapter of its own whose next turns behave as asked. What an adapter says it cannot do is checked for its
 * absence: a capability that is not there refuses by its name.
 *
 * A check that fails throws an `AssertionError`. Nothing here knows a provider's name.
 */
import assert from "node:assert/strict";
import { CoppiceError, ERROR_TABLE } from "../protocol/errors.ts";
import type { NativeEvent, NativeThread } from "../protocol/native-events.ts";
import type { Boundary, ThreadCapabilities } from "../protocol/provider-capabilities.ts";
import type { NativeRef } from "../protocol/provider-thread.ts";
import { hasNative, nativeCall } from "../providers/native-call.ts";
import type { NativeAdapter } from "../providers/port.ts";
import { Driver, terminalOf } from "./native-driver.ts";
import type { ConformanceCheck } from "./provider-conformance.ts";

/** What every turn of the adapter does until it is asked for another behaviour. */
export type NativeBehaviour =
  /** Says a text, the same or another each time. */
  | "text"
  /** Ends without a word. */
  | "empty"
  /** Calls the tool `look` with `{ "at": "a" }`, then says a text. */
  | "calls"
  /** Asks the user, then says a text. */
  | "question"
  /** Says a text, and then nothing until it is stopped. */
  | "silence"
  /** Refused before it is accepted. */
  | "refusal"
  /** Fails after it was accepted. */
  | "failure";

/** An adapter that is about to behave as asked; given back after the check. */
export interface NativeSubject extends AsyncDisposable {
  readonly adapter: NativeAdapter;
  /** Another adapter on the same conversations, as after a restart. */
  readonly reopen: () => NativeAdapter;
  /** Its provider dies, as a killed process would. */
  readonly kill: () => void;
}

type Open = (behaviour: NativeBehaviour) => Promise<NativeSubject>;

/** The checks for the adapter that `open` makes. */
export function nativeProviderConformance(open: Open): readonly ConformanceCheck[] {
  const check = (
    title: string,
    behaviour: NativeBehaviour,
    body: (driver: Driver, subject: NativeSubject) => Promise<void>,
  ): ConformanceCheck => ({
    title,
    async run() {
      await using subject = await open(behaviour);
      const driver = await Driver.open(subject.adapter);
      try {
        await body(driver, subject);
      } finally {
        await driver.session.close();
      }
    },
  });
  return [
    check("says what it can", "text", async ({ session }, { adapter }) => {
      assert.match(adapter.driver, /^[a-z][a-z-]*$/);
      assert.equal(adapter.loop, "theirs");
      const can = await adapter.capabilities();
      assert.deepEqual(Object.keys(session.negotiated).toSorted(), Object.keys(can).toSorted());
      const same = { model: null, effort: null };
      assert.equal(adapter.classifySelectionChange(same, same), "apply_next_turn");
      const known = adapter.models();
      if (known !== null && adapter.defaultModel !== null)
        assert.ok(Object.hasOwn(known, adapter.defaultModel));
    }),
    check("P5 accepts first, ends last and once, and answers in between", "text", async (driver) => {
      const events = await driver.turn("hello");
      assert.equal(events.filter((event) => event.type === "turn.terminal").length, 1);
      const last = terminalOf(events);
      assert.equal(last.outcome, "completed");
      assert.ok(textOf(events).length > 0);
      if (driver.can.turns.acceptedEvent) assert.equal(events[0]!.type, "turn.accepted");
      assert.ok(events.every((event) => event.key === "turn-1"));
    }),
    check("takes an empty answer for one", "empty", async (driver) => {
      const events = await driver.turn("hello");
      assert.equal(terminalOf(events).outcome, "completed");
      assert.equal(textOf(events), "");
    }),
    check("asks for its tools, and goes on with what it is given", "calls", async (driver) => {
      const events = await driver.turn("hello", async (event) => {
        if (event.type !== "request") return;
        assert.equal(event.request.kind, "tool");
        assert.equal(event.request.kind === "tool" && event.request.name, "look");
        await driver.session.respond(event.request.ref, { kind: "tool", output: "seen", isError: false });
      });
      assert.equal(events.filter((event) => event.type === "request").length, 1);
      assert.equal(terminalOf(events).outcome, "completed");
    }),
    check("asks the user a question, and answers to nothing twice", "question", async (driver) => {
      let asked: NativeRef | null = null;
      const events = await driver.turn("hello", async (event) => {
        if (event.type !== "request") return;
        assert.equal(event.request.kind, "question");
        asked = event.request.ref;
        await driver.session.respond(asked, { kind: "answer", text: "blue" });
      });
      assert.equal(terminalOf(events).outcome, "completed");
      await refused(driver.session.respond(asked!, { kind: "answer", text: "red" }), "REQUEST_NOT_RESUMABLE");
    }),
    check(
      "P4 refuses before acceptance, with an error of its kinds and no event",
      "refusal",
      async (driver) => {
        const error = await failure(driver.start("hello"));
        assertTyped(error);
        await driver.nothingComes();
      },
    ),
    check("P5 a turn that fails says why", "failure", async (driver) => {
      const last = terminalOf(await driver.turn("hello"));
      assert.equal(last.outcome, "failed");
      assertTyped(last.error);
    }),
    check(
      "P5 stops a turn, which ends as interrupted and not with the acknowledgement",
      "silence",
      async (driver) => {
        const events = await driver.turn(
          "hello",
          onFirstWords(() => driver.session.interruptTurn(driver.thread.ref, "turn-1")),
        );
        assert.equal(terminalOf(events).outcome, "interrupted");
      },
    ),
    check("P5 its events break when it dies in the middle of a turn", "silence", async (driver, { kill }) => {
      const error = await failure(
        driver.turn(
          "hello",
          onFirstWords(async () => kill()),
        ),
      );
      assertTyped(error);
      assertTyped(await failure(driver.start("again")));
    }),
    check("puts input into a turn, or says that it cannot", "silence", async (driver) => {
      const { session, can, thread } = driver;
      if (!can.turns.steer) return missing(() => nativeCall(session, "steerTurn"), "turns.steer");
      const steer = nativeCall(session, "steerTurn");
      await driver.turn(
        "hello",
        onFirstWords(async () => {
          await steer({ thread: thread.ref, key: "turn-1", userMessage: "and this", preambles: [] });
          await session.interruptTurn(thread.ref, "turn-1");
        }),
      );
      const late = steer({ thread: thread.ref, key: "turn-1", userMessage: "too late", preambles: [] });
      assertTyped(await failure(late));
    }),
    check(
      "P6 resumes what it has, also in another process, and nothing else",
      "text",
      async (driver, subject) => {
        await driver.turn("hello");
        await driver.session.close();
        const later = await Driver.open(subject.reopen(), driver.thread.ref);
        assert.equal(later.thread.ref.nativeId, driver.thread.ref.nativeId);
        assert.equal(terminalOf(await later.turn("again")).outcome, "completed");
        const unknown = { ...driver.thread.ref, nativeId: "nobody" };
        await refused(later.session.resumeThread(unknown), "PROVIDER_RESUME_FAILED");
        await later.session.close();
      },
    ),
    check("P7 forks as finely as it says, and leaves the source alone", "text", async (driver) => {
      const { session, can } = driver;
      if (can.threads.fork === "none")
        return missing(() => nativeCall(session, "forkThread"), "threads.fork");
      const turns = await driver.threeTurns();
      const fork = nativeCall(session, "forkThread");
      const cut = (boundary: Boundary) =>
        fork({ source: driver.thread.ref, boundary, turns, intentId: "intent" });
      const whole = await cut({ kind: "head" });
      assert.notEqual(whole.ref.nativeId, driver.thread.ref.nativeId);
      assert.equal(whole.forkedFrom?.nativeId, driver.thread.ref.nativeId);
      if (hasNative(session, "findForks"))
        assert.equal((await nativeCall(session, "findForks")(driver.thread.ref)).length, 1);
      const first: Boundary = { kind: "after_turn", turn: turns[0]!.ref, laterTerminalTurns: 2 };
      if (can.threads.fork === "head") await refused(cut(first), "PROVIDER_CAPABILITY_MISSING");
      else {
        assert.equal(told(await cut(first), can), expected(1, can));
        assert.equal(
          told(await cut({ ...first, kind: "before_turn", turn: turns[2]!.ref, laterTerminalTurns: 1 }), can),
          expected(2, can),
        );
      }
      assert.equal(
        (await session.resumeThread(driver.thread.ref)).head?.nativeId,
        turns.at(-1)!.ref.nativeId,
      );
    }),
    check("P7 rolls back as it says", "text", async (driver) => {
      const { session, can } = driver;
      if (can.threads.rollback === "none")
        return missing(() => nativeCall(session, "rollbackThread"), "threads.rollback");
      const turns = await driver.threeTurns();
      const rolled = await nativeCall(
        session,
        "rollbackThread",
      )({
        thread: driver.thread.ref,
        boundary: { kind: "after_turn", turn: turns[0]!.ref, laterTerminalTurns: 2 },
        turns,
      });
      assert.equal(rolled.ref.nativeId, driver.thread.ref.nativeId);
      assert.equal(told(rolled, can), expected(1, can));
      assert.equal(terminalOf(await driver.turn("again")).outcome, "completed");
    }),
    check("P7 reads back what was said, or says that it cannot", "text", async (driver) => {
      const { session, can, thread } = driver;
      if (can.threads.read === "none")
        return missing(() => nativeCall(session, "readThread"), "threads.read");
      const turns = await driver.threeTurns();
      const read = nativeCall(session, "readThread");
      const seen: string[] = [];
      let page: string | undefined;
      for (let pages = 0; pages <= turns.length; pages += 1) {
        const { turns: some, next } = await read(thread.ref, page);
        seen.push(...some.map(({ ref }) => ref.nativeId));
        assert.ok(some.every(({ items }) => items.length >= 2));
        if (next === null) break;
        page = next;
      }
      assert.deepEqual(
        seen,
        turns.map(({ ref }) => ref.nativeId),
      );
    }),
  ];
}

/** Once, when the turn says something, which may be a piece of it. */
function onFirstWords(body: () => Promise<void>): (event: NativeEvent) => Promise<void> {
  let said = false;
  return async (event) => {
    if (said || (event.type !== "item" && event.type !== "delta")) return;
    said = true;
    await body();
  };
}

function textOf(events: readonly NativeEvent[]): string {
  return events
    .flatMap((event) => (event.type === "item" && event.item.kind === "text" ? [event.item.text] : []))
    .join("");
}

/** How many turns it says that it has; null where it does not say. */
function told({ turns }: NativeThread, can: ThreadCapabilities): number | null {
  return can.threads.rollbackReturnsSnapshot ? (turns?.length ?? null) : null;
}

function expected(turns: number, can: ThreadCapabilities): number | null {
  return can.threads.rollbackReturnsSnapshot ? turns : null;
}

function missing(call: () => unknown, capability: string): void {
  assert.throws(call, (error) => {
    assert.ok(CoppiceError.is(error));
    assert.equal(error.code, "PROVIDER_CAPABILITY_MISSING");
    assert.equal(error.details["capability"], capability);
    return true;
  });
}

async function refused(pending: Promise<unknown>, code: string): Promise<void> {
  const error = await failure(pending);
  assertTyped(error);
  assert.equal(error.code, code);
}

function assertTyped(error: unknown): asserts error is CoppiceError {
  assert.ok(CoppiceError.is(error), `not an error of the runtime: ${String(error)}`);
  assert.ok(["rejected", "transient"].includes(ERROR_TABLE[error.code].family));
}

async function failure(pending: Promise<unknown>): Promise<unknown> {
  return pending.then(
    () => assert.fail("it did not fail"),
    (error: unknown) => error,
  );
}
