/** The tools for the Anthropic Messages API, and the answer to a `tool_use` block. */
import type { JsonObject } from "../../protocol/json.ts";
import { asText, callByName, type HostTool } from "../host-tools.ts";

export interface AnthropicTool {
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonObject;
}

export interface AnthropicToolUse {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

export interface AnthropicToolResult {
  readonly type: "tool_result";
  readonly tool_use_id: string;
  readonly content: string;
  readonly is_error: boolean;
}

export function toAnthropicTools(tools: readonly HostTool[]): readonly AnthropicTool[] {
  return tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters }));
}

/** @throws the signal's reason. */
export async function answerAnthropicToolUse(
  tools: readonly HostTool[],
  use: AnthropicToolUse,
  options: { readonly signal?: AbortSignal } = {},
): Promise<AnthropicToolResult> {
  const { output, isError } = await callByName(tools, use.name, use.input, options);
  return { type: "tool_result", tool_use_id: use.id, content: asText(output), is_error: isError };
}
