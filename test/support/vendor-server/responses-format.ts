/** The stream of OpenAI's Responses interface, as far as a scripted answer needs it. */
import { finishOf, NO_USAGE, type ReplyPart, type WireEvent, type WireFormat } from "./reply.ts";

const response = { id: "resp_1", created_at: 1_700_000_000, model: "scripted" };

const named = (type: string, rest: object): WireEvent => ({
  event: type,
  data: { type, sequence_number: 0, ...rest },
});

export const responsesFormat: WireFormat = {
  opening: () => [named("response.created", { response }), named("response.in_progress", { response })],
  parts: (parts) => parts.flatMap(item),
  closing(reply) {
    const { input, cached, output, reasoning } = reply.usage ?? NO_USAGE;
    const finish = finishOf(reply);
    const incomplete =
      finish === "length" ? "max_output_tokens" : finish === "content_filter" ? finish : null;
    return [
      named(incomplete === null ? "response.completed" : "response.incomplete", {
        response: {
          ...response,
          incomplete_details: incomplete === null ? null : { reason: incomplete },
          usage: {
            input_tokens: input,
            input_tokens_details: { cached_tokens: cached },
            output_tokens: output,
            output_tokens_details: { reasoning_tokens: reasoning },
          },
        },
      }),
    ];
  },
  errorEvent: () =>
    named("error", {
      error: { type: "server_error", code: "server_error", message: "the model broke", param: null },
    }),
  errorBody: (message, type) => ({ error: { message, type, code: null, param: null } }),
};

function item(part: ReplyPart, output_index: number): WireEvent[] {
  const at = { output_index };
  switch (part.type) {
    case "text": {
      const id = `msg_${output_index}`;
      return [
        named("response.output_item.added", {
          ...at,
          item: { type: "message", id, role: "assistant", content: [] },
        }),
        ...part.deltas.map((delta) =>
          named("response.output_text.delta", { ...at, item_id: id, content_index: 0, delta }),
        ),
        named("response.output_item.done", {
          ...at,
          item: { type: "message", id, role: "assistant", content: [] },
        }),
      ];
    }
    case "reasoning": {
      const id = `rs_${output_index}`;
      const whole = { type: "reasoning", id, summary: [], encrypted_content: part.secret };
      return [
        named("response.output_item.added", { ...at, item: { ...whole, encrypted_content: null } }),
        named("response.reasoning_summary_part.added", { ...at, item_id: id, summary_index: 0 }),
        ...part.deltas.map((delta) =>
          named("response.reasoning_summary_text.delta", { ...at, item_id: id, summary_index: 0, delta }),
        ),
        named("response.reasoning_summary_part.done", { ...at, item_id: id, summary_index: 0 }),
        named("response.output_item.done", { ...at, item: whole }),
      ];
    }
    case "call": {
      const id = `fc_${output_index}`;
      const whole = { type: "function_call", id, call_id: part.id, name: part.name, status: "completed" };
      return [
        named("response.output_item.added", { ...at, item: { ...whole, arguments: "" } }),
        named("response.function_call_arguments.delta", { ...at, item_id: id, delta: part.input }),
        named("response.function_call_arguments.done", { ...at, item_id: id, arguments: part.input }),
        named("response.output_item.done", { ...at, item: { ...whole, arguments: part.input } }),
      ];
    }
  }
}
