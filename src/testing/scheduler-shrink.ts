/**
 * Makes a failing schedule small: fewer choices that differ from "the oldest first", so that what is left is what matters.
 * Zeros at the end are dropped, since behind its end a trace always takes the oldest choice.
 */

/**
 * The smallest trace found that still fails. `fails` runs the program afresh under `seededScheduler(seed, { replay: trace })`
 * and says whether it failed; it is called at most `maxRuns` times, 500 unless given.
 */
export async function shrinkTrace(
  trace: readonly number[],
  fails: (trace: readonly number[]) => Promise<boolean>,
  maxRuns: number = 500,
): Promise<readonly number[]> {
  let best = trimmed(trace);
  let runs = 0;
  const better = async (candidate: readonly number[]): Promise<boolean> => {
    const next = trimmed(candidate);
    if (runs >= maxRuns || weight(next) >= weight(best)) return false;
    runs += 1;
    if (!(await fails(next))) return false;
    best = next;
    return true;
  };
  // Halves, quarters … are set to zero; at each size again for as long as that helps.
  for (let size = best.length; size >= 1; size = Math.floor(size / 2)) {
    let helped = true;
    while (helped) {
      helped = false;
      // From the end: a choice that is set to zero may change the meaning of those behind it.
      for (let from = best.length - size; from > -size; from -= size) {
        const zeroed = best.map((index, at) => (at >= from && at < from + size ? 0 : index));
        if (await better(zeroed)) helped = true;
      }
    }
  }
  return best;
}

function trimmed(trace: readonly number[]): readonly number[] {
  return trace.slice(0, trace.findLastIndex((index) => index !== 0) + 1);
}

/** Choices other than the oldest. */
function weight(trace: readonly number[]): number {
  return trace.filter((index) => index !== 0).length;
}
