/** What a rollback takes back, and what follows from it. */
import { describe, expect, test } from "vitest";
import { endsAt } from "../../../src/lineage/rollback-native.ts";
import { planRollback, type RollbackPlan } from "../../../src/lineage/rollback-plan.ts";
import type { RollbackFacts, RollbackRequest } from "../../../src/lineage/rollback-target.ts";
import type { NamedThread } from "../../../src/lineage/native-turns.ts";
import type {} from "../../../src/protocol/transfer.ts";
import {
  answer,
  CHECKPOINT,
  farThread,
  handoff,
  nativeRef,
  note,
  point,
  providerThread,
  said,
  thread,
  transfer,
} from "./records.ts";
import { eight, facts, to, unable } from "./rollback-records.ts";

const refused = (code: string) => expect.objectContaining({ code }) as Error;

describe("the target", () => {
  test("S3-57 C9.3 later runs are taken back, whatever their end", () => {
    const reader = thread([...eight.slice(0, 6), { status: "failed" }, { status: "interrupted" }]);
    expect(planRollback(facts({ reader }))).toMatchObject({ target: 5, rolledBack: [[6, 8]], draft: null });
  });

  test("C9.1 a checkpoint is its run", () => {
    const request = { ...to(0), to: { kind: "checkpoint", checkpointId: "ckp_3" } } as const;
    expect(planRollback(facts({ request }))).toMatchObject({ target: 3, rolledBack: [[4, 8]] });
  });

  test("S2-40 S2-41 C9.1 before a message of the user is the run before it, and the message is the draft", () => {
    const reader = thread([{}, { items: [note("n"), said("again"), answer("a")] }, {}]);
    const request = { ...to(0), to: { kind: "before_message", index: 3 } } as const;
    expect(planRollback(facts({ reader, request }))).toMatchObject({
      target: 1,
      rolledBack: [[2, 3]],
      draft: { text: "again", sourceMessageId: "msg_again" },
    });
  });

  test("C9.1 before the first message is the start", () => {
    const request = { ...to(0), to: { kind: "before_message", index: 0 } } as const;
    expect(planRollback(facts({ request }))).toMatchObject({ target: 0, rolledBack: [[1, 8]] });
  });

  test("rollback of a rollback takes back what came since, and what it had left", () => {
    const reader = thread([...eight, {}, {}], { rolledBack: [[6, 8]] });
    expect(planRollback(facts({ reader, request: to(3) })).rolledBack).toEqual([
      [4, 5],
      [9, 10],
    ]);
    expect(planRollback(facts({ reader, request: to(9) })).rolledBack).toEqual([[10, 10]]);
  });

  test("what is there already is a rollback that takes nothing back", () => {
    expect(planRollback(facts({ request: to(8) }))).toMatchObject({
      rolledBack: [],
      handoffs: [],
      transfers: [],
      rearm: null,
      snapshot: { retained: 8, supersedes: [] },
    });
  });

  const odd = thread(
    [
      { items: [said("q"), answer("a"), said("more"), answer("b")] },
      { status: "rolled_back" },
      { status: "failed", items: [] },
      { checkpoint: null },
      { checkpoint: { ...CHECKPOINT, workspace: { status: "missing" } } },
      {},
    ],
    { rolledBack: [[2, 2]], voided: [[3, 3]] },
  );
  const before = (index: number): RollbackRequest => ({ ...to(0), to: { kind: "before_message", index } });
  test.for<[string, Partial<RollbackFacts>, string]>([
    ["while a run is under way", { activeRun: "run_8" }, "ROLLBACK_ACTIVE_RUN"],
    ["to a negative run", { request: to(-1) }, "ROLLBACK_TARGET_INVALID"],
    ["to half a run", { request: to(1.5) }, "ROLLBACK_TARGET_INVALID"],
    ["to a run to come", { request: to(9) }, "ROLLBACK_TARGET_INVALID"],
    ["to one that was rolled back", { reader: odd, request: to(2) }, "ROLLBACK_TARGET_INVALID"],
    ["to one that no provider took", { reader: odd, request: to(3) }, "ROLLBACK_TARGET_INVALID"],
    ["to one without a checkpoint", { reader: odd, request: to(4) }, "ROLLBACK_TARGET_INVALID"],
    ["to one whose workspace is missing", { reader: odd, request: to(5) }, "ROLLBACK_TARGET_INVALID"],
    [
      "to an unknown checkpoint",
      { request: { ...to(0), to: { kind: "checkpoint", checkpointId: "ckp_x" } } },
      "ROLLBACK_TARGET_INVALID",
    ],
    ["before an answer", { request: before(1) }, "ROLLBACK_TARGET_INVALID"],
    ["before a message that is not there", { request: before(99) }, "ROLLBACK_TARGET_INVALID"],
    ["before a message inside a run", { reader: odd, request: before(2) }, "ROLLBACK_TARGET_INVALID"],
    [
      "before a message of one that was rolled back",
      { reader: odd, request: before(4) },
      "ROLLBACK_TARGET_INVALID",
    ],
    [
      "after the provider has changed",
      { request: { ...to(5), provider: "far" } },
      "ROLLBACK_PROVIDER_CHANGED",
    ],
  ])("C9.2 %s is refused", ([, more, code]) => {
    expect(() => planRollback(facts(more))).toThrow(refused(code));
  });
});

