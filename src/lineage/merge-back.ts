/**
 * What a fork brings back into the thread that it was forked from (lineage C7): from where to where, what of that the
 * target's provider thread was not told before, and which files were changed on both sides.
 *
 * - M1 The base is the point of the fork for every merge-back of it; what was delivered before is left out at delivery,
 *   when the provider thread is known (C7.6).
 * - M2 Runs and items are the fork's own. What it inherited is its parent's already.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { RunId, ThreadId } from "../protocol/ids.ts";
import type { JsonObject } from "../protocol/json.ts";
import { type OrdinalRange, without } from "../protocol/ordinals.ts";
import type { ThreadFacts } from "../protocol/thread.ts";
import type { ContextSourcePoint } from "../protocol/transfer.ts";
import type { Knowing, Telling } from "./coverage.ts";
import { forkPoint, type ForkPoint } from "./fork-points.ts";
import { endOfRun, isRolledBack, latestStable, retainedUpTo, type ThreadReader } from "./thread-reader.ts";

export interface MergeBackPoints {
  /** Where the fork left its parent. */
  readonly basePoint: ContextSourcePoint;
  readonly sourcePoint: ContextSourcePoint;
}

/**
 * From where to where a fork is merged back: up to the run that is named, or its latest stable one.
 * @throws RejectedError `MERGE_BACK_NOT_A_FORK`, `MERGE_BACK_SOURCE_UNSTABLE`, or what `forkPoint` refuses.
 */
export function mergeBackPoints(
  fork: {
    readonly facts: Pick<ThreadFacts, "lineage" | "forkedFrom">;
    readonly reader: ThreadReader;
  },
  target: ThreadId,
  named: RunId | null,
): MergeBackPoints {
  const { facts, reader } = fork;
  const { threadId } = reader;
  const { parentThreadId, relationshipToParent } = facts.lineage;
  if (relationshipToParent !== "fork" || parentThreadId !== target || facts.forkedFrom === null) {
    const whose = parentThreadId === null ? "it has no parent" : `its parent is ${parentThreadId}`;
    throw new RejectedError(
      "MERGE_BACK_NOT_A_FORK",
      `${threadId} is no fork of ${target} (${whose}${relationshipToParent === "subagent" ? ", as a subagent" : ""}); merge a fork into the thread it was forked from.`,
      { fork: threadId, target },
    );
  }
  return { basePoint: facts.forkedFrom.point, sourcePoint: sourceOf(reader, named).point };
}

function sourceOf(reader: ThreadReader, named: RunId | null): ForkPoint {
  if (named === null) {
    if (latestStable(reader) !== undefined) return forkPoint(reader, { kind: "latest_stable" });
    throw unstable(
      `${reader.threadId} has no completed run yet, so there is nothing to merge back; wait for one.`,
      { fork: reader.threadId },
    );
  }
  const run = reader.run(named);
  // Rolled back and unknown runs are refused as points of a fork are.
  if (run !== undefined && run.status !== "completed" && !isRolledBack(reader, run)) {
    throw unstable(
      `Run ${run.ordinal} of ${reader.threadId} is ${run.status} and not completed; name a completed one, or none for the latest.`,
      { fork: reader.threadId, runId: named, status: run.status },
    );
  }
  return forkPoint(reader, { kind: "run", runId: named });
}

function unstable(text: string, details: JsonObject): RejectedError {
  return new RejectedError("MERGE_BACK_SOURCE_UNSTABLE", text, details);
}

export interface MergeBackDelta {
  /** Runs of the fork that are to be told. */
  readonly runs: readonly OrdinalRange[];
  /** Indexes of its items, as ranges `[from, to)`. */
  readonly items: readonly (readonly [number, number])[];
}

/** What a merge-back has to tell the provider thread that takes it in; null for one that is new. */
export function mergeBackDelta(
  reader: ThreadReader,
  sourcePoint: Pick<ContextSourcePoint, "ordinal" | "items">,
  target: Knowing | null,
  handoffs: readonly Telling[],
): MergeBackDelta {
  // Its text stands in the conversation also where a rollback has made it void that was undone.
  const ids = new Set(target?.handoffIds);
  const again = handoffs.flatMap(({ id, payload }) => (ids.has(id) ? (payload?.mergeBackIds ?? []) : []));
  const inside = ids.union(new Set(again));
  const told = handoffs.filter(
    ({ id, deliveredAt, sourceThreadId }) =>
      inside.has(id) && deliveredAt !== null && sourceThreadId === reader.threadId,
  );
  const runs = retainedUpTo(reader, sourcePoint.ordinal);
  const items = runs.flatMap(([from, to]): OrdinalRange[] => {
    const first = reader.runAt(from)?.firstItem ?? 0;
    const end = to === sourcePoint.ordinal ? sourcePoint.items : endOfRun(reader, to);
    return end > first ? [[first, end - 1]] : [];
  });
  const toldItems = told.flatMap(({ coveredRanges }) =>
    coveredRanges.flatMap(([from, to]): OrdinalRange[] => (to > from ? [[from, to - 1]] : [])),
  );
  return {
    runs: without(
      runs,
      told.flatMap(({ coveredRuns }) => coveredRuns),
    ),
    items: without(items, toldItems).map(([from, last]) => [from, last + 1]),
  };
}
