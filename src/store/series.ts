/** What every store holds the numbered records of a thread to: snapshots, compactions and its history. */
import { InvariantError, RejectedError } from "../protocol/errors.ts";
import type { CompactionRecord } from "../protocol/snapshot.ts";
import type { HistoryEntry } from "../protocol/thread.ts";

export function compactionNumber({ id }: CompactionRecord): number {
  return Number(id.slice("compaction-".length));
}

/** What is written once for ever was written again (lineage C11.7). */
export function writtenTwice(what: string, threadId: string): RejectedError {
  return new RejectedError(
    "THREAD_INVARIANT_VIOLATION",
    `The ${what} of ${threadId} is there already and never changes; read the thread again and write the next one.`,
    { threadId },
  );
}

export function sequenceTaken({ threadId, id, sequence }: HistoryEntry): InvariantError {
  return new InvariantError("Another history entry of the thread has this sequence.", {
    thread: threadId,
    id,
    sequence,
  });
}
