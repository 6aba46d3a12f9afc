/** The stream of chat completions, as servers compatible with OpenAI's send it. */
import { finishOf, NO_USAGE, type ReplyPart, type WireEvent, type WireFormat } from "./reply.ts";

const frame = { id: "chat_1", object: "chat.completion.chunk", created: 1_700_000_000, model: "scripted" };

const delta = (content: object, finish_reason: string | null = null): WireEvent => ({
  data: { ...frame, choices: [{ index: 0, delta: content, finish_reason }] },
});

export const chatFormat: WireFormat = {
  opening: () => [delta({ role: "assistant", content: "" })],
  parts: (parts) => parts.flatMap((part, at) => deltas(part, parts.slice(0, at).filter(isCall).length)),
  closing(reply) {
    const { input, cached, output, reasoning } = reply.usage ?? NO_USAGE;
    return [
      delta({}, finishOf(reply)),
      {
        data: {
          ...frame,
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

function deltas(part: ReplyPart, index: number): WireEvent[] {
  switch (part.type) {
    case "text":
      return part.deltas.map((content) => delta({ content }));
    case "reasoning":
      return part.deltas.map((content) => delta({ reasoning_content: content }));
    case "call": {
      const head = { index, id: part.id, type: "function", function: { name: part.name, arguments: "" } };
      return [
        delta({ tool_calls: [head] }),
        delta({ tool_calls: [{ index, function: { arguments: part.input } }] }),
      ];
    }
  }
}
