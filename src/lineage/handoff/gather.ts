/**
 * One pass over the segments from the newest item to the oldest: what was said, and what tools did. Nothing is rendered
 * or redacted here, so the pass costs little for a long thread.
 *
 * - G1 Left out: reasoning, the runtime's own notes and earlier handoffs (`context` items; what forks have brought back is a
 *   fact of the segment), its notices, and everything of runs that are not covered or were rolled back (C6.3).
 * - G2 A call is paired with its result within its run: providers may use a call id again in another run.
 * - G3 A result of a subagent that came as mail is a result, not dialogue.
 */
import type { Json } from "../../protocol/json.ts";
import {
  COLLABORATION_TOOLS,
  CONTEXT_TOOLS,
  RESULT_TOOLS,
  THREAD_TOOLS,
} from "../../protocol/tools-words.ts";
import type { TranscriptItem } from "../../protocol/transcript.ts";
import type { HandoffInput, HandoffRun, HandoffSegment, SubagentResult } from "./input.ts";

export interface Utterance {
  readonly segment: number;
  readonly index: number;
  readonly run: HandoffRun | null;
  readonly speaker: "user" | "assistant" | "mail";
  /** Who sent the mail; how an answer of the assistant was cut short. */
  readonly note: string;
  readonly text: string;
}

export interface Call {
  readonly segment: number;
  readonly run: HandoffRun | null;
  readonly name: string;
  /** The arguments as the model wrote them. */
  readonly input: string;
  /** Null where the call has no result. */
  readonly result: { readonly output: Json; readonly isError: boolean } | null;
}

/** Each list from the newest to the oldest. */
export interface Gathered {
  readonly dialogue: readonly Utterance[];
  readonly calls: readonly Call[];
  readonly results: readonly SubagentResult[];
  /** Indexes of the last segment's items that are inside. */
  readonly inside: readonly number[];
}

type Of<Kind extends TranscriptItem["kind"]> = Extract<TranscriptItem, { kind: Kind }>;

const OWN_TOOLS: ReadonlySet<string> = new Set([
  ...COLLABORATION_TOOLS,
  ...CONTEXT_TOOLS,
  ...RESULT_TOOLS,
  ...THREAD_TOOLS,
]);

export function gather({ segments, purpose }: Pick<HandoffInput, "segments" | "purpose">): Gathered {
  const gathered = { dialogue: [], calls: [], results: [], inside: [] };
  for (let at = segments.length - 1; at >= 0; at -= 1) {
    scan(segments[at]!, at, at === segments.length - 1, purpose === "subagent_spawn", gathered);
  }
  return gathered;
}

interface Gathering {
  readonly dialogue: Utterance[];
  readonly calls: Call[];
  readonly results: SubagentResult[];
  readonly inside: number[];
}

function scan(
  segment: HandoffSegment,
  at: number,
  isSource: boolean,
  answersOnly: boolean,
  into: Gathering,
): void {
  const runs = new Map(segment.runs.map((run) => [run.id, run]));
  const closed = new Map<string, Of<"tool_result">>();
  for (let position = segment.items.length - 1; position >= 0; position -= 1) {
    const item = segment.items[position]!;
    const run = item.runId === null ? null : runs.get(item.runId);
    if (run === undefined || run?.rolledBack === true) continue;
    if (isSource) into.inside.push(item.index);
    const place = { segment: at, index: item.index, run };
    if (item.kind === "user") say(into, { ...place, speaker: "user", note: "", text: item.text });
    else if (item.kind === "assistant") {
      if (!answersOnly) readParts(item, place, closed, into);
      else if (item.phase === "answer")
        say(into, { ...place, speaker: "assistant", note: "", text: textOf(item) });
    } else if (answersOnly) continue;
    else if (item.kind === "tool_result") closed.set(callKey(item, item.callId), item);
    else if (item.kind === "mail") readMail(item, place, into);
  }
}

function readParts(
  item: Of<"assistant">,
  place: Pick<Utterance, "segment" | "index" | "run">,
  closed: Map<string, Of<"tool_result">>,
  into: Gathering,
): void {
  const said: string[] = [];
  const calls: Call[] = [];
  for (const part of item.parts) {
    if (part.type === "text") said.push(part.text);
    if (part.type !== "tool_call" && part.type !== "request") continue;
    const key = callKey(item, part.callId);
    const result = closed.get(key) ?? null;
    closed.delete(key);
    if (part.type === "request") {
      const answer = result === null ? "" : `\nAnswer: ${outputText(result.output)}`;
      said.push(`\nAsked (${part.kind}): ${part.text}${answer}`);
    } else if (!OWN_TOOLS.has(part.name)) {
      calls.push({ segment: place.segment, run: place.run, name: part.name, input: part.input, result });
    }
  }
  into.calls.push(...calls.toReversed());
  const note = item.phase === "partial" ? "cut off" : "";
  say(into, { ...place, speaker: "assistant", note, text: said.join("") });
}

function readMail(
  item: Of<"mail">,
  place: Pick<Utterance, "segment" | "index" | "run">,
  into: Gathering,
): void {
  if (item.author === "runtime") return;
  if (item.mail === "final_answer") {
    into.results.push({ workId: item.resultOf, agent: item.author, status: "delivered", text: item.text });
  } else {
    say(into, { ...place, speaker: "mail", note: `from ${item.author}`, text: item.text });
  }
}

function say(into: Gathering, utterance: Utterance): void {
  if (utterance.text.trim() !== "") into.dialogue.push(utterance);
}

function textOf(item: Of<"assistant">): string {
  return item.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

function callKey(item: TranscriptItem, callId: string): string {
  return `${item.runId ?? ""}:${callId}`;
}

export function outputText(output: Json): string {
  return typeof output === "string" ? output : JSON.stringify(output);
}
