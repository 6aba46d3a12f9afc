/** What a run starts with: the strategies by number, merge-backs, switches of earlier attempts. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { gapOf, handoffsIn } from "../../../src/lineage/coverage.ts";
import { candidateOf } from "../../../src/lineage/start-candidates.ts";
import { resolveStartContext } from "../../../src/lineage/start-context.ts";
import type { StartPlan } from "../../../src/lineage/start-plan.ts";
import { DEFAULT_LINEAGE_LIMITS } from "../../../src/protocol/lineage-limits.ts";
import { addOrdinal, NO_ORDINALS, type OrdinalRange, overlap } from "../../../src/protocol/ordinals.ts";
import type { ProviderThreadRecord } from "../../../src/protocol/provider-thread.ts";
import { STALENESS_SIGNALS, TRANSFER_TYPES } from "../../../src/protocol/transfer.ts";
import {
  capabilities,
  farThread,
  handoff,
  MUTE,
  point,
  providerThread,
  transfer,
  startFacts,
  type StartChanges,
} from "./records.ts";

const base = (changes: StartChanges): StartPlan["base"] => resolveStartContext(startFacts(changes)).base;
const far = { provider: "far", instanceId: "far-1", driver: "far" } as const;

/** Runs 1 to 5 near, 6 to 8 far. */
const switched: StartChanges = {
  ordinal: 9,
  providerThreads: [providerThread("c1", [[1, 5]]), farThread("l1", [[6, 8]], { handoffIds: ["hnd_1"] })],
  handoffs: [handoff("1", [[1, 5]])],
};
const delivered = (count: number) => ({
  handoffs: Array.from({ length: count }, (_, at) => handoff(`d${at}`, [[1, 1]])),
  providerThreads: [
    providerThread("c1", [[1, 5]], {
      handoffIds: Array.from({ length: count }, (_, at) => `hnd_d${at}` as const),
    }),
  ],
});

describe("the candidate (C4.3)", () => {
  const chosen = (...providerThreads: readonly ProviderThreadRecord[]) =>
    candidateOf(startFacts({ providerThreads }))?.id;
  test.for<[string, readonly ProviderThreadRecord[], string | undefined]>([
    ["none without provider threads", [], undefined],
    ["another instance is none", [providerThread("a", [[1, 1]], { instanceId: "near-2" })], undefined],
    ["another driver of that name is none", [providerThread("a", [[1, 1]], { driver: "other" })], undefined],
    ["a subagent's is none", [providerThread("a", [[1, 1]], { ownerNodeId: "node" })], undefined],
    ["a divergent one is none", [providerThread("a", [[1, 1]], { continuity: "divergent" })], undefined],
    ["a closed one is none", [providerThread("a", [[1, 1]], { status: "closed" })], undefined],
    ["an archived one is none", [providerThread("a", [[1, 1]], { status: "archived" })], undefined],
    ["one that never ran anything is none", [providerThread("a", [])], undefined],
    ["one that is not loaded is", [providerThread("a", [[1, 1]], { status: "not_loaded" })], "pth_a"],
    ["the latest run decides", [providerThread("a", [[1, 4]]), providerThread("b", [[5, 5]])], "pth_b"],
    [
      "then the latest change",
      [providerThread("a", [[1, 4]], { updatedAt: 1 }), providerThread("b", [[4, 4]], { updatedAt: 2 })],
      "pth_b",
    ],
    ["then the id", [providerThread("b", [[1, 4]]), providerThread("a", [[4, 4]])], "pth_a"],
    [
      "C1.6 another name of the same instance is",
      [providerThread("a", [[1, 1]], { provider: "alias" })],
      "pth_a",
    ],
  ])("C4.3 %s", ([, records, id]) => {
    expect(chosen(...records)).toBe(id);
  });

  test("X-14 each provider is returned to by its own provider thread", () => {
    const records = [
      providerThread(
        "a",
        [
          [1, 1],
          [3, 3],
        ],
        { handoffIds: ["hnd_b"] },
      ),
      farThread("b", [[2, 2]], { handoffIds: ["hnd_a"] }),
    ];
    const plan = base({
      ordinal: 4,
      target: far,
      providerThreads: records,
      handoffs: [handoff("a", [[1, 1]])],
    });
    expect(plan).toMatchObject({
      kind: "handoff",
      into: "existing",
      providerThreadId: "pth_b",
      runs: [[3, 3]],
    });
  });
});

