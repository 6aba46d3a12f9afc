/**
 * From the place that somebody names in a thread to one source point, from which the cut that is shown, the boundary
 * that a provider is told and the text of a replay all follow (lineage C5.1 to C5.3, C5.8 to C5.11).
 *
 * - P1 A message of the user is cut strictly before it, and becomes the draft. All else is cut after it, and after the
 *   results of the calls that were made with it: no call is left without its result.
 * - P2 Where nothing but notes of the runtime lies between a run's beginning and the user's message, the cut is the end
 *   of the run before: those notes are about the run that is not inside.
 * - P3 A place that was named and is not whole is refused, never moved. `latest_stable` names none, and steps back.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { CheckpointId, ProviderThreadId, RunId } from "../protocol/ids.ts";
import { holdsOrdinal } from "../protocol/ordinals.ts";
import { isSettled } from "../protocol/run.ts";
import type { ForkDraft } from "../protocol/thread.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { ContextSourcePoint, TransferRecord } from "../protocol/transfer.ts";
import { lastOrdinal } from "./coverage.ts";
import {
  endOfRun,
  isRolledBack,
  lastRetained,
  latestStable,
  outcomeOf,
  type RunFacts,
  runOfItem,
  type ThreadReader,
} from "./thread-reader.ts";
import { wholePoint } from "./transfer.ts";

/** A point of a thread as somebody names it. */
export type ForkPointName =
  | { readonly kind: "latest_stable" }
  | { readonly kind: "run"; readonly runId: RunId }
  | { readonly kind: "checkpoint"; readonly checkpointId: CheckpointId }
  /** 1, 2, 3 … in the transcript, one more than the item's index; null for mail that is not in it yet. */
  | { readonly kind: "message"; readonly seq: number | null }
  | { readonly kind: "provider_thread"; readonly providerThreadId: ProviderThreadId };

/** A point at which a thread can be forked, and what is cut there. */
export interface ForkPoint {
  readonly point: ContextSourcePoint;
  /** What the user had written at a cut before it (C5.8). */
  readonly draft: Pick<ForkDraft, "text" | "sourceMessageId"> | null;
  /** How the last run inside had ended, where that was not `completed` (C5.3). */
  readonly sourceOutcome: TransferRecord["sourceOutcome"];
  /** False where nothing lies before the cut (C5.10). */
  readonly carries: boolean;
  /** The cut is the end of the last run inside, not a place within it. */
  readonly wholeRun: boolean;
}

/**
 * The source point that is named.
 * @throws RejectedError `SOURCE_POINT_NOT_FOUND`, `_UNSTABLE`, `_ROLLED_BACK` or `FORK_UNCOMMITTED_MESSAGE`.
 */
export function forkPoint(reader: ThreadReader, name: ForkPointName): ForkPoint {
  switch (name.kind) {
    case "latest_stable":
      return atLatestStable(reader);
    case "run":
      return afterRun(reader, usable(reader, known(reader.run(name.runId), reader, name.runId), name.runId));
    case "checkpoint": {
      const run = known(reader.runOfCheckpoint(name.checkpointId), reader, name.checkpointId);
      return afterRun(reader, usable(reader, run, name.checkpointId), { checkpointId: name.checkpointId });
    }
    case "message":
      return atMessage(reader, name.seq);
    case "provider_thread":
      return atProviderThread(reader, name.providerThreadId);
  }
}

function atLatestStable(reader: ThreadReader): ForkPoint {
  const run = latestStable(reader);
  if (run !== undefined) return afterRun(reader, run);
  throw notFound(
    `${reader.threadId} has no completed run with a checkpoint yet; wait for one, or name a message or a run.`,
    { threadId: reader.threadId },
  );
}

function atProviderThread(reader: ThreadReader, id: ProviderThreadId): ForkPoint {
  const record = reader.providerThread(id);
  if (record === undefined || record.appThreadId !== reader.threadId) throw unknown(reader, id);
  if (record.status === "active") {
    throw unstable(`A turn is under way in ${id}; wait for its end, or name an earlier run.`, { point: id });
  }
  const last = lastOrdinal(record.nativeRunOrdinals);
  if (last === 0)
    throw notFound(`No run of ${reader.threadId} has gone through ${id}; name a run.`, { point: id });
  const run = usable(reader, known(reader.runAt(last), reader, id), id);
  return afterRun(reader, run, {
    providerThreadRef: record.nativeThreadRef,
    providerTurnRef: run.providerThreadId === record.id ? (run.nativeTurns.at(-1) ?? null) : null,
  });
}

function atMessage(reader: ThreadReader, seq: number | null): ForkPoint {
  if (seq === null || !Number.isSafeInteger(seq) || seq <= 0) {
    throw new RejectedError(
      "FORK_UNCOMMITTED_MESSAGE",
      seq === null
        ? "The message has no place in the transcript yet; fork when a run has taken it in, or name an earlier one."
        : `${reader.threadId} has ${reader.items} items, numbered from 1, and none with number ${seq}; name one of them.`,
      { seq: Number.isFinite(seq) ? seq : null },
    );
  }
  const item = reader.item(seq - 1);
  if (item === undefined) {
    throw notFound(
      `${reader.threadId} has ${reader.items} items and none with number ${seq}; name one of them.`,
      {
        seq,
      },
    );
  }
  const run = runOfItem(reader, item);
  if (run === undefined && item.runId !== null) throw unknown(reader, item.runId);
  if (run !== undefined) usable(reader, run, `Message ${seq}`);
  return item.kind === "user" ? beforeMessage(reader, item, run) : afterItem(reader, item, run);
}

