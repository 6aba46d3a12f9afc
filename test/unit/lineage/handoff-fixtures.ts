/** Threads in short: runs with what was said and done in them, and an input of the builder with everything else empty. */
import type { HandoffBudget } from "../../../src/lineage/handoff/budget.ts";
import type {
  HandoffBuild,
  HandoffInput,
  HandoffRun,
  HandoffSegment,
} from "../../../src/lineage/handoff/input.ts";
import { redact } from "../../../src/platform/redact.ts";
import type { Effect } from "../../../src/protocol/agent.ts";
import type { RunId } from "../../../src/protocol/ids.ts";
import type { Json } from "../../../src/protocol/json.ts";
import { DEFAULT_LINEAGE_LIMITS } from "../../../src/protocol/lineage-limits.ts";
import type { SnapshotRecord } from "../../../src/protocol/snapshot.ts";
import type { AssistantPart, ItemBody, TranscriptItem } from "../../../src/protocol/transcript.ts";

export const user = (text: string): ItemBody => ({
  kind: "user",
  text,
  mailId: null,
  workId: null,
  inherited: false,
});
export const assistant = (
  parts: readonly AssistantPart[],
  phase: "answer" | "tools" = "answer",
): ItemBody => ({
  kind: "assistant",
  phase,
  parts,
  model: "m",
  inherited: false,
});
export const answer = (text: string): ItemBody => assistant([{ type: "text", text }]);
export const context = (topic: "handoff" | "children", text: string): ItemBody => ({
  kind: "context",
  topic,
  text,
});
export const mail = (author: "/root/a" | "runtime", text: string, result = false): ItemBody => ({
  kind: "mail",
  mailId: "msg_1",
  mail: result ? "final_answer" : author === "runtime" ? "notice" : "message",
  author,
  recipient: "/root",
  workId: null,
  resultOf: result ? "wrk_1" : null,
  text,
});

/** A call and its result; the id of the call is the same in every run, as some providers do it. */
export const call = (name: string, args: Json, output: Json = "ok", isError = false): ItemBody[] => [
  assistant(
    [
      {
        type: "tool_call",
        callId: name,
        name,
        input: typeof args === "string" ? args : JSON.stringify(args),
      },
    ],
    "tools",
  ),
  {
    kind: "tool_result",
    callId: name,
    name,
    output,
    isError,
    mailIds: [],
    waitId: null,
    elapsedMs: 0,
  },
];

export type RunSpec = readonly (ItemBody | ItemBody[])[] | (Partial<HandoffRun> & { readonly said: RunSpec });

/** Runs 1, 2, 3 … of a thread, with their items. */
export function thread(specs: readonly RunSpec[], about: Partial<HandoffSegment> = {}): HandoffSegment {
  const threadId = about.threadId ?? "thread_one";
  const runs: HandoffRun[] = [];
  const items: TranscriptItem[] = [];
  specs.forEach((spec, at) => {
    const { said, ...facts } = "said" in spec ? spec : { said: spec };
    const id: RunId = `run_${threadId}_${at + 1}`;
    runs.push({
      id,
      ordinal: at + 1,
      status: "completed",
      reason: "completed",
      provider: "a",
      rolledBack: false,
      ...facts,
    });
    for (const body of (said as readonly (ItemBody | ItemBody[])[]).flat()) {
      items.push({ ...body, index: items.length, runId: id, step: 0, at: items.length });
    }
  });
  return { threadId, title: null, items, runs, ...about };
}

/** Of a thread, the runs from one ordinal to another, and their items. */
export function between(segment: HandoffSegment, from: number, to: number): HandoffSegment {
  const runs = segment.runs.filter(({ ordinal }) => from <= ordinal && ordinal <= to);
  const ids = new Set<RunId | null>(runs.map(({ id }) => id));
  return { ...segment, runs, items: segment.items.filter(({ runId }) => ids.has(runId)) };
}

export const chars = (limit: number): HandoffBudget => ({
  limit,
  unit: "chars",
  maxBytes: limit * 3,
  maxChars: limit,
});

export const EFFECTS = new Map<string, readonly Effect[]>([
  ["read_file", ["read"]],
  ["write_file", ["write"]],
  ["apply_patch", ["write"]],
  ["bash", ["read", "write", "execute", "network"]],
  ["run_tests", ["execute"]],
  ["todo_write", ["write"]],
  ["search", ["network"]],
]);

export function inputOf(
  segments: readonly HandoffSegment[],
  changes: Partial<HandoffInput> = {},
): HandoffInput {
  return {
    purpose: "provider_handoff",
    extent: "full",
    segments,
    snapshot: null,
    workspace: "/work/project",
    checkpoint: null,
    openRequests: [],
    effects: EFFECTS,
    mode: "recent",
    summary: { kind: "none", why: "not asked for" },
    budget: chars(60_000),
    readTool: "read_thread",
    redact,
    limits: DEFAULT_LINEAGE_LIMITS,
    ...changes,
  };
}

export function built(
  build: HandoffBuild | { readonly kind: "failed" },
): Extract<HandoffBuild, { kind: "built" }> {
  if (build.kind !== "built") throw new Error(`nothing was built: ${JSON.stringify(build)}`);
  return build;
}

/** The text of one section, by its title. */
export function section(text: string, title: string): string {
  const start = text.indexOf(`== ${title}`);
  if (start === -1) return "";
  const end = text.indexOf("\n\n== ", start);
  return text.slice(start, end === -1 ? undefined : end);
}

export function snapshot(changes: Partial<SnapshotRecord> = {}): SnapshotRecord {
  return {
    version: 1,
    threadId: "thread_one",
    revision: 3,
    objective: null,
    decisions: [],
    constraints: [],
    openItems: [],
    nextActions: [],
    outcomes: [],
    degraded: false,
    createdAt: 0,
    digest: "d3",
    ...changes,
  };
}

export const pin = (text: string, ordinal = 1): SnapshotRecord["decisions"][number] => ({
  text,
  sourceExecutionId: `run_thread_one_${ordinal}`,
});
