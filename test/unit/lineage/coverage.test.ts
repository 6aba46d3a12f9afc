/** What a provider thread knows of its thread's runs. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { covered, foreignBefore, gapOf, handoffsIn, lastOrdinal } from "../../../src/lineage/coverage.ts";
import {
  addOrdinal,
  holdsOrdinal,
  NO_ORDINALS,
  type OrdinalRange,
  overlap,
  without,
} from "../../../src/protocol/ordinals.ts";
import { farThread, handoff, providerThread } from "./records.ts";

const nobody = { rolledBack: NO_ORDINALS, voided: NO_ORDINALS };
const h1 = handoff("1", [[1, 5]]);
const h2 = handoff("2", [[6, 8]]);

describe("coverage", () => {
  test("S3-16 C1.6 is what ran there and what handoffs told it", () => {
    const near = providerThread(
      "c1",
      [
        [1, 5],
        [9, 9],
      ],
      { handoffIds: [h2.id] },
    );
    const far = farThread("l1", [[6, 8]], { handoffIds: [h1.id] });
    expect(covered(near, [h1, h2])).toEqual([[1, 9]]);
    expect(covered(far, [h1, h2])).toEqual([[1, 8]]);
  });

  test.for([
    ["undelivered", handoff("x", [[2, 3]], { deliveredAt: null })],
    ["superseded", handoff("x", [[2, 3]], { status: "superseded" })],
    ["of another thread", handoff("x", [[2, 3]], { sourceThreadId: "thread_fork" })],
  ] as const)("X-1 C4.13 C4.5 leaves out a handoff that is %s", ([, one]) => {
    expect(covered(providerThread("a", [[1, 1]], { handoffIds: [one.id] }), [one])).toEqual([[1, 1]]);
  });

  test("C9.5 leaves out a handoff that a native rollback took out of the conversation", () => {
    expect(covered(providerThread("a", [[1, 1]]), [h2])).toEqual([[1, 1]]);
  });

  test("counts a merge-back's text as text in the conversation, though it tells of another thread", () => {
    const merge = handoff("m", [[1, 4]], { sourceThreadId: "thread_fork" });
    const near = providerThread("a", [[1, 1]], { handoffIds: [merge.id] });
    expect(handoffsIn(near, [merge, h1])).toEqual([merge]);
  });
});

describe("the gap", () => {
  test.for<[string, Parameters<typeof gapOf>, readonly OrdinalRange[]]>([
    ["S3-25 is empty for the first run of a thread", [{ ordinal: 1, ...nobody }, null, []], []],
    ["is every earlier run without a provider thread", [{ ordinal: 6, ...nobody }, null, []], [[1, 5]]],
    [
      "S3-11 is what ran elsewhere since",
      [{ ordinal: 9, ...nobody }, providerThread("a", [[1, 5]]), []],
      [[6, 8]],
    ],
    [
      "S3-14 is empty when nothing ran since",
      [{ ordinal: 6, ...nobody }, providerThread("a", [[1, 5]]), []],
      [],
    ],
    [
      "leaves out rolled-back and void runs",
      [{ ordinal: 12, rolledBack: [[6, 7]], voided: [[10, 10]] }, providerThread("a", [[1, 5]]), []],
      [
        [8, 9],
        [11, 11],
      ],
    ],
    [
      "C20.16 has holes where the provider thread took part in between",
      [
        { ordinal: 9, ...nobody },
        providerThread("a", [
          [1, 1],
          [4, 4],
          [6, 6],
        ]),
        [],
      ],
      [
        [2, 3],
        [5, 5],
        [7, 8],
      ],
    ],
  ])("C4.5 %s", ([, input, gap]) => {
    expect(gapOf(...input)).toEqual(gap);
  });

  test("C20.16 of a thread with ten thousand runs is as small as its ranges", () => {
    const near = providerThread("a", [[1, 1]], { turns: [] });
    expect(gapOf({ ordinal: 10_001, ...nobody }, { ...near, nativeRunOrdinals: [[1, 9999]] }, [])).toEqual([
      [10_000, 10_000],
    ]);
  });
});

describe("C20.16 sets with many holes", () => {
  const COUNT = 1000;
  /** Every fourth run from this one on, each time that its range is looked at counted. */
  function counted(first: number) {
    let looks = 0;
    const get = (range: OrdinalRange, key: string | symbol): unknown => {
      if (key === "1") looks += 1;
      return Reflect.get(range, key);
    };
    const ranges = Array.from({ length: COUNT }, (_, at): OrdinalRange => {
      const ordinal = first + 4 * at;
      return new Proxy([ordinal, ordinal] as const, { get });
    });
    return { ranges, looks: () => looks };
  }

  test("are taken from one another by a few looks at each range", () => {
    const some = counted(1);
    const others = counted(3);
    expect(without(some.ranges, others.ranges)).toHaveLength(COUNT);
    expect(some.looks() + others.looks()).toBeLessThan(10 * COUNT);
  });

  test("are compared by a few looks at each range", () => {
    const some = counted(1);
    const others = counted(3);
    expect(overlap(some.ranges, others.ranges)).toBe(false);
    expect(some.looks() + others.looks()).toBeLessThan(10 * COUNT);
  });
});

