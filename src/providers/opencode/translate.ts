/** Names, calls, figures and failures of OpenCode in our words (pure). */
import type { Random } from "../../platform/ids.ts";
import { redact } from "../../platform/redact.ts";
import { RejectedError, TransientError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { NativeItem } from "../../protocol/native-events.ts";
import type { StepUsage } from "../../protocol/provider-events.ts";
import type { NativeRef } from "../../protocol/provider-thread.ts";
import type { ProviderError } from "../json-rpc.ts";
import type { OpenCodeFault, OpenCodeTokens, OpenCodeTool } from "./wire.ts";

export const DRIVER = "opencode";

export function refOf(nativeId: string): NativeRef {
  return { driver: DRIVER, nativeId, strength: "strong" };
}

/** Milliseconds are shifted by so many bits, and a count of what was named in the same one stands below. */
const SHIFT = 12n;
const RANDOM_BYTES = 7;

/**
 * A name for a message, as OpenCode makes them: what was named later sorts behind, by which it tells an answer from what
 * it answers. `last` is the newest that the conversation has.
 */
export function messageIdAfter(last: string | null, now: number, random: Random): string {
  const time = BigInt.asUintN(48, BigInt(now) << SHIFT);
  const known = last === null ? null : /^msg_([0-9a-f]{12})/.exec(last)?.[1];
  const after = known === undefined || known === null ? 0n : BigInt(`0x${known}`) + 1n;
  const stamp = (after > time ? after : time).toString(16).padStart(12, "0");
  return `msg_${stamp}${Buffer.from(random.bytes(RANDOM_BYTES)).toString("hex")}`;
}

/** A model as its provider's name and its own. @throws RejectedError `PROVIDER_REFUSED`. */
export function modelOf(name: string): { readonly providerID: string; readonly modelID: string } {
  const at = name.indexOf("/");
  if (at > 0 && at < name.length - 1) return { providerID: name.slice(0, at), modelID: name.slice(at + 1) };
  throw new RejectedError(
    "PROVIDER_REFUSED",
    `OpenCode's models are named with their provider, such as anthropic/claude-sonnet-4-5, and ${name} is not. Run: opencode models`,
    { model: name },
  );
}

/** What a call comes to that is over, or whose turn is. */
export function itemOf({ callID, tool, state, id }: OpenCodeTool): NativeItem {
  const { status, input, output, error, metadata } = state;
  const isError = status !== "completed";
  const ref = refOf(id);
  const path = FILE_TOOLS.has(tool) ? (input as JsonObject | undefined)?.["filePath"] : undefined;
  if (typeof path === "string" && !isError)
    return {
      kind: "file_change",
      callId: callID,
      path,
      change: metadata?.exists === false ? "added" : "changed",
      summary: typeof metadata?.diff === "string" ? metadata.diff : (output ?? ""),
      ref,
    };
  const known: Json = output ?? error ?? { outcome: "unknown: its end was never told" };
  return {
    kind: "tool",
    callId: callID,
    name: tool,
    input: JSON.stringify(input ?? {}),
    output: known,
    isError,
    ref,
  };
}

const FILE_TOOLS: ReadonlySet<string> = new Set(["write", "edit"]);

/** What was cached is counted beside its input, and what was thought may be beside its output. */
export function usageOf({ total, input, output, reasoning, cache }: OpenCodeTokens): StepUsage {
  const inputTokens = input + cache.read + cache.write;
  return {
    inputTokens,
    cachedInputTokens: cache.read,
    outputTokens: total === undefined ? output + reasoning : Math.max(output, total - inputTokens),
    reasoningTokens: reasoning,
  };
}

const REFUSED: ReadonlySet<string> = new Set([
  "ContextOverflowError",
  "ContentFilterError",
  "MessageOutputLengthError",
  "StructuredOutputError",
]);

/** Why a turn has failed. */
export function failureOf({ name, data }: OpenCodeFault): ProviderError {
  const status = data.statusCode ?? null;
  const text = wordsOf(data.message ?? name);
  if (name === "ProviderAuthError" || status === 401 || status === 403)
    return new RejectedError(
      "PROVIDER_UNAVAILABLE",
      `OpenCode's provider is not signed in: ${text} Run: opencode auth login`,
      { name, status },
    );
  if (status === 429 || status === 529)
    return new TransientError("PROVIDER_OVERLOADED", text, { name, status });
  if (REFUSED.has(name) || isUnknownModel(text) || (status !== null && status >= 400 && status < 500))
    return new RejectedError("PROVIDER_REFUSED", text, { name, status });
  return new TransientError("PROVIDER_UNREACHABLE", text, { name, status });
}

/** Of a request that it would go on to make again, of which there are only words. */
export function retriedFailure(words: string): TransientError {
  const code = OVERLOADED.test(words) ? "PROVIDER_OVERLOADED" : "PROVIDER_UNREACHABLE";
  return new TransientError(code, wordsOf(words), { status: null });
}

const OVERLOADED = /rate.?limit|too many requests|overloaded|quota|\b(?:429|529)\b/i;

function isUnknownModel(text: string): boolean {
  return /\bmodel not found\b/i.test(text);
}

function wordsOf(said: string): string {
  // Of an error that it does not know, the rest is where in its program it has come up.
  const [first = ""] = said.split("\n");
  return `OpenCode: ${redact(first.trim() === "" ? "it does not say why" : first)}`;
}
