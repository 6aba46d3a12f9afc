/**
 * A clock whose time moves only when a test says so. Timers fire in order of their time, then of their setting. What is
 * deferred is either real (it runs by itself between two macrotasks, which is right for simple tests) or handed to whoever
 * drives the program, such as the seeded scheduler.
 *
 * - C1 Time never goes back, and a timer never sees a time before its own.
 * - C2 Between two timers everything that is ready has run: `advance` waits for the deferred work it knows of.
 */
import { z } from "zod";
import { check, functionOf, optionsOf } from "../platform/check.ts";
import { type Clock, systemClock } from "../platform/clock.ts";

/** A timer that has not fired. */
export interface PendingTimer {
  readonly at: number;
  readonly keepAlive: boolean;
}

/** A clock that moves only when told. */
export interface VirtualClock extends Clock {
  /** Moves time on, firing on the way what becomes due, each timer at its own time and after all before it has settled.
   * @throws RejectedError `INVALID_ARGUMENT` for milliseconds that are no number from 0. */
  advance(ms: number): Promise<void>;
  /** Moves to the next timer and fires it; false when there is none. */
  runNext(): Promise<boolean>;
  /** Timers that wait, in the order in which they will fire. */
  pending(): readonly PendingTimer[];
  /** Waits until nothing is left to run of what was deferred, unless that was handed to somebody else. */
  settle(): Promise<void>;
}

/** Where a virtual clock begins. */
export interface VirtualClockOptions {
  /** Wall clock at the start; the first of January 2026 unless given. */
  readonly start?: number;
  /** How deferred work runs; by the system unless given. */
  readonly defer?: (callback: () => void) => void;
}

/** The wall clock at which virtual time begins: 2026-01-01T00:00:00Z. */
export const VIRTUAL_START = 1_767_225_600_000;

/** Rounds in which nothing was left to run before all is taken as settled: a chain may hop over several. */
const QUIET_ROUNDS = 2;
const MOST_ROUNDS = 10_000;

/** Resolves after all that is ready has run: microtasks, input and output, and what was deferred before. */
export function turn(): Promise<void> {
  return new Promise((resolve) => systemClock.defer(resolve));
}

const optionsSchema = optionsOf<VirtualClockOptions>({
  start: z.number().optional(),
  defer: functionOf<(callback: () => void) => void>(
    "is no function; give one that takes a callback",
  ).optional(),
});
const advanceSchema = z.strictObject({ ms: z.number().nonnegative() });

/** Makes a clock that moves only when told. @throws RejectedError `INVALID_ARGUMENT`. */
export function virtualClock(options: VirtualClockOptions = {}): VirtualClock {
  check("virtualClock", optionsSchema, options);
  const { start = VIRTUAL_START, defer = (callback) => systemClock.defer(callback) } = options;
  const timers = new TimerQueue<SetTimer>();
  const handedOut = options.defer !== undefined;
  let elapsed = 0;
  let deferred = 0;
  let atOneTime = 0;
  const settle = async (): Promise<void> => {
    for (let round = 0, quiet = 0; quiet < QUIET_ROUNDS; round += 1) {
      if (round === MOST_ROUNDS) throw new Error("Deferred work never ends: each callback defers another.");
      await turn();
      quiet = deferred === 0 ? quiet + 1 : 0;
    }
  };
  /** Fires the first timer that is due by then; false when there is none. */
  const fire = async (by: number): Promise<boolean> => {
    const [next] = timers.all();
    if (next === undefined || next.at > by) return false;
    timers.remove(next);
    atOneTime = next.at > start + elapsed ? 1 : atOneTime + 1;
    if (atOneTime > MOST_ROUNDS) throw new Error(`${MOST_ROUNDS} timers at one time; one re-arms itself.`);
    elapsed = Math.max(elapsed, next.at - start);
    next.callback();
    await settle();
    return true;
  };
  return {
    now: () => start + elapsed,
    monotonic: () => elapsed,
    setTimer: (ms, callback, { keepAlive = false } = {}) =>
      timers.add({ at: start + elapsed + Math.max(0, ms), callback, keepAlive }),
    defer(callback) {
      // What somebody else runs, that somebody waits for; a clock that waited too would wait for ever.
      if (handedOut) {
        defer(callback);
        return;
      }
      deferred += 1;
      defer(() => {
        deferred -= 1;
        callback();
      });
    },
    async advance(ms) {
      check("advance", advanceSchema, { ms });
      const until = elapsed + ms;
      await settle();
      while (await fire(start + until));
      // Somebody else may have advanced the same clock further meanwhile.
      elapsed = Math.max(elapsed, until);
    },
    async runNext() {
      await settle();
      return fire(Infinity);
    },
    pending: () => timers.all().map(({ at, keepAlive }) => ({ at, keepAlive })),
    settle,
  };
}

interface SetTimer extends PendingTimer {
  readonly callback: () => void;
}

/** Timers by time and, at one time, by the order in which they were set. */
export class TimerQueue<T extends { readonly at: number }> {
  readonly #timers: T[] = [];

  add(timer: T): { cancel(): void } {
    const index = this.#timers.findLastIndex((other) => other.at <= timer.at) + 1;
    this.#timers.splice(index, 0, timer);
    return { cancel: () => this.remove(timer) };
  }

  /** In the order in which they become due. */
  all(): readonly T[] {
    return this.#timers;
  }

  remove(timer: T): void {
    const index = this.#timers.indexOf(timer);
    if (index !== -1) this.#timers.splice(index, 1);
  }
}
