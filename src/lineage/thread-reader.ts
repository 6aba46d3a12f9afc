/**
 * A thread as pure decisions read it: by run and by item, so that a thread of ten thousand items costs what a point
 * needs. The caller lays it over its store view.
 *
 * - J1 Items of a run are those from its `firstItem` to the next run's. Items before the first run are its beginnings:
 *   what a subagent was given of its parent.
 */
import type { CheckpointId, ProviderThreadId, RunId, ThreadId } from "../protocol/ids.ts";
import { holdsOrdinal, type OrdinalRange, without } from "../protocol/ordinals.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { RunOutcome, ThreadFacts } from "../protocol/thread.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import { lastOrdinal } from "./coverage.ts";

export type RunFacts = Pick<
  RunRecord,
  | "id"
  | "threadId"
  | "ordinal"
  | "status"
  | "firstItem"
  | "checkpoint"
  | "providerThreadId"
  | "nativeTurns"
  | "completedAt"
  | "nextContextRevision"
>;

export interface ThreadReader extends Pick<ThreadFacts, "rolledBack" | "voided"> {
  readonly threadId: ThreadId;
  /** How many runs and items it has. */
  readonly runs: number;
  readonly items: number;
  /** It is a fork that was given something by the thread it was forked from. */
  readonly inherits: boolean;
  run(id: RunId): RunFacts | undefined;
  runAt(ordinal: number): RunFacts | undefined;
  runOfCheckpoint(id: CheckpointId): RunFacts | undefined;
  item(index: number): TranscriptItem | undefined;
  providerThread(id: ProviderThreadId): ProviderThreadRecord | undefined;
}

/** Runs up to `ordinal` that were neither rolled back nor void. */
export function retainedUpTo(reader: ThreadReader, ordinal: number): readonly OrdinalRange[] {
  return ordinal < 1 ? [] : without(without([[1, ordinal]], reader.rolledBack), reader.voided);
}

/** The last retained run up to `ordinal`; 0 where there is none. */
export function lastRetained(reader: ThreadReader, ordinal: number): number {
  return lastOrdinal(retainedUpTo(reader, ordinal));
}

export function isRolledBack(reader: ThreadReader, run: RunFacts): boolean {
  return run.status === "rolled_back" || holdsOrdinal(reader.rolledBack, run.ordinal);
}

/** Index after the last item of the run with this ordinal. */
export function endOfRun(reader: ThreadReader, ordinal: number): number {
  return ordinal >= reader.runs ? reader.items : (reader.runAt(ordinal + 1)?.firstItem ?? reader.items);
}

/** The run that an item belongs to; undefined before the first one. */
export function runOfItem(reader: ThreadReader, item: TranscriptItem): RunFacts | undefined {
  if (item.runId !== null) return reader.run(item.runId);
  // No run has written it: the last one that began at or before it, by halving.
  let low = 1;
  let high = reader.runs;
  let found: RunFacts | undefined;
  while (low <= high) {
    const middle = Math.floor((low + high) / 2);
    const run = reader.runAt(middle);
    if (run !== undefined && run.firstItem <= item.index) {
      found = run;
      low = middle + 1;
    } else high = middle - 1;
  }
  return found;
}

/** How a run ended; null while it has not, and for one that was taken back. */
export function outcomeOf({ status }: Pick<RunFacts, "status">): RunOutcome | null {
  return status === "completed" || status === "failed" || status === "cancelled" || status === "interrupted"
    ? status
    : null;
}

/** The newest completed run with a checkpoint that is whole, at or before `ordinal` (C1.18). */
export function latestStable(reader: ThreadReader, upTo: number = reader.runs): RunFacts | undefined {
  for (const [from, to] of retainedUpTo(reader, upTo).toReversed()) {
    for (let ordinal = to; ordinal >= from; ordinal -= 1) {
      const run = reader.runAt(ordinal);
      if (run?.status === "completed" && hasCheckpoint(run)) return run;
    }
  }
  return undefined;
}

/** Its checkpoint was written, and the state of the workspace with it where that is captured. */
export function hasCheckpoint({ checkpoint }: Pick<RunFacts, "checkpoint">): boolean {
  return checkpoint !== null && checkpoint.workspace.status !== "missing";
}
