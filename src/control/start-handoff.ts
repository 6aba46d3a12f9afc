/** What a handoff is built from, read from the store: threads cut at their points, with their runs, pins and open questions. */
import type { AgentRecord } from "../protocol/agent.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { OrdinalRange } from "../protocol/ordinals.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { ContextSourcePoint, TransferRecord } from "../protocol/transfer.ts";
import type { HandoffBudget } from "../lineage/handoff/budget.ts";
import type { HandoffInput, HandoffSegment, SubagentResult } from "../lineage/handoff/input.ts";
import { verifySnapshot } from "../lineage/snapshot.ts";
import type { StoreView } from "../store/port.ts";
import { contextOf } from "./thread-context.ts";
import type { Look } from "./transaction.ts";

/** The tool by which a model reads what a handoff has left out. */
const READ_TOOL = "read_thread";

export interface HandoffRequest {
  readonly agent: AgentRecord;
  readonly purpose: HandoffInput["purpose"];
  readonly extent: HandoffInput["extent"];
  readonly budget: HandoffBudget;
  readonly effects: HandoffInput["effects"];
}

type Common = Pick<HandoffInput, "purpose" | "extent" | "budget" | "effects" | "workspace"> & {
  readonly look: Look;
};

/** Of the thread itself, for another provider: the runs named, or all that it has and what it has inherited. */
export function switchInput(
  look: Look,
  request: HandoffRequest,
  runs: readonly OrdinalRange[],
  items: readonly TranscriptItem[],
): HandoffInput {
  const { agent } = request;
  const own = segmentOf(look.store, agent, runs, items, look.now);
  const above = request.extent === "delta" ? [] : ancestors(look, agent);
  return {
    ...frame({ ...request, look, workspace: agent.config.workspace }),
    segments: [...above, own],
    snapshot: contextOf(look, agent),
    checkpoint: checkpointOf(look.store, agent.threadId, own.runs.at(-1)?.ordinal ?? 0),
    openRequests: look.store
      .openRequestsOf(agent.threadId)
      .map(({ kind, text }) => ({ kind, text, askedBy: agent.path })),
    subagents: own.items.flatMap(resultIn),
  };
}

/** Of another thread, up to its point: for a fork of it, or back from a fork since `base`. */
export function otherThreadInput(
  look: Look,
  request: HandoffRequest,
  transfer: TransferRecord,
): HandoffInput {
  const { sourcePoint: point, basePoint: base } = transfer;
  const source = look.store.agent(transfer.sourceThreadId)!;
  const first = base === null || base.threadId !== source.threadId ? 0 : base.items;
  const own = cutAt(look.store, source, point, first, transfer.createdAt);
  return {
    ...frame({ ...request, look, workspace: request.agent.config.workspace }),
    segments: [...(base === null ? ancestors(look, source) : []), own],
    snapshot: snapshotAt(look, source, point),
    checkpoint: checkpointOf(look.store, source.threadId, point.ordinal),
    openRequests: [],
    subagents: own.items.flatMap(resultIn),
  };
}

function frame(common: Common) {
  const { look, purpose, extent, budget, effects, workspace } = common;
  return {
    purpose,
    extent,
    budget,
    effects,
    workspace,
    mode: "recent",
    summary: { kind: "none", why: "not asked for" },
    readTool: READ_TOOL,
    redact: look.context.redact,
    limits: look.context.lineage,
  } as const;
}

/** Threads that this one was forked from, oldest first, each up to its own cut (C5.22). */
function ancestors(look: Look, agent: AgentRecord): HandoffSegment[] {
  const segments: HandoffSegment[] = [];
  const seen = new Set<ThreadId>([agent.threadId]);
  let origin = agent.thread?.forkedFrom ?? null;
  let forkedAt = agent.createdAt;
  while (origin !== null && segments.length < look.context.lineage.ancestorDepth) {
    const { point } = origin;
    const source = look.store.agent(point.threadId);
    if (source === undefined || seen.has(source.threadId)) break;
    seen.add(source.threadId);
    segments.unshift(cutAt(look.store, source, point, 0, forkedAt));
    origin = source.thread?.forkedFrom ?? null;
    forkedAt = source.createdAt;
  }
  return segments;
}

const PAGE = 500;

function cutAt(
  view: StoreView,
  source: AgentRecord,
  point: ContextSourcePoint,
  from: number,
  asOf: number,
): HandoffSegment {
  const items: TranscriptItem[] = [];
  while (from + items.length < point.items) {
    const start = from + items.length;
    const page = view.items(source.threadId, start, Math.min(PAGE, point.items - start));
    if (page.length === 0) break;
    items.push(...page);
  }
  const runs = new Set(items.flatMap(({ runId }) => runId ?? []));
  const inside = point.ordinal === 0 ? [] : ([[1, point.ordinal]] as const);
  const segment = segmentOf(view, source, inside, items, asOf);
  return { ...segment, runs: segment.runs.filter(({ id }) => from === 0 || runs.has(id)) };
}

function segmentOf(
  view: StoreView,
  agent: AgentRecord,
  runs: readonly OrdinalRange[],
  items: readonly TranscriptItem[],
  asOf: number,
): HandoffSegment {
  const records = runs.flatMap(([from, to]) =>
    Array.from({ length: to - from + 1 }, (_, at) => view.runAt(agent.threadId, from + at)),
  );
  return {
    threadId: agent.threadId,
    title: agent.thread?.title ?? null,
    items,
    runs: records
      .filter((run): run is RunRecord => run !== undefined && run.acceptedAt !== null)
      .map((run) => ({ ...run, rolledBack: run.rolledBack !== null && run.rolledBack.at <= asOf })),
  };
}

/** The newest checkpoint record at or before a run. */
function checkpointOf(view: StoreView, threadId: ThreadId, ordinal: number): HandoffInput["checkpoint"] {
  for (let at = ordinal; at > 0; at -= 1) {
    const record = view.runAt(threadId, at)?.checkpoint ?? null;
    if (record !== null) return { record, ordinal: at };
  }
  return null;
}

/** The snapshot that the run at a point was projected into. */
function snapshotAt(look: Look, source: AgentRecord, point: ContextSourcePoint): HandoffInput["snapshot"] {
  const revision = look.store.runAt(source.threadId, point.ordinal)?.nextContextRevision ?? null;
  if (revision === null) return null;
  const record = look.store.snapshot(source.threadId, revision);
  const { threadId } = source;
  return verifySnapshot(record, { threadId, revision, digest: record?.digest ?? "" });
}

function resultIn(item: TranscriptItem): SubagentResult[] {
  if (item.kind !== "mail" || item.mail !== "final_answer") return [];
  return [{ workId: item.resultOf, agent: item.author, status: "reported", text: item.text }];
}
