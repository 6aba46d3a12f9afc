/**
 * What every provider owes the run loop (port.ts, P1 to P3), as checks that any test runner can run. Each check opens an
 * adapter of its own, whose next step behaves as asked; how that is brought about is the adapter's test's affair.
 *
 * A check that fails throws an `AssertionError`. Nothing here knows a provider's name.
 */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { CoppiceError, ERROR_TABLE, InterruptedError } from "../protocol/errors.ts";
import type { PromptMessage, StepEvent, StepRequest } from "../protocol/provider-events.ts";
import type { OwnLoopAdapter, ProviderSession } from "../providers/port.ts";

/** What the next step, or the next two, of an adapter do. */
export type Behaviour =
  /** Text in two or more deltas, and a stop. */
  | "text"
  /** Two calls of the tool `look` with different arguments in one step, then text. */
  | "calls"
  /** The provider refuses the request, or cannot serve it. */
  | "failure"
  /** One delta of text, then nothing until the step is aborted. */
  | "silence";

/** An adapter that is about to behave as asked; given back after the check. */
export interface ConformanceSubject extends AsyncDisposable {
  readonly adapter: OwnLoopAdapter;
}

/** One check of a conformance suite. */
export interface ConformanceCheck {
  readonly title: string;
  readonly run: () => Promise<void>;
}

type Open = (behaviour: Behaviour) => Promise<ConformanceSubject>;

/** The checks for the adapter that `open` makes. */
export function providerConformance(open: Open): readonly ConformanceCheck[] {
  const check = (
    title: string,
    behaviour: Behaviour,
    body: (session: ProviderSession, adapter: OwnLoopAdapter) => Promise<void>,
  ): ConformanceCheck => ({
    title,
    async run() {
      await using subject = await open(behaviour);
      const { adapter } = subject;
      const session = await adapter.openSession({
        threadId: "thread_conformance",
        path: "/root",
        model: null,
      });
      try {
        await body(session, adapter);
      } finally {
        await session.close();
      }
    },
  });
  return [
    check("says what it can", "text", async (_session, adapter) => {
      const { driver, loop, capabilities, threads, defaultModel } = adapter;
      assert.match(driver, /^[a-z][a-z-]*$/);
      assert.equal(loop, "ours");
      assert.ok(threads.context.channels.length > 0);
      // A wait is parked by loading its transcript again later, which takes an exact one.
      if (capabilities.parksWaits) assert.ok(capabilities.exact);
      const known = adapter.models();
      if (known !== null && defaultModel !== null) assert.ok(Object.hasOwn(known, defaultModel));
    }),
    check("P1 accepts first and once, and finishes last and once", "text", async (session) => {
      const events = await collect(session, request([ASK]));
      assert.deepEqual(places(events, "accepted"), [0]);
      assert.deepEqual(places(events, "finish"), [events.length - 1]);
      assert.equal(reason(events), "stop");
    }),
    check("shows as deltas what its text parts hold", "text", async (session) => {
      const events = await collect(session, request([ASK]));
      const deltas = events.flatMap((event) => (event.type === "text" ? [event.text] : []));
      const parts = partsOf(events).flatMap((part) => (part.type === "text" ? [part.text] : []));
      assert.ok(parts.join("").length > 0);
      assert.equal(deltas.join(""), parts.join(""));
    }),
    check("calls in parallel under ids of their own, and takes its answer back", "calls", async (session) => {
      const first = await collect(session, request([ASK], 1, [LOOK]));
      const parts = partsOf(first);
      const calls = parts.flatMap((part) => (part.type === "tool_call" ? [part] : []));
      assert.deepEqual([reason(first), calls.length], ["tool_calls", 2]);
      assert.equal(new Set(calls.map(({ callId }) => callId)).size, 2);
      assert.deepEqual(new Set(calls.map(({ name }) => name)), new Set(["look"]));
      const results = calls.map(({ callId, name }): PromptMessage => ({
        role: "tool",
        callId,
        name,
        output: "seen",
        isError: false,
      }));
      // Through text, as a store would keep it: an exact transcript loses nothing on the way.
      const kept = JSON.parse(JSON.stringify(parts)) as typeof parts;
      assert.deepEqual(kept, parts);
      const messages: PromptMessage[] = [ASK, { role: "assistant", parts: kept }, ...results];
      assert.equal(reason(await collect(session, request(messages, 2, [LOOK]))), "stop");
    }),
    check("P2 fails with an error of its kinds and codes", "failure", async (session) => {
      const error = await failure(collect(session, request([ASK])));
      assert.ok(CoppiceError.is(error), `not an error of the runtime: ${String(error)}`);
      assert.match(error.code, /^(PROVIDER|MODEL|SCRIPT)_/);
      assert.ok(["rejected", "transient"].includes(ERROR_TABLE[error.code].family));
    }),
    check("P2 sends nothing for a signal that is aborted already", "text", async (session) => {
      const why = new InterruptedError("RUN_INTERRUPTED", "before the start");
      const events: StepEvent[] = [];
      const error = await failure(collect(session, request([ASK]), AbortSignal.abort(why), events));
      assert.equal(error, why);
      assert.deepEqual(events, []);
    }),
    check("P3 ends with the reason of the signal while it waits", "silence", async (session) => {
      const controller = new AbortController();
      const why = new InterruptedError("RUN_INTERRUPTED", "in the middle");
      const events = session.step(request([ASK]), controller.signal)[Symbol.asyncIterator]();
      let next = await events.next();
      while (next.done !== true && next.value.type !== "text") next = await events.next();
      assert.equal(next.done ?? false, false, "the step ended before its first text");
      // Asked for more before the signal comes, so that the step is waiting for its provider.
      const pending = events.next();
      controller.abort(why);
      const error = await failure(
        (async () => {
          for (let left = await pending; left.done !== true; left = await events.next()) {
            assert.notEqual(left.value.type, "finish");
          }
        })(),
      );
      assert.equal(error, why);
    }),
    check("leaves no listener on the signal", "text", async (session) => {
      const { signal } = new AbortController();
      await collect(session, request([ASK]), signal);
      assert.equal(getEventListeners(signal, "abort").length, 0);
    }),
  ];
}

