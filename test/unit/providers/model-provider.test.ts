/** The settings of the provider `model`, its prompt, its estimate and how it names failures. */
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { InterruptedError } from "../../../src/protocol/errors.ts";
import { estimateTokens } from "../../../src/policy/estimate-tokens.ts";
import { toProviderError } from "../../../src/providers/model/failure.ts";
import { createModelProvider } from "../../../src/providers/model/model-provider.ts";
import { toPrompt, toTools } from "../../../src/providers/model/prompt.ts";
import { LOOK, openSession, run, stepRequest } from "../../support/model-provider.ts";

const model: LanguageModelV4 = {
  specificationVersion: "v4",
  provider: "test",
  modelId: "one",
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("not used")),
  doStream: () => Promise.reject(new Error("the model has a bug")),
};

describe("models", () => {
  test("are told with what is known of them, and the first is the default", () => {
    const provider = createModelProvider({
      models: { "a/one": { model, contextWindow: 8_000, efforts: ["low"] }, "b/two": model },
    });
    expect(provider.defaultModel).toBe("a/one");
    expect(provider.models()).toEqual({
      "a/one": {
        contextWindow: 8_000,
        maxOutputTokens: null,
        efforts: ["low"],
        defaultEffort: null,
        collaborates: true,
        modeHint: null,
      },
      "b/two": expect.objectContaining({ contextWindow: null, efforts: null }),
    });
  });

  test("may come from a function, by any name", async () => {
    const asked: string[] = [];
    const provider = createModelProvider({
      models: (name) => {
        asked.push(name);
        return model;
      },
      defaultModel: "first",
    });
    expect([provider.models(), provider.defaultModel]).toEqual([null, "first"]);
    const session = await provider.openSession({ threadId: "thread_1", path: "/root", model: "second" });
    await expect(run(session)).rejects.toThrow("the model has a bug");
    await expect(run(session, stepRequest({ model: "third" }))).rejects.toThrow("the model has a bug");
    expect(asked).toEqual(["second", "third"]);
  });

  test.for([
    ["specification v3", { ...model, specificationVersion: "v3" }],
    ["specification v2", { ...model, specificationVersion: "v2" }],
    ["no specification", "openai/gpt-5"],
    ["no specification", undefined],
    ["no `doStream`", { ...model, doStream: undefined }],
  ])("of %s are refused by name", async ([what, wrong]) => {
    const given = wrong as LanguageModelV4;
    const refusal = { code: "MODEL_UNSUPPORTED", message: expect.stringContaining(what as string) };
    expect(thrownBy(() => createModelProvider({ models: { old: given } }))).toMatchObject(refusal);
    const provider = createModelProvider({ models: () => given, defaultModel: "old" });
    const session = await provider.openSession({ threadId: "thread_1", path: "/root", model: null });
    await expect(run(session)).rejects.toMatchObject(refusal);
  });

  test("that are unknown are refused with the known names", async () => {
    const session = await openSession(model);
    await expect(run(session, stepRequest({ model: "two" }))).rejects.toMatchObject({
      code: "MODEL_UNSUPPORTED",
      details: { model: "two", known: ["one"] },
    });
    expect(
      thrownBy(() => createModelProvider({ models: { one: model }, defaultModel: "two" })),
    ).toMatchObject({
      code: "MODEL_UNSUPPORTED",
    });
    const nameless = createModelProvider({ models: () => model });
    const asked = run(await nameless.openSession({ threadId: "thread_1", path: "/root", model: null }));
    await expect(asked).rejects.toMatchObject({ code: "MODEL_UNSUPPORTED" });
  });

  test("are asked for their raw chunks, in which pings and other signs of life are seen", async () => {
    const asked: unknown[] = [];
    const spy: LanguageModelV4 = {
      ...model,
      doStream: (options) => {
        asked.push(options);
        return Promise.reject(new Error("enough"));
      },
    };
    await expect(run(await openSession(spy))).rejects.toThrow("enough");
    expect(asked).toEqual([expect.objectContaining({ includeRawChunks: true })]);
  });

  test("are not asked with an effort that nobody knows", async () => {
    await expect(run(await openSession(model), stepRequest({ effort: "heroic" }))).rejects.toMatchObject({
      code: "PROVIDER_REFUSED",
      message: expect.stringContaining("heroic"),
    });
  });
});

