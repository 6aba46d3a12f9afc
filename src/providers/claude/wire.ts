/**
 * What is read of the messages of Claude Code and of the rows that it keeps. Only the members that are used are looked at: what a
 * newer version adds hinders nobody.
 */
import { z } from "zod";

const text = z.string();
const uuids = z.array(text).default([]);

const used = z.object({
  input_tokens: z.number().nullish(),
  cache_read_input_tokens: z.number().nullish(),
  cache_creation_input_tokens: z.number().nullish(),
  output_tokens: z.number().nullish(),
  output_tokens_details: z.object({ thinking_tokens: z.number().nullish() }).nullish(),
});
export type ClaudeUsage = z.output<typeof used>;

const modelUsed = z.object({
  inputTokens: z.number().default(0),
  cacheReadInputTokens: z.number().default(0),
  cacheCreationInputTokens: z.number().default(0),
  outputTokens: z.number().default(0),
  thinkingTokens: z.number().default(0),
});
export type ClaudeModelUsage = z.output<typeof modelUsed>;

/** A piece of a message, of any kind; what is wanted of one is read by its kind. */
const block = z.looseObject({ type: text });
export type ClaudeBlock = z.output<typeof block>;

const content = z.union([text, z.array(block)]);

const streamed = z.object({
  type: text,
  message: z.object({ usage: used.nullish() }).optional(),
  usage: used.nullish(),
  delta: z.looseObject({ type: text.optional(), text: text.optional() }).optional(),
});
export type ClaudeStreamEvent = z.output<typeof streamed>;

/** Set where it is of an agent of its own: the call that has begun that. */
const below = text.nullish();

/** What it tells while a turn is under way, by the name of the message. */
const MESSAGES = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("system"),
    subtype: text,
    user_message_uuids: uuids,
    parent_tool_use_id: below,
    task_id: text.optional(),
    task_type: text.optional(),
    prompt: text.optional(),
    description: text.optional(),
    status: z.unknown().optional(),
    summary: text.optional(),
  }),
  z.object({
    type: z.literal("stream_event"),
    user_message_uuids: uuids,
    parent_tool_use_id: below,
    event: streamed,
  }),
  z.object({
    type: z.literal("assistant"),
    user_message_uuids: uuids,
    parent_tool_use_id: below,
    uuid: text,
    error: text.optional(),
    message: z.object({ content }),
  }),
  z.object({
    type: z.literal("user"),
    user_message_uuids: uuids,
    parent_tool_use_id: below,
    uuid: text.optional(),
    message: z.object({ content }),
    tool_use_result: z.unknown().optional(),
  }),
  z.object({
    type: z.literal("result"),
    parent_tool_use_id: below,
    subtype: text,
    is_error: z.boolean().default(false),
    result: text.optional(),
    errors: z.array(text).default([]),
    terminal_reason: text.optional(),
    api_error_status: z.number().nullish(),
    usage: used.nullish(),
    modelUsage: z.record(text, modelUsed).default({}),
    user_message_uuids: uuids,
  }),
]);
export type ClaudeMessage = z.output<typeof MESSAGES>;
export type ClaudeSystem = Extract<ClaudeMessage, { type: "system" }>;
export type ClaudeResult = Extract<ClaudeMessage, { type: "result" }>;

const KINDS: ReadonlySet<string> = new Set(["system", "stream_event", "assistant", "user", "result"]);

/** Null for one that is of no interest. @throws ZodError when it is not of the form that is known. */
export function messageOf(given: unknown): ClaudeMessage | null {
  const kind = (given as { readonly type?: unknown } | null)?.type;
  return typeof kind === "string" && KINDS.has(kind) ? MESSAGES.parse(given) : null;
}

const question = z.object({
  questions: z.array(z.object({ question: text, options: z.array(z.object({ label: text })).default([]) })),
});

/** The questions of a call that asks the user; none when it is not of the form that is known. */
export function questionsOf(input: unknown): z.output<typeof question>["questions"] {
  return question.safeParse(input).data?.questions ?? [];
}

/** A row that it keeps. */
const row = z.looseObject({
  type: text,
  uuid: text.optional(),
  /** Set on what began a turn, and on nothing that was put into one. */
  promptSource: z.unknown().optional(),
  isMeta: z.unknown().optional(),
  error: z.unknown().optional(),
  forkedFrom: z.object({ sessionId: text }).optional().catch(undefined),
});
export type ClaudeRow = z.output<typeof row>;

export function rowOf(line: string): ClaudeRow | null {
  if (line === "") return null;
  try {
    return row.parse(JSON.parse(line));
  } catch {
    // It is being written, or was when the program was killed.
    return null;
  }
}

export function forkOf({ forkedFrom }: ClaudeRow): string | null {
  return forkedFrom?.sessionId ?? null;
}

const said = z.object({
  type: z.enum(["user", "assistant"]),
  uuid: text,
  message: z.object({ content }),
});
export type SaidMessage = z.output<typeof said>;

/** A message as it was kept; null for one of another kind. */
export function saidMessage(given: unknown): SaidMessage | null {
  return said.safeParse(given).data ?? null;
}
