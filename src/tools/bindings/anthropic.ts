/** The tools for the Anthropic Messages API, and the answer to a `tool_use` block. */
import { z } from "zod";
import type { JsonObject } from "../../protocol/json.ts";
import { check } from "../../platform/check.ts";
import {
  asText,
  callByName,
  callOptionsSchema,
  type HostCallOptions,
  type HostTool,
  toolsSchema,
} from "../host-tools.ts";

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

/** The tools as a request of the Anthropic Messages API lists them. */
export function toAnthropicTools(tools: readonly HostTool[]): readonly AnthropicTool[] {
  check("toAnthropicTools", toolsSchema, tools);
  return tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters }));
}

/** What a vendor sends beside it is not looked at. */
const answerArguments = z.strictObject({
  tools: toolsSchema,
  use: z.object({ id: z.string(), name: z.string(), input: z.unknown() }),
  options: callOptionsSchema,
});

/**
 * Carries out a `tool_use` block; the answer is the `tool_result` block for it.
 * @throws the signal's reason; RejectedError `INVALID_ARGUMENT` for what is no call.
 */
export async function answerAnthropicToolUse(
  tools: readonly HostTool[],
  use: AnthropicToolUse,
  options: HostCallOptions = {},
): Promise<AnthropicToolResult> {
  check("answerAnthropicToolUse", answerArguments, { tools, use, options });
  const { output, isError } = await callByName(tools, use.name, use.input, { callId: use.id, ...options });
  return { type: "tool_result", tool_use_id: use.id, content: asText(output), is_error: isError };
}