describe("runs whose items are no part of a conversation", () => {
  test("S3-12 are those that went elsewhere and those that were rolled back, void ones too", () => {
    const near = providerThread("a", [
      [1, 4],
      [7, 9],
    ]);
    expect(foreignBefore({ ordinal: 12, rolledBack: [[3, 3]], voided: [] }, near)).toEqual([
      [3, 3],
      [5, 6],
      [10, 11],
    ]);
    expect(foreignBefore({ ordinal: 1, rolledBack: NO_ORDINALS, voided: [] }, near)).toEqual([]);
  });

  test("C20.16 are none of ten thousand runs of one conversation", () => {
    const near = { nativeRunOrdinals: [[1, 10_000]] as const };
    expect(foreignBefore({ ordinal: 10_001, rolledBack: NO_ORDINALS, voided: [] }, near)).toEqual([]);
  });
});

const ordinals = fc.uniqueArray(fc.integer({ min: 1, max: 14 }));
const setOf = (list: readonly number[]): readonly OrdinalRange[] =>
  list.reduce<readonly OrdinalRange[]>(addOrdinal, NO_ORDINALS);

test("C4.5 law: a run is in the gap exactly when it is retained, earlier, and neither native nor told of", () => {
  const told = fc.record({
    runs: ordinals,
    delivered: fc.boolean(),
    superseded: fc.boolean(),
    foreign: fc.boolean(),
    inside: fc.boolean(),
  });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 15 }),
      ordinals,
      ordinals,
      ordinals,
      fc.array(told, { maxLength: 4 }),
      (ordinal, rolledBack, voided, native, handoffs) => {
        const records = handoffs.map((one, at) =>
          handoff(String(at), setOf(one.runs), {
            deliveredAt: one.delivered ? 5 : null,
            status: one.superseded ? "superseded" : "ready",
            sourceThreadId: one.foreign ? "thread_other" : "thread_t",
          }),
        );
        const near = providerThread("a", setOf(native), {
          handoffIds: records.filter((_, at) => handoffs[at]!.inside).map(({ id }) => id),
        });
        const gap = gapOf({ ordinal, rolledBack: setOf(rolledBack), voided: setOf(voided) }, near, records);
        for (let run = 1; run <= 15; run += 1) {
          const counted = handoffs.some(
            (one) => one.runs.includes(run) && one.delivered && !one.superseded && !one.foreign && one.inside,
          );
          expect(holdsOrdinal(covered(near, records), run)).toBe(native.includes(run) || counted);
          const missing =
            run < ordinal &&
            !rolledBack.includes(run) &&
            !voided.includes(run) &&
            !native.includes(run) &&
            !counted;
          expect(holdsOrdinal(gap, run)).toBe(missing);
        }
        expect(lastOrdinal(gap)).toBeLessThan(ordinal);
      },
    ),
  );
});
