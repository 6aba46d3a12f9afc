/**
 * Tests over seeds. `COPPICE_SEEDS` says how many, `COPPICE_SEED` runs one again. A failure names its seed and shows what
 * was broken, the end of the event log, and the smallest schedule found that breaks the same promise.
 */
import { expect, test } from "vitest";
import { shrinkTrace } from "../../../src/testing/scheduler-shrink.ts";
import { type Life, scenarioOf, simulate } from "./simulate.ts";

export interface Share {
  /** This file's share of the seeds: those whose remainder by `of` is `part`. */
  readonly part: number;
  readonly of: number;
  /** Seeds a test. */
  readonly chunk: number;
}

const SHRINKING_RUNS = 120;

export function simulationSuite({ part, of, chunk }: Share): void {
  const seeds = seedsOf().filter((seed) => seed % of === part);
  for (let from = 0; from < seeds.length; from += chunk) {
    const share = seeds.slice(from, from + chunk);
    test(`REC-1 seeds ${share[0]} to ${share.at(-1)}: every promise holds after every commit`, () =>
      expectWhole(share));
  }
}

function seedsOf(): readonly number[] {
  const only = process.env["COPPICE_SEED"];
  if (only !== undefined) return [Number(only)];
  return Array.from({ length: Number(process.env["COPPICE_SEEDS"]) }, (_, index) => index + 1);
}

async function expectWhole(seeds: readonly number[]): Promise<void> {
  for (const seed of seeds) {
    const life = await simulate(scenarioOf(seed));
    if (life.broken !== null) expect.fail(await report(life));
  }
}

async function report(life: Life): Promise<string> {
  const { scenario, trace, broken, tail } = life;
  const { smallest, schedule } = await shrink(life);
  return [
    `Seed ${scenario.seed} breaks a promise; COPPICE_SEED=${scenario.seed} runs it again.`,
    broken,
    `scenario: ${JSON.stringify(scenario)}`,
    tail,
    `trace: ${JSON.stringify(trace)}`,
    `shrunk to ${smallest.scenario.acts} acts from outside and ${smallest.steps} steps, it breaks: ${smallest.broken}`,
    smallest.tail,
    `shrunk trace: ${JSON.stringify(schedule)}`,
  ].join("\n");
}

/** Fewer acts from outside first, then a schedule that seldom differs from "the oldest first". */
async function shrink(
  life: Life,
): Promise<{ readonly smallest: Life; readonly schedule: readonly number[] }> {
  const promise = promiseOf(life);
  let smallest = life;
  for (let acts = 1; acts < life.scenario.acts; acts *= 2) {
    const fewer = await simulate({ ...life.scenario, acts });
    if (promiseOf(fewer) !== promise) continue;
    smallest = fewer;
    break;
  }
  const { scenario } = smallest;
  const schedule = await shrinkTrace(
    smallest.trace,
    async (candidate) => {
      const again = await simulate(scenario, candidate);
      if (promiseOf(again) !== promise) return false;
      smallest = again;
      return true;
    },
    SHRINKING_RUNS,
  );
  return { smallest, schedule };
}

/** The contract's id, with which every fault begins. */
function promiseOf(life: Life): string | undefined {
  return life.broken?.split(" ")[0];
}
