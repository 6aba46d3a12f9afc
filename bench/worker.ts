/** Runs one contender of one workload and prints its line: `node --expose-gc bench/worker.ts WORKLOAD CONTENDER`. */
import { type Line, WORKLOADS } from "./workloads.ts";

const [, , workload = "", contender = ""] = process.argv;
const run = WORKLOADS[workload]?.[contender];
const startedAt = performance.now();

async function measured(): Promise<Pick<Line, "metrics" | "error">> {
  try {
    if (run === undefined) throw new Error(`no contender \`${contender}\` in \`${workload}\``);
    return { metrics: await run(), error: null };
  } catch (error) {
    console.error(error);
    return { metrics: {}, error: error instanceof Error ? error.message : String(error) };
  }
}

const line: Line = {
  workload,
  contender,
  ...(await measured()),
  tookMs: Math.round(performance.now() - startedAt),
};
process.stdout.write(`${JSON.stringify(line)}\n`, () => process.exit(line.error === null ? 0 : 1));
