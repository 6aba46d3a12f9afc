/**
 * What more of the same costs: CPU time of this thread, the least of several tries, so that a busy machine is no excuse. Few
 * and many are measured in turn, and it ends with the first try that is within the bound.
 */
import { time } from "./measure.ts";

const TIMES = 10;
const TRIES = 4;

/** Ten times the work within thirteen times the time: whatever is quadratic is beyond it. */
export const WITHIN = 13;

/** For what does not depend on how much there is: a walk over ten times as much costs ten times as much. */
export const ABOUT_THE_SAME = 3;

type Run = () => Promise<void> | void;

/** What `many` costs, relative to `few`. Both are to be long enough for the CPU clock. Without a bound all tries are made. */
export async function costRatio(few: Run, many: Run, bound = 0): Promise<number> {
  const least = { few: Infinity, many: Infinity };
  for (let at = 0; at < TRIES; at += 1) {
    least.few = Math.min(least.few, (await time(few)).cpuNs);
    least.many = Math.min(least.many, (await time(many)).cpuNs);
    if (least.many <= bound * least.few) break;
  }
  return least.many / least.few;
}

/**
 * What `TIMES` the work costs, relative to the work: both are done as often as makes them equally much, since the CPU clock
 * is too coarse for the small one alone.
 */
export async function growth(size: number, work: (size: number) => Promise<void> | void): Promise<number> {
  const small = async (): Promise<void> => {
    for (let at = 0; at < TIMES; at += 1) await work(size);
  };
  await work(size);
  return TIMES * (await costRatio(small, () => work(TIMES * size), WITHIN / TIMES));
}
