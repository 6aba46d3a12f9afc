/**
 * The history mirror as pure data (lineage C13): what a bridge has read of a run becomes entries that are redacted, cut and
 * sealed. Where it was read, and when, is for others to say; the projector of snapshots never reads it (C13.11).
 *
 * - M1 First redacted, then cut, then digested: nothing that is stored was ever longer, or told a secret.
 * - M2 An entry is named after its run and its id in the source, so that reading again adds nothing (C13.7).
 */
import { canonicalJson } from "../platform/canonical-json.ts";
import { sha256 } from "../platform/digest.ts";
import type { Redact } from "../platform/redact.ts";
import { byteLength, headBytes, tailBytes } from "../platform/text.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { Json } from "../protocol/json.ts";
import type { LineageLimits } from "../protocol/lineage-limits.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { HistoryEntry, HistoryLevel } from "../protocol/thread.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";

/** Something that happened in a run, as its source tells it, in any length and with whatever it holds. */
export interface HistorySource {
  readonly nativeId: string | null;
  readonly at: number;
  readonly body:
    | { readonly kind: "user" | "assistant"; readonly text: string }
    | {
        readonly kind: "tool";
        readonly name: string;
        readonly input: string;
        /** Null for a call that was never answered. */
        readonly output: string | null;
      }
    | { readonly kind: "change"; readonly path: string; readonly summary: string };
}

/** What a bridge has read of one run (C13.2 to C13.5). */
export interface ReadHistory {
  readonly level: HistoryLevel;
  readonly skipped: number;
  readonly cursor: string | null;
  readonly sources: readonly HistorySource[];
}

/** Read nothing: there is no bridge, or what it reads cannot be read. */
export function nothingRead(level: Extract<HistoryLevel, "final-only" | "unsupported">): ReadHistory {
  return { level, skipped: 0, cursor: null, sources: [] };
}

/** A run whose loop was ours, from its own items: all of it is there. */
export function transcriptHistory(items: readonly TranscriptItem[]): ReadHistory {
  const results = new Map<string, Extract<TranscriptItem, { kind: "tool_result" }>>();
  for (const item of items) if (item.kind === "tool_result") results.set(item.callId, item);
  const sources = items.flatMap((item): HistorySource[] => {
    const source = (body: HistorySource["body"], part = 0): HistorySource => ({
      nativeId: part === 0 ? `${item.index}` : `${item.index}.${part}`,
      at: item.at,
      body,
    });
    if (item.kind === "user" || item.kind === "mail") return [source({ kind: "user", text: item.text })];
    if (item.kind !== "assistant") return [];
    return item.parts.flatMap((part, at) => {
      if (part.type === "text") return [source({ kind: "assistant", text: part.text }, at)];
      if (part.type !== "tool_call") return [];
      const output = results.get(part.callId)?.output;
      return [source(toolBody(part.name, part.input, output), at)];
    });
  });
  return { level: "complete", skipped: 0, cursor: null, sources };
}

/** The name under which changes of files by a provider's own tools are recorded. */
const FILE_CHANGE = "file_change";

function toolBody(name: string, input: string, output: Json | undefined): HistorySource["body"] {
  const text = output === undefined ? null : typeof output === "string" ? output : JSON.stringify(output);
  const path = name === FILE_CHANGE ? pathIn(input) : null;
  if (path !== null) return { kind: "change", path, summary: text ?? "" };
  return { kind: "tool", name, input, output: text };
}

function pathIn(input: string): string | null {
  try {
    const { path } = JSON.parse(input) as { readonly path?: unknown };
    return typeof path === "string" ? path : null;
  } catch {
    return null;
  }
}

type Limits = Pick<LineageLimits, "historyTextBytes" | "historySummaryBytes" | "historyTailBytes">;
type Run = Pick<RunRecord, "id" | "threadId">;
/** An entry that has no place in its thread yet. */
export type Unplaced = Omit<HistoryEntry, "sequence" | "digest">;

export function historyEntries(
  run: Run,
  sources: readonly HistorySource[],
  rules: { readonly limits: Limits; readonly redact: Redact },
): readonly Unplaced[] {
  return sources.map(({ nativeId, at, body }) => {
    const kept = keep(body, rules.limits, rules.redact);
    const id = nativeId ?? sha256(canonicalJson(kept));
    return {
      version: 1,
      id: `${run.id}:${id}`,
      threadId: run.threadId,
      executionId: run.id,
      nativeId,
      createdAt: at,
      body: kept,
    };
  });
}

function keep(body: HistorySource["body"], limits: Limits, redact: Redact): HistoryEntry["body"] {
  const { historyTextBytes, historySummaryBytes, historyTailBytes } = limits;
  switch (body.kind) {
    case "user":
    case "assistant":
      return { kind: body.kind, text: headBytes(redact(body.text), historyTextBytes) };
    case "change":
      return {
        kind: "change",
        path: headBytes(redact(body.path), historySummaryBytes),
        summary: headBytes(redact(body.summary), historySummaryBytes),
      };
    case "tool": {
      const output = body.output === null ? null : redact(body.output);
      return {
        kind: "tool",
        name: body.name,
        summary: headBytes(redact(body.input), historySummaryBytes),
        result:
          output === null
            ? null
            : {
                digest: sha256(output),
                bytes: byteLength(output),
                tail: tailBytes(output, historyTailBytes),
              },
      };
    }
  }
}

/** One for each run, after its settle: how much of it is here (C13.10). */
export function boundaryEntry(
  run: Run,
  about: { readonly level: HistoryLevel; readonly entries: number; readonly skipped: number },
  at: number,
): Unplaced {
  return {
    version: 1,
    id: `${run.id}:boundary`,
    threadId: run.threadId,
    executionId: run.id,
    nativeId: null,
    createdAt: at,
    body: { kind: "boundary", ...about },
  };
}

export function sealEntry(entry: Unplaced, sequence: number): HistoryEntry {
  const placed = { ...entry, sequence };
  return { ...placed, digest: sha256(canonicalJson(placed)) };
}

/** @throws RejectedError `THREAD_CONTEXT_TAMPERED` for an entry that was changed after it was written (C11.11). */
export function verifyEntry(entry: HistoryEntry): HistoryEntry {
  const { digest, ...rest } = entry;
  if (sha256(canonicalJson(rest)) === digest) return entry;
  throw new RejectedError(
    "THREAD_CONTEXT_TAMPERED",
    `entry ${entry.sequence} of the history of ${entry.threadId} is not what was stored; restore it from a copy of the store.`,
    { threadId: entry.threadId, sequence: entry.sequence },
  );
}