describe("strategies", () => {
  const full = { kind: "handoff", transferId: null, baseOrdinal: null } as const;
  test.for<[string, StartChanges, StartPlan["base"] | object]>([
    [
      "S3-25 C4.5 1: the first run of a thread",
      {},
      { kind: "none", providerThreadId: null, transferId: null },
    ],
    [
      "S0-43 S3-10 S3-14 C4.5 1: the same provider goes on",
      { ...switched, target: far },
      { kind: "none", providerThreadId: "pth_l1", transferId: null },
    ],
    [
      "S0-9 S3-9 C4.8 4: runs 1 to 5 on one provider, run 6 on another",
      { ordinal: 6, target: far, providerThreads: [providerThread("c1", [[1, 5]])] },
      {
        ...full,
        into: "new",
        providerThreadId: null,
        coverage: "full",
        runs: [[1, 5]],
        sourceOrdinal: 5,
        staleness: [],
      },
    ],
    [
      "S3-3 S3-11 S3-13 S3-26 S0-68 C4.6 2: a return with a gap",
      switched,
      {
        ...full,
        into: "existing",
        providerThreadId: "pth_c1",
        coverage: "delta",
        runs: [[6, 8]],
        baseOrdinal: 5,
        sourceOrdinal: 8,
      },
    ],
    ["C4.6 2: three handoffs are within the limit", { ...switched, ...delivered(3) }, { coverage: "delta" }],
    [
      "S3-27 C4.7 3: a fourth handoff in the chain",
      { ...switched, ...delivered(4) },
      {
        ...full,
        into: "existing",
        providerThreadId: "pth_c1",
        coverage: "full",
        runs: [[1, 8]],
        sourceOrdinal: 8,
      },
    ],
    [
      "C4.6 2: four ranges are within the limit",
      {
        ordinal: 10,
        providerThreads: [
          providerThread("a", [
            [2, 2],
            [4, 4],
            [6, 6],
          ]),
        ],
      },
      {
        coverage: "delta",
        runs: [
          [1, 1],
          [3, 3],
          [5, 5],
          [7, 9],
        ],
        baseOrdinal: 6,
      },
    ],
    [
      "S3-27 C4.7 3: five ranges are not",
      {
        ordinal: 10,
        providerThreads: [
          providerThread("a", [
            [2, 2],
            [4, 4],
            [6, 6],
            [8, 8],
          ]),
        ],
      },
      { into: "existing", coverage: "full", runs: [[1, 9]] },
    ],
    [
      "S3-28 S3-32 C4.8 4: a chain over the hard limit",
      { ...switched, ...delivered(7) },
      { into: "new", coverage: "full", runs: [[1, 8]], staleness: ["handoff_chain"] },
    ],
    [
      "S3-4 S3-34 C4.15 4: it could not be resumed",
      { ...switched, failedResume: ["pth_c1"] },
      { into: "new", coverage: "full", staleness: ["resume_failed"] },
    ],
    [
      "S3-5 S3-33 4: settings that do not go together",
      { ...switched, target: { change: "handoff" } },
      { into: "new", coverage: "full", staleness: ["incompatible_settings"] },
    ],
    [
      "S3-6 S3-37 4: a delta that is too large",
      { ...switched, target: { deltaFits: false } },
      { into: "new", coverage: "full", staleness: ["delta_too_large"] },
    ],
    [
      "S3-31 4: too many runs elsewhere",
      { ordinal: 30, providerThreads: [providerThread("a", [[1, 1]])] },
      { into: "new", coverage: "full", staleness: ["off_provider_runs"] },
    ],
    [
      "S3-35 C9.5 4: a divergent one, its signal kept",
      { ordinal: 9, providerThreads: [providerThread("a", [[1, 8]], { continuity: "divergent" })] },
      { into: "new", coverage: "full", runs: [[1, 8]], staleness: ["divergent"] },
    ],
    [
      "S3-36 4: a clean context, even where nothing is missing",
      { ordinal: 6, target: { cleanContext: true }, providerThreads: [providerThread("a", [[1, 5]])] },
      { into: "new", coverage: "full", runs: [[1, 5]], staleness: ["clean_context"] },
    ],
    [
      "C4.15 4: what could not be resumed is not resumed, even where nothing is missing",
      { ordinal: 6, failedResume: ["pth_a"], providerThreads: [providerThread("a", [[1, 5]])] },
      { into: "new", coverage: "full", staleness: ["resume_failed"] },
    ],
    [
      "S3-30 C4.10: nothing is missing, so a long chain and a delta too large do not matter",
      { ordinal: 6, ...delivered(7), target: { deltaFits: false } },
      { kind: "none", providerThreadId: "pth_c1" },
    ],
    [
      "S0-47 S3-29 C4.9 5: no channel",
      { ...switched, target: { capabilities: MUTE } },
      { code: "CONTEXT_UNSUPPORTED" },
    ],
    [
      "C4.9: no channel is needed where nothing is missing",
      { ordinal: 6, providerThreads: [providerThread("a", [[1, 5]])], target: { capabilities: MUTE } },
      { kind: "none", providerThreadId: "pth_a" },
    ],
    [
      "C4.9: no delta, so the whole goes into the existing one",
      { ...switched, target: { capabilities: capabilities({ context: { delta: false } }) } },
      { into: "existing", coverage: "full" },
    ],
    [
      "C4.9: nothing but deltas, so a soft limit gives way",
      { ...switched, ...delivered(4), target: { capabilities: capabilities({ context: { full: false } }) } },
      { into: "existing", coverage: "delta" },
    ],
    [
      "S3-29 C4.9 5: nothing but deltas, and no provider thread",
      { ordinal: 6, target: { ...far, capabilities: capabilities({ context: { full: false } }) } },
      { kind: "unsupported", code: "CONTEXT_UNSUPPORTED" },
    ],
    [
      "S3-29 C4.9 5: neither of the two",
      { ...switched, target: { capabilities: capabilities({ context: { delta: false, full: false } }) } },
      { kind: "unsupported" },
    ],
    [
      "X-2 C4.5: every outcome is told, void and rolled-back runs are not",
      { ...switched, ordinal: 12, voided: [[10, 10]], rolledBack: [[7, 7]] },
      {
        coverage: "delta",
        runs: [
          [6, 6],
          [8, 9],
          [11, 11],
        ],
        sourceOrdinal: 11,
      },
    ],
    [
      "X-1: an attempt that was refused left an empty provider thread, and it is used",
      { ordinal: 6, target: far, providerThreads: [providerThread("c1", [[1, 5]]), farThread("l1", [])] },
      { into: "new", providerThreadId: "pth_l1", coverage: "full" },
    ],
    [
      "X-1: the same for the first run of a thread",
      { providerThreads: [providerThread("a", [])] },
      { kind: "none", providerThreadId: "pth_a" },
    ],
    [
      "an empty one of another model is left alone",
      { providerThreads: [providerThread("a", [], { model: "other" })] },
      { kind: "none", providerThreadId: null },
    ],
    [
      "S1-26 S1-27 C4.14: projected-only never goes on with anything",
      { ...switched, continuity: "projected-only" },
      { kind: "projected", transferId: null },
    ],
  ])("%s", ([, changes, expected]) => {
    expect(base(changes)).toMatchObject(expected);
  });
});

