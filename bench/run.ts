/**
 * `npm run bench [-- ID…] [--rounds N]`: measures what the named goals want (all, when none is named), one process for each
 * contender of each workload, contenders in another order in every round. Prints a line of JSON a process and the table at
 * the end; when everything was measured, `results.json` is written.
 */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { GOALS } from "./goals.ts";
import { judge, table } from "./report.ts";
import { type Line, ONCE, type RoundLine, WORKLOADS } from "./workloads.ts";

const ROUNDS = 5;
const A_PROCESS_MS = 120_000;
/** A round that would not end within the budget is not begun. */
const BUDGET_MS = 600_000;

const run = promisify(execFile);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string" }, out: { type: "string" } },
});
const rounds = Number(values.rounds ?? ROUNDS);
const wanted = wantedWorkloads(positionals);
const lines: RoundLine[] = [];
const startedAt = performance.now();

for (let round = 1; round <= rounds; round += 1) {
  const before = performance.now();
  for (const workload of wanted) {
    if (round > 1 && ONCE.has(workload)) continue;
    for (const contender of shuffled(Object.keys(WORKLOADS[workload]!))) {
      const line = { ...(await measure(workload, contender)), round, load: loadavg()[0]! };
      lines.push(line);
      console.log(JSON.stringify(line));
    }
  }
  const tookMs = performance.now() - before;
  if (round < rounds && performance.now() - startedAt + tookMs > BUDGET_MS) {
    console.error(`${round} of ${rounds} rounds: another would not end within ${BUDGET_MS / 60_000} minutes`);
    break;
  }
}

const results = judge(
  lines,
  ["npm run bench", ...(positionals.length > 0 ? ["--", ...positionals] : [])].join(" "),
);
console.log(`\n${table(results)}\n`);
for (const error of results.errors) console.error(error);
const out = values.out ?? (positionals.length === 0 ? join(import.meta.dirname, "results.json") : null);
if (out !== null) writeFileSync(out, `${JSON.stringify(results, null, 2)}\n`);
process.exitCode = results.errors.length === 0 ? 0 : 1;

/** Workloads by the ids of goals, or by their own names. */
function wantedWorkloads(names: readonly string[]): readonly string[] {
  const all = Object.keys(WORKLOADS);
  if (names.length === 0) return all;
  const unknown = names.filter((name) => !all.includes(name) && !GOALS.some(({ id }) => id === name));
  if (unknown.length > 0) {
    const ids = [...new Set(GOALS.map(({ id }) => id))];
    throw new Error(
      `unknown: ${unknown.join(", ")}. Goals: ${ids.join(", ")}. Workloads: ${all.join(", ")}.`,
    );
  }
  const named = (workload: string): boolean =>
    names.includes(workload) ||
    GOALS.some(
      ({ id, figure, against }) =>
        names.includes(id) && (figure.workload === workload || against?.workload === workload),
    );
  return all.filter(named);
}

async function measure(workload: string, contender: string): Promise<Line> {
  const worker = join(import.meta.dirname, "worker.ts");
  const flags = ["--expose-gc", "--max-old-space-size=4096"];
  try {
    const { stdout } = await run(process.execPath, [...flags, worker, workload, contender], {
      timeout: A_PROCESS_MS,
      maxBuffer: 1 << 26,
      env: { ...process.env, NODE_ENV: "production", NODE_NO_WARNINGS: "1" },
    });
    return JSON.parse(stdout.trim().split("\n").at(-1)!) as Line;
  } catch (error) {
    const { stdout = "", stderr = "", signal = null } = error as Partial<Record<string, string>>;
    const last = stdout.trim().split("\n").at(-1) ?? "";
    if (last.startsWith("{")) return JSON.parse(last) as Line;
    console.error(stderr);
    const why = signal === null ? "its process has failed" : `its process was ended by ${signal}`;
    return { workload, contender, metrics: {}, error: why, tookMs: A_PROCESS_MS };
  }
}

function shuffled<T>(values_: readonly T[]): T[] {
  return values_
    .map((value) => ({ value, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ value }) => value);
}
