/**
 * What runs beside the events of a turn and takes its time: a tool of ours, an answer, input that is put in. What it waits for
 * of others it waits for with `until`, so that nothing outlives the turn but a commit that is under way.
 */
import { InterruptedError } from "../protocol/errors.ts";

const IGNORE = (): void => undefined;

export class TurnJobs {
  /** Aborted with the run, and when nothing of the turn is wanted any more. */
  readonly until: AbortSignal;
  readonly #over = new AbortController();
  readonly #running = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | null = null;
  #ring = IGNORE;
  /** How many are over. */
  done = 0;

  constructor(signal: AbortSignal) {
    this.until = AbortSignal.any([signal, this.#over.signal]);
  }

  get size(): number {
    return this.#running.size;
  }

  /** One that the end of the turn has met is let go, whatever it says. */
  run(work: () => Promise<void>): void {
    const job: Promise<void> = work()
      .catch((error: unknown) => {
        if (!this.until.aborted) this.#failure ??= { error };
      })
      .then(() => {
        this.#running.delete(job);
        this.done += 1;
        this.#ring();
      });
    this.#running.add(job);
  }

  /** @throws what the first one has failed with. */
  throwIfFailed(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }

  /** Resolves with the next one that is over; for one listener, made anew each time. */
  next(): Promise<void> {
    return new Promise((resolve) => (this.#ring = resolve));
  }

  /** Nothing of the turn is wanted any more. Resolves when none is under way. */
  async end(): Promise<void> {
    this.#over.abort(new InterruptedError("RUN_INTERRUPTED", "the turn is over."));
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}
