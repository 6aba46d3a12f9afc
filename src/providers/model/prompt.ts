/**
 * Our neutral messages in the shape of specification v4. What a provider once added to a part (reasoning signatures,
 * encrypted reasoning, item ids) goes back with that part, unchanged; a vendor reads only what bears its own name.
 *
 * - Results of one step stand in one `tool` message, in the order of the transcript.
 * - Arguments must be an object for every vendor. Text that is none goes back as `{ "invalid_arguments": text }`, so that
 *   the model sees what it wrote beside the refusal of the tool.
 * - Empty text is dropped (vendors refuse it), empty reasoning only where it carries nothing else.
 */
import type {
  JSONSchema7,
  JSONValue,
  LanguageModelV4CallOptions,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { PromptMessage } from "../../protocol/provider-events.ts";
import type { ToolSpec } from "../../protocol/tool.ts";
import type { AssistantPart } from "../../protocol/transcript.ts";

type Prompt = LanguageModelV4CallOptions["prompt"];
type Message = Prompt[number];
type AssistantContent = Extract<Message, { role: "assistant" }>["content"][number];
type ToolContent = Extract<Message, { role: "tool" }>["content"][number];
type ToolOutput = Extract<ToolContent, { type: "tool-result" }>["output"];

/** The prompt of one request. */
export function toPrompt(messages: readonly PromptMessage[]): Prompt {
  const prompt: Prompt = [];
  for (const message of messages) {
    switch (message.role) {
      case "system":
        prompt.push({ role: "system", content: message.text });
        break;
      case "user":
        prompt.push({ role: "user", content: [{ type: "text", text: message.text }] });
        break;
      case "assistant": {
        const content = message.parts.flatMap(toContent);
        if (content.length > 0) prompt.push({ role: "assistant", content });
        break;
      }
      case "tool": {
        const result: ToolContent = {
          type: "tool-result",
          toolCallId: message.callId,
          toolName: message.name,
          output: toOutput(message.output, message.isError),
        };
        const last = prompt.at(-1);
        if (last?.role === "tool") last.content.push(result);
        else prompt.push({ role: "tool", content: [result] });
      }
    }
  }
  return prompt;
}

const CACHED = { anthropic: { cacheControl: { type: "ephemeral" } } } satisfies SharedV4ProviderOptions;

/**
 * Anthropic caches what it is told to, and nothing else: what stays the same over the runs of an agent, and the whole of what
 * the next step repeats. Other vendors do not read the marks.
 */
export function withCacheMarks(prompt: Prompt): Prompt {
  const marked = new Set([prompt.findLast(({ role }) => role === "system"), prompt.at(-1)]);
  return prompt.map((message) => (marked.has(message) ? { ...message, providerOptions: CACHED } : message));
}

/** Function tools; undefined where there are none, because vendors refuse an empty list. */
export function toTools(
  tools: readonly ToolSpec[],
): NonNullable<LanguageModelV4CallOptions["tools"]> | undefined {
  if (tools.length === 0) return undefined;
  return tools.map(({ name, description, parameters }) => ({
    type: "function",
    name,
    description,
    inputSchema: parameters as JSONSchema7,
  }));
}

function toContent(part: AssistantPart): AssistantContent[] {
  const kept =
    part.provider === undefined ? {} : { providerOptions: part.provider as SharedV4ProviderOptions };
  switch (part.type) {
    case "text":
      return part.text === "" ? [] : [{ type: "text", text: part.text, ...kept }];
    case "reasoning":
      if (part.text === "" && part.provider === undefined) return [];
      return [{ type: "reasoning", text: part.text, ...kept }];
    case "tool_call":
      return [
        {
          type: "tool-call",
          toolCallId: part.callId,
          toolName: part.name,
          input: toInput(part.input),
          ...kept,
        },
      ];
    // Another provider asked this; a model sees it as a call that was answered.
    case "request":
      return [
        {
          type: "tool-call",
          toolCallId: part.callId,
          toolName: part.kind,
          input: { text: part.text },
          ...kept,
        },
      ];
  }
}

function toInput(text: string): JsonObject {
  try {
    const value = JSON.parse(text) as Json;
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  } catch {
    // Not JSON: what the model wrote is kept below.
  }
  return { invalid_arguments: text };
}

function toOutput(output: Json, isError: boolean): ToolOutput {
  if (typeof output === "string") return { type: isError ? "error-text" : "text", value: output };
  return { type: isError ? "error-json" : "json", value: output as JSONValue };
}
