/**
 * The suites that are too long for `npm test`: `npm run test:surfaces`, `npm run test:workspaces`, `npm run test:simulation` and `npm run test:crash`.
 * `COPPICE_SEEDS` and `COPPICE_KILLS` set how long; `COPPICE_SEED` may name the one seed to run again.
 */
import { defineConfig } from "vitest/config";

const minute = 60_000;
const hour = 60 * minute;

export default defineConfig({
  test: {
    passWithNoTests: true,
    reporters: ["default", "./scripts/plain-summary-reporter.ts"],
    pool: "forks",
    maxWorkers: 2,
    projects: ["surfaces-long", "workspaces-long", "simulation-long", "crash-long"].map((name) => ({
      test: {
        name,
        include: [`test/${name}/**/*.test.ts`],
        environment: "node",
        testTimeout: 2 * hour,
        hookTimeout: 10 * minute,
        env: {
          COPPICE_SEEDS: process.env["COPPICE_SEEDS"] ?? "10000",
          COPPICE_KILLS: process.env["COPPICE_KILLS"] ?? "300",
        },
      },
    })),
  },
});
