/**
 * How many tokens a request may take, before it is sent (BUD-2). No tokenizer: the figure reserves room in a budget and is
 * replaced by the provider's own once the request has ended, so it must err upwards and cost little.
 *
 * - A token is counted for each four ASCII characters and for each two bytes of anything else, which covers prose, code
 *   and scripts with a token or more a character.
 * - Every message and tool adds a fixed amount for the frame in which vendors wrap it.
 */
import type { PromptMessage } from "../protocol/provider-events.ts";
import type { ToolSpec } from "../protocol/tool.ts";

const FRAME_OF_MESSAGE = 8;
const FRAME_OF_TOOL = 16;

/** An upper estimate of the input tokens of a request. */
export function estimateTokens(messages: readonly PromptMessage[], tools: readonly ToolSpec[]): number {
  let tokens = 0;
  for (const message of messages) tokens += FRAME_OF_MESSAGE + textTokens(contentOf(message));
  for (const tool of tools) tokens += FRAME_OF_TOOL + tokensOfTool(tool);
  return tokens;
}

/** By their schemas, which a tool has for life: with few messages, tools are most of a request's text. */
const toolTokens = new WeakMap<object, number>();

function tokensOfTool({ name, description, parameters }: ToolSpec): number {
  let tokens = toolTokens.get(parameters);
  if (tokens === undefined) {
    tokens = textTokens(name + description + JSON.stringify(parameters));
    toolTokens.set(parameters, tokens);
  }
  return tokens;
}

/** What a provider adds to a part (signatures, encrypted reasoning) travels back with it and counts too. */
function contentOf(message: PromptMessage): string {
  switch (message.role) {
    case "system":
    case "user":
      return message.text;
    case "assistant":
      return JSON.stringify(message.parts);
    case "tool":
      return message.callId + message.name + JSON.stringify(message.output);
  }
}

function textTokens(text: string): number {
  let ascii = 0;
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) < 0x80) ascii += 1;
  const other = Buffer.byteLength(text, "utf8") - ascii;
  return Math.ceil(ascii / 4 + other / 2);
}
