/** From the place that somebody names to one source point. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { forkPoint, type ForkPointName } from "../../../src/lineage/fork-points.ts";
import { CoppiceError } from "../../../src/protocol/errors.ts";
import {
  answer,
  CHECKPOINT,
  nativeRef,
  note,
  providerThread,
  returned,
  said,
  THREAD,
  thread,
} from "./records.ts";

const latest = { kind: "latest_stable" } as const;
const run = (ordinal: number) => ({ kind: "run", runId: `run_${ordinal}` }) as const;
const message = (seq: number | null) => ({ kind: "message", seq }) as const;
const missing = { ...CHECKPOINT, workspace: { status: "missing" } } as const;
const refused = (code: string) => expect.objectContaining({ code }) as Error;
/** What the model was told of the tools: two calls of one step, and an answer. */
const tools = [said("q"), answer("look", "a", "b"), returned("a"), returned("b"), answer("done")];

describe("latest_stable", () => {
  test.for<[string, Parameters<typeof thread>, number]>([
    ["S2-2 takes the last completed run", [[{}, {}]], 2],
    [
      "S0-22 S0-60 C5.2 steps back over a run that is active",
      [[{}, {}, { status: "running", completedAt: null }]],
      2,
    ],
    ["S0-65 C5.1 steps back over a failed run", [[{ checkpoint: null }, {}, { status: "failed" }]], 2],
    ["C5.1 steps back over a run without a checkpoint", [[{}, { checkpoint: null }]], 1],
    ["C1.18 steps back over a workspace that is missing", [[{}, { checkpoint: missing }]], 1],
    [
      "steps back over runs that were rolled back",
      [[{}, { status: "rolled_back" }, { status: "rolled_back" }], { rolledBack: [[2, 3]] }],
      1,
    ],
  ])("%s", ([, input, ordinal]) => {
    expect(forkPoint(thread(...input), latest).point).toMatchObject({
      ordinal,
      runId: `run_${ordinal}`,
      items: ordinal * 2,
      cut: "inclusive",
      turnItemId: null,
      checkpointId: null,
    });
  });

  test("C19 is refused where there is none", () => {
    expect(() => forkPoint(thread([{ status: "failed" }]), latest)).toThrow(
      refused("SOURCE_POINT_NOT_FOUND"),
    );
    expect(() => forkPoint(thread([]), latest)).toThrow(refused("SOURCE_POINT_NOT_FOUND"));
  });
});

describe("a run or its checkpoint", () => {
  test("S0-59 C5.1 is taken whole, with the native names of its turn", () => {
    const near = providerThread("a", [[1, 2]]);
    const reader = thread([{}, { providerThreadId: near.id }, {}], { providerThreads: [near] });
    const native = { providerThreadRef: nativeRef("native-a"), providerTurnRef: nativeRef("turn-2") };
    expect(forkPoint(reader, run(2))).toMatchObject({
      point: { ordinal: 2, items: 4, ...native },
      draft: null,
      sourceOutcome: null,
      carries: true,
      wholeRun: true,
    });
    expect(forkPoint(reader, { kind: "checkpoint", checkpointId: "ckp_2" }).point).toMatchObject({
      ordinal: 2,
      checkpointId: "ckp_2",
      ...native,
    });
  });

  test.for(["failed", "interrupted", "cancelled"] as const)(
    "C5.3 that ended %s is taken, and it is said",
    (status) => {
      expect(forkPoint(thread([{}, { status }]), run(2))).toMatchObject({
        point: { ordinal: 2 },
        sourceOutcome: status,
      });
    },
  );

  const states = thread(
    [
      {},
      { status: "rolled_back" },
      { status: "failed", items: [] },
      { threadId: "thread_x" },
      { status: "running", completedAt: null },
    ],
    { rolledBack: [[2, 2]], voided: [[3, 3]] },
  );
  test.for<[string, ForkPointName, string]>([
    ["S0-60 S0-64 C5.2 a run that is active", run(5), "SOURCE_POINT_UNSTABLE"],
    [
      "S0-64 C5.2 the checkpoint of one that is active",
      { kind: "checkpoint", checkpointId: "ckp_5" },
      "SOURCE_POINT_UNSTABLE",
    ],
    ["S0-61 C5.2 a message of a run that is active", message(8), "SOURCE_POINT_UNSTABLE"],
    ["C5.3 a run that was rolled back", run(2), "SOURCE_POINT_ROLLED_BACK"],
    ["C5.3 a message of one", message(4), "SOURCE_POINT_ROLLED_BACK"],
    ["a run that no provider took", run(3), "SOURCE_POINT_NOT_FOUND"],
    ["C5.1 an unknown run", run(9), "SOURCE_POINT_NOT_FOUND"],
    ["C5.1 a run of another thread", run(4), "SOURCE_POINT_NOT_FOUND"],
    ["C5.1 an unknown checkpoint", { kind: "checkpoint", checkpointId: "ckp_x" }, "SOURCE_POINT_NOT_FOUND"],
    ["C5.1 a message that is not there", message(11), "SOURCE_POINT_NOT_FOUND"],
    ["S2-1 C5.1 mail that is not in the transcript yet", message(null), "FORK_UNCOMMITTED_MESSAGE"],
    ["S2-1 C5.1 seq 0", message(0), "FORK_UNCOMMITTED_MESSAGE"],
    ["S2-1 C5.1 a negative seq", message(-1), "FORK_UNCOMMITTED_MESSAGE"],
    [
      "C5.1 an unknown provider thread",
      { kind: "provider_thread", providerThreadId: "pth_x" },
      "SOURCE_POINT_NOT_FOUND",
    ],
  ])("%s is refused", ([, name, code]) => {
    try {
      forkPoint(states, name);
      expect.unreachable();
    } catch (error) {
      expect(error).toEqual(refused(code));
      // It says what is wrong, and what to do.
      expect(CoppiceError.is(error) && error.message).toMatch(/[;,] .*(?:name|take|fork|wait)/u);
    }
  });
});