describe("pending transfers", () => {
  const merge = (id: string, more = {}) =>
    transfer("merge_back", id, {
      basePoint: point({ ordinal: 2 }),
      sourceThreadId: `thread_${id}`,
      ...more,
    });

  test("C4.11 C7.4 C7.5 merge-backs are appended in the order of their creation", () => {
    const pending = [
      merge("b", { createdAt: 9 }),
      merge("c", { createdAt: 2 }),
      merge("a", { createdAt: 9 }),
    ];
    const plan = resolveStartContext(startFacts({ ...switched, pending }));
    expect(plan.mergeBacks).toEqual(["xfr_c", "xfr_b", "xfr_a"]);
    expect(plan.base).toMatchObject({ kind: "handoff", coverage: "delta", transferId: null });
  });

  test("C7.5 of one fork the newest is told, and the others are obsolete", () => {
    const one = { sourceThreadId: "thread_fork" } as const;
    const pending = [
      merge("old", { ...one, createdAt: 1 }),
      merge("other", { createdAt: 2 }),
      merge("new", { ...one, createdAt: 3 }),
    ];
    const plan = resolveStartContext(startFacts({ ...switched, pending }));
    expect(plan.mergeBacks).toEqual(["xfr_other", "xfr_new"]);
    expect(plan.obsolete).toEqual(["xfr_old"]);
  });

  test.for([
    ["S0-42 into another thread", { targetThreadId: "thread_x" }],
    ["C8.9 on a base that was rolled back", { staleBase: true }],
    ["consumed", { status: "consumed" }],
    ["superseded", { status: "superseded" }],
    ["failed", { status: "failed" }],
  ] as const)("%s is not considered", ([, more]) => {
    expect(resolveStartContext(startFacts({ pending: [merge("a", more)] })).mergeBacks).toEqual([]);
  });

  test("C4.9 a merge-back that no channel can take makes the start unsupported", () => {
    const plan = resolveStartContext(startFacts({ pending: [merge("a")], target: { capabilities: MUTE } }));
    expect(plan).toMatchObject({
      base: { kind: "unsupported", code: "CONTEXT_UNSUPPORTED" },
      mergeBacks: [],
    });
  });

  test("C4.14 projected-only takes the snapshot alone", () => {
    const plan = resolveStartContext(startFacts({ continuity: "projected-only", pending: [merge("a")] }));
    expect(plan).toMatchObject({ base: { kind: "projected" }, mergeBacks: [] });
  });

  const delta = {
    targetProvider: "near",
    basePoint: point({ ordinal: 5 }),
    sourcePoint: point({ ordinal: 8 }),
  };
  test("C4.13 X-1 a switch that was not accepted is resolved by the next attempt", () => {
    const pending = [transfer("provider_handoff", "s", { ...delta, status: "resolved_portable" })];
    expect(resolveStartContext(startFacts({ ...switched, pending }))).toMatchObject({
      base: { coverage: "delta", transferId: "xfr_s" },
      obsolete: [],
    });
  });

  test.for([
    ["to another provider", { targetProvider: "far" }],
    ["from another base", { basePoint: null }],
    ["up to another run", { sourcePoint: point({ ordinal: 7 }) }],
    ["for another reason", { staleness: ["resume_failed" as const] }],
  ] as const)("X-5 C4.16 a switch %s is obsolete", ([, more]) => {
    const pending = [transfer("provider_handoff", "s", { ...delta, ...more })];
    expect(resolveStartContext(startFacts({ ...switched, pending }))).toMatchObject({
      base: { coverage: "delta", transferId: null },
      obsolete: ["xfr_s"],
    });
  });

  test("X-5 a switch that could not start leaves the thread where it was", () => {
    const pending = [transfer("provider_handoff", "s", { targetProvider: "far" })];
    const providerThreads = [providerThread("c1", [[1, 5]]), farThread("l1", [])];
    expect(resolveStartContext(startFacts({ ordinal: 6, providerThreads, pending }))).toEqual({
      base: { kind: "none", providerThreadId: "pth_c1", transferId: null },
      mergeBacks: [],
      obsolete: ["xfr_s"],
    });
  });
});

