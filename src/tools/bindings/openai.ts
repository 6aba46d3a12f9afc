/** The tools for the OpenAI Responses API, and the answer to a function call as an input item of the next request. */
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

export interface OpenAITool {
  readonly type: "function";
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
  /** Off: strict mode wants every field to be required. */
  readonly strict: false;
}

export interface OpenAIFunctionCall {
  readonly call_id: string;
  readonly name: string;
  readonly arguments: string;
}

export interface OpenAIFunctionOutput {
  readonly type: "function_call_output";
  readonly call_id: string;
  readonly output: string;
}

/** The tools as a request of the OpenAI Responses API lists them. */
export function toOpenAITools(tools: readonly HostTool[]): readonly OpenAITool[] {
  check("toOpenAITools", toolsSchema, tools);
  return tools.map(({ name, description, parameters }) => ({
    type: "function",
    name,
    description,
    parameters,
    strict: false,
  }));
}

/** What a vendor sends beside it is not looked at. */
const answerArguments = z.strictObject({
  tools: toolsSchema,
  call: z.object({ call_id: z.string(), name: z.string(), arguments: z.string() }),
  options: callOptionsSchema,
});

/**
 * Carries out a function call of a response; the answer is an input item of the next request.
 * @throws the signal's reason; RejectedError `INVALID_ARGUMENT` for what is no call.
 */
export async function answerOpenAICall(
  tools: readonly HostTool[],
  call: OpenAIFunctionCall,
  options: HostCallOptions = {},
): Promise<OpenAIFunctionOutput> {
  check("answerOpenAICall", answerArguments, { tools, call, options });
  const { output } = await callByName(tools, call.name, call.arguments, { callId: call.call_id, ...options });
  return { type: "function_call_output", call_id: call.call_id, output: asText(output) };
}