describe("handoffs and transfers", () => {
  test("S3-58 C9.4 a handoff that tells of what is taken back is superseded, one that does not is kept", () => {
    const handoffs = [
      handoff("a", [[1, 5]]),
      handoff("b", [[6, 8]]),
      handoff("c", [[3, 6]], { deliveredAt: null }),
      handoff("d", [[6, 8]], { status: "superseded" }),
      handoff("e", [[6, 8]], { sourceThreadId: "thread_fork" }),
    ];
    expect(planRollback(facts({ handoffs })).handoffs).toEqual(["hnd_b", "hnd_c"]);
  });

  test("C9.4 C9.9 switches and merge-backs that rest on it are superseded, forks are not", () => {
    const at = (ordinal: number) => point({ ordinal });
    const elsewhere = point({ threadId: "thread_source", ordinal: 7 });
    const merge = { sourcePoint: elsewhere };
    const transfers = [
      transfer("provider_handoff", "a", { sourcePoint: at(8), basePoint: at(5) }),
      transfer("provider_handoff", "b", { sourcePoint: at(5) }),
      transfer("provider_handoff", "c", { sourcePoint: at(8), status: "consumed", targetRunId: "run_9" }),
      transfer("merge_back", "d", { ...merge, basePoint: at(6), status: "resolved_portable" }),
      transfer("merge_back", "e", { ...merge, basePoint: at(2) }),
      transfer("fork", "f", { sourcePoint: at(8), status: "resolved_native" }),
      transfer("merge_back", "g", { ...merge, basePoint: at(6), targetThreadId: "thread_x" }),
      transfer("subagent_result", "h", { sourcePoint: at(8) }),
    ];
    const handoffs = [
      handoff("d", [[1, 2]], { sourceThreadId: "thread_fork", transferId: "xfr_d", deliveredAt: null }),
      handoff("e", [[1, 2]], { sourceThreadId: "thread_fork", transferId: "xfr_e", deliveredAt: null }),
    ];
    expect(planRollback(facts({ transfers, handoffs }))).toMatchObject({
      transfers: ["xfr_a", "xfr_d"],
      handoffs: ["hnd_d"],
      rearm: null,
    });
  });

  test("C7.8 what a fork brought into a run that is taken back may be brought again", () => {
    const merge = transfer("merge_back", "m", { status: "consumed", targetRunId: "run_7" });
    const brought = (targetRunId: "run_4" | "run_7") =>
      handoff("m", [[1, 3]], { sourceThreadId: "thread_fork", transferId: "xfr_m", targetRunId });
    expect(planRollback(facts({ transfers: [merge], handoffs: [brought("run_7")] })).handoffs).toEqual([
      "hnd_m",
    ]);
    expect(planRollback(facts({ transfers: [merge], handoffs: [brought("run_4")] })).handoffs).toEqual([]);
  });

  const consumed = (more: Parameters<typeof transfer>[2] = {}) =>
    transfer("fork", "f", {
      status: "consumed",
      targetRunId: "run_1",
      resolution: { strategy: "portable_context", contextHandoffId: "hnd_f" },
      ...more,
    });
  const inherited = handoff("f", [[1, 3]], {
    sourceThreadId: "thread_source",
    transferId: "xfr_f",
    targetRunId: "run_1",
  });
  test.for<[string, number, Parameters<typeof consumed>[0], object]>([
    ["rolled back to its start gives its context again", 0, {}, { rearm: "xfr_f", handoffs: ["hnd_f"] }],
    ["rolled back to a run of its own keeps it", 1, {}, { rearm: null, handoffs: [] }],
    [
      "that was native is armed too",
      0,
      { resolution: { strategy: "native_fork", providerThreadRef: nativeRef("n") } },
      { rearm: "xfr_f" },
    ],
    ["that carried nothing has nothing to give again", 0, { resolution: null }, { rearm: null }],
    [
      "that waits still is left as it is",
      0,
      { status: "pending", targetRunId: null },
      { rearm: null, transfers: [] },
    ],
  ])("X-3 C9.8 a fork %s", ([, ordinal, more, expected]) => {
    const plan = planRollback(
      facts({ request: to(ordinal), transfers: [consumed(more)], handoffs: [inherited] }),
    );
    expect(plan).toMatchObject(expected);
  });
});

