/** Any life of a mailbox: its counters equal a recount, on every store. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { liveThrough } from "../../src/testing/store-cases-random.ts";
import { withWorld } from "../../src/testing/store-conformance.ts";
import { stores } from "../support/stores.ts";

const fraction = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const steps = fc.array(fc.tuple(fraction, fraction, fraction), { maxLength: 40 });

test.for(["memory", "sqlite"] as const)("counters of a mailbox equal a recount in %s", async (name) => {
  let lives = 0;
  await fc.assert(
    fc.asyncProperty(steps, async (life) => {
      lives += 1;
      await withWorld(stores[name], (world) => liveThrough(world, life));
    }),
    { numRuns: name === "memory" ? 100 : 25 },
  );
  expect(lives).toBeGreaterThan(0);
});
