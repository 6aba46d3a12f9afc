/**
 * What a child is told of its parent, read when its first run starts and cut where it was asked for (SPN-5, lineage C8.3). A
 * provider that owns its loop gets the text of a handoff; a child of our own loop gets the messages themselves, as the first
 * items of its transcript, and their text is kept for the record.
 *
 * - S1 The parent's transcript only grows, so the point of the spawn gives the same history however late it is read. What was
 *   rolled back after the spawn is told as it was then, what was before is not (C9.9).
 * - S2 It is told also where the thread opens on its snapshot alone: it was asked for, and nothing native crosses.
 * - S3 Another attempt to start tells no more than the first: what the transcript has got stays as it is.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { holdsOrdinal } from "../protocol/ordinals.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { SnapshotRecord } from "../protocol/snapshot.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { TransferRecord } from "../protocol/transfer.ts";
import { budgetFor, conversationBudget, type Size } from "../lineage/handoff/budget.ts";
import { buildHandoff } from "../lineage/handoff/build.ts";
import type { HandoffSegment } from "../lineage/handoff/input.ts";
import { inheritedItems, parseForkTurns, projectHistory } from "../lineage/project-history.ts";
import { handoffOf } from "../lineage/transfer.ts";
import type { RoomyRequest, StartText } from "./start-request.ts";
import { snapshotAt } from "./thread-context.ts";
import { stateAt } from "./thread-point.ts";
import { must, type Look } from "./transaction.ts";

export function spawnText(request: RoomyRequest, transfer: TransferRecord): StartText {
  const { look, agent, to } = request;
  const parent = must(look.store.agent(transfer.sourceThreadId), "thread", transfer.sourceThreadId);
  const segment = historyAt(look, parent, transfer);
  const { lineage: limits, redact } = look.context;
  const input = {
    segments: [segment],
    effects: new Map(),
    workspace: agent.config.workspace,
    redact,
    limits,
  };
  const ours = look.context.loop(to.provider) === "ours";
  const budget = (most: Size | undefined) =>
    ours
      ? conversationBudget({ ...request.room, limits })
      : budgetFor({ ...request.room, limits, configured: null, most });
  const snapshot = pinsAt(look, parent, transfer);
  return {
    transferId: transfer.id,
    shared: request.shared,
    mode: "recent",
    told: input,
    build: (summary, { most }) =>
      buildHandoff({
        ...input,
        purpose: "subagent_spawn",
        extent: "full",
        snapshot,
        checkpoint: null,
        openRequests: [],
        mode: "recent",
        summary,
        budget: budget(most),
        readTool: null,
      }),
    inherit: ({ coveredRanges, pinned, about }) =>
      inheritedItems({
        kept: segment.items.filter(({ index }) =>
          coveredRanges.some(([from, to]) => index >= from && index < to),
        ),
        pinned,
        leftOut: about.payload.omittedItemIds.length,
        parent: parent.path,
        redact,
        toOtherProvider: transfer.sourceProvider !== to.provider,
      }),
  };
}

/** The parent as far as the child may be told of it. */
function historyAt({ store }: Look, parent: AgentRecord, transfer: TransferRecord): HandoffSegment {
  const { sourcePoint: point, createdAt: asOf } = transfer;
  const turns = parseForkTurns(transfer.note);
  const current = point.cut === "exclusive" ? point.runId : null;
  const runs: RunRecord[] = [];
  let left = turns === "none" ? 0 : turns === "all" ? Number.POSITIVE_INFINITY : turns;
  for (let ordinal = point.ordinal; ordinal > 0 && left > 0; ordinal -= 1) {
    const run = store.runAt(parent.threadId, ordinal);
    if (run === undefined || run.acceptedAt === null) continue;
    if (run.rolledBack !== null && run.rolledBack.at <= asOf) continue;
    runs.unshift(run);
    if (!run.woken) left -= 1;
  }
  const from = turns === "all" ? 0 : (runs[0]?.firstItem ?? point.items);
  const items = store.items(parent.threadId, from, Math.max(0, point.items - from));
  const kept = projectHistory({ items, before: point.items, runs, currentRun: current, turns });
  return {
    threadId: parent.threadId,
    title: null,
    items: notMoreThanBefore(store, transfer, kept),
    runs: runs.map(({ id, ordinal, provider, ...run }) => ({
      id,
      ordinal,
      provider,
      status: id === current ? "running" : (run.rolledBack?.from ?? run.status),
      reason: id === current ? null : run.reason,
      rolledBack: false,
    })),
  };
}

function notMoreThanBefore(
  store: Look["store"],
  transfer: TransferRecord,
  kept: readonly TranscriptItem[],
): readonly TranscriptItem[] {
  const id = handoffOf(transfer);
  const before = id === null ? undefined : store.handoff(id);
  if (before === undefined) return kept;
  const ranges = before.coveredRanges.map(([from, to]) => [from, to - 1] as const);
  return kept.filter(({ index }) => holdsOrdinal(ranges, index));
}

/** What the parent had pinned; what it was about is not what the child is for. */
function pinsAt(look: Look, parent: AgentRecord, transfer: TransferRecord): SnapshotRecord | null {
  const { context } = stateAt(look.store, parent, transfer.sourcePoint, transfer.createdAt);
  return context === null ? null : { ...snapshotAt(look.store, context), objective: null };
}
