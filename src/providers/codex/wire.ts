/**
 * What is read of Codex app-server's messages (`codex app-server generate-ts` writes all of them). Only the members that are
 * used are looked at: what a newer version adds hinders nobody, and what it takes away is found by its name.
 */
import { z } from "zod";

const text = z.string();

const usage = z.object({
  inputTokens: z.number(),
  cachedInputTokens: z.number(),
  outputTokens: z.number(),
  reasoningOutputTokens: z.number(),
});
export type CodexUsage = z.output<typeof usage>;

const turnError = z.object({
  message: text,
  codexErrorInfo: z.unknown().optional(),
  additionalDetails: text.nullish(),
});
export type CodexError = z.output<typeof turnError>;

/** An item of any kind; what is wanted of one is read by its kind. */
const item = z.looseObject({ type: text, id: text });
export type CodexItem = z.output<typeof item>;

const turn = z.object({
  id: text,
  status: z.enum(["inProgress", "completed", "interrupted", "failed"]),
  error: turnError.nullish(),
  items: z.array(item).default([]),
});
export type CodexTurn = z.output<typeof turn>;

const thread = z.object({ id: text, forkedFromId: text.nullish(), turns: z.array(turn).default([]) });
export type CodexThread = z.output<typeof thread>;

/** Answers, by the method that was asked for. */
export const ANSWERS = {
  initialize: z.object({ userAgent: text }),
  "thread/start": z.object({ thread, model: text.nullish() }),
  "thread/resume": z.object({ thread }),
  "thread/fork": z.object({ thread }),
  "thread/revert": z.unknown(),
  "thread/unsubscribe": z.unknown(),
  "thread/turns/list": z.object({ data: z.array(turn), nextCursor: text.nullish() }),
  "thread/inject_items": z.unknown(),
  "turn/start": z.object({ turn: z.object({ id: text }) }),
  "turn/steer": z.unknown(),
  "turn/interrupt": z.unknown(),
} as const;
export type CodexMethod = keyof typeof ANSWERS;

const ofTurn = { threadId: text, turnId: text };

/** What it tells, by the name of the notification. */
export const NOTIFICATIONS = {
  "turn/started": z.object({ threadId: text, turn: z.object({ id: text }) }),
  "turn/completed": z.object({ threadId: text, turn }),
  "item/completed": z.object({ ...ofTurn, item }),
  "item/agentMessage/delta": z.object({ ...ofTurn, delta: text }),
  "thread/tokenUsage/updated": z.object({ ...ofTurn, tokenUsage: z.object({ total: usage, last: usage }) }),
} as const;
export type CodexNotification = {
  [M in keyof typeof NOTIFICATIONS]: { readonly method: M } & z.output<(typeof NOTIFICATIONS)[M]>;
}[keyof typeof NOTIFICATIONS];

/** What it asks of its client, by the method. */
export const REQUESTS = {
  "item/tool/call": z.object({ ...ofTurn, callId: text, tool: text, arguments: z.unknown() }),
  "item/commandExecution/requestApproval": z.object({
    ...ofTurn,
    itemId: text,
    approvalId: text.nullish(),
    reason: text.nullish(),
    command: text.nullish(),
    cwd: text.nullish(),
  }),
  "item/fileChange/requestApproval": z.object({
    ...ofTurn,
    itemId: text,
    reason: text.nullish(),
    grantRoot: text.nullish(),
  }),
  "item/tool/requestUserInput": z.object({
    ...ofTurn,
    itemId: text,
    questions: z.array(
      z.object({
        id: text,
        question: text,
        options: z.array(z.object({ label: text, description: text.nullish() })).nullish(),
      }),
    ),
  }),
} as const;
export type CodexRequest = {
  [M in keyof typeof REQUESTS]: { readonly method: M } & z.output<(typeof REQUESTS)[M]>;
}[keyof typeof REQUESTS];

/** One message by its method; null for one that is of no interest. @throws ZodError when it is not of the form that is known. */
export function notificationOf(method: string, params: unknown): CodexNotification | null {
  if (!Object.hasOwn(NOTIFICATIONS, method)) return null;
  const known = method as keyof typeof NOTIFICATIONS;
  return { method: known, ...NOTIFICATIONS[known].parse(params) } as CodexNotification;
}

/** Likewise for what it asks. */
export function requestOf(method: string, params: unknown): CodexRequest | null {
  if (!Object.hasOwn(REQUESTS, method)) return null;
  const known = method as keyof typeof REQUESTS;
  return { method: known, ...REQUESTS[known].parse(params) } as CodexRequest;
}
