/** The model that real programs are given: scripts, and what the three wire formats make of them. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { isStepCount, type ModelMessage, streamText, tool } from "ai";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { readResponses, whereItStands } from "../../support/model-server/conversation.ts";
import {
  fullName,
  type ModelServer,
  type ModelServerOptions,
  startModelServer,
  toldBy,
} from "../../support/model-server/model-server.ts";
import { ask, parseScript } from "../../support/model-server/script.ts";
import { reasoning, text } from "../../support/model-wire/reply.ts";

async function started(options: ModelServerOptions = {}): Promise<ModelServer> {
  const server = await startModelServer(options);
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

describe("a script", () => {
  test("is cut into the answers to one request each", () => {
    const prompt = [
      "Please. ",
      ask.reason("hm"),
      ask.text("look"),
      ask.call("look", { at: "a" }),
      ask.and("look", { at: "b" }),
      ask.call("exec", "ls -l"),
      ask.text("seen"),
    ].join("\n");
    expect(parseScript(prompt)).toEqual([
      {
        parts: [
          reasoning("secret", "hm"),
          text("look"),
          { type: "call", name: "look", input: '{"at":"a"}' },
          { type: "call", name: "look", input: '{"at":"b"}' },
        ],
        ending: "end",
      },
      { parts: [{ type: "call", name: "exec", input: "ls -l" }], ending: "end" },
      { parts: [text("seen")], ending: "end" },
    ]);
  });

  test("may hold, refuse, say nothing, or very much", () => {
    expect(parseScript("@@HOLD@@")).toEqual([{ parts: [text("holding")], ending: "stall" }]);
    expect(parseScript("@@TEXT wait@@ @@HOLD@@")).toEqual([{ parts: [text("wait")], ending: "stall" }]);
    expect(parseScript("@@EMPTY@@")).toEqual([{ parts: [], ending: "end" }]);
    expect(parseScript("@@ERROR 429@@")).toEqual([{ status: 429 }]);
    expect(parseScript("hello")).toBeNull();
    expect(() => parseScript("@@AND look {}@@")).toThrow("behind a CALL");
    const [step] = parseScript("@@LONG 300000@@")!;
    const [long] = "parts" in step! ? step.parts : [];
    expect(long?.type === "text" ? long.deltas.join("").length : 0).toBe(300_000);
  });

  test("for another agent lies within an input untouched", () => {
    const inner = [ask.call("spawn", { message: ask.text("deep") }), ask.text("shallow")].join(" ");
    const [first] = parseScript(ask.call("spawn", { message: inner }))!;
    const [given] = "parts" in first! ? first.parts : [];
    const { message } = JSON.parse(given?.type === "call" ? given.input : "null");
    expect(message).toBe(inner);
    expect(parseScript(message)).toHaveLength(2);
  });
});

describe("the place in a script", () => {
  const user = (content: string) => ({ role: "user", content: [{ type: "input_text", text: content }] });
  const result = (call_id: string) => ({ type: "function_call_output", call_id, output: "x" });
  const at = (...input: object[]) => whereItStands(readResponses({ input }).said);

  test("is told by the calls since the last prompt, in whatever order they were answered", () => {
    expect(at(user("a"))).toEqual({ prompt: "a", step: 0 });
    expect(at(user("a"), result("call_s1_7_1"), result("call_s0_6_0"), result("call_s1_7_0"))).toEqual({
      prompt: "a",
      step: 2,
    });
    expect(at(user("a"), result("call_s0_6_0"), user("b"))).toEqual({ prompt: "b", step: 0 });
  });

  test("is not moved by what clients say in the user's name", () => {
    const context = user("<environment_context>\n  <cwd>/</cwd>\n</environment_context>");
    expect(at(user("a"), result("call_s0_6_0"), context)).toEqual({ prompt: "a", step: 1 });
  });
});

const look = tool({ inputSchema: z.object({ at: z.string() }), execute: ({ at }) => `saw ${at}` });

const models = {
  responses: (server: ModelServer) => createOpenAI({ baseURL: server.openAiUrl, apiKey: "dummy-1" })("gpt-5"),
  chat: (server: ModelServer) => createOpenAI({ baseURL: server.openAiUrl, apiKey: "dummy-1" }).chat("gpt-5"),
  messages: (server: ModelServer) =>
    createAnthropic({ baseURL: server.openAiUrl, apiKey: "dummy-1" })("claude-sonnet-4-5"),
};
const formats = Object.entries(models);

describe("the model", () => {
  test.for(formats)("%s: plays a script over several requests", async ([format, model]) => {
    const server = await started();
    const prompt = [
      ask.text("first"),
      ask.call("look", { at: "a" }),
      ask.and("look", { at: "b" }),
      ask.call("look", { at: "c" }),
      ask.text("then done"),
    ].join(" ");
    const messages: ModelMessage[] = [{ role: "user", content: prompt }];
    const { steps } = streamText({
      model: model(server),
      system: "You look.",
      messages,
      tools: { look, provider_other: look },
      stopWhen: isStepCount(5),
    });
    const made = await steps;
    expect(made.map((step) => step.text)).toEqual(["first", "", "then done"]);
    expect(made.map((step) => step.toolResults.map(({ output }) => output))).toEqual([
      ["saw a", "saw b"],
      ["saw c"],
      [],
    ]);
    expect(server.requests.map(({ step, key }) => [step, key])).toEqual([
      [0, "dummy-1"],
      [1, "dummy-1"],
      [2, "dummy-1"],
    ]);
    const last = server.requests[2]!;
    expect(last.path).toContain(format.replace("chat", "chat/completions"));
    expect(last.tools.map(fullName)).toEqual(["look", "provider_other"]);
    expect(toldBy("system", last)).toEqual(["You look."]);
    expect(toldBy("user", last)).toEqual([prompt]);
    expect(toldBy("result", last)).toEqual(["saw a", "saw b", "saw c"]);
    expect(await last.closed).toBe("done");
  });

  test.for(formats)("%s: says what it is set to without a script", async ([, model]) => {
    const server = await started({ unscripted: ask.text("as ever") });
    const answer = streamText({ model: model(server), prompt: "hello" });
    expect(await answer.text).toBe("as ever");
  });

  test.for(formats)("%s: calls a tool by the name under which it is offered", async ([, model]) => {
    const server = await started();
    const { toolCalls } = streamText({
      model: model(server),
      prompt: ask.call("look", { at: "a" }),
      tools: { mcp__ours__look: look },
    });
    expect((await toolCalls).map(({ toolName, input }) => [toolName, input])).toEqual([
      ["mcp__ours__look", { at: "a" }],
    ]);
  });

  test.for(formats)("%s: holds until the client goes, and knows that it went", async ([, model]) => {
    const server = await started();
    const controller = new AbortController();
    const { textStream } = streamText({
      model: model(server),
      prompt: ask.hold(),
      abortSignal: controller.signal,
    });
    const heard: string[] = [];
    for await (const delta of textStream) {
      heard.push(delta);
      if (heard.join("") === "holding") controller.abort();
    }
    const request = await server.next(({ prompt }) => prompt === "@@HOLD@@");
    expect(await request.closed).toBe("gone");
  });

  test.for(formats)("%s: refuses with a status as often as it is asked", async ([, model]) => {
    const server = await started();
    const errors: unknown[] = [];
    const answer = streamText({
      model: model(server),
      prompt: ask.error(429),
      maxRetries: 0,
      onError: ({ error }) => void errors.push(error),
    });
    await answer.consumeStream();
    expect(errors).toMatchObject([{ statusCode: 429 }]);
  });

  test("keeps no record of what is no request of a model", async () => {
    const server = await started();
    expect((await fetch(`${server.openAiUrl}/models`)).status).toBe(404);
    expect(server.others).toEqual(["GET /v1/models"]);
    expect(server.requests).toEqual([]);
  });

  test("names a conversation without playing what is in it", async () => {
    const server = await started();
    const system = "You are a title generator.";
    const answer = streamText({ model: models.chat(server), system, prompt: ask.error(500) });
    expect(await answer.text).toBe("A title");
    expect(server.others).toEqual(["POST /v1/chat/completions for a title"]);
    expect(server.requests).toEqual([]);
  });

  test("tells namespaces and tools that take text", async () => {
    const server = await started();
    const response = await fetch(`${server.openAiUrl}/responses`, {
      method: "POST",
      body: JSON.stringify({
        stream: true,
        input: [{ role: "user", content: `${ask.call("spawn", {})} ${ask.text("unused")}` }],
        tools: [
          { type: "namespace", name: "collaboration", tools: [{ type: "function", name: "spawn" }] },
          { type: "custom", name: "exec" },
        ],
      }),
    });
    expect(await response.text()).toContain('"name":"spawn","namespace":"collaboration"');
    expect(server.requests[0]!.tools.map(fullName)).toEqual(["collaboration.spawn", "exec"]);
  });
});
