/** What an adapter of somebody else may say, and what is made of it. */
import { expect, test } from "vitest";
import { describeError } from "../../../src/protocol/errors.ts";
import type { StepEvent } from "../../../src/protocol/provider-events.ts";
import type { AssistantPart } from "../../../src/protocol/transcript.ts";
import { Response } from "../../../src/session/response.ts";
import { harness, STORES } from "../../support/harness.ts";
import { OWN_LOOP_THREADS } from "../../../src/providers/own-loop.ts";
import type { OwnLoopAdapter } from "../../../src/providers/port.ts";

const part = (given: unknown): StepEvent => ({ type: "part", part: given as AssistantPart });
const call = (callId: unknown, name: unknown = "list_agents", input: unknown = "{}"): StepEvent =>
  part({ type: "tool_call", callId, name, input });
const question = (callId: string, requestId: string): StepEvent =>
  part({ type: "request", callId, requestId, kind: "question", text: "which?" });
const circular: { self?: unknown } = {};
circular.self = circular;
const figures = { inputTokens: 1, cachedInputTokens: 0, outputTokens: 2, reasoningTokens: 0 };

function taken(...events: readonly StepEvent[]): Response {
  const response = new Response();
  for (const event of events) response.take(event);
  return response;
}

test.for<[string, StepEvent[]]>([
  ["a text that is none", [part({ type: "text" })]],
  ["a delta that is none", [{ type: "text", text: 5 as unknown as string }]],
  ["a part of no known type", [part({ type: "image", text: "" })]],
  ["arguments that are no text", [call("1", "list_agents", { a: 1 })]],
  ["a field that JSON cannot hold", [part({ type: "text", text: "a", extra: 1n } as never)]],
  ["fields that go round", [part({ type: "text", text: "a", provider: circular } as never)]],
  [
    "a form of its own that fails",
    [
      part({
        type: "text",
        text: "a",
        toJSON() {
          throw new Error("no");
        },
      } as never),
    ],
  ],
  ["a call without a name", [call("1", null)]],
  ["a call without an id", [call(undefined)]],
  ["a call whose id is empty", [call("")]],
  ["two calls with one id", [call("1"), call("1")]],
  ["two questions with one id", [question("1", "req_1"), question("1", "req_2")]],
  [
    "an answer without end",
    Array.from({ length: 17 }, (): StepEvent => ({ type: "text", text: "x".repeat(2 ** 20) })),
  ],
])("%s is a fault of the protocol", ([, events]) => {
  expect(() => taken(...events)).toThrow(expect.objectContaining({ code: "PROVIDER_PROTOCOL" }));
});

test("a whole part takes the place of its preview, also in what a response may hold", () => {
  const text = "x".repeat(9 * 2 ** 20);
  const response = taken({ type: "text", text }, part({ type: "text", text }), call("1", "n".repeat(1000)));
  expect(response.parts()).toEqual([
    { type: "text", text },
    { type: "tool_call", callId: "1", name: "n".repeat(128), input: "{}" },
  ]);
});

test("what comes after the finish is not part of the response, nor is what is no event", () => {
  const response = taken(
    { type: "text", text: "fine" },
    { type: "bogus" } as unknown as StepEvent,
    { type: "finish", reason: "stop" },
    { type: "text", text: " and more" },
    call("1"),
  );
  expect(response.parts()).toEqual([{ type: "text", text: "fine" }]);
});

test.for([NaN, Infinity, -1, 1.5, 2 ** 60, "7", undefined])(
  "BUD-4 a figure of %s tokens is not reported",
  (inputTokens) => {
    const event = { type: "usage", usage: { ...figures, inputTokens } } as unknown as StepEvent;
    expect(taken(event).usage).toBeNull();
    expect(taken({ type: "usage", usage: figures }).usage).toEqual(figures);
  },
);

test("an error is described whatever was thrown, in bounded words", () => {
  expect(describeError("text")).toBe("text");
  expect(describeError(Object.create(null))).toBe("something without a text was thrown");
  expect(describeError(new Error("e".repeat(5_000_000))).length).toBe(4001);
});

test.each(STORES)(
  "BUD-4 a run whose figures cannot be counted is completed, marked partial, on %s",
  async (store) => {
    const adapter: OwnLoopAdapter = {
      driver: "odd",
      loop: "ours",
      threads: OWN_LOOP_THREADS,
      capabilities: { exact: true, parksWaits: true, questions: false, approvals: false },
      defaultModel: null,
      models: () => null,
      openSession: () =>
        Promise.resolve({
          async *step() {
            yield part({ type: "text", text: "fine" });
            yield { type: "usage", usage: { ...figures, inputTokens: NaN } };
            yield { type: "finish", reason: "stop" };
          },
          close: () => Promise.resolve(),
        }),
    };
    await using h = await harness({ store, others: { odd: adapter }, tree: { provider: "odd" } });
    const outcome = await h.ask("go");
    expect(outcome).toMatchObject({ ending: "completed", text: "fine" });
    expect(outcome.usage.own).toMatchObject({ inputTokens: 0, complete: false });
  },
);
