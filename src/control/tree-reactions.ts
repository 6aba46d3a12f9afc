/** What memory does after a commit, as a tree asks for it; `reactions.ts` has what is done. */
import type { RunId, ThreadId } from "../protocol/ids.ts";
import type { Candidate, Tree } from "./tree.ts";

/** How a tree acts on what a commit asks for; `control` wires it, so that folders below need not know each other. */
export interface Reactions {
  wake(tree: Tree, candidate: Candidate): void;
  resume(tree: Tree, candidate: Candidate): void;
  stop(tree: Tree, threadId: ThreadId, runId: RunId, why: string): void;
  settled(tree: Tree, threadId: ThreadId, runId: RunId): void;
  closed(tree: Tree, threadId: ThreadId): void;
  deadlines(tree: Tree): void;
  threadWaits(tree: Tree): void;
  /** A session that was cut off has come to rest, a start or a job in a workspace is over: who waits for it is asked again. */
  drained(tree: Tree): void;
  /** A commit failed whose outcome is unknown: memory is held against the store again. */
  doubtful(tree: Tree): void;
  /** The runs a minute are used up: who is queued stays so until the minute allows (BUD-5). */
  rateReached(tree: Tree): void;
}
