/** Calls, plans, figures and failures of an agent that speaks ACP in our words (pure). */
import { redact } from "../../platform/redact.ts";
import { RejectedError, TransientError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { NativeItem } from "../../protocol/native-events.ts";
import type { StepUsage } from "../../protocol/provider-events.ts";
import type { NativeRef } from "../../protocol/provider-thread.ts";
import type { JsonRpcRefusal } from "../json-rpc-message.ts";
import { SERVER_NAME } from "../mcp-bridge/seat.ts";
import type { AcpToolCall, AcpUsage } from "./wire.ts";

export const DRIVER = "acp";

export function refOf(nativeId: string, strength: NativeRef["strength"] = "weak"): NativeRef {
  return { driver: DRIVER, nativeId, strength };
}

/** What is known of a call with what is told of it now. */
export function merged(before: AcpToolCall | undefined, news: AcpToolCall): AcpToolCall {
  const told = Object.entries(news).filter(([, value]) => value !== undefined && value !== null);
  return { ...before, ...Object.fromEntries(told) } as AcpToolCall;
}

/**
 * Whether a call is one of a tool of ours, which comes over the bridge itself. Programs put the name of the server before that
 * of the tool, each in its own way; a title is looked at where there is no name, since it may be what a command says.
 */
export function isOurs({ name, title, _meta }: AcpToolCall, tools: readonly string[]): boolean {
  const { claudeCode } = (_meta ?? {}) as { readonly claudeCode?: { readonly toolName?: unknown } };
  const called = claudeCode?.toolName ?? name ?? title;
  const [, tool] = (typeof called === "string" ? OURS.exec(called) : null) ?? [];
  return tool !== undefined && tools.includes(tool);
}

const OURS = new RegExp(`^(?:mcp__|mcp\\.|Tool: )?${SERVER_NAME}(?:__|[_./:])(.+)$`);

/** Its tool, as short as it is told. */
export function toolOf({ name, kind, title }: AcpToolCall): string {
  return name ?? kind ?? title ?? "tool";
}

export function inputOf({ rawInput, title }: AcpToolCall): string {
  return JSON.stringify(rawInput ?? { title: title ?? null });
}

/** What a call comes to that is over, or whose turn is. */
export function itemsOf(call: AcpToolCall): readonly NativeItem[] {
  const { toolCallId: callId, status, content, rawOutput } = call;
  const isError = status !== "completed";
  const ref = refOf(callId);
  const changes = (content ?? []).filter(({ type, path }) => type === "diff" && typeof path === "string");
  if (changes.length > 0 && !isError)
    return changes.map(({ path, oldText, newText }, at) => ({
      kind: "file_change",
      callId: `${callId}:${at}`,
      path: path!,
      change: typeof oldText !== "string" ? "added" : newText === "" ? "deleted" : "changed",
      summary: newText ?? "",
      ref,
    }));
  const said = (content ?? []).flatMap(({ content: inner }) => (inner ? [textOf(inner)] : []));
  const output: Json = rawOutput ?? (said.length > 0 ? said.join("\n") : null);
  const known = isOver(call) ? output : { outcome: "unknown: its end was never told", output };
  return [{ kind: "tool", callId, name: toolOf(call), input: inputOf(call), output: known, isError, ref }];
}

export function isOver({ status }: AcpToolCall): boolean {
  return status === "completed" || status === "failed";
}

/** Content that is no text is told by its kind. */
export function textOf(block: { readonly type: string; readonly text?: string | null | undefined }): string {
  return block.type === "text" ? (block.text ?? "") : `[${block.type}]`;
}

/** Some count what was cached among the input, and some beside it, which shows in their total. */
export function usageOf(usage: AcpUsage | null | undefined): StepUsage | null {
  if (usage === null || usage === undefined) return null;
  const { inputTokens, outputTokens, totalTokens, thoughtTokens } = usage;
  const cached = (usage.cachedReadTokens ?? 0) + (usage.cachedWriteTokens ?? 0);
  const within = totalTokens === inputTokens + outputTokens;
  return {
    inputTokens: within ? inputTokens : inputTokens + cached,
    cachedInputTokens: usage.cachedReadTokens ?? 0,
    outputTokens,
    reasoningTokens: thoughtTokens ?? 0,
  };
}

/** The protocol's error for a client that has to sign in first, and those of JSON-RPC for what cannot be asked for. */
const AUTH_REQUIRED = -32_000;
const REFUSED = [-32_600, -32_601, -32_602];

/** Why an agent has refused, or failed at a turn; it may say more beside the message. */
export function refusalOf(agent: string, error: JsonRpcRefusal): RejectedError | TransientError {
  if (error.rpcCode === AUTH_REQUIRED)
    return new RejectedError("PROVIDER_UNAVAILABLE", `${error.message}. Sign in to it first.`, error.details);
  if (REFUSED.includes(error.rpcCode)) return error;
  return failureOf(agent, redact([error.message, ...wordsIn(error.data)].join(" ")));
}

function wordsIn(data: Json): string[] {
  if (typeof data === "string") return [data];
  if (typeof data !== "object" || data === null || Array.isArray(data)) return [];
  const { message, details } = data as JsonObject;
  return [message, details].filter((one) => typeof one === "string");
}

const STATUS = /(?:API Error:?|status(?: code)?:?|HTTP(?:\/\d\S*)?|error:?)\s+(\d{3})\b/i;

/** A failure of which there are only words, by the status that stands in them. */
export function failureOf(agent: string, words: string): RejectedError | TransientError {
  const [, found] = STATUS.exec(words) ?? [];
  const status = found === undefined ? null : Number(found);
  const details: JsonObject = { status };
  const text = `${agent}: ${words.trim() === "" ? "it does not say why" : words.trim()}`;
  if (status === 401 || status === 403) return new RejectedError("PROVIDER_UNAVAILABLE", text, details);
  if (status === 429 || status === 529) return new TransientError("PROVIDER_OVERLOADED", text, details);
  if (status !== null && status >= 400 && status < 500)
    return new RejectedError("PROVIDER_REFUSED", text, details);
  return new TransientError("PROVIDER_UNREACHABLE", text, details);
}
