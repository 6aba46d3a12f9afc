/** The stream of OpenAI's Responses interface, as far as a scripted answer needs it. */
import { finishOf, NO_USAGE, type ReplyPart, type WireEvent, type WireFormat } from "./reply.ts";

const response = (id: string): object => ({
  id: `resp_${id}`,
  object: "response",
  created_at: 1_700_000_000,
  model: "scripted",
});

const named = (type: string, rest: object): WireEvent => ({
  event: type,
  data: { type, sequence_number: 0, ...rest },
});

export const responsesFormat: WireFormat = {
  opening: (id) => [
    named("response.created", { response: response(id) }),
    named("response.in_progress", { response: response(id) }),
  ],
  parts: (parts, id) => parts.flatMap((part, index) => item(part, index, `${id}_${index}`)),
  closing(reply, id) {
    const { input, cached, output, reasoning } = reply.usage ?? NO_USAGE;
    const finish = finishOf(reply);
    const incomplete =
      finish === "length" ? "max_output_tokens" : finish === "content_filter" ? finish : null;
    return [
      named(incomplete === null ? "response.completed" : "response.incomplete", {
        response: {
          ...response(id),
          incomplete_details: incomplete === null ? null : { reason: incomplete },
          usage: {
            input_tokens: input,
            input_tokens_details: { cached_tokens: cached },
            output_tokens: output,
            output_tokens_details: { reasoning_tokens: reasoning },
            total_tokens: input + output,
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

function item(part: ReplyPart, output_index: number, id: string): WireEvent[] {
  const at = { output_index };
  const added = (whole: object): WireEvent => named("response.output_item.added", { ...at, item: whole });
  const done = (whole: object): WireEvent => named("response.output_item.done", { ...at, item: whole });
  switch (part.type) {
    case "text": {
      const message = { type: "message", id: `msg_${id}`, role: "assistant" };
      const inside = { ...at, item_id: message.id, content_index: 0 };
      const text = part.deltas.join("");
      const content = { type: "output_text", text, annotations: [] };
      return [
        added({ ...message, content: [] }),
        named("response.content_part.added", { ...inside, part: { ...content, text: "" } }),
        ...part.deltas.map((delta) => named("response.output_text.delta", { ...inside, delta })),
        named("response.output_text.done", { ...inside, text }),
        named("response.content_part.done", { ...inside, part: content }),
        done({ ...message, content: [content] }),
      ];
    }
    case "reasoning": {
      const whole = {
        type: "reasoning",
        id: `rs_${id}`,
        summary: [{ type: "summary_text", text: part.deltas.join("") }],
        encrypted_content: part.secret,
      };
      const inside = { ...at, item_id: whole.id, summary_index: 0 };
      return [
        added({ ...whole, summary: [], encrypted_content: null }),
        named("response.reasoning_summary_part.added", inside),
        ...part.deltas.map((delta) => named("response.reasoning_summary_text.delta", { ...inside, delta })),
        named("response.reasoning_summary_part.done", inside),
        done(whole),
      ];
    }
    case "call":
      return part.custom === true ? customCall(part, at, id) : functionCall(part, at, id);
  }
}

type Call = Extract<ReplyPart, { type: "call" }>;

function functionCall(part: Call, at: object, id: string): WireEvent[] {
  const whole = {
    type: "function_call",
    id: `fc_${id}`,
    call_id: part.id,
    name: part.name,
    ...(part.namespace === undefined ? {} : { namespace: part.namespace }),
    status: "completed",
  };
  const inside = { ...at, item_id: whole.id };
  return [
    named("response.output_item.added", { ...at, item: { ...whole, arguments: "" } }),
    named("response.function_call_arguments.delta", { ...inside, delta: part.input }),
    named("response.function_call_arguments.done", { ...inside, arguments: part.input }),
    named("response.output_item.done", { ...at, item: { ...whole, arguments: part.input } }),
  ];
}

function customCall(part: Call, at: object, id: string): WireEvent[] {
  const whole = {
    type: "custom_tool_call",
    id: `ctc_${id}`,
    call_id: part.id,
    name: part.name,
    ...(part.namespace === undefined ? {} : { namespace: part.namespace }),
    status: "completed",
  };
  const inside = { ...at, item_id: whole.id };
  return [
    named("response.output_item.added", { ...at, item: { ...whole, input: "" } }),
    named("response.custom_tool_call_input.delta", { ...inside, delta: part.input }),
    named("response.custom_tool_call_input.done", { ...inside, input: part.input }),
    named("response.output_item.done", { ...at, item: { ...whole, input: part.input } }),
  ];
}
