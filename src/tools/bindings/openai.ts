/** The tools for the OpenAI Responses API, and the answer to a function call as an input item of the next request. */
import type { JsonObject } from "../../protocol/json.ts";
import { asText, callByName, type HostTool } from "../host-tools.ts";

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

export function toOpenAITools(tools: readonly HostTool[]): readonly OpenAITool[] {
  return tools.map(({ name, description, parameters }) => ({
    type: "function",
    name,
    description,
    parameters,
    strict: false,
  }));
}

/** @throws the signal's reason. */
export async function answerOpenAICall(
  tools: readonly HostTool[],
  call: OpenAIFunctionCall,
  options: { readonly signal?: AbortSignal } = {},
): Promise<OpenAIFunctionOutput> {
  const { output } = await callByName(tools, call.name, call.arguments, options);
  return { type: "function_call_output", call_id: call.call_id, output: asText(output) };
}
