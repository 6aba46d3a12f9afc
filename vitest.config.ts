/**
 * What `npm test` runs: one project a folder of `test/`. A project without files yet is no error.
 * `npx vitest run --project contract -t MBX-4` narrows to one project and one contract id.
 */
import { defineConfig } from "vitest/config";

const second = 1_000;

/** When a hang is a failure, hooks included; far above what a busy machine takes. */
const projects = {
  unit: 10 * second,
  contract: 20 * second,
  property: 60 * second,
  model: 60 * second,
  "simulation-short": 240 * second,
  architecture: 20 * second,
  surfaces: 240 * second,
  faults: 120 * second,
};

/**
 * Projects whose files share one worker's modules: they hold no state in module scope, and most of a file's
 * time would otherwise go into loading the same sources again.
 */
const shared = new Set(["unit", "contract"]);

export default defineConfig({
  test: {
    passWithNoTests: true,
    reporters: ["default", "./scripts/plain-summary-reporter.ts"],
    pool: "forks",
    maxWorkers: 2,
    projects: Object.entries(projects).map(([name, testTimeout]) => ({
      test: {
        name,
        include: [`test/${name}/**/*.test.ts`],
        environment: "node",
        isolate: !shared.has(name),
        testTimeout,
        hookTimeout: testTimeout,
        env: {
          COPPICE_SEEDS: process.env["COPPICE_SEEDS"] ?? "300",
          COPPICE_KILLS: process.env["COPPICE_KILLS"] ?? "10",
        },
      },
    })),
  },
});
