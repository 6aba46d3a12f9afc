/** The stream of Anthropic's Messages interface, as far as a scripted answer needs it. */
import { finishOf, NO_USAGE, type ReplyPart, type WireEvent, type WireFormat } from "./reply.ts";

const named = (type: string, rest: object = {}): WireEvent => ({ event: type, data: { type, ...rest } });

const STOP_REASON = {
  stop: "end_turn",
  tool_calls: "tool_use",
  length: "max_tokens",
  content_filter: "refusal",
};

export const messagesFormat: WireFormat = {
  opening: (id) => [
    named("message_start", {
      message: {
        id: `msg_${id}`,
        type: "message",
        role: "assistant",
        model: "scripted",
        content: [],
        stop_reason: null,
        usage: { input_tokens: 0, output_tokens: 1 },
      },
    }),
    named("ping"),
  ],
  parts: (parts) => parts.flatMap(block),
  closing(reply) {
    const { input, cached, output, reasoning } = reply.usage ?? NO_USAGE;
    return [
      named("message_delta", {
        delta: { stop_reason: STOP_REASON[finishOf(reply)], stop_sequence: null },
        usage: {
          input_tokens: input - cached,
          cache_read_input_tokens: cached,
          cache_creation_input_tokens: 0,
          output_tokens: output,
          output_tokens_details: { thinking_tokens: reasoning },
        },
      }),
      named("message_stop"),
    ];
  },
  errorEvent: () => named("error", { error: { type: "overloaded_error", message: "the model broke" } }),
  errorBody: (message, type) => ({ type: "error", error: { type, message } }),
};

function block(part: ReplyPart, index: number): WireEvent[] {
  const start = (content_block: object): WireEvent => named("content_block_start", { index, content_block });
  const delta = (rest: object): WireEvent => named("content_block_delta", { index, delta: rest });
  const stop = named("content_block_stop", { index });
  switch (part.type) {
    case "text":
      return [
        start({ type: "text", text: "" }),
        ...part.deltas.map((text) => delta({ type: "text_delta", text })),
        stop,
      ];
    case "reasoning":
      return [
        start({ type: "thinking", thinking: "", signature: "" }),
        ...part.deltas.map((thinking) => delta({ type: "thinking_delta", thinking })),
        delta({ type: "signature_delta", signature: part.secret ?? "" }),
        stop,
      ];
    case "call":
      return [
        start({ type: "tool_use", id: part.id, name: part.name, input: {} }),
        delta({ type: "input_json_delta", partial_json: part.input }),
        stop,
      ];
  }
}
