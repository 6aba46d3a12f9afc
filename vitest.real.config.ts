/** `npm run test:real`: the real programs against a model on loopback, as far as they are installed. */
import { defineConfig } from "vitest/config";

const minute = 60_000;

export default defineConfig({
  test: {
    reporters: ["default", "./scripts/plain-summary-reporter.ts"],
    pool: "forks",
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: "real",
          include: ["test/real/**/*.test.ts"],
          exclude: ["**/node_modules/**"],
          environment: "node",
          testTimeout: 5 * minute,
          hookTimeout: 5 * minute,
        },
      },
    ],
  },
});
