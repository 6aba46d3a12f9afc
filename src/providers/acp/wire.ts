/**
 * What is read of the messages of an agent that speaks ACP, version 1. Only the members that are used are looked at; those that
 * not every agent has may be missing.
 */
import { z } from "zod";
import type { Json } from "../../protocol/json.ts";

/** The version that is spoken here. */
export const ACP_VERSION = 1;

const text = z.string();
const json = z.custom<Json>(() => true).optional();
const meta = z.record(text, z.unknown()).nullish();

const option = z.object({
  id: text,
  category: text.nullish(),
  currentValue: z.unknown(),
});
/** A setting of a session that its agent lets its client choose. */
export type AcpOption = z.output<typeof option>;

/** An opened session, as far as it tells. */
const opened = z.object({
  modes: z.object({ currentModeId: text }).nullish(),
  configOptions: z.array(option).nullish(),
});
export type AcpOpened = z.output<typeof opened>;

const usage = z.object({
  inputTokens: z.number(),
  outputTokens: z.number(),
  totalTokens: z.number().nullish(),
  cachedReadTokens: z.number().nullish(),
  cachedWriteTokens: z.number().nullish(),
  thoughtTokens: z.number().nullish(),
});
export type AcpUsage = z.output<typeof usage>;

const initialized = z.object({
  protocolVersion: z.number(),
  agentCapabilities: z
    .object({
      loadSession: z.boolean().default(false),
      mcpCapabilities: z.object({ http: z.boolean().default(false) }).prefault({}),
      sessionCapabilities: z.record(text, z.unknown()).nullish(),
    })
    .prefault({}),
  agentInfo: z.object({ name: text, version: text.nullish() }).nullish(),
  authMethods: z.array(z.object({ name: text })).nullish(),
});
export type AcpInitialized = z.output<typeof initialized>;

const prompted = z.object({ stopReason: text, usage: usage.nullish() });
export type AcpPrompted = z.output<typeof prompted>;

/** Answers, by the method that was asked for. */
export const ANSWERS = {
  initialize: initialized,
  "session/new": opened.extend({ sessionId: text }),
  "session/load": opened.nullish(),
  "session/resume": opened.nullish(),
  "session/set_mode": z.unknown(),
  "session/set_config_option": z.unknown(),
  "session/prompt": prompted,
} as const;
export type AcpMethod = keyof typeof ANSWERS;

const block = z.looseObject({ type: text, text: text.nullish() });
const chunk = { content: block, messageId: text.nullish(), _meta: meta };

const toolContent = z.looseObject({
  type: text,
  content: block.nullish(),
  path: text.nullish(),
  oldText: text.nullish(),
  newText: text.nullish(),
});

/** A call of one of the agent's own tools, or news of one: what is not told is as it was. */
const toolCall = z.object({
  toolCallId: text,
  title: text.nullish(),
  name: text.nullish(),
  kind: text.nullish(),
  status: text.nullish(),
  content: z.array(toolContent).nullish(),
  rawInput: json,
  rawOutput: json,
  _meta: meta,
});
export type AcpToolCall = z.output<typeof toolCall>;

const UPDATES = {
  agent_message_chunk: z.object(chunk),
  agent_thought_chunk: z.object(chunk),
  tool_call: toolCall,
  tool_call_update: toolCall,
  plan: z.object({ entries: z.array(z.custom<Json>(() => true)) }),
  session_info_update: z.object({ _meta: meta }),
  current_mode_update: z.object({ currentModeId: text }),
} as const;
export type AcpUpdate = {
  [K in keyof typeof UPDATES]: { readonly kind: K; readonly of: z.output<(typeof UPDATES)[K]> };
}[keyof typeof UPDATES];

const notification = z.object({ sessionId: text, update: z.looseObject({ sessionUpdate: text }) });

/** What happened in which session; null for what is of no interest. @throws ZodError when it is not of the form that is known. */
export function updateOf(
  method: string,
  params: unknown,
): { readonly sessionId: string; readonly update: AcpUpdate } | null {
  if (method !== "session/update") return null;
  const { sessionId, update } = notification.parse(params);
  if (!Object.hasOwn(UPDATES, update.sessionUpdate)) return null;
  const kind = update.sessionUpdate as keyof typeof UPDATES;
  return { sessionId, update: { kind, of: UPDATES[kind].parse(update) } as AcpUpdate };
}

/** What an agent asks before it does something. */
export const PERMISSION = z.object({
  sessionId: text,
  toolCall,
  options: z.array(z.object({ optionId: text, kind: text })),
});
export type AcpPermission = z.output<typeof PERMISSION>;
