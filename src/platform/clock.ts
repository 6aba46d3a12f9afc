/**
 * Time, injected. Nothing outside this folder reads a clock or sets a timer, so that a virtual clock owns all waiting.
 */
export interface Timer {
  cancel(): void;
}

/** Time as the runtime sees it. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. */
  now(): number;
  /** Monotonic milliseconds; only differences mean something. */
  monotonic(): number;
  /** Calls back once after at least `ms`. Timers do not keep a process alive unless `keepAlive` is set. */
  setTimer(ms: number, callback: () => void, options?: { readonly keepAlive?: boolean }): Timer;
  /** Keeps the process alive until it is cancelled: somebody waits for what a timer alone would not keep. */
  hold?(): Timer;
  /** Runs a callback after the current one, with input and output served in between. */
  defer(callback: () => void): void;
}

/** The clock of this machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer(ms, callback, options) {
    // setTimeout overflows above 2^31-1 ms and would fire at once; a longer wait is taken in pieces.
    const LONGEST = 2_147_483_647;
    let left = ms;
    let handle: NodeJS.Timeout;
    const arm = (): void => {
      const piece = Math.min(left, LONGEST);
      left -= piece;
      handle = setTimeout(() => (left > 0 ? arm() : callback()), piece);
      if (options?.keepAlive !== true) handle.unref();
    };
    arm();
    return { cancel: () => clearTimeout(handle) };
  },
  hold() {
    const handle = setInterval(() => undefined, 2_147_483_647);
    return { cancel: () => clearInterval(handle) };
  },
  defer: (callback) => void setImmediate(callback),
};

/** Resolves after `ms`; rejects with the signal's reason when it is aborted first. */
export function delay(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason as Error);
      return;
    }
    const onAbort = (): void => {
      timer.cancel();
      reject(signal!.reason as Error);
    };
    const timer = clock.setTimer(
      ms,
      () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      },
      { keepAlive: true },
    );
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** Resolves when that has come to its end, however it did, and after `ms` at the latest. */
export async function within(clock: Clock, ms: number, what: Promise<unknown>): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = clock.setTimer(ms, over.resolve, { keepAlive: true });
  await Promise.race([what.catch(() => undefined), over.promise]);
  timer.cancel();
}
