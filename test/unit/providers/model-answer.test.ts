/** Parts of an answer, read from a stream that no vendor on loopback sends: odd orders, odd ids, what cannot be kept. */
import type { LanguageModelV4, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { InterruptedError } from "../../../src/protocol/errors.ts";
import type { StepEvent, StepRequest } from "../../../src/protocol/provider-events.ts";
import { virtualClock } from "../../../src/testing/virtual-clock.ts";
import { openSession, partsOf, run, stepRequest } from "../../support/model-provider.ts";

describe("parts", () => {
  test("stand in the order in which the model began them, whichever ends first", async () => {
    const parts = await partsFrom([
      { type: "reasoning-start", id: "r" },
      { type: "text-start", id: "t" },
      { type: "tool-input-start", id: "c1", toolName: "look" },
      { type: "tool-input-start", id: "c2", toolName: "look" },
      call("c2", "{}"),
      { type: "text-delta", id: "t", delta: "text" },
      call("c1", "{}"),
      { type: "reasoning-delta", id: "r", delta: "why" },
      { type: "reasoning-end", id: "r" },
      { type: "text-end", id: "t" },
    ]);
    expect(parts.map((part) => ("callId" in part ? part.callId : part.type))).toEqual([
      "reasoning",
      "text",
      "c1",
      "c2",
    ]);
  });

  test("are handed out as soon as they are whole", async () => {
    const events = await eventsFrom([
      { type: "text-start", id: "t" },
      { type: "text-delta", id: "t", delta: "a" },
      { type: "text-end", id: "t" },
      { type: "text-start", id: "u" },
      { type: "text-delta", id: "u", delta: "b" },
      { type: "text-end", id: "u" },
    ]);
    expect(events.map(({ type }) => type)).toEqual([
      "accepted",
      "text",
      "part",
      "text",
      "part",
      "usage",
      "finish",
    ]);
  });

  test("carry what the vendor attached to start, deltas and end", async () => {
    const parts = await partsFrom([
      { type: "reasoning-start", id: "r", providerMetadata: { v: { itemId: "i", secret: null } } },
      {
        type: "reasoning-delta",
        id: "r",
        delta: "",
        providerMetadata: { v: { secret: "half" }, w: { x: 1 } },
      },
      { type: "reasoning-end", id: "r", providerMetadata: { v: { secret: "whole" } } },
    ]);
    expect(parts).toEqual([
      { type: "reasoning", text: "", provider: { v: { itemId: "i", secret: "whole" }, w: { x: 1 } } },
    ]);
  });

  test("without content are left out, and blocks without an end are ended by the finish", async () => {
    const parts = await partsFrom([
      { type: "reasoning-start", id: "r" },
      { type: "reasoning-end", id: "r" },
      { type: "text-start", id: "t", providerMetadata: { v: { itemId: "i" } } },
      { type: "text-end", id: "t" },
      { type: "tool-input-start", id: "c", toolName: "look" },
      { type: "text-delta", id: "u", delta: "kept" },
    ]);
    expect(parts).toEqual([{ type: "text", text: "kept" }]);
  });

  test("may use one id for two blocks, one after the other", async () => {
    const parts = await partsFrom(
      ["a", "b"].flatMap((delta): LanguageModelV4StreamPart[] => [
        { type: "text-start", id: "t" },
        { type: "text-delta", id: "t", delta },
        { type: "text-end", id: "t" },
      ]),
    );
    expect(parts).toEqual([
      { type: "text", text: "a" },
      { type: "text", text: "b" },
    ]);
  });
});

describe("calls", () => {
  test("get ids of their own within the answer and against the prompt", async () => {
    const messages = [
      {
        role: "assistant",
        parts: [{ type: "tool_call", callId: "call_0", name: "look", input: "{}" }],
      },
      { role: "tool", callId: "call_0", name: "look", output: "seen", isError: false },
    ] as const;
    const parts = await partsFrom([call("call_0", "{}"), call("call_0", "{}"), call("", "{}")], { messages });
    expect(parts.map((part) => "callId" in part && part.callId)).toEqual(["call_0-2", "call_0-3", "call"]);
  });

  test("keep arguments as written, even if they are no JSON; none at all are an empty object", async () => {
    const parts = await partsFrom([call("a", '{"at": '), call("b", ""), call("c", ' {"x":1}')]);
    expect(parts.map((part) => part.type === "tool_call" && part.input)).toEqual([
      '{"at": ',
      "{}",
      ' {"x":1}',
    ]);
  });

  test("decide the finish, whatever the vendor calls it", async () => {
    expect((await eventsFrom([call("a", "{}")])).at(-1)).toEqual({ type: "finish", reason: "tool_calls" });
    expect((await eventsFrom([], {}, finish("tool-calls"))).at(-1)).toEqual({
      type: "finish",
      reason: "stop",
    });
  });
});

describe("what a transcript cannot keep is refused", () => {
  test.for<LanguageModelV4StreamPart>([
    { ...call("a", "{}"), providerExecuted: true },
    { type: "tool-result", toolCallId: "a", toolName: "web_search", result: "found" },
    { type: "tool-approval-request", approvalId: "1", toolCallId: "a" },
    { type: "file", mediaType: "image/png", data: { type: "data", data: "AAAA" } },
  ])("a part of type $type", async (part) => {
    await expect(eventsFrom([part])).rejects.toMatchObject({
      code: "PROVIDER_PROTOCOL",
      message: expect.stringContaining("which a transcript cannot keep"),
    });
  });

  test("but not what is only for display", async () => {
    const parts = await partsFrom([
      { type: "source", sourceType: "url", id: "1", url: "http://loopback" },
      { type: "custom", kind: "vendor.mark" },
      { type: "tool-input-start", id: "a", toolName: "web_search", providerExecuted: true },
    ]);
    expect(parts).toEqual([]);
  });
});

describe("the figures of an answer", () => {
  test("are left out when the vendor gives no totals", async () => {
    const events = await eventsFrom([], {}, finish("stop", null));
    expect(events.map(({ type }) => type)).toEqual(["accepted", "finish"]);
  });
});

describe("patience", () => {
  test("starts anew with every sign of life, shown or not", async () => {
    const clock = virtualClock();
    const { readable, writable } = new TransformStream<LanguageModelV4StreamPart>();
    const writer = writable.getWriter();
    const session = await openSession(modelOf(readable), { clock, stallMs: 100 });
    const result = run(session);
    for (let round = 0; round < 5; round += 1) {
      await writer.write({ type: "raw", rawValue: {} });
      await clock.advance(90);
    }
    await writer.write(finish("stop"));
    await writer.close();
    expect((await result).at(-1)).toEqual({ type: "finish", reason: "stop" });
  });

  test("is not needed once the answer is whole: a stream that stays open ends the step all the same", async () => {
    const clock = virtualClock();
    const stream = new ReadableStream<LanguageModelV4StreamPart>({
      start: (controller) => controller.enqueue(finish("stop")),
    });
    const result = run(await openSession(modelOf(stream), { clock }));
    await clock.advance(1_000);
    expect((await result).at(-1)).toEqual({ type: "finish", reason: "stop" });
    expect(clock.pending()).toEqual([]);
  });

  test("is over at once for a model that does not heed the signal, and its stream is cancelled", async () => {
    const cancelled = Promise.withResolvers<void>();
    const stream = new ReadableStream<LanguageModelV4StreamPart>({ cancel: () => cancelled.resolve() });
    const controller = new AbortController();
    const result = run(await openSession(modelOf(stream)), stepRequest(), controller.signal);
    const why = new InterruptedError("RUN_INTERRUPTED", "enough");
    controller.abort(why);
    await expect(result).rejects.toBe(why);
    await cancelled.promise;
  });
});

function call(toolCallId: string, input: string): Extract<LanguageModelV4StreamPart, { type: "tool-call" }> {
  return { type: "tool-call", toolCallId, toolName: "look", input };
}

function finish(unified: "stop" | "tool-calls", figure: number | null = 1): LanguageModelV4StreamPart {
  const total = figure ?? undefined;
  return {
    type: "finish",
    finishReason: { unified, raw: undefined },
    usage: {
      inputTokens: { total, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total, text: undefined, reasoning: undefined },
    },
  };
}

function modelOf(stream: ReadableStream<LanguageModelV4StreamPart>): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider: "test",
    modelId: "one",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("not used")),
    doStream: async () => ({ stream }),
  };
}

async function eventsFrom(
  parts: readonly LanguageModelV4StreamPart[],
  changes: Partial<StepRequest> = {},
  end = finish("stop"),
): Promise<StepEvent[]> {
  const stream = ReadableStream.from([{ type: "stream-start", warnings: [] } as const, ...parts, end]);
  return run(
    await openSession(modelOf(stream as ReadableStream<LanguageModelV4StreamPart>)),
    stepRequest(changes),
  );
}

async function partsFrom(parts: readonly LanguageModelV4StreamPart[], changes: Partial<StepRequest> = {}) {
  return partsOf(await eventsFrom(parts, changes));
}
