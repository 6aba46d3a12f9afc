/** `npm run bench`. Benches have their own configuration, or every project of the tests would pick them up. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    passWithNoTests: true,
    include: ["bench/**/*.bench.ts"],
    benchmark: { include: ["bench/**/*.bench.ts"] },
    exclude: ["bench/peers/**", "node_modules/**"],
    testTimeout: 600_000,
    maxWorkers: 1,
  },
});
