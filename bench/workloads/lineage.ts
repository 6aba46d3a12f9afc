/**
 * The pure decisions of lineage, as the same work over few and over many: how a run gets its context, the text of a handoff,
 * the projection of a snapshot. No store takes part.
 */
import type { Scene } from "./threads.ts";
import { buildHandoff } from "../../src/lineage/handoff/build.ts";
import type { HandoffInput, HandoffRun } from "../../src/lineage/handoff/input.ts";
import { makeCheckpoint, projectSnapshot } from "../../src/lineage/snapshot.ts";
import { resolveStartContext } from "../../src/lineage/start-context.ts";
import type { StartFacts } from "../../src/lineage/start-plan.ts";
import { redact } from "../../src/platform/redact.ts";
import type { ThreadId } from "../../src/protocol/ids.ts";
import { DEFAULT_LINEAGE_LIMITS as LIMITS } from "../../src/protocol/lineage-limits.ts";
import { NO_ORDINALS, type OrdinalRange } from "../../src/protocol/ordinals.ts";
import type { ProviderThreadRecord } from "../../src/protocol/provider-thread.ts";
import type { Pin, SnapshotRecord } from "../../src/protocol/snapshot.ts";
import type { ItemBody, TranscriptItem } from "../../src/protocol/transcript.ts";
import type { HandoffRecord } from "../../src/protocol/transfer.ts";
import { OWN_LOOP_THREADS } from "../../src/providers/own-loop.ts";

const THREAD: ThreadId = "thread_long";
const PROVIDERS = ["a", "b", "c", "d", "e"];

/** Nothing is left to be disposed of. */
const pure = (few: () => void, many: () => void): Scene => ({
  few: async () => few(),
  many: async () => many(),
  [Symbol.asyncDispose]: async () => undefined,
});

/** Runs of one provider after those of another, in five stretches; or each on the next provider, with holes left. */
export type Turns = "stretches" | "one by one";

/** As often as `times`, the start of the next run on each of the five. */
export function starts(runs: number, turns: Turns, times: number): () => void {
  const all = PROVIDERS.map((provider) => startOn(provider, runs, turns));
  return () => {
    for (let at = 0; at < times; at += 1) {
      for (const facts of all)
        if (resolveStartContext(facts).base.kind === "unsupported") throw new Error("a start has no plan");
    }
  };
}

/** A hundred times the runs; by stretches these are as many ranges. */
export function startScene(): Scene {
  const times = 4000;
  return pure(starts(10, "stretches", times), starts(1000, "stretches", times));
}

function startOn(provider: string, runs: number, turns: Turns): StartFacts {
  const providerThreads: ProviderThreadRecord[] = [];
  const handoffs: HandoffRecord[] = [];
  for (const [at, name] of PROVIDERS.entries()) {
    const native = nativeOf(at, runs, turns);
    const told = toldTo(native, name);
    if (name === provider) handoffs.push(...told);
    providerThreads.push(providerThread(name, native, told));
  }
  return {
    threadId: THREAD,
    continuity: "resume-native",
    ordinal: runs + 1,
    target: {
      provider,
      instanceId: provider,
      driver: provider,
      model: "m",
      capabilities: OWN_LOOP_THREADS,
      cleanContext: false,
      contextFull: false,
      change: "apply_next_turn",
      deltaFits: null,
    },
    providerThreads,
    handoffs,
    pending: [],
    rolledBack: NO_ORDINALS,
    voided: NO_ORDINALS,
    fork: null,
    failedResume: [],
    limits: LIMITS,
  };
}

function nativeOf(at: number, runs: number, turns: Turns): readonly OrdinalRange[] {
  const each = runs / PROVIDERS.length;
  if (turns === "stretches") return [[at * each + 1, (at + 1) * each]];
  return Array.from({ length: each }, (_, round): OrdinalRange => {
    const ordinal = round * PROVIDERS.length + at + 1;
    return [ordinal, ordinal];
  });
}

/** Each time that it came back it was told what had gone on since; of every other text it knows nothing any more. */
function toldTo(native: readonly OrdinalRange[], name: string): HandoffRecord[] {
  const before = (at: number): number => native[at - 1]?.[1] ?? 0;
  return native.flatMap(([from], at) =>
    from - 1 > before(at)
      ? [handoff(`hnd_${name}${at}`, [before(at) + 1, from - 1], at % 2 === 0 ? "ready" : "superseded")]
      : [],
  );
}

function providerThread(
  name: string,
  native: readonly OrdinalRange[],
  told: readonly HandoffRecord[],
): ProviderThreadRecord {
  return {
    id: `pth_${name}`,
    treeId: THREAD,
    provider: name,
    instanceId: name,
    driver: name,
    appThreadId: THREAD,
    ownerNodeId: null,
    nativeThreadRef: null,
    nativeHeadRef: null,
    model: "m",
    status: "idle",
    continuity: "ok",
    nativeRunOrdinals: native,
    handoffIds: told.map(({ id }) => id),
    forkedFrom: null,
    createdAt: 1,
    updatedAt: 1,
  };
}

