/** Rates over a sliding minute (BUD-1, BUD-5): spawns and runs of a tree, as the times at which they happened. */
const WINDOW_MS = 60_000;

export type RateDecision =
  /** `times` is what is to be stored, the new time included. */
  | { readonly kind: "admitted"; readonly times: readonly number[] }
  /** `retryAfterMs` is null where waiting frees nothing, at a limit of zero. */
  | {
      readonly kind: "refused";
      readonly limit: number;
      readonly use: number;
      readonly retryAfterMs: number | null;
    };

/** Decides on one more event at `now`. Without a limit nothing is kept. */
export function admitRate(times: readonly number[], now: number, limit: number | null): RateDecision {
  if (limit === null) return { kind: "admitted", times: [] };
  const recent = recentTimes(times, now);
  if (recent.length < limit) return { kind: "admitted", times: [...recent, now] };
  const blocking = recent[recent.length - limit];
  return {
    kind: "refused",
    limit,
    use: recent.length,
    retryAfterMs: blocking === undefined ? null : blocking + WINDOW_MS - now,
  };
}

/** The times inside the window that ends at `now`, oldest first. */
export function recentTimes(times: readonly number[], now: number): readonly number[] {
  // The wall clock may have been set back: what seems to lie ahead counts as now, so that it leaves within a minute.
  return times
    .map((time) => Math.min(time, now))
    .filter((time) => now - time < WINDOW_MS)
    .toSorted((a, b) => a - b);
}
