/**
 * How a workload is measured: repeated until it is long enough for the CPU clock, warmed up, and then timed with a forced
 * collection before each run. Every function answers plain numbers; the driver makes ratios of them.
 *
 * The CPU clock of a thread has a resolution of some milliseconds, so that CPU time is only given for runs that are longer
 * than `LONG_ENOUGH_MS`; shorter ones are given as the least wall time of several.
 */
export type Metrics = Readonly<Record<string, number>>;

/** One run of a workload: does `repeat` rounds of it and answers how many units of work that was. */
export type Workload = (repeat: number) => Promise<number> | number;

const LONG_ENOUGH_MS = 60;
const WARM_UP_MS = 250;
const TIMED_RUNS = 3;
const MOST_REPEATS = 1 << 16;

/** CPU time of the main thread and wall time, in nanoseconds a unit. */
export async function perUnit(run: Workload): Promise<Metrics> {
  const repeat = await calibrate(run);
  const cpu: number[] = [];
  const wall: number[] = [];
  for (let at = 0; at < TIMED_RUNS; at += 1) {
    const timed = await time(() => run(repeat));
    cpu.push(timed.cpuNs / timed.value);
    wall.push(timed.wallNs / timed.value);
  }
  return { ns: median(cpu), wallNs: median(wall) };
}

/** Doubles the repeats until a run uses enough of the CPU; what it runs meanwhile is the warm-up. */
async function calibrate(run: Workload): Promise<number> {
  const startedAt = performance.now();
  for (let repeat = 1; ;) {
    const before = process.threadCpuUsage();
    await run(repeat);
    const spent = process.threadCpuUsage(before);
    const took = (spent.user + spent.system) / 1000;
    const warm = performance.now() - startedAt >= WARM_UP_MS;
    if (repeat >= MOST_REPEATS || (took >= LONG_ENOUGH_MS && warm)) return repeat;
    if (took < LONG_ENOUGH_MS) repeat *= took < LONG_ENOUGH_MS / 8 ? 4 : 2;
  }
}

export interface Timed<T> {
  readonly value: T;
  readonly cpuNs: number;
  readonly wallNs: number;
}

/** Times one run, garbage of before collected. */
export async function time<T>(run: () => Promise<T> | T): Promise<Timed<T>> {
  collect();
  const cpu = process.threadCpuUsage();
  const wall = process.hrtime.bigint();
  const value = await run();
  const wallNs = Number(process.hrtime.bigint() - wall);
  const spent = process.threadCpuUsage(cpu);
  return { value, cpuNs: (spent.user + spent.system) * 1000, wallNs };
}

/** Bytes on the heap and beside it that are still reachable. */
export function heapBytes(): number {
  for (let at = 0; at < 4; at += 1) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

export function residentBytes(): number {
  collect();
  return process.memoryUsage().rss;
}

function collect(): void {
  const { gc } = globalThis as { gc?: () => void };
  gc?.();
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

export function percentile(values: readonly number[], at: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * at))] ?? Number.NaN;
}

/** The longest and the 99th percentile of how late a timer of `everyMs` comes while `body` runs. */
export async function timerDelays(
  everyMs: number,
  body: () => Promise<unknown>,
): Promise<{ readonly p99Ms: number; readonly longestMs: number; readonly tookMs: number }> {
  const late: number[] = [];
  let due = performance.now() + everyMs;
  let running = true;
  const tick = (): void => {
    const now = performance.now();
    late.push(Math.max(0, now - due));
    due = now + everyMs;
    if (running) setTimeout(tick, everyMs);
  };
  setTimeout(tick, everyMs);
  const startedAt = performance.now();
  await body();
  running = false;
  const tookMs = performance.now() - startedAt;
  // What never came while the body ran was late until now.
  late.push(Math.max(0, performance.now() - due));
  return { p99Ms: percentile(late, 0.99), longestMs: Math.max(...late), tookMs };
}

/** Random numbers that are the same in every contender. */
export function numbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}
