/** The table of goals from the lines of all rounds, for people and for `results.json`. */
import { arch, cpus, release, totalmem } from "node:os";
import { type Goal, GOALS } from "./goals.ts";
import { median } from "./lib/measure.ts";
import { ratioOf, type RoundLine } from "./workloads.ts";

export interface Judged {
  readonly id: string;
  readonly what: string;
  readonly goal: string;
  readonly measured: number;
  readonly met: boolean;
  /** How often the goal fits between what is measured and it; 1 or less where it is met. */
  readonly off: number;
  readonly because: string;
}

export interface Results {
  readonly machine: Readonly<Record<string, string | number>>;
  readonly command: string;
  readonly rounds: number;
  readonly goals: readonly Judged[];
  /** Medians over the rounds, by workload, contender and metric. */
  readonly figures: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, number>>>>>>;
  readonly errors: readonly string[];
}

export function judge(lines: readonly RoundLine[], command: string): Results {
  return {
    machine: {
      node: process.version,
      cpu: cpus()[0]?.model ?? "unknown",
      cores: cpus().length,
      memoryGib: Math.round(totalmem() / 2 ** 30),
      system: `${process.platform} ${release()} ${arch()}`,
      load: round(median(lines.map(({ load }) => load))),
    },
    command,
    rounds: new Set(lines.map((line) => line.round)).size,
    goals: GOALS.flatMap((goal) => judgeOne(goal, lines) ?? []),
    figures: medians(lines),
    errors: [
      ...new Set(
        lines.flatMap(({ workload, contender, error }) =>
          error === null ? [] : [`${workload}, ${contender}: ${error}`],
        ),
      ),
    ],
  };
}

function judgeOne(goal: Goal, lines: readonly RoundLine[]): Judged | null {
  const ratio = ratioOf(lines, goal.figure, goal.against);
  if (Number.isNaN(ratio)) return null;
  const measured = goal.kind === "speed" ? 1 / ratio : ratio;
  const off = goal.atMost === undefined ? goal.atLeast! / measured : measured / goal.atMost;
  return {
    id: goal.id,
    what: goal.what,
    goal: goal.atMost === undefined ? `>= ${short(goal.atLeast!)}` : `<= ${short(goal.atMost)}`,
    measured: round(measured),
    met: off <= 1,
    off: round(off),
    because: off <= 1 ? "" : goal.because,
  };
}

function medians(lines: readonly RoundLine[]): Results["figures"] {
  const figures: Record<string, Record<string, Record<string, number>>> = {};
  for (const { workload, contender, metrics } of lines) {
    const ofContender = ((figures[workload] ??= {})[contender] ??= {});
    for (const metric of Object.keys(metrics)) {
      ofContender[metric] = round(
        median(
          lines.flatMap((line) =>
            line.workload === workload && line.contender === contender ? (line.metrics[metric] ?? []) : [],
          ),
        ),
      );
    }
  }
  return figures;
}

/** Markdown, so that it can be taken over into the README. */
export function table(results: Results): string {
  const rows = results.goals.map(
    ({ id, what, goal, measured, met, off, because }) =>
      `| ${id} | ${what} | ${goal} | ${short(measured)} | ${met ? "met" : `${short(off)}x off`} | ${because} |`,
  );
  return ["| goal | what | bound | measured | | why |", "|---|---|---|---|---|---|", ...rows].join("\n");
}

export function short(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 0.1 ? 2 : 5;
  return String(Number(value.toFixed(digits)));
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}
