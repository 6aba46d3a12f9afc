/**
 * Callers who wait and may leave: what `signal` means, of every call that takes one.
 *
 * - A1 Aborted before the first commit of what was asked for, nothing is done.
 * - A2 Aborted later, only the caller stops waiting: what is committed holds, and what is under way goes on.
 * - A3 Either way the call rejects at once, with the signal's reason as it is; no listener stays behind.
 */

/** What every call takes that is waited for. */
export interface CallOptions {
  /**
   * Aborted before the first commit of what was asked for: nothing is done. Aborted later: only this wait ends, and what was
   * committed holds. The call rejects with the signal's reason.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Called in the first commit of a command, before anything else; ends one whose caller has left before. */
export type Begin = () => void;

/** Nobody waits for this error: its caller was told the signal's reason, which is no word of the store and none of ours. */
export class CallerLeft extends Error {}

/** For one first commit; what is done in several by themselves has one for each. */
export function beginUnless(signal: AbortSignal | undefined): Begin {
  let begun = false;
  return () => {
    if (signal?.aborted === true && !begun)
      throw new CallerLeft("Whoever asked for this has left; nothing was done.");
    begun = true;
  };
}

/** @throws the signal's reason; else as `act`. */
export async function abortable<T>(
  signal: AbortSignal | undefined,
  act: (begin: Begin) => Promise<T>,
): Promise<T> {
  if (signal === undefined) return act(() => undefined);
  signal.throwIfAborted();
  const begin = beginUnless(signal);
  const left = Promise.withResolvers<never>();
  const leave = (): void => left.reject(signal.reason as Error);
  signal.addEventListener("abort", leave, { once: true });
  try {
    return await Promise.race([act(begin), left.promise]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}