describe("the prompt", () => {
  test("keeps results of one step together and marks errors", () => {
    const prompt = toPrompt([
      { role: "tool", callId: "a", name: "look", output: { x: 1 }, isError: false },
      { role: "tool", callId: "b", name: "look", output: { y: 2 }, isError: true },
      { role: "tool", callId: "c", name: "look", output: "none", isError: true },
    ]);
    expect(prompt).toHaveLength(1);
    expect(prompt[0]?.content).toEqual([
      { type: "tool-result", toolCallId: "a", toolName: "look", output: { type: "json", value: { x: 1 } } },
      {
        type: "tool-result",
        toolCallId: "b",
        toolName: "look",
        output: { type: "error-json", value: { y: 2 } },
      },
      {
        type: "tool-result",
        toolCallId: "c",
        toolName: "look",
        output: { type: "error-text", value: "none" },
      },
    ]);
  });

  test.for([
    ['{"at":"a"}', { at: "a" }],
    ['{"at": ', { invalid_arguments: '{"at": ' }],
    ["[1]", { invalid_arguments: "[1]" }],
    ["null", { invalid_arguments: "null" }],
  ] as const)("gives arguments %s back as an object", ([input, wanted]) => {
    const [message] = toPrompt([
      { role: "assistant", parts: [{ type: "tool_call", callId: "a", name: "look", input }] },
    ]);
    expect(message?.content).toEqual([expect.objectContaining({ type: "tool-call", input: wanted })]);
  });

  test("holds another provider's question as a call, and no empty text or message", () => {
    const prompt = toPrompt([
      {
        role: "assistant",
        parts: [
          { type: "text", text: "" },
          { type: "reasoning", text: "" },
        ],
      },
      {
        role: "assistant",
        parts: [{ type: "request", callId: "q", requestId: "req_1", kind: "question", text: "Red?" }],
      },
    ]);
    expect(prompt).toEqual([
      {
        role: "assistant",
        content: [{ type: "tool-call", toolCallId: "q", toolName: "question", input: { text: "Red?" } }],
      },
    ]);
  });

  test("has no list of tools where there are none", () => {
    expect(toTools([])).toBeUndefined();
    expect(toTools([LOOK])).toEqual([
      { type: "function", name: "look", description: LOOK.description, inputSchema: LOOK.parameters },
    ]);
  });
});

describe("the estimate", () => {
  test.for([
    ["prose", "The agent reads the file and answers in one line. ".repeat(20), 200],
    ["a script without spaces", "エージェントがファイルを読む".repeat(20), 280],
  ] as const)("of %s is no lower than what tokenizers count", ([, text, tokens]) => {
    const estimate = estimateTokens([{ role: "user", text }], []);
    expect(estimate).toBeGreaterThanOrEqual(tokens);
    expect(estimate).toBeLessThan(tokens * 2.5);
  });

  test("counts tools, results, and what a part carries for its vendor", () => {
    const provider = { v: { secret: "x".repeat(400) } };
    const part = { type: "reasoning", text: "" } as const;
    const bare = estimateTokens([{ role: "assistant", parts: [part] }], []);
    expect(estimateTokens([{ role: "assistant", parts: [{ ...part, provider }] }], [])).toBeGreaterThan(
      bare + 100,
    );
    expect(estimateTokens([], [LOOK])).toBeGreaterThan(16);
    expect(
      estimateTokens([{ role: "tool", callId: "a", name: "b", output: "x".repeat(400), isError: false }], []),
    ).toBeGreaterThan(100);
  });
});

describe("a failure", () => {
  const subject = { provider: "test", model: "one" };
  const named = (error: unknown) => toProviderError(error, subject, 0);

  test.for([
    ["a rate limit as a word", { message: "slow", code: "rate_limit_exceeded" }, "PROVIDER_OVERLOADED"],
    ["a status as a number", { message: "slow", code: 429 }, "PROVIDER_OVERLOADED"],
    ["a quota that is used up", { message: "pay", type: "insufficient_quota" }, "PROVIDER_REFUSED"],
    ["an error under error", { error: { message: "no", type: "invalid_request_error" } }, "PROVIDER_REFUSED"],
    ["an error that says it may be repeated", { message: "hm", isRetryable: true }, "PROVIDER_OVERLOADED"],
    ["429 that says it may not", { message: "pay", statusCode: 429, isRetryable: false }, "PROVIDER_REFUSED"],
    ["400 that says it may", { message: "hm", statusCode: 400, isRetryable: true }, "PROVIDER_OVERLOADED"],
    ["bare text", "something", "PROVIDER_UNREACHABLE"],
    ["nothing at all", undefined, "PROVIDER_UNREACHABLE"],
    ["a bug of the model", new Error("x is not a function"), "PROVIDER_PROTOCOL"],
    ["a reset deep inside", new Error("a", { cause: errno("ECONNRESET") }), "PROVIDER_UNREACHABLE"],
    ["a time-out of its client's", new DOMException("too long", "TimeoutError"), "PROVIDER_STALLED"],
    [
      "an abort that nobody here asked for",
      new DOMException("aborted", "AbortError"),
      "PROVIDER_UNREACHABLE",
    ],
    [
      "a time-out deep inside",
      new Error("a", { cause: new DOMException("too long", "TimeoutError") }),
      "PROVIDER_STALLED",
    ],
    ["a missing key", marked("AI_LoadAPIKeyError", "set OPENAI_API_KEY"), "PROVIDER_NOT_CONFIGURED"],
    ["a request the SDK will not send", marked("AI_UnsupportedFunctionalityError", "no"), "PROVIDER_REFUSED"],
  ] as const)("by %s has its own code", ([, error, code]) => {
    expect(named(error)).toMatchObject({ code, details: subject });
  });

  test("of the runtime stays as it is", () => {
    const own = new InterruptedError("RUN_INTERRUPTED", "enough");
    expect(named(own)).toBe(own);
  });
});

function errno(code: string): Error {
  return Object.assign(new Error(code), { code });
}

/** As another copy of the SDK would throw it: its marker, not a class that is known here. */
function marked(name: string, message: string): Error {
  return Object.assign(new Error(message), {
    [Symbol.for("vercel.ai.error")]: true,
    [Symbol.for(`vercel.ai.error.${name}`)]: true,
  });
}

function thrownBy(body: () => unknown): unknown {
  try {
    body();
  } catch (error) {
    return error;
  }
  return expect.fail("nothing was thrown");
}
