/**
 * What a thread was at a point of it (lineage C5.5, C15.7): the pinned context, the checkpoint, and whether the last run inside
 * is whole. Of a run that is cut nothing counts that came with its end; nor does anything of runs that were rolled back by
 * then, or that no provider took.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import type { CheckpointRecord } from "../protocol/snapshot.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { ForkOrigin } from "../protocol/thread.ts";
import type { ContextSourcePoint } from "../protocol/transfer.ts";
import { wholePoint } from "../lineage/transfer.ts";
import type { StoreView } from "../store/port.ts";

export interface PointState {
  /** The thread's own origin where it has no context of its own yet. */
  readonly context: ForkOrigin["context"];
  readonly checkpoint: { readonly record: CheckpointRecord; readonly ordinal: number } | null;
}

type Place = Pick<ContextSourcePoint, "ordinal" | "items">;

/** `asOf` is when it was looked at: what was rolled back later was there then (C9.9). */
export function stateAt(view: StoreView, source: AgentRecord, point: Place, asOf: number): PointState {
  const { threadId, thread } = source;
  let context: PointState["context"] = null;
  let checkpoint: PointState["checkpoint"] = null;
  const last = cutsRun(view, source, point) ? point.ordinal - 1 : point.ordinal;
  for (let ordinal = last; ordinal > 0 && (context === null || checkpoint === null); ordinal -= 1) {
    const run = view.runAt(threadId, ordinal);
    if (run === undefined || !counts(run, asOf)) continue;
    if (run.checkpoint !== null) checkpoint ??= { record: run.checkpoint, ordinal };
    const snapshot =
      run.nextContextRevision === null ? undefined : view.snapshot(threadId, run.nextContextRevision);
    if (snapshot !== undefined)
      context ??= { threadId, revision: snapshot.revision, digest: snapshot.digest };
  }
  return { context: context ?? thread?.forkedFrom?.context ?? null, checkpoint };
}

/** Whether something of the last run inside lies behind the point. */
export function cutsRun(view: StoreView, { threadId, items }: AgentRecord, point: Place): boolean {
  const run = view.runAt(threadId, point.ordinal);
  if (run === undefined) return false;
  const end = view.runAt(threadId, point.ordinal + 1)?.firstItem ?? items;
  for (let at = point.items; at < end; at += 1) {
    // What nobody's run has written may follow its end.
    if (view.items(threadId, at, 1)[0]?.runId === run.id) return true;
  }
  return false;
}

/** All that there is of a thread, as far as one of its runs has come, and what its provider calls that. */
export function headOf(
  view: StoreView,
  { threadId, items, runs }: AgentRecord,
  run?: RunRecord,
): ContextSourcePoint {
  const id = run?.providerThreadId ?? null;
  const conversation = id === null ? undefined : view.providerThread(id);
  return {
    ...wholePoint(threadId, { items, ordinal: run?.ordinal ?? runs, runId: run?.id ?? null }),
    checkpointId: run?.checkpoint?.id ?? null,
    providerThreadRef: conversation?.nativeThreadRef ?? null,
    providerTurnRef: run?.nativeTurns.at(-1) ?? null,
  };
}

const PAGE = 16;

/** The newest step that is stored of a run; null for none. It is near the end, however long the transcript is. */
export function newestStep(
  view: StoreView,
  { threadId, items }: Pick<AgentRecord, "threadId" | "items">,
  run: RunRecord,
): number | null {
  for (let end = items; end > run.firstItem; end -= PAGE) {
    const from = Math.max(run.firstItem, end - PAGE);
    const step = view
      .items(threadId, from, end - from)
      .findLast((item) => item.kind === "assistant" && item.runId === run.id);
    if (step !== undefined) return step.index;
  }
  return null;
}

function counts({ acceptedAt, rolledBack }: RunRecord, asOf: number): boolean {
  return acceptedAt !== null && (rolledBack === null || rolledBack.at > asOf);
}