function beforeMessage(
  reader: ThreadReader,
  item: Extract<TranscriptItem, { kind: "user" }>,
  run: RunFacts | undefined,
): ForkPoint {
  const draft = { text: item.text, sourceMessageId: item.mailId };
  const named = { turnItemId: item.index, cut: "exclusive" } as const;
  const begins = run === undefined || onlyNotes(reader, run.firstItem, item.index);
  if (run !== undefined && !begins) {
    return { ...inside(reader, run, { ...named, items: item.index }), draft };
  }
  const before = run === undefined ? undefined : reader.runAt(lastRetained(reader, run.ordinal - 1));
  if (before !== undefined) {
    // Items of runs that were taken back may lie between; the point ends with the run, and so does its range.
    return { ...afterRun(reader, before, named), draft };
  }
  const first = run?.firstItem ?? item.index;
  const carries = reader.inherits || !onlyNotes(reader, 0, first);
  const point = { ...nowhere(reader), ...named, items: carries ? first : 0 };
  return { point, draft, sourceOutcome: null, carries, wholeRun: true };
}

function afterItem(reader: ThreadReader, item: TranscriptItem, run: RunFacts | undefined): ForkPoint {
  const end = run === undefined ? item.index + 1 : endOfRun(reader, run.ordinal);
  const items = afterResults(reader, item.index, run?.firstItem ?? 0, end);
  const named = { turnItemId: item.index, items };
  if (run !== undefined) {
    return items >= end ? afterRun(reader, run, named) : inside(reader, run, named);
  }
  const point = { ...nowhere(reader), ...named };
  return { point, draft: null, sourceOutcome: null, carries: true, wholeRun: false };
}

/** Index after the item, and after the results of all calls that were made with it or before it. */
function afterResults(reader: ThreadReader, index: number, first: number, end: number): number {
  const open = new Set<string>();
  let at = index;
  let item = reader.item(at);
  while (at > first && item?.kind !== "assistant") item = reader.item((at -= 1));
  if (item?.kind === "assistant") {
    for (const part of item.parts) if ("callId" in part) open.add(part.callId);
  }
  for (at += 1; at < end && (at <= index || open.size > 0); at += 1) {
    const next = reader.item(at);
    if (next?.kind === "tool_result") open.delete(next.callId);
  }
  return Math.max(at, index + 1);
}

/** Whether nothing but notes of the runtime lies in `[from, to)`; stops at the first other item. */
function onlyNotes(reader: ThreadReader, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) {
    if (reader.item(at)?.kind !== "context") return false;
  }
  return true;
}

/** The end of a run, whole. */
function afterRun(reader: ThreadReader, run: RunFacts, more: Partial<ContextSourcePoint> = {}): ForkPoint {
  const at = inside(reader, run, { items: endOfRun(reader, run.ordinal), ...more });
  return { ...at, wholeRun: true };
}

function inside(reader: ThreadReader, run: RunFacts, more: Partial<ContextSourcePoint>): ForkPoint {
  const native = run.providerThreadId === null ? undefined : reader.providerThread(run.providerThreadId);
  const outcome = outcomeOf(run);
  return {
    point: {
      ...nowhere(reader),
      runId: run.id,
      ordinal: run.ordinal,
      providerThreadRef: native?.nativeThreadRef ?? null,
      providerTurnRef: native === undefined ? null : (run.nativeTurns.at(-1) ?? null),
      ...more,
    },
    draft: null,
    sourceOutcome: outcome === "completed" ? null : outcome,
    carries: true,
    wholeRun: false,
  };
}

const nowhere = ({ threadId }: ThreadReader): ContextSourcePoint =>
  wholePoint(threadId, { items: 0, ordinal: 0 });

/** A run that is over and was not taken back. */
function usable(reader: ThreadReader, run: RunFacts, point: string): RunFacts {
  const details = { point, runId: run.id };
  if (isRolledBack(reader, run)) {
    throw new RejectedError(
      "SOURCE_POINT_ROLLED_BACK",
      `${point} lies in run ${run.ordinal}, which was rolled back; take a run that the thread still has.`,
      details,
    );
  }
  if (!isSettled(run) || run.completedAt === null) {
    throw unstable(
      `${point} lies in run ${run.ordinal}, which is not over; wait for its end, or take an earlier one.`,
      details,
    );
  }
  if (holdsOrdinal(reader.voided, run.ordinal)) {
    throw notFound(
      `${point} lies in run ${run.ordinal}, which no provider ever took; take the run before it.`,
      details,
    );
  }
  return run;
}

function known(run: RunFacts | undefined, reader: ThreadReader, point: string): RunFacts {
  if (run === undefined || run.threadId !== reader.threadId) throw unknown(reader, point);
  return run;
}

function unknown({ threadId }: ThreadReader, point: string): RejectedError {
  return notFound(
    `${threadId} has no point \`${point.slice(0, 80)}\`; name a run, a message or a checkpoint that it has.`,
    {
      threadId,
      point,
    },
  );
}

function notFound(text: string, details: { readonly [key: string]: string | number }): RejectedError {
  return new RejectedError("SOURCE_POINT_NOT_FOUND", text, details);
}

function unstable(text: string, details: { readonly [key: string]: string | number }): RejectedError {
  return new RejectedError("SOURCE_POINT_UNSTABLE", text, details);
}