const ASK: PromptMessage = { role: "user", text: "Go on." };

const LOOK: StepRequest["tools"][number] = {
  name: "look",
  description: "Looks at one thing.",
  parameters: {
    type: "object",
    properties: { at: { type: "string" } },
    required: ["at"],
    additionalProperties: false,
  },
  effects: [],
};

function request(
  messages: readonly PromptMessage[],
  step = 1,
  tools: StepRequest["tools"] = [],
): StepRequest {
  return {
    threadId: "thread_conformance",
    conversationKey: "thread_conformance",
    path: "/root",
    runId: "run_conformance",
    step,
    attempt: 1,
    model: null,
    effort: null,
    ownSteps: step - 1,
    messages,
    tools,
    maxOutputTokens: null,
  };
}

async function collect(
  session: ProviderSession,
  asked: StepRequest,
  signal: AbortSignal = new AbortController().signal,
  into: StepEvent[] = [],
): Promise<StepEvent[]> {
  for await (const event of session.step(asked, signal)) into.push(event);
  return into;
}

async function failure(pending: Promise<unknown>): Promise<unknown> {
  return pending.then(
    () => assert.fail("the step ended without an error"),
    (error: unknown) => error,
  );
}

function places(events: readonly StepEvent[], type: StepEvent["type"]): number[] {
  return events.flatMap((event, at) => (event.type === type ? [at] : []));
}

function partsOf(events: readonly StepEvent[]) {
  return events.flatMap((event) => (event.type === "part" ? [event.part] : []));
}

function reason(events: readonly StepEvent[]): string | undefined {
  const last = events.at(-1);
  return last?.type === "finish" ? last.reason : undefined;
}
