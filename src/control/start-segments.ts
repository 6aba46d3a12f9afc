/** Threads cut at their points, as texts are built from them: items, runs, pins and results, read from the store (lineage C5.22, C6.1). */
import type { AgentRecord } from "../protocol/agent.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { OrdinalRange } from "../protocol/ordinals.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { ContextSourcePoint, TransferRecord } from "../protocol/transfer.ts";
import type { HandoffInput, HandoffSegment, MergeBackFact } from "../lineage/handoff/input.ts";
import type { StoreView } from "../store/port.ts";
import { snapshotAt } from "./thread-context.ts";
import { cutsRun, stateAt } from "./thread-point.ts";
import { must, type Look } from "./transaction.ts";

interface Ancestors {
  /** Oldest first. */
  readonly segments: readonly HandoffSegment[];
  /** How many ancestors there are beyond those. */
  readonly further: number;
}

export interface Segments extends Pick<HandoffInput, "checkpoint">, Ancestors {
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
  const { segments, further } = whole ? ancestors(look, agent) : NO_ANCESTORS;
  const last = { ordinal: own.runs.at(-1)?.ordinal ?? 0, items: agent.items };
  return {
    segments: [...segments, own],
    further,
    snapshot: null,
    checkpoint: stateAt(look.store, agent, last, look.now).checkpoint,
  };
}

/** Of the source of a transfer, up to its point; with its ancestors, unless it begins at a base. */
export function forkSegments(look: Look, transfer: TransferRecord): Segments {
  const { sourcePoint: point, basePoint: base } = transfer;
  const source = must(look.store.agent(transfer.sourceThreadId), "thread", transfer.sourceThreadId);
  // A fork tells of the state at which it was taken, however often it is given that (C9.8, C9.9).
  const target = transfer.type === "fork" ? look.store.agent(transfer.targetThreadId) : undefined;
  const asOf = target?.createdAt ?? transfer.createdAt;
  const { segments, further } = base === null ? ancestors(look, source) : NO_ANCESTORS;
  const state = stateAt(look.store, source, point, asOf);
  const context = target?.thread?.forkedFrom?.context ?? state.context;
  return {
    segments: [...segments, cutAt(look.store, source, point, asOf)],
    further,
    snapshot: context === null ? null : snapshotAt(look.store, context),
    checkpoint: state.checkpoint,
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
  // The fork knows nothing of what came in the rest of a run that it was cut inside.
  const cut = basePoint !== null && cutsRun(look.store, agent, basePoint);
  const first = (basePoint?.ordinal ?? 0) + (cut ? 0 : 1);
  const runs = first > agent.runs ? [] : ([[first, agent.runs]] as const);
  return segmentOf(look.store, agent, runs, items.slice(from), look.now);
}

const NO_ANCESTORS: Ancestors = { segments: [], further: 0 };

/** Threads that this one was forked from, oldest first, each up to its own cut (C5.22). */
function ancestors(look: Look, agent: AgentRecord): Ancestors {
  const segments: HandoffSegment[] = [];
  let further = 0;
  const seen = new Set<ThreadId>([agent.threadId]);
  let origin = agent.thread?.forkedFrom ?? null;
  let forkedAt = agent.createdAt;
  while (origin !== null) {
    const { point } = origin;
    const source = look.store.agent(point.threadId);
    if (source === undefined || seen.has(source.threadId)) break;
    seen.add(source.threadId);
    if (segments.length < look.context.lineage.ancestorDepth)
      segments.unshift(cutAt(look.store, source, point, forkedAt));
    else further += 1;
    origin = source.thread?.forkedFrom ?? null;
    forkedAt = source.createdAt;
  }
  return { segments, further };
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
  const segment = segmentOf(view, source, point.ordinal === 0 ? [] : [[1, point.ordinal]], items, asOf);
  if (!cutsRun(view, source, point)) return segment;
  const runs = segment.runs.map((run) => (run.ordinal === point.ordinal ? atWork(run) : run));
  return { ...segment, runs };
}

/** At a point inside of it nobody knows how it will end. */
function atWork(run: HandoffSegment["runs"][number]): HandoffSegment["runs"][number] {
  return { ...run, status: "running", reason: null, error: null };
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
  return transfer?.type === "merge_back"
    ? [{ runId: item.runId, handoffId: item.handoffId, text: item.text }]
    : [];
}

/** What was rolled back later is told with the end that it had then (C9.9). */
function asItWas(run: RunRecord, asOf: number): HandoffSegment["runs"][number] {
  const { id, ordinal, reason, provider, error, rolledBack } = run;
  const later = rolledBack !== null && rolledBack.at > asOf;
  const status = later ? rolledBack.from : run.status;
  return { id, ordinal, status, reason, provider, error, rolledBack: rolledBack !== null && !later };
}
