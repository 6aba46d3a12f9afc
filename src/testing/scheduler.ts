/**
 * A seeded scheduler: it owns the order in which everything that waits settles. Code under test is given clocks, providers,
 * tools and stores whose every wait is a choice here; the scheduler lets all that is ready run, takes one of the choices, and
 * goes round. One seed is one schedule; a schedule is a list of choices that can be replayed and shrunk.
 *
 * - K1 Between two choices all microtasks have run: what is left is waiting for a choice, for time, or for ever.
 * - K2 Time moves only when nothing else can happen, or, with `earlyTimers`, when the seed says that the work is slow.
 * - K3 The same seed, or the same trace, on the same program takes the same choices.
 * - K4 A killed process never runs again; a frozen one keeps its choices and timers until it is thawed.
 */
import { z } from "zod";
import { check, functionOf, optionsOf } from "../platform/check.ts";
import { seededRandom } from "../platform/ids.ts";
import { createProcess, type Choice, type SimulatedProcess, type SetTimer } from "./scheduler-process.ts";
import { TimerQueue, turn, VIRTUAL_START } from "./virtual-clock.ts";

/** What a seeded scheduler is made with. */
export interface SchedulerOptions {
  /** Choices to take in place of the seed's, in order; behind their end, always the oldest. Wants the same `earlyTimers`. */
  readonly replay?: readonly number[];
  /** How likely it is, at each choice, that time moves to the next timer although work is ready; 0 unless given. */
  readonly earlyTimers?: number;
  /** Wall clock at the start. */
  readonly start?: number;
}

export interface RunOptions {
  /** Ends the run when true; looked at before each choice. */
  readonly until?: () => boolean;
  /** Virtual time after which the run ends. */
  readonly forMs?: number;
  /** Choices after which it has failed; 100,000 unless given. */
  readonly maxSteps?: number;
}

export interface RunReport {
  /** `quiet`: nothing can ever happen by itself. `time`: `forMs` is over. */
  readonly end: "until" | "quiet" | "time";
  readonly steps: number;
}

/** Owns the order in which store, providers, tools and clock settle. */
export interface SeededScheduler {
  readonly seed: number;
  /** Choices taken so far. */
  readonly steps: number;
  /** Something that lives under the scheduler: a runtime, a store, the user. One name is one process. */
  process(name: string): SimulatedProcess;
  /** @throws Error with the seed and what waits, when `until` did not come true or the run did not end. */
  run(options?: RunOptions): Promise<RunReport>;
  /** Runs until a promise settles, and returns or throws what it did. */
  complete<T>(promise: Promise<T>, options?: Omit<RunOptions, "until">): Promise<T>;
  /** Milliseconds of virtual time since the start. */
  elapsed(): number;
  /** What may happen next, by label. */
  enabled(): readonly string[];
  /** The choices where there was one, for `replay`. */
  trace(): readonly number[];
  /** Labels of what has happened, the newest 2,000. */
  history(): readonly string[];
  /** Seed, trace, what waits and what happened last, for messages. */
  dump(): string;
}

const MAX_STEPS = 100_000;
const HISTORY = 2000;

const schedulerArguments = z.strictObject({
  seed: z.number(),
  options: optionsOf<SchedulerOptions>({
    replay: z.array(z.number().int().nonnegative()).optional(),
    earlyTimers: z.number().min(0).max(1).optional(),
    start: z.number().optional(),
  }),
});
const runSchema = optionsOf<RunOptions>({
  until: functionOf<() => boolean>("is no function").optional(),
  forMs: z.number().nonnegative().optional(),
  maxSteps: z.number().int().positive().optional(),
});

