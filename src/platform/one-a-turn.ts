/**
 * Synchronous work that takes its time, in the order in which it was asked for: one piece a turn of the event loop, so that
 * timers, input and output are served between two of them, however many are asked for at once.
 */
import type { Clock } from "./clock.ts";

export class OneATurn {
  readonly #clock: Pick<Clock, "defer">;
  #last: Promise<unknown> = Promise.resolve();

  constructor(clock: Pick<Clock, "defer">) {
    this.#clock = clock;
  }

  /** Rejects with what the piece throws, which is in nobody else's way. */
  run<T>(piece: () => T): Promise<T> {
    const turn = this.#last.then(() => new Promise<void>((resolve) => this.#clock.defer(resolve)));
    const done = turn.then(piece);
    this.#last = done.catch(() => undefined);
    return done;
  }
}
