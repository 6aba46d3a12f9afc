/** One definition, several renderings: each in the shape of its world, and none with words of its own. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { say } from "../../../src/providers/scripted/script.ts";
import { answerAnthropicToolUse, toAnthropicTools } from "../../../src/tools/bindings/anthropic.ts";
import { toAiSdkTools } from "../../../src/tools/bindings/ai-sdk.ts";
import { THREAD_TOOLS } from "../../../src/protocol/tools-words.ts";
import { answerMcpCall, toMcpTools } from "../../../src/tools/bindings/mcp.ts";
import { answerOpenAICall, toOpenAITools } from "../../../src/tools/bindings/openai.ts";
import { type HostTool, hostTools } from "../../../src/tools/host-tools.ts";
import { type Harness, harness } from "../../support/harness.ts";

let h: Harness;
let tools: readonly HostTool[];

beforeEach(async () => {
  h = await harness({
    scripts: { "/root/worker": [say("seven")] },
    tree: { hostDriven: true },
  });
  tools = hostTools(h.tree.control, h.tree.id);
});
afterEach(() => h[Symbol.asyncDispose]());

const send = (): HostTool => tools.find(({ name }) => name === "send_message")!;

describe("renderings", () => {
  test("OpenAI: a function with its parameters beside its name", () => {
    expect(toOpenAITools(tools)[1]).toEqual({
      type: "function",
      name: "send_message",
      description: send().description,
      parameters: send().parameters,
      strict: false,
    });
  });

  test("Anthropic: an input schema", () => {
    expect(toAnthropicTools(tools)[1]).toEqual({
      name: "send_message",
      description: send().description,
      input_schema: send().parameters,
    });
  });

  test("MCP: a title and hints", () => {
    expect(toMcpTools(tools)[1]).toEqual({
      name: "send_message",
      title: "Leave a message",
      description: send().description,
      inputSchema: send().parameters,
      annotations: {
        title: "Leave a message",
        readOnlyHint: false,
        destructiveHint: false,
        idempotentHint: false,
        openWorldHint: false,
      },
    });
  });

  test("MCP: who reads, who destroys", () => {
    const hints = toMcpTools(tools).map(({ name, annotations }) => [
      name,
      `${annotations.readOnlyHint ? "reads" : "acts"}${annotations.destructiveHint ? ", destroys" : ""}`,
    ]);
    expect(Object.fromEntries(hints)).toEqual({
      spawn_agent: "acts",
      send_message: "acts",
      followup_task: "acts",
      wait_agent: "reads",
      interrupt_agent: "acts, destroys",
      list_agents: "reads",
      read_artifact: "reads",
    });
  });

  test("XTR the tools between trees are rendered from one definition each, in all four shapes", async () => {
    await using other = await harness({
      tree: { hostDriven: true },
      runtime: { threadTools: { allow: "all" } },
    });
    const all = hostTools(other.tree.control, other.tree.id);
    const between = all.filter(({ name }) => (THREAD_TOOLS as readonly string[]).includes(name));
    expect(between.map(({ name }) => name)).toEqual([...THREAD_TOOLS]);
    const sdk = toAiSdkTools(between);
    for (const [at, { name, description, parameters, title, hints }] of between.entries()) {
      expect(toOpenAITools(between)[at]).toEqual({
        type: "function",
        name,
        description,
        parameters,
        strict: false,
      });
      expect(toAnthropicTools(between)[at]).toEqual({ name, description, input_schema: parameters });
      expect(toMcpTools(between)[at]).toMatchObject({
        name,
        title,
        description,
        inputSchema: parameters,
        annotations: { title, readOnlyHint: hints.readOnly, destructiveHint: false },
      });
      expect(sdk[name]!.description).toBe(description);
      expect(sdk[name]!.inputSchema["~standard"].jsonSchema.input()).toEqual(parameters);
    }
    const reading = toMcpTools(between).filter(({ annotations }) => annotations.readOnlyHint);
    expect(reading.map(({ name }) => name)).toEqual(["read_thread", "wait_threads"]);
    // They leave the tree, and nothing else does.
    const open = toMcpTools(all).filter(({ annotations }) => annotations.openWorldHint);
    expect(open.map(({ name }) => name)).toEqual([...THREAD_TOOLS]);
  });

  test("every rendering has all tools, in one order", () => {
    const names = tools.map(({ name }) => name);
    for (const rendered of [toOpenAITools(tools), toAnthropicTools(tools), toMcpTools(tools)]) {
      expect(rendered.map(({ name }) => name)).toEqual(names);
    }
  });
});

describe("answers", () => {
  test("OpenAI: text under the id of the call", async () => {
    const answer = await answerOpenAICall(tools, {
      call_id: "call_1",
      name: "spawn_agent",
      arguments: '{"task_name": "worker", "message": "count"}',
    });
    expect(answer).toMatchObject({ type: "function_call_output", call_id: "call_1" });
    expect(JSON.parse(answer.output)).toMatchObject({ task_name: "/root/worker" });
  });

  test("OpenAI: broken arguments are a refusal", async () => {
    const answer = await answerOpenAICall(tools, {
      call_id: "call_1",
      name: "spawn_agent",
      arguments: '{"task',
    });
    expect(JSON.parse(answer.output)).toMatchObject({ code: "INVALID_ARGUMENT" });
  });

  test("Anthropic: a refusal is marked as an error", async () => {
    const use = { id: "use_1", name: "followup_task", input: { target: "nobody", message: "m" } };
    const answer = await answerAnthropicToolUse(tools, use);
    expect(answer).toMatchObject({ type: "tool_result", tool_use_id: "use_1", is_error: true });
    expect(answer.content).toContain("AGENT_NOT_FOUND");
  });

  test("MCP: the same as text and as structure", async () => {
    const answer = await answerMcpCall(tools, { name: "list_agents" });
    expect(answer.isError).toBe(false);
    expect(JSON.parse(answer.content[0]!.text)).toEqual(answer.structuredContent);
    expect(answer.structuredContent).toMatchObject({ agents: [{ agent: "/root" }] });
  });

  test("a tool that is not there is a refusal", async () => {
    const answer = await answerMcpCall(tools, { name: "report_result", arguments: {} });
    expect(answer).toMatchObject({ isError: true, structuredContent: { code: "INVALID_ARGUMENT" } });
  });

  test("a root with runs of its own is no host", async () => {
    await using other = await harness({});
    const answer = await answerMcpCall(hostTools(other.tree.control, other.tree.id), { name: "wait_agent" });
    expect(answer).toMatchObject({
      isError: true,
      structuredContent: { code: "SUBAGENT_PARENT_NOT_ACTIVE" },
    });
  });
});
