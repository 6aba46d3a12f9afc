/**
 * The tools for the AI SDK (version 7): the record that `generateText`, `streamText` and its agents take as `tools`. It
 * depends on no package of the SDK: a schema is recognised there by a registered symbol.
 *
 * - K1 The SDK checks no arguments: the definition does, and answers a fault with a refusal that a model can act on.
 * - K2 An abort of the SDK's call ends that call, never the agents (WAI-6).
 */
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { HostTool } from "../host-tools.ts";

const SCHEMA = Symbol.for("vercel.ai.schema");

type Arguments = Record<string, unknown>;

interface AiSdkSchema {
  readonly _type: Arguments;
  readonly jsonSchema: JsonObject;
  readonly validate: (value: unknown) => { readonly success: true; readonly value: Arguments };
}

export interface AiSdkTool {
  readonly description: string;
  readonly inputSchema: AiSdkSchema;
  readonly execute: (
    input: Arguments,
    options: { readonly toolCallId: string; readonly abortSignal?: AbortSignal | undefined },
  ) => Promise<Json>;
}

export function toAiSdkTools(tools: readonly HostTool[]): Record<string, AiSdkTool> {
  return Object.fromEntries(tools.map((tool) => [tool.name, toAiSdkTool(tool)]));
}

function toAiSdkTool(tool: HostTool): AiSdkTool {
  const inputSchema = {
    [SCHEMA]: true,
    _type: {},
    jsonSchema: tool.parameters,
    validate: (value: unknown) => ({ success: true, value: value as Arguments }) as const,
  };
  return {
    description: tool.description,
    inputSchema,
    execute: async (input, { abortSignal }) => (await tool.call(input, { signal: abortSignal })).output,
  };
}