function handoff(id: `hnd_${string}`, runs: OrdinalRange, status: HandoffRecord["status"]): HandoffRecord {
  return {
    id,
    transferId: "xfr_1",
    treeId: THREAD,
    sourceThreadId: THREAD,
    threadId: THREAD,
    targetRunId: null,
    kind: "delta_context",
    strategy: "delta_since_target_last_seen",
    fromProviderThreadIds: [],
    toProviderThreadId: null,
    coveredRuns: [runs],
    coveredRunOrdinals: null,
    coveredRanges: [],
    status,
    summaryText: "text",
    payload: { sections: [], items: 0, omittedItemIds: [], checkpointRef: null, snapshotRef: null },
    budget: { limit: 0, used: 0, unit: "bytes" },
    bytes: 4,
    createdByProvider: null,
    supersededBy: null,
    deliveredAt: 1,
    digest: "",
    createdAt: 1,
    updatedAt: 1,
  };
}

/** The handoff of a thread of so many items: questions, files written, commands, answers; all of it told. */
export function handoffs(items: number, times: number): () => void {
  const input = handoffInput(items);
  return () => {
    for (let at = 0; at < times; at += 1)
      if (buildHandoff(input).kind !== "built") throw new Error("a handoff was not built");
  };
}

/** Ten times the items in a text that may not be longer. */
export function handoffScene(): Scene {
  const times = 10;
  return pure(handoffs(1000, times), handoffs(10_000, times));
}

function handoffInput(count: number): HandoffInput {
  const items: TranscriptItem[] = [];
  const runs: HandoffRun[] = [];
  while (items.length < count) {
    const ordinal = runs.length + 1;
    const id = `run_${ordinal}` as const;
    runs.push({
      id,
      ordinal,
      status: ordinal % 50 === 0 ? "failed" : "completed",
      reason: ordinal % 50 === 0 ? "provider_error" : "completed",
      provider: PROVIDERS[Math.floor(ordinal / 20) % PROVIDERS.length]!,
      rolledBack: false,
    });
    for (const body of saidAndDone(ordinal))
      items.push({ ...body, index: items.length, runId: id, step: 1, at: ordinal });
  }
  return {
    purpose: "provider_handoff",
    extent: "full",
    segments: [{ threadId: THREAD, title: "A long thread", items, runs }],
    snapshot: null,
    workspace: "/work",
    checkpoint: null,
    openRequests: [],
    effects: new Map([
      ["write_file", ["write"]],
      ["bash", ["execute"]],
    ]),
    mode: "recent",
    summary: { kind: "none", why: "not asked for" },
    budget: { limit: 64_000, unit: "bytes", maxBytes: 64_000, maxChars: 64_000 },
    readTool: "read_thread",
    redact,
    limits: LIMITS,
  };
}

function saidAndDone(ordinal: number): readonly ItemBody[] {
  const call = (name: string, input: string, output: string): ItemBody[] => [
    {
      kind: "assistant",
      phase: "tools",
      parts: [{ type: "tool_call", callId: name, name, input }],
      model: "m",
      inherited: false,
    },
    {
      kind: "tool_result",
      callId: name,
      name,
      output,
      isError: false,
      mailIds: [],
      waitId: null,
      elapsedMs: 1,
    },
  ];
  return [
    {
      kind: "user",
      text: `Question ${ordinal}: what about part ${ordinal % 7}?`,
      mailId: null,
      workId: null,
      inherited: false,
    },
    ...call("write_file", JSON.stringify({ path: `src/part-${ordinal % 400}.ts`, text: "x" }), "written"),
    ...call("bash", JSON.stringify({ command: `test part-${ordinal % 90}` }), "ok"),
    {
      kind: "assistant",
      phase: "answer",
      parts: [{ type: "text", text: `Answer ${ordinal}. ${"It is so. ".repeat(10)}` }],
      model: "m",
      inherited: false,
    },
  ];
}

const LINE =
  "a decision that somebody has pinned, in a hundred letters or so, as most of them are, and why it was taken";
const FEW_LINES = 10;
/** Beside what is pinned with the run, the largest count that stays below the cap; the next pins go over it. */
const MANY_LINES = 165;

/** The projection of a run that has pinned a line, over a snapshot of a few lines and over one at the cap; as many lines in both. */
export function snapshotScene(): Scene {
  const lines = 40_000;
  const project = (count: number) => {
    const base = snapshotOf(count);
    return (): void => {
      for (let at = 0; at < lines / count; at += 1) projectOver(base, pin(count + 1));
    };
  };
  return pure(project(FEW_LINES), project(MANY_LINES));
}

function pin(at: number): Pin {
  return { pinId: `pin_${at}`, section: "decisions", text: `${at}: ${LINE}` };
}

function snapshotOf(count: number): SnapshotRecord {
  let base: SnapshotRecord | null = null;
  for (let at = 1; at <= count; at += 1) base = projectOver(base, pin(at));
  return base!;
}

function projectOver(base: SnapshotRecord | null, line: Pin): SnapshotRecord {
  const revision = (base?.revision ?? 0) + 1;
  const run = { id: `run_${revision}` as const, ordinal: revision };
  return projectSnapshot({
    base,
    threadId: THREAD,
    revision,
    title: "A long thread",
    run,
    previous: revision === 1 ? null : `run_${revision - 1}`,
    checkpoint: makeCheckpoint(run.id, [line]),
    outcome: "completed",
    reason: "completed",
    messages: { from: 0, to: 0 },
    createdAt: revision,
    limits: LIMITS,
  }).snapshot;
}
