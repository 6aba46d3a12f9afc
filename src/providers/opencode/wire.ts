/** What is read of the answers and events of OpenCode's server. Only the members that are used are looked at. */
import { z } from "zod";
import type { Json } from "../../protocol/json.ts";

const text = z.string();
const json = z.custom<Json>(() => true).optional();

const rule = z.object({ permission: text, pattern: text, action: z.enum(["allow", "ask", "deny"]) });

const session = z.object({ id: text, permission: z.array(rule).nullish() });
export type OpenCodeRecord = z.output<typeof session>;

const fault = z.object({
  name: text,
  data: z.looseObject({ message: text.optional(), statusCode: z.number().optional() }).prefault({}),
});
export type OpenCodeFault = z.output<typeof fault>;

const tokens = z.object({
  total: z.number().optional(),
  input: z.number(),
  output: z.number(),
  reasoning: z.number(),
  cache: z.object({ read: z.number(), write: z.number() }),
});
export type OpenCodeTokens = z.output<typeof tokens>;

const message = z.object({
  id: text,
  role: z.enum(["user", "assistant"]),
  /** The message that it answers. */
  parentID: text.optional(),
  time: z.object({ completed: z.number().optional() }),
  error: fault.optional(),
  finish: text.optional(),
  /** True for what stands in the place of what was left out, or the diffs of a user's message. */
  summary: z.unknown().optional(),
});
export type OpenCodeMessage = z.output<typeof message>;

const partOf = { id: text, messageID: text };
const words = {
  ...partOf,
  text,
  synthetic: z.boolean().optional(),
  time: z.object({ end: z.number().optional() }).optional(),
};
const PARTS = {
  text: z.object({ ...words, type: z.literal("text") }),
  reasoning: z.object({ ...words, type: z.literal("reasoning") }),
  tool: z.object({
    ...partOf,
    type: z.literal("tool"),
    callID: text,
    tool: text,
    state: z.object({
      status: text,
      input: json,
      output: text.optional(),
      error: text.optional(),
      metadata: z.looseObject({ exists: z.unknown().optional(), diff: z.unknown().optional() }).optional(),
    }),
  }),
  "step-finish": z.object({ ...partOf, type: z.literal("step-finish"), tokens }),
} as const;
export type OpenCodePart = z.output<(typeof PARTS)[keyof typeof PARTS]>;
export type OpenCodeTool = z.output<(typeof PARTS)["tool"]>;

/** A part of a kind that is of interest; null otherwise. @throws ZodError when it is not of the form that is known. */
export function partOfInterest(part: unknown): OpenCodePart | null {
  const { type } = z.looseObject({ type: text }).parse(part);
  return Object.hasOwn(PARTS, type) ? PARTS[type as keyof typeof PARTS].parse(part) : null;
}

const task = z.object({
  tool: z.literal("task"),
  state: z.object({
    input: z.object({ prompt: text.default("") }).prefault({}),
    metadata: z.object({ sessionId: text }),
  }),
});

/** The agent of its own that a call has opened a conversation for; null for any other call, and for one that has not yet. */
export function taskOf(call: OpenCodeTool): { readonly sessionId: string; readonly prompt: string } | null {
  const { data } = task.safeParse(call);
  return data === undefined
    ? null
    : { sessionId: data.state.metadata.sessionId, prompt: data.state.input.prompt };
}

const withParts = z.object({ info: message, parts: z.array(z.looseObject({ type: text })) });
export type OpenCodeSaid = z.output<typeof withParts>;

/** Answers, by what they are to. */
export const ANSWERS = {
  session,
  messages: z.array(withParts),
  statuses: z.record(text, z.object({ type: text })),
  health: z.object({ version: text }),
  settings: z.object({ model: text.optional() }),
  servers: z.record(text, z.object({ status: text, error: text.optional() })),
  nothing: z.unknown(),
} as const;
export type OpenCodeAnswer = keyof typeof ANSWERS;

const asked = { id: text, tool: z.object({ callID: text }).optional() };
const EVENTS = {
  "message.updated": z.object({ info: message }),
  "message.part.updated": z.object({ part: z.unknown() }),
  "message.part.delta": z.object({ messageID: text, partID: text, field: text, delta: text }),
  "session.status": z.object({
    status: z.object({ type: text, attempt: z.number().optional(), message: text.optional() }),
  }),
  "session.error": z.object({ error: fault.optional() }),
  "permission.asked": z.object({
    ...asked,
    permission: text,
    patterns: z.array(text),
    metadata: json,
  }),
  "permission.replied": z.object({ requestID: text }),
  "question.asked": z.object({
    ...asked,
    questions: z.array(
      z.object({ question: text, options: z.array(z.object({ label: text })).prefault([]) }),
    ),
  }),
  "question.replied": z.object({ requestID: text }),
  "question.rejected": z.object({ requestID: text }),
} as const;

export type OpenCodeEvent = {
  [K in keyof typeof EVENTS]: { readonly type: K; readonly of: z.output<(typeof EVENTS)[K]> };
}[keyof typeof EVENTS];

const envelope = z.object({
  payload: z.looseObject({
    type: text,
    properties: z.looseObject({ sessionID: text.optional() }).optional(),
  }),
});

/** Whose event it is, and what it says; null for what is of no interest. `of` throws when it is not of the form that is known. */
export function eventOf(
  line: string,
): { readonly sessionId: string; readonly read: () => OpenCodeEvent } | null {
  const { type, properties } = envelope.parse(JSON.parse(line)).payload;
  const sessionId = properties?.sessionID;
  if (sessionId === undefined || !Object.hasOwn(EVENTS, type)) return null;
  const kind = type as keyof typeof EVENTS;
  return { sessionId, read: () => ({ type: kind, of: EVENTS[kind].parse(properties) }) as OpenCodeEvent };
}
