/** The stream of chat completions, as servers compatible with OpenAI's send it. */
import { finishOf, NO_USAGE, type ReplyPart, type WireEvent, type WireFormat } from "./reply.ts";

const frame = (id: string): object => ({
  id: `chat_${id}`,
  object: "chat.completion.chunk",
  created: 1_700_000_000,
  model: "scripted",
});

const delta = (id: string, content: object, finish_reason: string | null = null): WireEvent => ({
  data: { ...frame(id), choices: [{ index: 0, delta: content, finish_reason }] },
});

export const chatFormat: WireFormat = {
  opening: (id) => [delta(id, { role: "assistant", content: "" })],
  parts: (parts, id) =>
    parts.flatMap((part, at) => deltas(id, part, parts.slice(0, at).filter(isCall).length)),
  closing(reply, id) {
    const { input, cached, output, reasoning } = reply.usage ?? NO_USAGE;
    return [
      delta(id, {}, finishOf(reply)),
      {
        data: {
          ...frame(id),
          choices: [],
          usage: {
            prompt_tokens: input,
            completion_tokens: output,
            total_tokens: input + output,
            prompt_tokens_details: { cached_tokens: cached },
            completion_tokens_details: { reasoning_tokens: reasoning },
          },
        },
      },
      { data: "[DONE]" },
    ];
  },
  errorEvent: () => ({
    data: { error: { message: "the model broke", type: "server_error", code: "server_error" } },
  }),
  errorBody: (message, type) => ({ error: { message, type, code: null, param: null } }),
};

function isCall(part: ReplyPart): boolean {
  return part.type === "call";
}

function deltas(id: string, part: ReplyPart, index: number): WireEvent[] {
  switch (part.type) {
    case "text":
      return part.deltas.map((content) => delta(id, { content }));
    case "reasoning":
      return part.deltas.map((content) => delta(id, { reasoning_content: content }));
    case "call": {
      const head = { index, id: part.id, type: "function", function: { name: part.name, arguments: "" } };
      return [
        delta(id, { tool_calls: [head] }),
        delta(id, { tool_calls: [{ index, function: { arguments: part.input } }] }),
      ];
    }
  }
}
