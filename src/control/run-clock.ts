/**
 * The wall clock of a run (RUN-3). It runs while the run is driven: time in a wait does not count.
 *
 * - K1 At the limit a request or a tool that is under way is cut off, and one wrap-up step is offered.
 * - K2 A wrap-up step that has not come to an end after `wrapUpMs` is ended from the store, whatever a provider does.
 */
import { InterruptedError } from "../protocol/errors.ts";
import type { RunId } from "../protocol/ids.ts";
import { isSettled } from "../protocol/run.ts";
import type { Timer } from "../platform/clock.ts";
import type { Session } from "../session/session.ts";
import { stopRun } from "./interrupt.ts";
import { retry } from "./store-retry.ts";
import type { Tree } from "./tree.ts";

export class RunClock implements Disposable {
  readonly #tree: Tree;
  readonly #session: Session;
  readonly #over = new AbortController();
  readonly #timers: Timer[] = [];
  /** What it stands still for, each beside the others. */
  #stops = 0;
  #stoppedAt = 0;
  #done = false;

  constructor(tree: Tree, session: Session) {
    this.#tree = tree;
    this.#session = session;
    this.#start();
  }

  /** Aborted at the limit. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  /** Stands still meanwhile, and counts it as waited: what is done there has no time limit of ours. */
  async stoppedDuring<T>(work: () => Promise<T>): Promise<T> {
    const { clock } = this.#tree.shared;
    if (this.#stops === 0) {
      this.#stoppedAt = clock.now();
      this.#cancel();
    }
    this.#stops += 1;
    try {
      return await work();
    } finally {
      this.#stops -= 1;
      if (this.#stops === 0 && !this.#done) {
        const waited = clock.now() - this.#stoppedAt;
        if (waited > 0) await this.#waited(waited);
        this.#start();
      }
    }
  }

  /** The run is driven no more. */
  [Symbol.dispose](): void {
    this.#done = true;
    this.#cancel();
  }

  #cancel(): void {
    for (const timer of this.#timers.splice(0)) timer.cancel();
  }

  #start(): void {
    const tree = this.#tree;
    const limit = tree.limits.runWallClockMs;
    // It may have been stopped again, or be over, by the time that a stop is stored.
    if (limit === null || this.#session.run === null || this.#stops > 0 || this.#done) return;
    const { id, reservedAt, waitedMs } = this.#session.run;
    const { clock } = tree.shared;
    // Where the wall clock was set back since, no run has more than it began with.
    const usedMs = Math.max(0, clock.now() - reservedAt - waitedMs);
    const leftMs = Math.max(0, limit - usedMs);
    this.#timers.push(
      clock.setTimer(leftMs, () => this.#over.abort(timeIsUp())),
      clock.setTimer(leftMs + tree.limits.wrapUpMs, () => endRun(tree, this.#session, id)),
    );
  }

  async #waited(ms: number): Promise<void> {
    if (this.#session.run === null) return;
    const { id } = this.#session.run;
    await this.#tree.transact(
      (tx) => {
        const run = tx.store.run(id);
        if (run === undefined || isSettled(run)) return null;
        const next = { ...run, waitedMs: run.waitedMs + ms };
        tx.store.putRun(next);
        return { run: next, agent: tx.agent(run.threadId) };
      },
      (value) => {
        if (value !== null) this.#session.absorb(value);
      },
    );
  }
}

/** Made when it is wanted: an error takes note of its stack, which costs more than the timer. */
function timeIsUp(): InterruptedError {
  return new InterruptedError("RUN_INTERRUPTED", "the time allowed for this run is used up.");
}

function endRun(tree: Tree, session: Session, id: RunId): void {
  if (tree.state !== "owned") return;
  tree
    .transact((tx) => {
      const run = tx.store.run(id);
      if (run === undefined || isSettled(run)) return;
      stopRun(tx, tx.agent(run.threadId), run, "time_limit", session.partialText);
    })
    .catch((error: unknown) => retry(tree, error, () => endRun(tree, session, id)));
}