const ordinals = fc
  .uniqueArray(fc.integer({ min: 1, max: 9 }))
  .map((list) => list.reduce<readonly OrdinalRange[]>(addOrdinal, NO_ORDINALS));
const someRecord = fc.record({
  native: ordinals,
  continuity: fc.constantFrom("ok" as const, "divergent" as const),
  status: fc.constantFrom("idle" as const, "error" as const, "archived" as const, "not_loaded" as const),
  near: fc.boolean(),
  inside: fc.uniqueArray(fc.constantFrom("hnd_0" as const, "hnd_1" as const, "hnd_2" as const)),
});
const someFacts = fc
  .record({
    continuity: fc.constantFrom("resume-native" as const, "projected-only" as const),
    ordinal: fc.integer({ min: 1, max: 10 }),
    rolledBack: ordinals,
    voided: ordinals,
    records: fc.array(someRecord, { maxLength: 4 }),
    told: fc.array(ordinals, { minLength: 3, maxLength: 3 }),
    pending: fc.array(
      fc.record({
        type: fc.constantFrom(...TRANSFER_TYPES),
        strategy: fc.constantFrom("auto", "native", "replay", "none", "new_session", "delta_context"),
        status: fc.constantFrom("pending" as const, "resolved_native" as const, "resolved_portable" as const),
      }),
      { maxLength: 4 },
    ),
    channels: fc.boolean(),
    delta: fc.boolean(),
    full: fc.boolean(),
    cleanContext: fc.boolean(),
    change: fc.constantFrom("apply_next_turn" as const, "restart_session" as const, "handoff" as const),
    deltaFits: fc.constantFrom(null, true, false),
    failed: fc.boolean(),
    soft: fc.integer({ min: 0, max: 3 }),
  })
  .map((some) =>
    startFacts({
      continuity: some.continuity,
      ordinal: some.ordinal,
      rolledBack: some.rolledBack,
      voided: some.voided,
      providerThreads: some.records.map(({ native, near, inside, ...rest }, at) =>
        (near ? providerThread : farThread)(String(at), native, { ...rest, handoffIds: inside }),
      ),
      handoffs: some.told.map((runs, at) => handoff(String(at), runs, at === 2 ? { deliveredAt: null } : {})),
      pending: some.pending.map(({ type, strategy, status }, at) =>
        transfer(type, String(at), { requestedStrategy: strategy, status }),
      ),
      failedResume: some.failed ? ["pth_0"] : [],
      limits: {
        ...DEFAULT_LINEAGE_LIMITS,
        handoffsSoft: some.soft,
        gapRangesSoft: some.soft,
        handoffsHard: 2,
      },
      target: {
        cleanContext: some.cleanContext,
        change: some.change,
        deltaFits: some.deltaFits,
        capabilities: capabilities({
          context: { channels: some.channels ? ["system"] : [], delta: some.delta, full: some.full },
        }),
      },
    }),
  );

