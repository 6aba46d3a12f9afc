/** Threads cut at their points, as texts are built from them: items, runs, pins and results, read from the store (lineage C5.22, C6.1). */
import type { AgentRecord } from "../protocol/agent.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { OrdinalRange } from "../protocol/ordinals.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { ContextSourcePoint, TransferRecord } from "../protocol/transfer.ts";
import type { HandoffInput, HandoffSegment, MergeBackFact } from "../lineage/handoff/input.ts";
import { verifySnapshot } from "../lineage/snapshot.ts";
import type { StoreView } from "../store/port.ts";
import { must, type Look } from "./transaction.ts";

export interface Segments extends Pick<HandoffInput, "checkpoint"> {
  /** Oldest ancestor first. */
  readonly segments: readonly HandoffSegment[];
  /** Pins at the point; null where the thread that is told stands on its own. */
  readonly snapshot: HandoffInput["snapshot"];
}

/** Of the thread itself: the runs named and, unless they are a gap, what it was forked with. */
export function ownSegments(
  look: Look,
  agent: AgentRecord,
  runs: readonly OrdinalRange[],
  items: readonly TranscriptItem[],
  whole: boolean,
): Segments {
  const first = whole ? undefined : runs[0]?.[0];
  const from = first === undefined ? 0 : (look.store.runAt(agent.threadId, first)?.firstItem ?? 0);
  const own = segmentOf(look.store, agent, runs, items.slice(from), look.now);
  return {
    segments: [...(whole ? ancestors(look, agent) : []), own],
    snapshot: null,
    checkpoint: checkpointOf(look.store, agent.threadId, own.runs.at(-1)?.ordinal ?? 0),
  };
}

/** Of the source of a transfer, up to its point; with its ancestors, unless it begins at a base. */
export function forkSegments(look: Look, transfer: TransferRecord): Segments {
  const { sourcePoint: point, basePoint: base } = transfer;
  const source = must(look.store.agent(transfer.sourceThreadId), "thread", transfer.sourceThreadId);
  // A fork tells of the state at which it was taken, however often it is given that (C9.8, C9.9).
  const target = transfer.type === "fork" ? look.store.agent(transfer.targetThreadId) : undefined;
  const own = cutAt(look.store, source, point, target?.createdAt ?? transfer.createdAt);
  return {
    segments: [...(base === null ? ancestors(look, source) : []), own],
    snapshot: snapshotAt(look, source, point),
    checkpoint: checkpointOf(look.store, source.threadId, point.ordinal),
  };
}

/** What the target of a merge-back has done since the fork left it. */
export function sinceBase(
  look: Look,
  agent: AgentRecord,
  { basePoint }: TransferRecord,
  items: readonly TranscriptItem[],
): HandoffSegment {
  const from = basePoint?.items ?? 0;
  const first = (basePoint?.ordinal ?? 0) + 1;
  const runs = first > agent.runs ? [] : ([[first, agent.runs]] as const);
  return segmentOf(look.store, agent, runs, items.slice(from), look.now);
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
    segments.unshift(cutAt(look.store, source, point, forkedAt));
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
  asOf: number,
): HandoffSegment {
  const items: TranscriptItem[] = [];
  while (items.length < point.items) {
    const page = view.items(source.threadId, items.length, Math.min(PAGE, point.items - items.length));
    if (page.length === 0) break;
    items.push(...page);
  }
  return segmentOf(view, source, point.ordinal === 0 ? [] : [[1, point.ordinal]], items, asOf);
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
    mergeBacks: items.flatMap((item) => mergeBackIn(view, item)),
    runs: records
      .filter((run): run is RunRecord => run !== undefined && run.acceptedAt !== null)
      .map((run) => asItWas(run, asOf)),
  };
}

/** No other record of the thread says what a fork has brought back; what it has inherited is told of its ancestors. */
function mergeBackIn(view: StoreView, item: TranscriptItem): readonly MergeBackFact[] {
  if (item.kind !== "context" || item.handoffId === undefined || item.runId === null) return [];
  const handoff = view.handoff(item.handoffId);
  const transfer = handoff === undefined ? undefined : view.transfer(handoff.transferId);
  return transfer?.type === "merge_back" ? [{ runId: item.runId, text: item.text }] : [];
}

/** What was rolled back later is told with the end that it had then (C9.9). */
function asItWas(run: RunRecord, asOf: number): HandoffSegment["runs"][number] {
  const { id, ordinal, reason, provider, error, rolledBack } = run;
  const later = rolledBack !== null && rolledBack.at > asOf;
  const status = later ? rolledBack.from : run.status;
  return { id, ordinal, status, reason, provider, error, rolledBack: rolledBack !== null && !later };
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
