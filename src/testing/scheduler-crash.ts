/**
 * Named points at which a program may crash. A first run counts how often each point is passed; every pair of a point and a
 * visit is then a crash of its own to try. What a crash is, killing a simulated process or the real one, is handed in.
 */

/** One visit of a named point. */
export interface CrashPoint {
  readonly name: string;
  /** From 1. */
  readonly visit: number;
}

/** Named points of a program at which it can be made to crash. */
export interface CrashPoints {
  /** Passes a point; where it crashes, it never resolves, since nothing after it may run. */
  reach(name: string): Promise<void>;
  /** Crashes at this visit of the point; only the last that was armed counts. */
  arm(point: CrashPoint): void;
  /** Every point and visit that was passed, in order. */
  passed(): readonly CrashPoint[];
  /** Where it has crashed. */
  crashed(): CrashPoint | null;
}

/**
 * Points are named by what stands beside them, `commit:before` and `commit:after`: nothing of the operation has happened yet,
 * or all of it and nobody was told.
 */
export function crashPoints(crash: (point: CrashPoint) => void): CrashPoints {
  const visits = new Map<string, number>();
  const passed: CrashPoint[] = [];
  let armed: CrashPoint | null = null;
  let crashed: CrashPoint | null = null;
  return {
    async reach(name) {
      // Once crashed, whoever still comes by belongs to the dead.
      if (crashed !== null) await never();
      const visit = (visits.get(name) ?? 0) + 1;
      visits.set(name, visit);
      passed.push({ name, visit });
      if (armed?.name !== name || armed.visit !== visit) return;
      crashed = { name, visit };
      crash(crashed);
      await never();
    },
    arm(point) {
      armed = point;
    },
    passed: () => [...passed],
    crashed: () => crashed,
  };
}

function never(): Promise<never> {
  return new Promise(() => {});
}
