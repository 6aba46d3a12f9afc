/**
 * What can be said of a run that left no text (WRK-7): its pins, the files that it has changed, its last steps as short
 * lines, and a sentence that cannot be read as "all is well". Secrets are redacted before a line is cut (SEC-3).
 */
import type { Effect } from "../protocol/agent.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { Redact } from "../platform/redact.ts";
import { byteLength, headBytes } from "../platform/text.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { Salvage, WorkEnding } from "../protocol/work.ts";
import { gather } from "./handoff/gather.ts";
import { fileChanges } from "./handoff/tool-facts.ts";

const LINES = 8;
const LINE_BYTES = 240;
const PINS = 16;
const FILES = 32;

/** What the tools of a run may do, where it worked, and what is to be kept out of sight. */
export interface SalvageFacts {
  readonly effects: ReadonlyMap<string, readonly Effect[]>;
  readonly workspace: string | null;
  readonly redact: Redact;
}

/** Of the newest pins and changes where there are more than fit. */
export function salvageOf(run: RunRecord, items: readonly TranscriptItem[], facts: SalvageFacts): Salvage {
  const { redact, ...about } = facts;
  const segment = {
    threadId: run.threadId,
    title: null,
    items,
    runs: [{ ...run, rolledBack: false }],
  };
  const { calls } = gather({ segments: [segment], purpose: "provider_handoff" });
  const changes = fileChanges(calls, { ...about, most: FILES });
  return {
    lastSteps: salvageSteps(items, redact),
    pins: run.pins.slice(-PINS).map(({ section, text }) => bounded(redact(`${section}: ${text}`))),
    files: changes.map(({ path }) => bounded(redact(path))),
  };
}

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
export function textlessResult(ending: WorkEnding, salvage: Salvage): string {
  const head = `No text came back: the work ended as \`${ending}\`. Do not take this for success or for "nothing found".`;
  const lines = salvageLines(salvage);
  return lines.length === 0 ? `${head} Nothing is known of what was done.` : [head, ...lines].join("\n");
}

/** The lists of a salvage that hold something, each under its heading. */
export function salvageLines({ lastSteps, pins = [], files = [] }: Salvage): readonly string[] {
  const list = (heading: string, lines: readonly string[]): readonly string[] =>
    lines.length === 0 ? [] : [heading, ...lines.map((line) => `- ${line}`)];
  return [
    ...list("Pinned:", pins),
    ...list("Files changed:", files),
    ...list("The last steps were:", lastSteps),
  ];
}
