/**
 * The tools for the AI SDK (version 7): the record that `generateText`, `streamText` and its agents take as `tools`. It
 * depends on no package of the SDK: the schema is a Standard JSON Schema, which the SDK takes as it is.
 *
 * - K1 The SDK checks no arguments: the definition does, and answers a fault with a refusal that a model can act on.
 * - K2 An abort of the SDK's call ends that call, never the agents (WAI-6).
 */
import type { Json } from "../../protocol/json.ts";
import { check } from "../../platform/check.ts";
import { type HostTool, toolsSchema } from "../host-tools.ts";

type Arguments = Record<string, unknown>;

interface AiSdkSchema {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: "coppice";
    readonly validate: (value: unknown) => { readonly value: Arguments };
    readonly jsonSchema: { readonly input: () => Arguments; readonly output: () => Arguments };
  };
}

/** A tool in the form that the AI SDK takes. */
export interface AiSdkTool {
  readonly description: string;
  readonly inputSchema: AiSdkSchema;
  readonly execute: (
    input: Arguments,
    options: { readonly toolCallId: string; readonly abortSignal?: AbortSignal | undefined },
  ) => Promise<Json>;
}

/** The tools as a record for the AI SDK's `generateText`, `streamText` and agents. */
export function toAiSdkTools(tools: readonly HostTool[]): Record<string, AiSdkTool> {
  check("toAiSdkTools", toolsSchema, tools);
  return Object.fromEntries(tools.map((tool) => [tool.name, toAiSdkTool(tool)]));
}

function toAiSdkTool(tool: HostTool): AiSdkTool {
  // A copy: the SDK writes into what it is given.
  const schema = (): Arguments => structuredClone(tool.parameters);
  return {
    description: tool.description,
    inputSchema: {
      "~standard": {
        version: 1,
        vendor: "coppice",
        validate: (value) => ({ value: value as Arguments }),
        jsonSchema: { input: schema, output: schema },
      },
    },
    execute: async (input, { abortSignal, toolCallId }) =>
      (await tool.call(input, { signal: abortSignal, callId: toolCallId })).output,
  };
}
