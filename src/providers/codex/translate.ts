/** Items, errors and figures of Codex in our words (pure). */
import { z } from "zod";
import { RejectedError, TransientError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { NativeItem } from "../../protocol/native-events.ts";
import type { StepUsage } from "../../protocol/provider-events.ts";
import type { NativeRef } from "../../protocol/provider-thread.ts";
import type { CodexError, CodexItem, CodexUsage } from "./wire.ts";

export const DRIVER = "codex";

export function refOf(nativeId: string): NativeRef {
  return { driver: DRIVER, nativeId, strength: "strong" };
}

const MESSAGE = z.object({ text: z.string() });
const REASONING = z.object({
  summary: z.array(z.string()).default([]),
  content: z.array(z.string()).default([]),
});
const COMMAND = z.object({
  command: z.string(),
  cwd: z.unknown(),
  status: z.string(),
  aggregatedOutput: z.string().nullish(),
  exitCode: z.number().nullish(),
});
const FILES = z.object({
  status: z.string(),
  changes: z.array(
    z.object({ path: z.string(), kind: z.looseObject({ type: z.string() }), diff: z.string().default("") }),
  ),
});
const MCP = z.object({
  server: z.string(),
  tool: z.string(),
  status: z.string(),
  arguments: z.unknown(),
  result: z.unknown(),
  error: z.unknown(),
});

const ACTIVITY = z.object({ kind: z.string(), agentThreadId: z.string(), agentPath: z.string() });

/** What an item tells of an agent of Codex's own; null for one that tells of none. */
export function activityOf(item: CodexItem): z.output<typeof ACTIVITY> | null {
  return item.type === "subAgentActivity" ? ACTIVITY.parse(item) : null;
}

const CHANGES = { add: "added", delete: "deleted", update: "changed" } as const;

/** What an item of a turn comes to; nothing for one that is no news, such as a call of a tool of ours. */
export function itemsOf(item: CodexItem): readonly NativeItem[] {
  const ref = refOf(item.id);
  switch (item.type) {
    case "agentMessage": {
      const { text } = MESSAGE.parse(item);
      return text === "" ? [] : [{ kind: "text", text, ref }];
    }
    case "reasoning": {
      const { summary, content } = REASONING.parse(item);
      const text = (content.length > 0 ? content : summary).join("\n\n");
      return text === "" ? [] : [{ kind: "reasoning", text, ref }];
    }
    case "commandExecution": {
      const { command, cwd, status, aggregatedOutput, exitCode } = COMMAND.parse(item);
      const output = { status, exit_code: exitCode ?? null, output: aggregatedOutput ?? "" };
      const input = JSON.stringify({ command, cwd });
      return [
        { kind: "tool", callId: item.id, name: "shell", input, output, isError: status !== "completed", ref },
      ];
    }
    case "fileChange": {
      const { changes } = FILES.parse(item);
      return changes.map(({ path, kind, diff }, at) => ({
        kind: "file_change",
        callId: `${item.id}:${at}`,
        path,
        change: CHANGES[kind.type as keyof typeof CHANGES] ?? "changed",
        summary: diff,
        ref,
      }));
    }
    case "mcpToolCall": {
      const call = MCP.parse(item);
      const name = `${call.server}.${call.tool}`;
      const input = JSON.stringify(call.arguments ?? {});
      const output = (call.result ?? call.error ?? null) as Json;
      return [
        { kind: "tool", callId: item.id, name, input, output, isError: call.status !== "completed", ref },
      ];
    }
    case "webSearch":
      return [
        {
          kind: "tool",
          callId: item.id,
          name: "web_search",
          input: JSON.stringify(item),
          output: null,
          isError: false,
          ref,
        },
      ];
    default:
      return [];
  }
}

/** Used since an earlier total. */
export function usedSince(total: CodexUsage, before: CodexUsage | null): StepUsage | null {
  const since = (figure: keyof CodexUsage): number => Math.max(0, total[figure] - (before?.[figure] ?? 0));
  const used = {
    inputTokens: since("inputTokens"),
    cachedInputTokens: since("cachedInputTokens"),
    outputTokens: since("outputTokens"),
    reasoningTokens: since("reasoningOutputTokens"),
  };
  return used.inputTokens + used.outputTokens === 0 ? null : used;
}

const REFUSED: ReadonlySet<string> = new Set([
  "badRequest",
  "contextWindowExceeded",
  "sessionBudgetExceeded",
  "usageLimitExceeded",
  "modelNotFound",
  "inferenceHookDenied",
  "cyberPolicy",
  "bioPolicy",
  "misalignmentPolicyViolation",
  "tooManyDenials",
  "policyCapacityUnavailable",
]);
const OVERLOADED: ReadonlySet<string> = new Set(["rateLimitExceeded", "serverOverloaded", "flexUnavailable"]);

/** Why a turn has failed. */
export function failureOf({ message, codexErrorInfo, additionalDetails }: CodexError) {
  const { kind, status } = kindOf(codexErrorInfo);
  const details: JsonObject = { kind, status };
  const text = additionalDetails ? `${message} (${additionalDetails})` : message;
  if (kind === "unauthorized" || status === 401 || status === 403)
    return new RejectedError(
      "PROVIDER_UNAVAILABLE",
      `Codex is not signed in: ${text} Run: codex login`,
      details,
    );
  if (OVERLOADED.has(kind) || status === 429 || status === 529)
    return new TransientError("PROVIDER_OVERLOADED", `Codex: ${text}`, details);
  if (REFUSED.has(kind) || (status !== null && status >= 400 && status < 500))
    return new RejectedError("PROVIDER_REFUSED", `Codex: ${text}`, details);
  return new TransientError("PROVIDER_UNREACHABLE", `Codex: ${text}`, details);
}

/** The name of an error, and the status of the request that it came of; newer names are taken as they are. */
function kindOf(info: unknown): { readonly kind: string; readonly status: number | null } {
  if (typeof info === "string") return { kind: info, status: null };
  if (typeof info !== "object" || info === null) return { kind: "other", status: null };
  const [kind = "other", rest] = Object.entries(info)[0] ?? [];
  const status = (rest as { readonly httpStatusCode?: unknown } | null)?.httpStatusCode;
  return { kind, status: typeof status === "number" ? status : null };
}
