/**
 * The order of those who wait for a permit (EXE-3), in the shape that p-queue takes as its `queueClass`. Branches take
 * turns, and within a branch it is first come, first served. Nothing here knows of permits.
 *
 * - F1 The branch at the front of the rotation is served next; a branch that was served goes to its end, and so does one
 *   that was empty. A branch is therefore passed over at most as often as there are branches before it.
 * - F2 `promote` lets one be served before its turn (its turn counts as taken), for those ahead of it cannot go now.
 */
import type { Queue, QueueAddOptions } from "p-queue";
import { InvariantError } from "../protocol/errors.ts";

type RunFunction = () => Promise<unknown>;

/** What `add` of p-queue is given beside the task. */
export interface FairQueueOptions extends QueueAddOptions {
  /** Who waits; unique in the queue. */
  id?: string;
  readonly branch?: string;
}

interface Waiting {
  readonly id: string;
  readonly branch: Branch;
  readonly run: RunFunction;
}

interface Branch {
  readonly name: string;
  /** Oldest first. */
  readonly waiting: Waiting[];
}

/** Round-robin over branches, FIFO within each. */
export class FairQueue implements Queue<RunFunction, FairQueueOptions> {
  /** In rotation; a Map keeps insertion order, and a branch that is served is inserted anew. */
  readonly #branches = new Map<string, Branch>();
  readonly #byId = new Map<string, Waiting>();
  #promoted: Waiting | null = null;

  get size(): number {
    return this.#byId.size;
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  enqueue(run: RunFunction, options: Partial<FairQueueOptions> = {}): void {
    const { id, branch: name } = options;
    if (id === undefined || name === undefined || this.#byId.has(id)) {
      throw new InvariantError("Who waits needs a branch and an id that does not wait yet.", {
        id: id ?? null,
      });
    }
    const branch = this.#branches.get(name) ?? { name, waiting: [] };
    this.#branches.set(name, branch);
    const waiting = { id, branch, run };
    branch.waiting.push(waiting);
    this.#byId.set(id, waiting);
  }

  dequeue(): RunFunction | undefined {
    const next = this.#promoted ?? this.#front();
    if (next === undefined) return undefined;
    this.remove(next.id);
    // To the end of the rotation (F1), unless nobody of it waits any more.
    if (this.#branches.delete(next.branch.name) && next.branch.waiting.length > 0) {
      this.#branches.set(next.branch.name, next.branch);
    }
    return next.run;
  }

  /** Makes `id` the next that is dequeued. */
  promote(id: string): void {
    this.#promoted = this.#byId.get(id) ?? null;
  }

  /** Leaves the rotation as it is. Unknown ids change nothing. */
  remove(id: string): void {
    const waiting = this.#byId.get(id);
    if (waiting === undefined) return;
    this.#byId.delete(id);
    if (this.#promoted === waiting) this.#promoted = null;
    const { branch } = waiting;
    branch.waiting.splice(branch.waiting.indexOf(waiting), 1);
    if (branch.waiting.length === 0) this.#branches.delete(branch.name);
  }

  /** How many are served before it when all can go, from 0; null when it does not wait. */
  ahead(id: string): number | null {
    const waiting = this.#byId.get(id);
    if (waiting === undefined) return null;
    const round = waiting.branch.waiting.indexOf(waiting);
    let ahead = 0;
    let before = true;
    for (const branch of this.#branches.values()) {
      if (branch === waiting.branch) {
        ahead += round;
        before = false;
      } else {
        ahead += Math.min(branch.waiting.length, before ? round + 1 : round);
      }
    }
    return ahead;
  }

  /** Ids in the order in which they are served when all can go. */
  *order(): Generator<string> {
    for (let round = 0, more = true; more; round += 1) {
      more = false;
      for (const { waiting } of this.#branches.values()) {
        const next = waiting[round];
        if (next === undefined) continue;
        more = true;
        yield next.id;
      }
    }
  }

  /** p-queue asks for those of one priority; there are none but the default. */
  filter(options: Readonly<Partial<FairQueueOptions>>): RunFunction[] {
    return (options.priority ?? 0) === 0 ? [...this.#byId.values()].map(({ run }) => run) : [];
  }

  setPriority(id: string): void {
    throw new InvariantError("Turns are by branch; there are no priorities.", { id });
  }

  #front(): Waiting | undefined {
    for (const branch of this.#branches.values()) return branch.waiting[0];
    return undefined;
  }
}
