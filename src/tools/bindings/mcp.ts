/** The tools in the shapes of the Model Context Protocol: what `tools/list` shows and what `tools/call` answers. */
import { z } from "zod";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { check } from "../../platform/check.ts";
import {
  asText,
  callByName,
  callOptionsSchema,
  type HostCallOptions,
  type HostTool,
  toolsSchema,
} from "../host-tools.ts";

export interface McpTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly annotations: {
    readonly title: string;
    readonly readOnlyHint: boolean;
    readonly destructiveHint: boolean;
    readonly idempotentHint: boolean;
    /** True where a tool reaches other trees: what is read there, or done there, is not the caller's own. */
    readonly openWorldHint: boolean;
  };
}

export interface McpCallResult {
  readonly content: readonly { readonly type: "text"; readonly text: string }[];
  readonly structuredContent: JsonObject;
  readonly isError: boolean;
}

/** The tools as `tools/list` of the Model Context Protocol shows them. */
export function toMcpTools(tools: readonly HostTool[]): readonly McpTool[] {
  check("toMcpTools", toolsSchema, tools);
  return tools.map(({ name, title, description, parameters, hints }) => ({
    name,
    title,
    description,
    inputSchema: parameters,
    annotations: {
      title,
      readOnlyHint: hints.readOnly,
      destructiveHint: hints.destructive,
      idempotentHint: hints.idempotent,
      openWorldHint: hints.openWorld,
    },
  }));
}

/** What a vendor sends beside it is not looked at. */
const answerArguments = z.strictObject({
  tools: toolsSchema,
  call: z.object({ name: z.string(), arguments: z.unknown().optional() }),
  options: callOptionsSchema,
});

/**
 * Carries out a `tools/call`; the answer is its result.
 * @throws the signal's reason; RejectedError `INVALID_ARGUMENT` for what is no call.
 */
export async function answerMcpCall(
  tools: readonly HostTool[],
  call: { readonly name: string; readonly arguments?: unknown },
  options: HostCallOptions = {},
): Promise<McpCallResult> {
  check("answerMcpCall", answerArguments, { tools, call, options });
  const { output, isError } = await callByName(tools, call.name, call.arguments ?? {}, options);
  return {
    content: [{ type: "text", text: asText(output) }],
    structuredContent: structured(output),
    isError,
  };
}

/** Structured content is an object. */
function structured(output: Json): JsonObject {
  return typeof output === "object" && output !== null && !Array.isArray(output)
    ? (output as JsonObject)
    : { output };
}
