/**
 * Waits for a provider no longer than it may take, and ends its request when nobody wants the answer any more.
 *
 * - A wait ends with the reason of the caller's signal as soon as that is aborted, whatever the request does (P3).
 * - Without an answer within the time allowed, the wait ends as stalled and the request is aborted.
 * - Given back, it listens to nothing and the request is aborted, so that no connection outlives its step.
 */
import type { Clock } from "../../platform/clock.ts";

/** A request's own signal, and waits under it. */
export interface Patience extends Disposable {
  readonly signal: AbortSignal;
  wait<T>(pending: PromiseLike<T>, milliseconds: number): Promise<T>;
}

/** @param stalled makes the error of a wait that took too long. */
export function createPatience(clock: Clock, caller: AbortSignal, stalled: () => Error): Patience {
  const request = new AbortController();
  let giveUp: ((reason: unknown) => void) | undefined;
  const end = (reason: unknown): void => {
    // The wait is settled before the request hears of it, so that its own abort error never wins.
    giveUp?.(reason);
    request.abort(reason);
  };
  const onAbort = (): void => end(caller.reason);
  if (caller.aborted) onAbort();
  else caller.addEventListener("abort", onAbort, { once: true });
  return {
    signal: request.signal,
    async wait(pending, milliseconds) {
      const given = Promise.withResolvers<never>();
      // The end may have come between two waits.
      if (request.signal.aborted) given.reject(request.signal.reason);
      giveUp = given.reject;
      const timer = clock.setTimer(milliseconds, () => end(stalled()), { keepAlive: true });
      try {
        return await Promise.race([given.promise, pending]);
      } finally {
        timer.cancel();
        giveUp = undefined;
      }
    },
    [Symbol.dispose]() {
      caller.removeEventListener("abort", onAbort);
      request.abort();
    },
  };
}
