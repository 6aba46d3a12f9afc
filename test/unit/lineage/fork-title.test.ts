/** Titles of forks. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { forkTitle } from "../../../src/lineage/fork-title.ts";
import { TITLE_CHARACTERS } from "../../../src/protocol/lineage-limits.ts";

const long = "x".repeat(200);
const nines = "9".repeat(120);
const smile = "\u{1F600}";

test.for<[string, string | null, readonly (string | null)[], string | null]>([
  ["S2-8 C16.1 untitled stays untitled", null, ["T (fork 4)"], null],
  ["S2-8 C16.2 the first fork", "T", ["T", null], "T (fork 1)"],
  ["S2-9 C16.3 a fork of a fork", "T (fork 1)", ["T", "T (fork 1)"], "T (fork 2)"],
  ["C16.4 behind the highest that is there", "T", ["T (fork 7)", "T (fork 2)"], "T (fork 8)"],
  ["C16.4 at least one more than the parent's", "T (fork 5)", ["T (fork 2)"], "T (fork 6)"],
  ["C16.4 another base does not count", "T", ["U (fork 7)", "T2 (fork 3)"], "T (fork 1)"],
  ["C16.5 another form is part of the title", "T (Fork 1)", [], "T (Fork 1) (fork 1)"],
  ["C16.5 so is one in the middle", "T (fork 1) b", [], "T (fork 1) b (fork 1)"],
  ["C16.5 so is a number with a nought before it", "T (fork 01)", [], "T (fork 01) (fork 1)"],
  ["C16.5 so is fork 0", "T (fork 0)", [], "T (fork 0) (fork 1)"],
  ["C16.5 so is a number without a title", " (fork 1)", [], " (fork 1) (fork 1)"],
  ["C16.3 a great number is counted on", "T (fork 999999999)", [], "T (fork 1000000000)"],
  ["C16.3 and so is the next", "T (fork 9007199254740993)", [], "T (fork 9007199254740994)"],
  ["C16.5 so is a number as long as a title", `T (fork ${nines})`, [], `T (fork ${nines}) (fork 1)`],
  ["C16.5 lines stay lines", "a\nb (fork 1)", [], "a\nb (fork 2)"],
  ["C16.5 a long base is shortened", long, [], `${"x".repeat(191)} (fork 1)`],
  [
    "C16.4 forks of a long base are counted",
    long,
    [`${"x".repeat(191)} (fork 1)`],
    `${"x".repeat(191)} (fork 2)`,
  ],
  ["C16.4 also past nine", long, [`${"x".repeat(191)} (fork 9)`], `${"x".repeat(190)} (fork 10)`],
  ["C16.5 no code point is cut", smile.repeat(100), [], `${smile.repeat(95)} (fork 1)`],
])("%s", ([, parent, live, title]) => {
  expect(forkTitle(parent, live)).toBe(title);
});

test("C16.3 C16.4 C16.5 law: forks of forks are numbered through, well-formed and within the limit", () => {
  const base = fc.string({ unit: "binary", minLength: 1, maxLength: TITLE_CHARACTERS });
  fc.assert(
    fc.property(base, fc.array(fc.nat(20), { maxLength: 12 }), (title, picks) => {
      const live = [title];
      for (const pick of picks) {
        const next = forkTitle(live[pick % live.length]!, live)!;
        expect(live).not.toContain(next);
        expect(next.length).toBeLessThanOrEqual(TITLE_CHARACTERS);
        expect(next.isWellFormed()).toBe(title.isWellFormed());
        live.push(next);
      }
    }),
  );
});
