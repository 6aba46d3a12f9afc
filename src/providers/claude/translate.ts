/** Items, errors and figures of Claude Code in our words (pure). */
import { RejectedError, TransientError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { NativeItem } from "../../protocol/native-events.ts";
import type { StepUsage } from "../../protocol/provider-events.ts";
import type { NativeRef } from "../../protocol/provider-thread.ts";
import type { ClaudeModelUsage, ClaudeResult, ClaudeUsage } from "./wire.ts";
import { NOTHING_USED } from "../turn-told.ts";

export const DRIVER = "claude";

export function refOf(nativeId: string): NativeRef {
  return { driver: DRIVER, nativeId, strength: "strong" };
}

/** A call of one of its own tools. */
export interface OwnCall {
  readonly callId: string;
  readonly name: string;
  readonly input: unknown;
}

const CHANGES_FILES: ReadonlySet<string> = new Set(["Write", "Edit", "NotebookEdit"]);

/** What a call of its own has come to; `told` is what the program says of it beside what the model reads. */
export function itemOf(
  { callId, name, input }: OwnCall,
  output: string,
  isError: boolean,
  told: unknown,
  ref: NativeRef | null,
): NativeItem {
  const given = (input ?? {}) as JsonObject;
  const path = given["file_path"] ?? given["notebook_path"];
  if (!isError && CHANGES_FILES.has(name) && typeof path === "string") {
    const made = (told as { readonly type?: unknown } | null)?.type === "create";
    return { kind: "file_change", callId, path, change: made ? "added" : "changed", summary: output, ref };
  }
  return { kind: "tool", callId, name, input: JSON.stringify(given), output: output as Json, isError, ref };
}

/** Of one request, or of the requests of a turn: Claude counts what it had cached beside the other input. */
export function usageOf(used: ClaudeUsage): StepUsage {
  const cached = used.cache_read_input_tokens ?? 0;
  return {
    inputTokens: (used.input_tokens ?? 0) + cached + (used.cache_creation_input_tokens ?? 0),
    cachedInputTokens: cached,
    outputTokens: used.output_tokens ?? 0,
    reasoningTokens: used.output_tokens_details?.thinking_tokens ?? 0,
  };
}

/** Of all models together. */
export function totalOf(models: Readonly<Record<string, ClaudeModelUsage>>): StepUsage {
  return Object.values(models).reduce<StepUsage>(
    (sum, one) =>
      plus(sum, {
        inputTokens: one.inputTokens + one.cacheReadInputTokens + one.cacheCreationInputTokens,
        cachedInputTokens: one.cacheReadInputTokens,
        outputTokens: one.outputTokens,
        reasoningTokens: one.thinkingTokens,
      }),
    NOTHING_USED,
  );
}

export function plus(one: StepUsage, other: StepUsage): StepUsage {
  return figures((figure) => one[figure] + other[figure]);
}

/** Never below nothing: what was told as it came may have been an estimate. */
export function less(one: StepUsage, other: StepUsage): StepUsage {
  return figures((figure) => Math.max(0, one[figure] - other[figure]));
}

function figures(of: (figure: keyof StepUsage) => number): StepUsage {
  return {
    inputTokens: of("inputTokens"),
    cachedInputTokens: of("cachedInputTokens"),
    outputTokens: of("outputTokens"),
    reasoningTokens: of("reasoningTokens"),
  };
}

const NOT_SIGNED_IN: ReadonlySet<string> = new Set(["authentication_failed", "oauth_org_not_allowed"]);
/** It is signed in, and that is of no use. */
const OF_THE_ACCOUNT: Readonly<Record<string, string>> = {
  account_on_hold: "its account is on hold",
  verification_required: "its account has to be verified first",
  billing_error: "its account cannot be billed",
  cloud_credential_error: "the credentials of its cloud were not taken",
};
const REFUSED: ReadonlySet<string> = new Set(["invalid_request", "model_not_found", "max_output_tokens"]);

/** Why a turn has failed; `kind` is what its last message says of it. */
export function failureOf(result: ClaudeResult, kind: string | null): RejectedError | TransientError {
  const status = result.api_error_status ?? null;
  const details: JsonObject = { kind: kind ?? result.subtype, status };
  const said = result.result ?? result.errors.join(" ");
  const text = said === "" ? `it does not say why (${result.subtype})` : said;
  const account = kind === null ? undefined : OF_THE_ACCOUNT[kind];
  if (account !== undefined)
    return new RejectedError("PROVIDER_UNAVAILABLE", `Claude cannot be used, ${account}: ${text}`, details);
  if (status === 401 || status === 403 || (kind !== null && NOT_SIGNED_IN.has(kind)))
    return new RejectedError(
      "PROVIDER_UNAVAILABLE",
      `Claude is not signed in: ${text} Run: claude /login, or set ANTHROPIC_API_KEY for it.`,
      details,
    );
  if (kind === "rate_limit" || kind === "overloaded" || status === 429 || status === 529)
    return new TransientError("PROVIDER_OVERLOADED", `Claude: ${text}`, details);
  if ((kind !== null && REFUSED.has(kind)) || (status !== null && status >= 400 && status < 500))
    return new RejectedError("PROVIDER_REFUSED", `Claude: ${text}`, details);
  return new TransientError("PROVIDER_UNREACHABLE", `Claude: ${text}`, details);
}