describe("laws of the plan", () => {
  test("C4.1 C4.5 C4.6 any facts give one plan, and it tells exactly what is missing", () => {
    fc.assert(
      fc.property(someFacts, (some) => {
        const before = structuredClone(some);
        const plan = resolveStartContext(some);
        expect(resolveStartContext(some)).toEqual(plan);
        expect(some).toEqual(before);
        const { base: what } = plan;
        const find = (id: string | null) => some.providerThreads.find((one) => one.id === id) ?? null;
        if (what.kind === "none") {
          // Whoever is resumed without a word knows everything that counts.
          const record = find(what.providerThreadId);
          expect(gapOf(some, record, some.handoffs)).toEqual([]);
          expect(record?.continuity ?? "ok").toBe("ok");
        }
        if (what.kind === "handoff") {
          expect(some.target.capabilities.context.channels).not.toEqual([]);
          expect(overlap(what.runs, some.rolledBack) || overlap(what.runs, some.voided)).toBe(false);
          const record = find(what.providerThreadId);
          if (what.into === "existing") {
            expect(record).toMatchObject({ continuity: "ok", instanceId: "near-1" });
            const gap = gapOf(some, record, some.handoffs);
            expect(gap).not.toEqual([]);
            if (what.coverage === "delta") expect(what.runs).toEqual(gap);
          } else {
            if (record !== null) expect(handoffsIn(record, some.handoffs)).toEqual([]);
            expect(STALENESS_SIGNALS).toEqual(expect.arrayContaining([...what.staleness]));
          }
          if (what.coverage !== "delta") expect(what.runs).toEqual(gapOf(some, null, []));
        }
        if (what.kind === "unsupported") {
          expect(what.text.length).toBeGreaterThan(20);
          expect([...plan.mergeBacks, ...plan.obsolete]).toEqual([]);
        }
        const spawned = some.pending.some(
          ({ type, status, requestedStrategy: strategy }) =>
            type === "subagent_spawn" && status !== "consumed" && strategy !== "none",
        );
        if (some.continuity === "projected-only" && !spawned)
          expect(["projected", "unsupported"]).toContain(what.kind);
      }),
      { numRuns: 500 },
    );
  });
});
