/**
 * Builds the parts of one answer from the blocks of a stream. Blocks may overlap and end in any order; the transcript keeps
 * the order in which the model began them, so a part is handed out once it and all before it are whole.
 *
 * - What the vendor attaches to the start, the deltas and the end of a block is merged, a later value over an earlier one.
 * - Call ids are unique within the answer and against the ids already in the prompt: a result names its call by id alone.
 * - Arguments are kept as written; none at all means an empty object.
 */
import type { LanguageModelV4StreamPart, SharedV4ProviderMetadata } from "@ai-sdk/provider";
import type { JsonObject } from "../../protocol/json.ts";
import type { AssistantPart } from "../../protocol/transcript.ts";

type ToolCall = Extract<LanguageModelV4StreamPart, { type: "tool-call" }>;

interface Block {
  readonly key: string;
  readonly type: "text" | "reasoning" | "tool_call";
  text: string;
  provider: Record<string, JsonObject>;
  /** The part, once the block has ended; `null` when nothing worth keeping came. */
  part: AssistantPart | null | undefined;
}

/** One answer in the making. */
export class Answer {
  readonly #blocks: Block[] = [];
  readonly #callIds: Set<string>;
  #taken = 0;
  calls = 0;

  constructor(usedCallIds: Iterable<string>) {
    this.#callIds = new Set(usedCallIds);
  }

  /** Begins a block, or adds to it; a model may leave the start out. */
  add(type: Block["type"], id: string, delta: string, metadata: SharedV4ProviderMetadata | undefined): void {
    const key = `${type}:${id}`;
    let block = this.#blocks.find((one) => one.key === key && one.part === undefined);
    if (block === undefined) {
      block = { key, type, text: "", provider: {}, part: undefined };
      this.#blocks.push(block);
    }
    block.text += delta;
    for (const [vendor, values] of Object.entries(metadata ?? {})) {
      // Through text, so that nothing but JSON gets into a transcript.
      block.provider[vendor] = {
        ...block.provider[vendor],
        ...(JSON.parse(JSON.stringify(values)) as JsonObject),
      };
    }
  }

  end(type: "text" | "reasoning", id: string, metadata: SharedV4ProviderMetadata | undefined): void {
    this.add(type, id, "", metadata);
    const block = this.#blocks.find((one) => one.key === `${type}:${id}` && one.part === undefined);
    if (block !== undefined) block.part = whole(block);
  }

  call({ toolCallId, toolName, input, providerMetadata }: ToolCall): void {
    this.add("tool_call", toolCallId, "", providerMetadata);
    const block = this.#blocks.find((one) => one.key === `tool_call:${toolCallId}` && one.part === undefined);
    if (block === undefined) return;
    this.calls += 1;
    block.part = {
      type: "tool_call",
      callId: this.#unique(toolCallId),
      name: toolName,
      input: input.trim() === "" ? "{}" : input,
      ...attached(block),
    };
  }

  /** Parts that are whole and in turn; `all` ends what was left open, at the end of the stream. */
  *take(all = false): Generator<AssistantPart> {
    for (let block = this.#blocks[this.#taken]; block !== undefined; block = this.#blocks[this.#taken]) {
      if (block.part === undefined && !all) return;
      this.#taken += 1;
      const part = block.part === undefined ? whole(block) : block.part;
      if (part !== null) yield part;
    }
  }

  #unique(wanted: string): string {
    const base = wanted === "" ? "call" : wanted;
    let id = base;
    for (let count = 2; this.#callIds.has(id); count += 1) id = `${base}-${count}`;
    this.#callIds.add(id);
    return id;
  }
}

/** The part of an ended block; a call whose input never came whole is no call. */
function whole(block: Block): AssistantPart | null {
  if (block.type === "tool_call") return null;
  const more = attached(block);
  const empty = block.text === "" && (block.type === "text" || more.provider === undefined);
  return empty ? null : { type: block.type, text: block.text, ...more };
}

function attached({ provider }: Block): { readonly provider?: JsonObject } {
  return Object.keys(provider).length === 0 ? {} : { provider };
}
