/** `npm run bench:gates`: the few ratios that must hold on every machine. The benches themselves are `bench/run.ts`. */
import { defineConfig } from "vitest/config";

const minute = 60_000;

export default defineConfig({
  test: {
    reporters: ["default", "./scripts/plain-summary-reporter.ts"],
    pool: "forks",
    // One after the other: they measure.
    maxWorkers: 1,
    fileParallelism: false,
    execArgv: ["--expose-gc"],
    projects: [
      {
        test: {
          name: "bench-gates",
          include: ["bench/gates/**/*.test.ts"],
          environment: "node",
          testTimeout: 5 * minute,
        },
      },
    ],
  },
});
