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
  for (const message of messages) tokens += FRAME_OF_MESSAGE + tokensOfMessage(message);
  for (const tool of tools) tokens += FRAME_OF_TOOL + tokensOfTool(tool);
  return tokens;
}

/** Of what is written out as JSON: parts, outputs and schemas are values that come with every request of their thread. */
const known = new WeakMap<object, number>();

function tokensOfJson(value: object, before = ""): number {
  let tokens = known.get(value);
  if (tokens === undefined) {
    tokens = textTokens(before + JSON.stringify(value));
    known.set(value, tokens);
  }
  return tokens;
}

/** By its schema, which a tool has for life. */
function tokensOfTool({ name, description, parameters }: ToolSpec): number {
  return tokensOfJson(parameters, name + description);
}

/** What a provider adds to a part (signatures, encrypted reasoning) travels back with it and counts too. */
function tokensOfMessage(message: PromptMessage): number {
  switch (message.role) {
    case "system":
    case "user":
      return textTokens(message.text);
    case "assistant":
      return tokensOfJson(message.parts);
    case "tool": {
      const { callId, name, output } = message;
      return typeof output === "object" && output !== null
        ? textTokens(callId + name) + tokensOfJson(output)
        : textTokens(callId + name + JSON.stringify(output));
    }
  }
}

function textTokens(text: string): number {
  let ascii = 0;
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) < 0x80) ascii += 1;
  const other = Buffer.byteLength(text, "utf8") - ascii;
  return Math.ceil(ascii / 4 + other / 2);
}
