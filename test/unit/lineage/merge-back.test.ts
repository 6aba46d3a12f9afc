/** What a fork brings back into the thread that it was forked from. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mergeBackDelta, mergeBackPoints } from "../../../src/lineage/merge-back.ts";
import { holdsOrdinal } from "../../../src/protocol/ordinals.ts";
import type { ThreadFacts } from "../../../src/protocol/thread.ts";
import { handoff, point, providerThread, said, thread } from "./records.ts";

const FORK = "thread_fork";
const base = point({ threadId: "thread_t", ordinal: 2, items: 4 });
const facts = (
  relationshipToParent: "fork" | "subagent" | null = "fork",
): Pick<ThreadFacts, "lineage" | "forkedFrom"> => ({
  lineage: {
    parentThreadId: relationshipToParent === null ? null : "thread_t",
    relationshipToParent,
    rootThreadId: "thread_t",
  },
  forkedFrom: relationshipToParent === "fork" ? { transferId: "xfr_f", point: base, context: null } : null,
});
const reader = thread(
  [{}, {}, {}, { status: "failed" }, { status: "rolled_back" }, { status: "running", completedAt: null }],
  { threadId: FORK, rolledBack: [[5, 5]] },
);
const refused = (code: string) => expect.objectContaining({ code }) as Error;

describe("the points of a merge-back", () => {
  test("S0-11 S0-25 C7.2 are the point of the fork and its latest stable run", () => {
    expect(mergeBackPoints({ facts: facts(), reader }, "thread_t", null)).toMatchObject({
      basePoint: base,
      sourcePoint: { threadId: FORK, ordinal: 3, items: 6 },
    });
  });

  test("C7.2 C20.14 are the point of the fork and the completed run that is named", () => {
    expect(mergeBackPoints({ facts: facts(), reader }, "thread_t", "run_2").sourcePoint).toMatchObject({
      ordinal: 2,
      items: 4,
    });
  });

  test.for<[string, Parameters<typeof mergeBackPoints>, string]>([
    ["into another thread", [{ facts: facts(), reader }, "thread_x", null], "MERGE_BACK_NOT_A_FORK"],
    ["of a subagent", [{ facts: facts("subagent"), reader }, "thread_t", null], "MERGE_BACK_NOT_A_FORK"],
    ["of a root", [{ facts: facts(null), reader }, "thread_t", null], "MERGE_BACK_NOT_A_FORK"],
    [
      "without a run",
      [{ facts: facts(), reader: thread([]) }, "thread_t", null],
      "MERGE_BACK_SOURCE_UNSTABLE",
    ],
    [
      "of a run that is active",
      [{ facts: facts(), reader }, "thread_t", "run_6"],
      "MERGE_BACK_SOURCE_UNSTABLE",
    ],
    ["of a run that failed", [{ facts: facts(), reader }, "thread_t", "run_4"], "MERGE_BACK_SOURCE_UNSTABLE"],
    [
      "of a run that was rolled back",
      [{ facts: facts(), reader }, "thread_t", "run_5"],
      "SOURCE_POINT_ROLLED_BACK",
    ],
    ["of an unknown run", [{ facts: facts(), reader }, "thread_t", "run_9"], "SOURCE_POINT_NOT_FOUND"],
  ])("C7.1 C7.2 a merge-back %s is refused", ([, input, code]) => {
    expect(() => mergeBackPoints(...input)).toThrow(refused(code));
  });
});

describe("the delta", () => {
  const source = { ordinal: 4, items: 8 };
  const told = (more = {}) =>
    handoff("m", [[1, 2]], { sourceThreadId: FORK, coveredRanges: [[0, 3]], ...more });
  const target = providerThread("a", [[1, 3]], { handoffIds: ["hnd_m"] });

  test("S0-11 C7.3 M2 is the fork's own runs up to the source point, without what it was given", () => {
    const own = thread([{}, {}, {}], { threadId: FORK, before: [said("old")] });
    expect(mergeBackDelta(own, { ordinal: 2, items: 5 }, null, [])).toEqual({
      runs: [[1, 2]],
      items: [[1, 5]],
    });
  });

  test("leaves out runs that were rolled back, with their items", () => {
    const own = thread([{}, { status: "rolled_back" }, {}], { threadId: FORK, rolledBack: [[2, 2]] });
    expect(mergeBackDelta(own, { ordinal: 3, items: 6 }, null, [])).toEqual({
      runs: [
        [1, 1],
        [3, 3],
      ],
      items: [
        [0, 2],
        [4, 6],
      ],
    });
  });

  test.for<[string, Parameters<typeof told>[0], object]>([
    ["X-8 C7.6 what was delivered before is left out", {}, { runs: [[3, 4]], items: [[3, 8]] }],
    ["C7.6 what was not delivered is told", { deliveredAt: null }, { runs: [[1, 4]], items: [[0, 8]] }],
    ["C7.8 what was superseded is told again", { status: "superseded" }, { runs: [[1, 4]], items: [[0, 8]] }],
    [
      "what another thread told does not count",
      { sourceThreadId: "thread_x" },
      { runs: [[1, 4]], items: [[0, 8]] },
    ],
    [
      "C7.6 what went into another provider thread is told",
      { id: "hnd_x" },
      { runs: [[1, 4]], items: [[0, 8]] },
    ],
  ])("%s", ([, more, delta]) => {
    expect(mergeBackDelta(reader, source, target, [told(more)])).toEqual(delta);
  });

  test("C7.6 to a new provider thread is whole", () => {
    expect(mergeBackDelta(reader, source, null, [told()])).toEqual({ runs: [[1, 4]], items: [[0, 8]] });
  });

  test("C7.3 of nothing is nothing", () => {
    expect(mergeBackDelta(reader, { ordinal: 0, items: 0 }, null, [])).toEqual({ runs: [], items: [] });
  });

  test("C7.6 law: merge-backs one after the other tell each item of a retained run once", () => {
    const runs = fc.array(fc.record({ gone: fc.boolean(), items: fc.integer({ min: 0, max: 3 }) }), {
      minLength: 1,
      maxLength: 8,
    });
    fc.assert(
      fc.property(runs, fc.array(fc.nat(8), { maxLength: 4 }), (some, picks) => {
        const rolledBack = some.flatMap(({ gone }, at) => (gone ? [[at + 1, at + 1] as const] : []));
        const own = thread(
          some.map(({ items }) => ({ items: Array.from({ length: items }, () => said("x")) })),
          { threadId: FORK, rolledBack },
        );
        const ends = [...picks.map((pick) => (pick % some.length) + 1), some.length].toSorted(
          (a, b) => a - b,
        );
        const handoffs: ReturnType<typeof handoff>[] = [];
        const seen: number[] = [];
        for (const ordinal of ends) {
          const items = own.runAt(ordinal + 1)?.firstItem ?? own.items;
          const into = providerThread("a", [[1, 1]], { handoffIds: handoffs.map(({ id }) => id) });
          const delta = mergeBackDelta(own, { ordinal, items }, into, handoffs);
          for (const [from, to] of delta.items) for (let at = from; at < to; at += 1) seen.push(at);
          handoffs.push(
            handoff(String(handoffs.length), delta.runs, {
              sourceThreadId: FORK,
              coveredRanges: delta.items,
            }),
          );
        }
        const wanted = Array.from({ length: own.items }, (_, at) => at).filter((at) => {
          const id = own.item(at)!.runId!;
          return !holdsOrdinal(rolledBack, own.run(id)!.ordinal);
        });
        expect(seen.toSorted((a, b) => a - b)).toEqual(wanted);
      }),
    );
  });
});
