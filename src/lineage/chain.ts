/**
 * The line of threads behind a fork, each up to the point at which the next one left it (lineage C5.22, C15.7). Nothing
 * is copied into a fork, so whoever shows or tells what it inherits walks this line.
 *
 * - W1 A segment ends at its cut: what its thread did later is not in it.
 * - W2 The walk follows the thread that owns the point, which is not always the parent: a fork taken from an ancestor's
 *   entry goes on with that ancestor.
 * - W3 A line that comes back to a thread is refused, wherever the loop begins.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { ContextSourcePoint } from "../protocol/transfer.ts";

/** Of a thread: the point that it was forked from; null for one that was not; undefined for one that is not there. */
export type OriginOf = (id: ThreadId) => ContextSourcePoint | null | undefined;

export interface Segment {
  readonly threadId: ThreadId;
  /** Where it ends: the point that the next thread of the line was forked from. */
  readonly until: ContextSourcePoint;
  /** The next thread of the line. */
  readonly child: ThreadId;
}

export interface Chain {
  /** Oldest first. */
  readonly segments: readonly Segment[];
  /** False where older ones were left out, because the walk was only to go so far. */
  readonly complete: boolean;
}

/**
 * The ancestors of a thread, at most `depth` of the nearest.
 * @throws RejectedError `LINEAGE_CYCLE`, or `THREAD_NOT_FOUND` for an ancestor that is gone.
 */
export function ancestorsOf(threadId: ThreadId, originOf: OriginOf, depth: number): Chain {
  const segments: Segment[] = [];
  const seen = new Set([threadId]);
  let child = threadId;
  for (;;) {
    const until = originOf(child);
    if (until === undefined) throw missing(child);
    if (until === null) return { segments: segments.toReversed(), complete: true };
    if (seen.has(until.threadId)) throw cycle(threadId, until.threadId);
    if (segments.length >= depth) return { segments: segments.toReversed(), complete: false };
    seen.add(until.threadId);
    segments.push({ threadId: until.threadId, until, child });
    child = until.threadId;
  }
}

/**
 * Asked before a fork of `source` is made: whether the new thread would have no more than `depth` ancestors.
 * @throws RejectedError `LINEAGE_DEPTH_EXCEEDED`, and as `ancestorsOf`.
 */
export function requireDepth(source: ThreadId, originOf: OriginOf, depth: number): void {
  const { segments, complete } = ancestorsOf(source, originOf, depth);
  if (complete && segments.length < depth) return;
  throw new RejectedError(
    "LINEAGE_DEPTH_EXCEEDED",
    `${source} is the end of a line of ${depth} forks, which is as long as one may be; fork an earlier thread of it instead.`,
    { threadId: source, limit: depth },
  );
}

function cycle(threadId: ThreadId, again: ThreadId): RejectedError {
  return new RejectedError(
    "LINEAGE_CYCLE",
    `${threadId} would descend from ${again} twice; nothing was read of it. Restore the records of its forks from a copy.`,
    { threadId, again },
  );
}

function missing(threadId: ThreadId): RejectedError {
  return new RejectedError(
    "THREAD_NOT_FOUND",
    `${threadId}, which a fork descends from, is not in this store; restore it from a copy.`,
    { threadId },
  );
}
