/**
 * What can be said of a run that left no text (WRK-7): its last steps as short lines, and a sentence that cannot be
 * read as "all is well". Secrets are redacted before a line is cut (SEC-3).
 */
import type { Redact } from "../platform/redact.ts";
import { byteLength, headBytes } from "../platform/text.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { WorkEnding } from "../protocol/work.ts";

const LINES = 8;
const LINE_BYTES = 240;

/** The newest steps of a run, oldest first. */
export function salvageSteps(items: readonly TranscriptItem[], redact: Redact): readonly string[] {
  const lines: string[] = [];
  // From the end, so that a long run costs no more than a short one.
  for (let at = items.length - 1; at >= 0 && lines.length < LINES; at -= 1) {
    const item = items[at]!;
    lines.push(...describe(item, redact).toReversed());
  }
  return lines.slice(0, LINES).toReversed();
}

function describe(item: TranscriptItem, redact: Redact): string[] {
  const line = (text: string): string => bounded(redact(`step ${item.step}: ${text}`));
  if (item.kind === "tool_result") {
    const output = typeof item.output === "string" ? item.output : JSON.stringify(item.output);
    const outcome = item.isError ? `failed: ${output}` : `returned ${byteLength(output)} bytes`;
    return [line(`${item.name} ${outcome}`)];
  }
  if (item.kind !== "assistant") return [];
  return item.parts.flatMap((part) => {
    if (part.type === "tool_call") return [line(`called ${part.name} with ${part.input}`)];
    if (part.type === "request") return [line(`asked (${part.kind}): ${part.text}`)];
    return part.type === "text" && part.text.trim() !== "" ? [line(`wrote: ${part.text}`)] : [];
  });
}

function bounded(text: string): string {
  const flat = text.replaceAll(/\s+/g, " ").trim();
  return byteLength(flat) <= LINE_BYTES ? flat : `${headBytes(flat, LINE_BYTES - byteLength("…"))}…`;
}

/** Stands where the text of a result would; the ending is always in it. */
export function textlessResult(ending: WorkEnding, lastSteps: readonly string[]): string {
  const head = `No text came back: the work ended as \`${ending}\`. Do not take this for success or for "nothing found".`;
  if (lastSteps.length === 0) return `${head} Nothing is known of what was done.`;
  return `${head} The last steps were:\n${lastSteps.map((step) => `- ${step}`).join("\n")}`;
}