/** Makes a scheduler that decides every interleaving by its seed. @throws RejectedError `INVALID_ARGUMENT`. */
export function seededScheduler(seed: number, options: SchedulerOptions = {}): SeededScheduler {
  check("seededScheduler", schedulerArguments, { seed, options });
  const { replay, earlyTimers = 0, start = VIRTUAL_START } = options;
  const random = seededRandom(seed);
  const choices: Choice[] = [];
  const timers = new TimerQueue<SetTimer>();
  const processes = new Map<string, SimulatedProcess>();
  const trace: number[] = [];
  const history: string[] = [];
  let elapsed = 0;
  let steps = 0;

  const runs = ({ owner }: Choice): boolean => owner.state() === "running";
  const futureTimer = (): SetTimer | undefined =>
    timers.all().find((timer) => timer.at > start + elapsed && runs(timer));
  const enabled = (): Choice[] => [
    ...choices.filter(runs),
    ...timers.all().filter((timer) => timer.at <= start + elapsed && runs(timer)),
  ];

  /** Index of the choice to take; `count` itself stands for moving time, where that is offered. */
  const choose = (count: number, mayMove: boolean): number => {
    const options = mayMove ? count + 1 : count;
    if (options === 1) return 0;
    let index: number;
    if (replay !== undefined) {
      // A trace that was cut or changed may name a choice that is not there; it then means one that is.
      index = (replay[trace.length] ?? 0) % options;
    } else if (mayMove && random.fraction() < earlyTimers) {
      index = count;
    } else {
      index = Math.floor(random.fraction() * count);
    }
    trace.push(index);
    return index;
  };

  const note = (label: string): void => {
    steps += 1;
    if (history.length === HISTORY) history.shift();
    history.push(label);
  };

  const moveTo = (at: number): void => {
    elapsed = at - start;
    note(`time ${elapsed} ms`);
  };

  const take = (choice: Choice): void => {
    const index = choices.indexOf(choice);
    if (index === -1) timers.remove(choice as SetTimer);
    else choices.splice(index, 1);
    note(choice.label);
    choice.callback();
  };

  const waiting = (): string[] => enabled().map(({ label }) => label);

  const dump = (): string =>
    [
      `seed ${seed}, ${steps} steps, ${elapsed} ms of virtual time`,
      `ready: ${waiting().join("; ") || "nothing"}`,
      `timers: ${
        timers
          .all()
          .slice(0, 20)
          .map(({ label, at }) => `${label} at ${at - start} ms`)
          .join("; ") || "none"
      }`,
      `happened last: ${history.slice(-20).join("; ")}`,
      `trace: ${JSON.stringify(trace)}`,
    ].join("\n");

  const run = async (bounds: RunOptions = {}): Promise<RunReport> => {
    check("run", runSchema, bounds);
    const { until, forMs = Infinity, maxSteps = MAX_STEPS } = bounds;
    const first = steps;
    const last = start + elapsed + forMs;
    const ended = (end: RunReport["end"]): RunReport => {
      if (until !== undefined && end !== "until") {
        throw new Error(`What was awaited did not happen; the run ended by \`${end}\`.\n${dump()}`);
      }
      return { end, steps: steps - first };
    };
    for (;;) {
      await turn();
      if (until?.() === true) return ended("until");
      if (steps - first >= maxSteps) throw new Error(`The run did not end in ${maxSteps} steps.\n${dump()}`);
      const ready = enabled();
      const timer = futureTimer();
      const mayMove = timer !== undefined && timer.at <= last;
      if (ready.length > 0) {
        const choice = ready[choose(ready.length, mayMove && earlyTimers > 0)];
        if (choice === undefined) moveTo(timer!.at);
        else take(choice);
      } else if (mayMove) {
        moveTo(timer.at);
      } else if (timer === undefined) {
        return ended("quiet");
      } else {
        elapsed = last - start;
        return ended("time");
      }
    }
  };

  return {
    seed,
    get steps() {
      return steps;
    },
    process(name) {
      let process = processes.get(name);
      if (process === undefined) {
        process = createProcess(name, { choices, timers, now: () => start + elapsed, start });
        processes.set(name, process);
      }
      return process;
    },
    run,
    async complete(promise, bounds) {
      let settled = false;
      const mark = (): void => {
        settled = true;
      };
      promise.then(mark, mark);
      await run({ ...bounds, until: () => settled });
      return promise;
    },
    elapsed: () => elapsed,
    enabled: waiting,
    trace: () => [...trace],
    history: () => [...history],
    dump,
  };
}
