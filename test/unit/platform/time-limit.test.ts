/** Time for work that others have a say in, and what several such works share. */
import { expect, test } from "vitest";
import { TimeAllowance, withinTimeLimit } from "../../../src/platform/time-limit.ts";

test("what does not end is cut off", () => {
  expect(withinTimeLimit(5, () => /^(a+)+$/.test(`${"a".repeat(60)}!`))).toEqual({ kind: "cut_off" });
  expect(withinTimeLimit(60_000, () => 1)).toEqual({ kind: "done", value: 1 });
});

test("works share their time: nobody pays more than a share, and when it is spent nothing begins", () => {
  let now = 0;
  const allowance = new TimeAllowance(90_000, () => now);
  const work = (ms: number, sharedBy: number) => allowance.run(sharedBy, () => (now += ms)).kind;
  expect(work(1_000_000, 3)).toBe("done");
  expect(work(10_000, 2)).toBe("done");
  expect(() =>
    allowance.run(1, () => {
      now += 50_000;
      throw new Error("on purpose");
    }),
  ).toThrow("on purpose");
  expect(work(1, 1)).toBe("cut_off");
  expect(now).toBe(1_060_000);
});
