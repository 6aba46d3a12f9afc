/** Long work is done one piece a turn, in its order, and what fails is in nobody's way. */
import { expect, test } from "vitest";
import { OneATurn } from "../../../src/platform/one-a-turn.ts";
import { turn } from "../../../src/testing/virtual-clock.ts";

test("REC-6 between two pieces the event loop has its turn, however many were asked for at once", async () => {
  const turns: (() => void)[] = [];
  const done: string[] = [];
  const checks = new OneATurn({ defer: (callback) => void turns.push(callback) });
  const all = Promise.allSettled(
    ["a", "b", "c"].map((name) =>
      checks.run(() => {
        done.push(name);
        if (name === "b") throw new Error("on purpose");
        return name;
      }),
    ),
  );
  for (const so of ["", "a", "ab", "abc"]) {
    await turn();
    expect(done.join("")).toBe(so);
    expect(turns).toHaveLength(so === "abc" ? 0 : 1);
    turns.shift()?.();
  }
  expect((await all).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});