describe("provider threads", () => {
  const step = (record: NamedThread, more: Partial<RollbackFacts> = {}) =>
    planRollback(facts({ providerThreads: [record], activeProviderThreadId: record.id, ...more }));
  const near = providerThread("a", [[1, 8]]);

  test("S3-59 C9.5 one that knows nothing of it is untouched, one that does is never resumed", () => {
    const providerThreads = [
      providerThread("a", [[1, 5]]),
      farThread("b", [[6, 8]]),
      providerThread("c", [[1, 1]], { handoffIds: ["hnd_x"] }),
      providerThread("d", [[1, 8]], { continuity: "divergent" }),
    ];
    const plan = planRollback(
      facts({ providerThreads, handoffs: [handoff("x", [[2, 6]])], activeProviderThreadId: "pth_a" }),
    );
    expect(plan.providerThreads).toEqual([
      { id: "pth_a", action: "untouched" },
      { id: "pth_b", action: "divergent" },
      { id: "pth_c", action: "divergent" },
      { id: "pth_d", action: "untouched" },
    ]);
    expect(plan.activeProviderThreadId).toBe("pth_a");
  });

  test("S3-60 S2-11 C9.5 the active one is rolled back where it can be, and its coverage trimmed", () => {
    const plan = step(near);
    expect(plan.providerThreads).toEqual([
      {
        id: "pth_a",
        action: "roll_back",
        boundary: { kind: "after_turn", turn: nativeRef("turn-5"), laterTerminalTurns: 3 },
        turns: near.turns,
        nativeRunOrdinals: [[1, 5]],
        handoffIds: [],
      },
    ]);
    expect(plan.activeProviderThreadId).toBe("pth_a");
  });

  test("C9.5 S3-11 what was told in a turn that goes is no longer known, and what was told earlier is", () => {
    const handoffs = [
      handoff("a", [[2, 3]], { targetRunId: "run_4" }),
      handoff("b", [[5, 5]], { targetRunId: "run_6" }),
    ];
    const record = providerThread(
      "a",
      [
        [1, 1],
        [4, 4],
        [6, 8],
      ],
      { handoffIds: ["hnd_a", "hnd_b"] },
    );
    expect(step(record, { handoffs })).toMatchObject({
      // It tells of run 5, which stays: the record is kept, and counts for this provider thread no more.
      handoffs: [],
      providerThreads: [
        {
          boundary: { kind: "after_turn", turn: nativeRef("turn-4"), laterTerminalTurns: 3 },
          nativeRunOrdinals: [
            [1, 1],
            [4, 4],
          ],
          handoffIds: ["hnd_a"],
        },
      ],
    });
  });

  test("C9.5 all of it goes: to its start, or to before its first turn where the provider had forked it", () => {
    expect(step(providerThread("a", [[6, 8]])).providerThreads).toMatchObject([
      { action: "roll_back", boundary: { kind: "start" }, nativeRunOrdinals: [] },
    ]);
    expect(step(providerThread("a", [[6, 8]], { forkedFrom: nativeRef("s") })).providerThreads).toMatchObject(
      [{ boundary: { kind: "before_turn", turn: nativeRef("turn-6"), laterTerminalTurns: 3 } }],
    );
  });

  test("S0-54 C9.5 counts turns and not runs, where a run took several", () => {
    const twice = (ordinal: number) =>
      ["a", "b"].map((at) => ({ ordinal, ref: nativeRef(`turn-${ordinal}${at}`) }));
    const turns = [...near.turns.slice(0, 4), ...twice(5), ...twice(6), ...near.turns.slice(6)];
    expect(step({ ...near, turns }).providerThreads).toMatchObject([
      { boundary: { kind: "after_turn", turn: nativeRef("turn-5b"), laterTerminalTurns: 4 } },
    ]);
    expect(
      step({
        ...near,
        nativeRunOrdinals: [[6, 8]],
        turns: turns.slice(6),
        forkedFrom: nativeRef("s"),
      }).providerThreads,
    ).toMatchObject([
      { boundary: { kind: "before_turn", turn: nativeRef("turn-6a"), laterTerminalTurns: 4 } },
    ]);
  });

  test("C9.5 where the loop is ours nobody has to be asked, and no turn needs a name", () => {
    expect(
      step({ ...near, turns: [] }, { loop: "ours", request: to(5, "demanded") }).providerThreads,
    ).toMatchObject([{ action: "roll_back", boundary: null, nativeRunOrdinals: [[1, 5]] }]);
  });

  test("C9.5 one of ours is rolled back whether it is active or not, and whoever has refused", () => {
    const ours = { ...near, id: "pth_ours" as const, nativeThreadRef: null, turns: [] };
    const providerThreads = [ours, { ...ours, id: "pth_unsure" as const, status: "error" as const }];
    const handoffs = [handoff("a", [[1, 1]], { targetRunId: "run_7" })];
    for (const native of ["allowed", "avoided"] as const) {
      const plan = planRollback(facts({ providerThreads, handoffs, request: to(5, native) }));
      expect(plan.providerThreads).toMatchObject([
        { action: "roll_back", boundary: null, turns: [], nativeRunOrdinals: [[1, 5]] },
        { action: "divergent" },
      ]);
      expect(planRollback(facts({ providerThreads, request: to(0, native) })).providerThreads).toMatchObject([
        { action: "divergent" },
        { action: "divergent" },
      ]);
    }
  });

  test("C9.6 what a conversation holds whose rollback was cut off is not known", () => {
    expect(step({ ...near, status: "error" }).providerThreads).toEqual([
      { id: "pth_a", action: "divergent" },
    ]);
  });

  test("C9.5 S0-54 nothing is counted over a turn without a name: it may not be there", () => {
    const turns = [...near.turns, { ordinal: 8, ref: null }];
    expect(step({ ...near, turns }).providerThreads).toMatchObject([{ action: "divergent" }]);
    const start = { nativeRunOrdinals: [[6, 8]] as const, turns: turns.filter(({ ordinal }) => ordinal > 5) };
    expect(step({ ...near, ...start }).providerThreads).toMatchObject([{ action: "divergent" }]);
  });

  test("C9.5 a conversation that ends elsewhere than at the turn that was named is known by its head", () => {
    const [five, six] = [nativeRef("turn-5"), nativeRef("turn-6")];
    const after = { kind: "after_turn", turn: five, laterTerminalTurns: 3 } as const;
    expect([five, null, six].map((head) => endsAt(after, near.turns, head))).toEqual([true, true, false]);
    const other = nativeRef("of the source");
    for (const boundary of [{ kind: "start" }, { ...after, kind: "before_turn" }] as const)
      expect([other, null, six].map((head) => endsAt(boundary, near.turns, head))).toEqual([
        true,
        true,
        false,
      ]);
  });

  test.for<[string, Partial<NamedThread>]>([
    ["the last turn that stays has no name", { turns: [...near.turns, { ordinal: 5, ref: null }] }],
    ["no turn is known of the run that stays", { turns: near.turns.filter(({ ordinal }) => ordinal !== 5) }],
    ["no turn is known of a run that goes", { turns: near.turns.filter(({ ordinal }) => ordinal !== 7) }],
    [
      "all goes, and no turn is known of one of the runs",
      { nativeRunOrdinals: [[6, 8]], turns: near.turns.filter(({ ordinal }) => ordinal > 6) },
    ],
    [
      "all goes that was not forked with it, and its first turn has no name",
      {
        nativeRunOrdinals: [[6, 6]],
        turns: [
          { ordinal: 6, ref: null },
          { ordinal: 6, ref: nativeRef("turn-6") },
        ],
        forkedFrom: nativeRef("s"),
      },
    ],
  ])("C9.5 C9.6 nothing is guessed where %s", ([, more]) => {
    expect(step({ ...near, ...more }).providerThreads).toMatchObject([{ action: "divergent" }]);
  });

  test.for<[string, NamedThread, Partial<RollbackFacts>, string]>([
    ["S0-56 it cannot", near, { capabilities: unable }, "ROLLBACK_NATIVE_UNSUPPORTED"],
    ["nobody can be asked", near, { capabilities: null }, "ROLLBACK_NATIVE_UNSUPPORTED"],
    ["no turn has a name", { ...near, turns: [] }, {}, "ROLLBACK_TURN_UNAVAILABLE"],
  ])("S3-61 C9.6 %s: the next run begins anew, and who demands it is refused", ([, record, more, code]) => {
    expect(step(record, more)).toMatchObject({
      providerThreads: [{ action: "divergent" }],
      activeProviderThreadId: null,
    });
    expect(() => step(record, { ...more, request: to(5, "demanded") })).toThrow(refused(code));
  });

  test("C9.6 where it has refused, it is not asked again", () => {
    expect(step(near, { request: to(5, "avoided") })).toMatchObject({
      providerThreads: [{ action: "divergent" }],
      activeProviderThreadId: null,
    });
  });

  test("C9.6 a demand asks nothing of one that knows nothing of it", () => {
    const plan = step(providerThread("a", [[1, 5]]), { request: to(5, "demanded"), capabilities: unable });
    expect(plan.providerThreads).toEqual([{ id: "pth_a", action: "untouched" }]);
  });
});

describe("the snapshot", () => {
  test.for<[string, Partial<RollbackFacts>, RollbackPlan["snapshot"]]>([
    ["the revision of the run that stays", {}, { retained: 5, supersedes: [[6, 8]] }],
    ["the empty one at the start", { request: to(0), revision: 3 }, { retained: 0, supersedes: [[1, 3]] }],
    [
      "that of an earlier run where this one has none",
      { reader: thread([...eight.slice(0, 4), { nextContextRevision: null }, {}]), revision: 5 },
      { retained: 4, supersedes: [[5, 5]] },
    ],
    [
      "after a rollback, everything since",
      {
        reader: thread([...eight, { nextContextRevision: 10 }, { nextContextRevision: 11 }], {
          rolledBack: [[6, 8]],
        }),
        request: to(3),
        revision: 11,
      },
      { retained: 3, supersedes: [[4, 11]] },
    ],
  ])("C9.7 is projected again from %s", ([, more, snapshot]) => {
    expect(planRollback(facts(more)).snapshot).toEqual(snapshot);
  });
});
