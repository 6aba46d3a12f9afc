/** The provider `model` through the vendors' real clients: what is sent, and what comes back of an answer that succeeds. */
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { InterruptedError } from "../../src/protocol/errors.ts";
import type { PromptMessage } from "../../src/protocol/provider-events.ts";
import type { AssistantPart } from "../../src/protocol/transcript.ts";
import {
  deltasOf,
  KEY,
  LOOK,
  openSession,
  partsOf,
  run,
  stepRequest,
  vendors,
} from "../support/model-provider.ts";
import { call, reasoning, text } from "../support/model-wire/reply.ts";
import { startVendorServer } from "../support/vendor-server/vendor-server.ts";

describe.for(vendors)("an answer of $vendor", ({ vendor, model }) => {
  test("comes as accepted, deltas in order, the whole part, usage and finish", async () => {
    await using server = await startVendorServer();
    server.reply({
      parts: [text("One ", "two ", "three.")],
      usage: { input: 120, cached: 100, output: 30, reasoning: 20 },
    });
    const events = await run(await openSession(model(server.baseUrl)));
    expect(events[0]).toEqual({ type: "accepted" });
    expect(deltasOf(events, "text")).toEqual(["One ", "two ", "three."]);
    expect(partsOf(events).map((part) => "text" in part && part.text)).toEqual(["One two three."]);
    expect(events.slice(-2)).toEqual([
      {
        type: "usage",
        usage: { inputTokens: 120, cachedInputTokens: 100, outputTokens: 30, reasoningTokens: 20 },
      },
      { type: "finish", reason: "stop" },
    ]);
  });

  test("is accepted as soon as it has begun, before there is text", async () => {
    await using server = await startVendorServer();
    const gate = Promise.withResolvers<void>();
    server.reply({ parts: [], ending: "stall", after: gate.promise });
    const controller = new AbortController();
    const events = (await openSession(model(server.baseUrl))).step(stepRequest(), controller.signal);
    const first = events[Symbol.asyncIterator]().next();
    const request = await server.next();
    gate.resolve();
    expect(await first).toEqual({ done: false, value: { type: "accepted" } });
    await request.sent;
    controller.abort(new InterruptedError("RUN_INTERRUPTED", "enough"));
    expect(await request.closed).toBe("gone");
  });

  test("calls in parallel, and a second request returns calls, results and reasoning as they were", async () => {
    await using server = await startVendorServer();
    server.reply(
      {
        parts: [
          reasoning("secret-1", "I should ", "look twice."),
          text("Looking."),
          call("call_a", "look", '{"at":"a"}'),
          call("call_b", "look", '{"at":"b"}'),
        ],
      },
      { parts: [text("Seen.")] },
    );
    const session = await openSession(model(server.baseUrl));
    const asked = stepRequest({ tools: [LOOK] });
    const first = await run(session, asked);
    expect(first.at(-1)).toEqual({ type: "finish", reason: "tool_calls" });
    expect(deltasOf(first, "reasoning")).toEqual(["I should ", "look twice."]);
    const parts = JSON.parse(JSON.stringify(partsOf(first))) as AssistantPart[];
    expect(parts.map(({ type }) => type)).toEqual(["reasoning", "text", "tool_call", "tool_call"]);
    expect(
      parts.flatMap((part) => (part.type === "tool_call" ? [[part.callId, part.name, part.input]] : [])),
    ).toEqual([
      ["call_a", "look", '{"at":"a"}'],
      ["call_b", "look", '{"at":"b"}'],
    ]);
    const messages: PromptMessage[] = [
      ...asked.messages,
      { role: "assistant", parts },
      { role: "tool", callId: "call_a", name: "look", output: { color: "red" }, isError: false },
      { role: "tool", callId: "call_b", name: "look", output: "no such thing", isError: true },
    ];
    const second = await run(session, stepRequest({ tools: [LOOK], messages, step: 2 }));
    expect(second.at(-1)).toEqual({ type: "finish", reason: "stop" });
    expect(sentBack[vendor]?.(server.requests[1]?.body)).toEqual(wanted[vendor]);
  });

  test("is asked for with the tools, the effort and the limit of the request", async () => {
    await using server = await startVendorServer();
    server.reply({ parts: [text("Yes.")] });
    await run(
      await openSession(model(server.baseUrl)),
      stepRequest({ tools: [LOOK], effort: "low", maxOutputTokens: 3_000 }),
    );
    const [{ body, headers } = { body: undefined, headers: {} }] = server.requests;
    expect(JSON.stringify(body.tools)).toContain('"look"');
    expect(JSON.stringify(body.tools)).toContain(JSON.stringify(LOOK.parameters["properties"]));
    expect(settings[vendor]?.(body)).toEqual(
      // Anthropic counts the reasoning it allows on top of the answer.
      vendor === "anthropic"
        ? { limit: expect.any(Number), effort: "enabled" }
        : { limit: 3_000, effort: "low" },
    );
    expect(JSON.stringify(headers)).toContain(KEY);
  });

  test.for([
    ["length", "length"],
    ["content_filter", "content_filter"],
  ] as const)("tells that it was ended by %s", async ([finish, reason]) => {
    await using server = await startVendorServer();
    server.reply({ parts: [text("Half")], finish });
    const events = await run(await openSession(model(server.baseUrl)));
    expect(events.at(-1)).toEqual({ type: "finish", reason });
  });

  test("ends in the middle when the signal says so, and the vendor sees the connection closed", async () => {
    await using server = await startVendorServer();
    server.reply({ parts: [text("Never ")], ending: "stall" });
    const controller = new AbortController();
    const why = new InterruptedError("RUN_INTERRUPTED", "not needed any more");
    const session = await openSession(model(server.baseUrl));
    const step = (async () => {
      for await (const event of session.step(stepRequest(), controller.signal)) {
        if (event.type === "text") controller.abort(why);
      }
    })();
    await expect(step).rejects.toBe(why);
    const request = await server.next();
    expect(await request.closed).toBe("gone");
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  test("is given up together with its connection by a consumer that stops early", async () => {
    await using server = await startVendorServer();
    server.reply({ parts: [text("Never ")], ending: "stall" });
    const { signal } = new AbortController();
    for await (const event of (await openSession(model(server.baseUrl))).step(stepRequest(), signal)) {
      if (event.type === "text") break;
    }
    expect(await (await server.next()).closed).toBe("gone");
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test("is not asked for at all when the signal is aborted before", async () => {
    await using server = await startVendorServer();
    const why = new InterruptedError("RUN_INTERRUPTED", "too late");
    const step = run(await openSession(model(server.baseUrl)), stepRequest(), AbortSignal.abort(why));
    await expect(step).rejects.toBe(why);
    expect(server.requests).toEqual([]);
  });
});

describe("what OpenAI is told", () => {
  test("keeps nothing on its side and groups a tree's requests, unless the user says otherwise", async () => {
    await using server = await startVendorServer();
    const [openai] = vendors;
    server.reply({ parts: [text("Yes.")] }, { parts: [text("Yes.")] });
    await run(
      await openSession(openai!.model(server.baseUrl)),
      stepRequest({ conversationKey: "thread_root" }),
    );
    expect(server.requests[0]?.body).toMatchObject({
      store: false,
      prompt_cache_key: "thread_root",
      include: ["reasoning.encrypted_content"],
    });
    const providerOptions = { openai: { store: true, serviceTier: "flex" } };
    await run(await openSession(openai!.model(server.baseUrl), { providerOptions }));
    expect(server.requests[1]?.body).toMatchObject({
      store: true,
      service_tier: "flex",
      prompt_cache_key: "thread_1",
    });
  });
});

describe("what Anthropic is told", () => {
  // oxlint-disable-next-line typescript/no-explicit-any
  const marks = (body: any) => ({
    system: body.system[0].cache_control,
    messages: body.messages.map((message: { content: { cache_control?: unknown }[] }) =>
      message.content.map((part) => part.cache_control !== undefined),
    ),
  });
  const later = stepRequest({
    messages: [
      { role: "system", text: "You look at things." },
      { role: "user", text: "Look." },
      {
        role: "assistant",
        parts: [{ type: "tool_call", callId: "call_1", name: "look", input: "{}" }],
      },
      { role: "tool", callId: "call_1", name: "look", output: "seen", isError: false },
    ],
    tools: [LOOK],
  });

  test("caches its instructions and all that the next step repeats", async () => {
    await using server = await startVendorServer();
    const session = await openSession(vendors[2]!.model(server.baseUrl));
    server.reply({ parts: [text("Yes.")] }, { parts: [text("Yes.")] });
    await run(session);
    await run(session, later);
    const system = { type: "ephemeral" };
    expect(marks(server.requests[0]?.body)).toEqual({ system, messages: [[true]] });
    expect(marks(server.requests[1]?.body)).toEqual({ system, messages: [[false], [false], [true]] });
  });

  test("is the user's to say, where the user does", async () => {
    await using server = await startVendorServer();
    server.reply({ parts: [text("Yes.")] });
    const providerOptions = { anthropic: { cacheControl: { type: "ephemeral", ttl: "1h" } } } as const;
    await run(await openSession(vendors[2]!.model(server.baseUrl), { providerOptions }), later);
    expect(marks(server.requests[0]?.body)).toEqual({
      system: undefined,
      messages: [[false], [false], [false]],
    });
    expect(server.requests[0]?.body).toMatchObject({ cache_control: { type: "ephemeral", ttl: "1h" } });
  });
});

/** The vendor's own shape of a limit and an effort. */
// oxlint-disable-next-line typescript/no-explicit-any
const settings: Readonly<Record<string, (body: any) => unknown>> = {
  openai: (body) => ({ limit: body.max_output_tokens, effort: body.reasoning.effort }),
  "openai-compatible": (body) => ({ limit: body.max_tokens, effort: body.reasoning_effort }),
  anthropic: (body) => ({ limit: body.max_tokens, effort: body.thinking.type }),
};

/** What of a second request stems from the first answer and its results. */
// oxlint-disable-next-line typescript/no-explicit-any
const sentBack: Readonly<Record<string, (body: any) => unknown>> = {
  openai: (body) => body.input.slice(2),
  "openai-compatible": (body) => body.messages.slice(2),
  anthropic: (body) => body.messages.slice(1),
};

const wanted: Readonly<Record<string, unknown>> = {
  openai: [
    {
      type: "reasoning",
      id: "rs_1_0",
      encrypted_content: "secret-1",
      summary: [{ type: "summary_text", text: "I should look twice." }],
    },
    expect.objectContaining({ role: "assistant", content: "Looking." }),
    { type: "function_call", call_id: "call_a", name: "look", arguments: '{"at":"a"}' },
    { type: "function_call", call_id: "call_b", name: "look", arguments: '{"at":"b"}' },
    { type: "function_call_output", call_id: "call_a", output: '{"color":"red"}' },
    { type: "function_call_output", call_id: "call_b", output: '{"error":"no such thing"}' },
  ],
  "openai-compatible": [
    {
      role: "assistant",
      content: "Looking.",
      reasoning_content: "I should look twice.",
      tool_calls: [
        { id: "call_a", type: "function", function: { name: "look", arguments: '{"at":"a"}' } },
        { id: "call_b", type: "function", function: { name: "look", arguments: '{"at":"b"}' } },
      ],
    },
    { role: "tool", tool_call_id: "call_a", content: '{"color":"red"}' },
    { role: "tool", tool_call_id: "call_b", content: "no such thing" },
  ],
  anthropic: [
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "I should look twice.", signature: "secret-1" },
        { type: "text", text: "Looking." },
        { type: "tool_use", id: "call_a", name: "look", input: { at: "a" } },
        { type: "tool_use", id: "call_b", name: "look", input: { at: "b" } },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "call_a", content: '{"color":"red"}' },
        {
          type: "tool_result",
          tool_use_id: "call_b",
          content: "no such thing",
          is_error: true,
          cache_control: { type: "ephemeral" },
        },
      ],
    },
  ],
};