describe("a provider thread", () => {
  const named = (
    more: Parameters<typeof providerThread>[2] = {},
    native: readonly (readonly [number, number])[] = [[1, 2]],
  ) => {
    const record = providerThread("a", native, more);
    // A run's own turns are in its own conversation, not in its subagent's.
    const own = (more.ownerNodeId ?? null) === null;
    const providerThreadId = own ? record.id : ("pth_parent" as const);
    const runs = [{}, { providerThreadId }, { status: "rolled_back" as const }];
    return forkPoint(thread(runs, { rolledBack: [[3, 3]], providerThreads: [record] }), {
      kind: "provider_thread",
      providerThreadId: "pth_a",
    });
  };

  test("S0-59 S3-67 C5.1 that is idle is taken at its last run, a subagent's too", () => {
    for (const ownerNodeId of [null, "node"]) {
      expect(named({ ownerNodeId }).point).toMatchObject({
        ordinal: 2,
        items: 4,
        providerThreadRef: nativeRef("native-a"),
        providerTurnRef: ownerNodeId === null ? nativeRef("turn-2") : null,
      });
    }
  });

  test("C5.2 C5.3 that is at work, knows no run, tells of what is gone or is another thread's is refused", () => {
    expect(() => named({ status: "active" })).toThrow(refused("SOURCE_POINT_UNSTABLE"));
    expect(() => named({}, [])).toThrow(refused("SOURCE_POINT_NOT_FOUND"));
    expect(() => named({}, [[1, 3]])).toThrow(refused("SOURCE_POINT_ROLLED_BACK"));
    expect(() => named({ appThreadId: "thread_x" })).toThrow(refused("SOURCE_POINT_NOT_FOUND"));
  });
});

