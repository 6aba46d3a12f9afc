/** Runs of one tree that wait for reservations of a budget, with their sessions and without their permits (BUD-2). */
import type { ThreadId } from "../protocol/ids.ts";
import type { Releases } from "./budget-scopes.ts";
import type { Candidate } from "./tree.ts";

export class HeldRuns {
  readonly #held = new Map<ThreadId, Candidate>();
  readonly #releases: Releases;
  readonly #resume: (candidate: Candidate) => void;

  constructor(releases: Releases, resume: (candidate: Candidate) => void) {
    this.#releases = releases;
    this.#resume = resume;
  }

  has(threadId: ThreadId): boolean {
    return this.#held.has(threadId);
  }

  /** `seen` is what had been given back when the run was refused: what came back since is not missed. */
  add(candidate: Candidate, seen: number): void {
    this.#held.set(candidate.threadId, candidate);
    this.#releases.wait(this.#resumeAll);
    if (this.#releases.count !== seen) this.#resumeAll();
  }

  /** Its run is over, or not in memory any more: there is nothing to come back to. */
  drop(threadId: ThreadId): void {
    this.#held.delete(threadId);
  }

  #resumeAll = (): void => {
    const held = [...this.#held.values()];
    this.#held.clear();
    for (const candidate of held) this.#resume(candidate);
  };
}
