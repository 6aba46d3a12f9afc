/** What a model is told in a request, read the same way from the three wire formats. */

/** A piece of the conversation, in its order. */
export interface Said {
  readonly by: "system" | "user" | "assistant" | "call" | "result";
  /** Words; of a call its input, of a result what the tool gave. */
  readonly text: string;
  /** Of a call and a result. */
  readonly callId?: string;
  /** Of a call, as it stands in the request. */
  readonly name?: string;
}

/** A tool that the model may call. */
export interface Offered {
  readonly name: string;
  readonly namespace?: string;
  /** It takes text and no JSON. */
  readonly custom?: boolean;
}

export interface Conversation {
  readonly said: readonly Said[];
  readonly tools: readonly Offered[];
}

// The bodies are the vendors': what is missing or odd reads as nothing.
// oxlint-disable-next-line typescript/no-explicit-any
type Body = any;

export function readResponses(body: Body): Conversation {
  const input: Body[] = typeof body.input === "string" ? [{ role: "user", content: body.input }] : body.input;
  const more: Body[] = input.filter(({ type }) => type === "additional_tools").flatMap(({ tools }) => tools);
  return {
    said: [...saidBy("system", body.instructions), ...input.flatMap(responsesItem)],
    tools: [...(body.tools ?? []), ...more].flatMap(responsesTool),
  };
}

function responsesItem(item: Body): Said[] {
  switch (item.type ?? "message") {
    case "message":
      return saidBy(ROLES[item.role] ?? "system", item.content);
    // An agent is told something by another one.
    case "agent_message":
      return saidBy("user", item.content);
    case "function_call":
    case "custom_tool_call":
      return [{ by: "call", callId: item.call_id, name: item.name, text: item.arguments ?? item.input }];
    case "function_call_output":
    case "custom_tool_call_output":
      return [{ by: "result", callId: item.call_id, text: wordsOf(item.output).join("\n") }];
    default:
      return [];
  }
}

function responsesTool(tool: Body): Offered[] {
  if (tool.type !== "namespace") return [offered(tool)];
  return tool.tools.map((one: Body) => ({ ...offered(one), namespace: tool.name }));
}

/** Tools of the vendor's own have no name but their type. */
function offered({ name, type }: Body): Offered {
  return { name: name ?? type, ...(type === "custom" ? { custom: true } : {}) };
}

export function readChat(body: Body): Conversation {
  return {
    said: body.messages.flatMap((message: Body): Said[] =>
      message.role === "tool"
        ? [{ by: "result", callId: message.tool_call_id, text: wordsOf(message.content).join("\n") }]
        : [
            ...saidBy(ROLES[message.role] ?? "system", message.content),
            ...(message.tool_calls ?? []).map((call: Body) => ({
              by: "call",
              callId: call.id,
              name: call.function.name,
              text: call.function.arguments,
            })),
          ],
    ),
    tools: (body.tools ?? []).map((tool: Body) => ({ name: tool.function.name })),
  };
}

export function readMessages(body: Body): Conversation {
  return {
    said: [
      ...saidBy("system", body.system),
      ...body.messages.flatMap(({ role, content }: Body) =>
        blocksOf(content).flatMap((block): Said[] => {
          switch (block.type) {
            case "tool_use":
              return [{ by: "call", callId: block.id, name: block.name, text: JSON.stringify(block.input) }];
            case "tool_result":
              return [{ by: "result", callId: block.tool_use_id, text: wordsOf(block.content).join("\n") }];
            default:
              return saidBy(ROLES[role] ?? "system", [block]);
          }
        }),
      ),
    ],
    tools: (body.tools ?? []).map(({ name }: Body) => ({ name })),
  };
}

const ROLES: Readonly<Record<string, Said["by"]>> = {
  user: "user",
  assistant: "assistant",
  system: "system",
  developer: "system",
};

/** Block by block: clients put words of their own beside those of the user. */
function saidBy(by: Said["by"], content: Body): Said[] {
  return wordsOf(content).map((text) => ({ by, text }));
}

function wordsOf(content: Body): string[] {
  return blocksOf(content).flatMap((block) => {
    const words: unknown = block.text ?? block.encrypted_content;
    return typeof words === "string" && words !== "" ? [words] : [];
  });
}

function blocksOf(content: Body): Body[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? content : [];
}

/** Words in the user's role that clients put there themselves. */
const CONTEXT = /^\s*<(system-reminder|environment_context|turn_aborted|user_instructions|INSTRUCTIONS)\b/;

/**
 * What the user said last, and how often the model has called tools since: calls that this server made bear the number of
 * their step, so that several calls of one step count once, in whatever order their results come.
 */
export function whereItStands(said: readonly Said[]): { readonly prompt: string; readonly step: number } {
  const at = said.findLastIndex(({ by, text }) => by === "user" && !CONTEXT.test(text));
  const steps = said.slice(at + 1).flatMap(({ by, callId }) => (by === "result" ? [stepOf(callId)] : []));
  return { prompt: (said[at]?.text ?? "").trim(), step: Math.max(0, ...steps.map((step) => step + 1)) };
}

/** Programs have their conversations named by the same model: the prompt is in that request too, and is not to be played. */
export function asksForTitle(said: readonly Said[]): boolean {
  return said.some(({ by, text }) => by === "system" && /title generator|naming a coding session/.test(text));
}

export function callId(step: number, request: number, at: number): string {
  return `call_s${step}_${request}_${at}`;
}

/** A call of another's making counts as the first step. */
function stepOf(id = ""): number {
  return Number(/^call_s(\d+)_/.exec(id)?.[1] ?? 0);
}