describe("a message", () => {
  test("S2-7 S2-36 C5.8 of the user is cut before it, and is the draft to the letter", () => {
    const text = "  fix\nthis \u{1F600} ";
    const reader = thread([{}, { items: [note("n"), said(text), answer("a")] }]);
    expect(forkPoint(reader, message(4))).toEqual({
      point: {
        threadId: THREAD,
        runId: "run_1",
        checkpointId: null,
        ordinal: 1,
        items: 2,
        turnItemId: 3,
        providerThreadRef: null,
        providerTurnRef: null,
        cut: "exclusive",
      },
      draft: { text, sourceMessageId: `msg_${text}` },
      sourceOutcome: null,
      carries: true,
      wholeRun: true,
    });
  });

  test("C5.8 of the user behind runs that were taken back ends with the last one that stays", () => {
    const reader = thread([{}, { status: "rolled_back" }, { status: "failed", items: [] }, {}], {
      rolledBack: [[2, 2]],
      voided: [[3, 3]],
    });
    expect(forkPoint(reader, message(5)).point).toMatchObject({ ordinal: 1, items: 2, cut: "exclusive" });
  });

  test("C5.8 of the user that came while a run went on is cut inside the run", () => {
    const reader = thread([
      {},
      { items: [said("a"), answer("b"), said("c"), answer("d")], status: "failed" },
    ]);
    expect(forkPoint(reader, message(5))).toMatchObject({
      point: { ordinal: 2, items: 4, turnItemId: 4, cut: "exclusive" },
      draft: { text: "c" },
      sourceOutcome: "failed",
      wholeRun: false,
    });
  });

  test.for<[string, Parameters<typeof thread>, object]>([
    [
      "S2-38 C5.10 the first one inherits nothing",
      [[{}]],
      { carries: false, point: { ordinal: 0, items: 0 } },
    ],
    [
      "C5.10 notes of the runtime before it are nothing",
      [[{ items: [note("n"), said("q1")] }], { before: [note("role")] }],
      { carries: false, point: { ordinal: 0, items: 0 } },
    ],
    [
      "C5.10 after runs that were all taken back it inherits nothing",
      [[{ status: "rolled_back", items: [] }, {}], { rolledBack: [[1, 1]] }],
      { carries: false, point: { ordinal: 0, items: 0 } },
    ],
    [
      "C5.22 the first one of a fork inherits what the fork has inherited",
      [[{}], { inherits: true }],
      { carries: true, point: { ordinal: 0, items: 0 } },
    ],
    [
      "the first one of a subagent inherits what that was given",
      [[{}], { before: [said("old"), note("above")] }],
      { carries: true, point: { ordinal: 0, items: 2 } },
    ],
  ])("%s", ([, input, expected]) => {
    const reader = thread(...input);
    let seq = 1;
    while (!(reader.item(seq - 1)?.kind === "user" && reader.item(seq - 1)?.runId !== null)) seq += 1;
    expect(forkPoint(reader, message(seq))).toMatchObject({
      draft: { text: expect.stringMatching(/^q\d$/u) as string },
      wholeRun: true,
      ...expected,
    });
  });

  test.for<[string, number, number, boolean]>([
    ["an assistant's answer is included", 7, 5, true],
    ["a call is extended to the results of all calls made with it", 4, 4, false],
    ["the first result is extended to the others", 5, 4, false],
    ["the last result ends where it stands", 6, 4, false],
  ])("S2-37 C5.9 %s", ([, seq, items, wholeRun]) => {
    const at = forkPoint(thread([{}, { items: tools }]), message(seq));
    expect(at).toMatchObject({
      point: { ordinal: 2, items: items + 2, turnItemId: seq - 1, cut: "inclusive" },
      draft: null,
      wholeRun,
    });
  });

  test("C5.9 a call that never got a result ends with its run", () => {
    const reader = thread([
      { items: [said("q"), answer("look", "a"), note("cut off")], status: "interrupted" },
      {},
    ]);
    expect(forkPoint(reader, message(2))).toMatchObject({
      point: { ordinal: 1, items: 3 },
      wholeRun: true,
      sourceOutcome: "interrupted",
    });
  });

  test("an item that no run has written belongs to the run that had begun", () => {
    const reader = thread([{}, {}, {}], { before: [said("old"), answer("older")] });
    expect(forkPoint(reader, message(2))).toMatchObject({
      point: { ordinal: 0, items: 2, runId: null },
      carries: true,
      draft: null,
    });
    const unowned = { ...reader, item: (index: number) => ({ ...reader.item(index)!, runId: null }) };
    expect(forkPoint(unowned, message(6)).point).toMatchObject({ ordinal: 2, items: 6 });
  });

  test("S0-2 C5.4 costs what the point needs, in a thread of ten thousand items", () => {
    const reader = thread(Array.from({ length: 5000 }, () => ({})));
    for (const name of [message(9001), message(9002), latest, run(4000)]) forkPoint(reader, name);
    expect(reader.reads.items).toBeLessThan(12);
    expect(reader.reads.runs).toBeLessThan(16);
  });
});

test("C5.9 law: a cut never leaves a call without a result that the run has, and never goes beyond its run", () => {
  const step = fc.record({ calls: fc.integer({ min: 0, max: 3 }), answered: fc.integer({ min: 0, max: 3 }) });
  fc.assert(
    fc.property(
      fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 }),
      fc.nat(),
      (runs, pick) => {
        let id = 0;
        const reader = thread(
          runs.map((steps) => ({
            items: [
              said("q"),
              ...steps.flatMap(({ calls, answered }) => {
                const ids = Array.from({ length: calls }, () => String((id += 1)));
                return [answer("x", ...ids), ...ids.slice(0, answered).map(returned)];
              }),
            ],
          })),
        );
        const index = pick % reader.items;
        const named = reader.item(index)!;
        const { point, draft } = forkPoint(reader, message(index + 1));
        if (named.kind === "user") {
          expect(draft?.text).toBe("q");
          expect(point.items).toBeLessThanOrEqual(index);
          return;
        }
        expect(point.items).toBeGreaterThan(index);
        const behind = Array.from({ length: reader.items - point.items }, (_, at) =>
          reader.item(point.items + at)!,
        );
        for (const item of behind) {
          if (item.kind !== "tool_result" || item.runId !== named.runId) continue;
          const call = Array.from({ length: point.items }, (_, at) => reader.item(at)!).find(
            (one) =>
              one.kind === "assistant" &&
              one.parts.some((part) => "callId" in part && part.callId === item.callId),
          );
          expect(call).toBeUndefined();
        }
        expect(reader.item(point.items - 1)?.runId).toBe(named.runId);
      },
    ),
  );
});
