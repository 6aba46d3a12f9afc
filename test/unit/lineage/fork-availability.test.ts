/** Which strategies a point allows, the boundary that a provider is told, and what a fork's first run starts with. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  forkAvailability,
  type ForkPointFacts,
  type ForkSource,
  nativeFork,
} from "../../../src/lineage/fork-availability.ts";
import { resolveStartContext } from "../../../src/lineage/start-context.ts";
import type { StartFacts } from "../../../src/lineage/start-plan.ts";
import {
  capabilities,
  farThread,
  MUTE,
  nativeRef,
  point,
  providerThread,
  transfer,
  startFacts,
} from "./records.ts";

const source: ForkSource = { ...providerThread("s", [[1, 5]]), ofChild: false, busy: false };
const at = (more: Partial<ForkPointFacts> = {}): ForkPointFacts => ({
  source,
  ordinal: 5,
  wholeRun: true,
  item: null,
  cut: "inclusive",
  carries: true,
  ...more,
});
const from = (more: Partial<ForkSource>) => at({ source: { ...source, ...more } });
const reach = (fork: "none" | "head" | "turn" | "item", more = {}) =>
  capabilities({ threads: { fork, ...more } });
const anywhere = { replay: true, target: null };
const weakTurns = [1, 2, 3, 4, 5].map((ordinal) => ({ ordinal, ref: nativeRef(`turn-${ordinal}`, "none") }));

describe("native", () => {
  const inside = at({ wholeRun: false, ordinal: 3, item: nativeRef("item-7") });
  test.for<[string, Parameters<typeof nativeFork>, unknown]>([
    [
      "S0-49 S2-11 S3-64 the end of a turn, by its name",
      [reach("turn"), at(), anywhere],
      { kind: "after_turn", turn: nativeRef("turn-5"), laterTerminalTurns: 0 },
    ],
    [
      "S0-50 S2-10 an earlier turn, with the turns behind it",
      [reach("item"), at({ ordinal: 3 }), anywhere],
      { kind: "after_turn", turn: nativeRef("turn-3"), laterTerminalTurns: 2 },
    ],
    [
      "S0-51 an earlier turn without a name that holds, to be counted back to",
      [reach("turn"), at({ ordinal: 3, source: { ...source, turns: weakTurns } }), anywhere],
      { kind: "after_turn", turn: nativeRef("turn-3", "none"), laterTerminalTurns: 2 },
    ],
    [
      "the head where its turn has no name that holds",
      [reach("turn"), from({ turns: weakTurns }), anywhere],
      { kind: "head" },
    ],
    [
      "C5.11 the head where its last turn has no name, and no turn before that",
      [reach("turn"), from({ turns: [...source.turns, { ordinal: 5, ref: null }] }), anywhere],
      { kind: "head" },
    ],
    [
      "C5.11 C5.18 not at an earlier run whose last turn has no name",
      [
        reach("turn"),
        at({ ordinal: 4, source: { ...source, turns: [...source.turns, { ordinal: 4, ref: null }] } }),
        anywhere,
      ],
      "turn_unknown",
    ],
    [
      "C5.18 an earlier turn by its name, with those behind it that have none",
      [
        reach("turn"),
        at({ ordinal: 4, source: { ...source, turns: [...source.turns, { ordinal: 5, ref: null }] } }),
        anywhere,
      ],
      { kind: "after_turn", turn: nativeRef("turn-4"), laterTerminalTurns: 2 },
    ],
    [
      "C5.18 not by counting, where it is not known how many turns a later run took",
      [
        reach("turn"),
        at({
          ordinal: 3,
          source: { ...source, turns: weakTurns.filter(({ ordinal }) => ordinal !== 4) },
        }),
        anywhere,
      ],
      "turn_unknown",
    ],
    ["the head where its turn has no name", [reach("turn"), from({ turns: [] }), anywhere], { kind: "head" }],
    [
      "S2-12 S2-45 the head, where only that can be forked",
      [reach("head"), at(), anywhere],
      { kind: "head" },
    ],
    [
      "C5.9 after an item",
      [reach("item"), inside, anywhere],
      { kind: "after_item", item: nativeRef("item-7") },
    ],
    [
      "C5.8 before an item",
      [reach("item"), { ...inside, cut: "exclusive" }, anywhere],
      { kind: "before_item", item: nativeRef("item-7") },
    ],
    [
      "S2-32 C20.7 not before the head, where only that can be forked",
      [reach("head"), at({ ordinal: 4 }), anywhere],
      "point_before_head",
    ],
    [
      "C20.7 not inside a turn, where turns are the finest",
      [reach("turn"), inside, anywhere],
      "point_inside_turn",
    ],
    [
      "C20.7 not at an item without a name",
      [reach("item"), { ...inside, item: null }, anywhere],
      "point_inside_turn",
    ],
    [
      "C9.9 X-11 not at a turn that a rollback took away",
      [
        reach("turn"),
        at({ ordinal: 4, source: { ...source, turns: source.turns.filter(({ ordinal }) => ordinal !== 4) } }),
        anywhere,
      ],
      "turn_unknown",
    ],
    ["S0-32 not where the provider cannot", [reach("none"), at(), anywhere], "no_fork"],
    [
      "S0-31 not with a weak name",
      [reach("turn"), from({ nativeThreadRef: nativeRef("x", "weak") }), anywhere],
      "weak_thread_ref",
    ],
    [
      "not without a native thread",
      [reach("turn"), from({ nativeThreadRef: null }), anywhere],
      "no_native_thread",
    ],
    [
      "S3-66 not without a provider thread",
      [reach("turn"), at({ source: null }), anywhere],
      "no_native_thread",
    ],
    [
      "S0-7 S3-65 C20.6 not on another provider",
      [reach("turn"), at(), { replay: true, target: { instanceId: "far-1", driver: "near" } }],
      "other_provider",
    ],
    [
      "C5.10 not where nothing is inherited",
      [reach("turn"), at({ carries: false }), anywhere],
      "nothing_to_carry",
    ],
    [
      "C5.18 not while the source is at work",
      [reach("turn", { forkIdleOnly: true }), from({ busy: true }), anywhere],
      "source_busy",
    ],
    ["C5.18 nor the head of one that may be", [reach("head"), from({ busy: true }), anywhere], "source_busy"],
    [
      "a finished turn of one that may be at work",
      [reach("turn"), from({ busy: true }), anywhere],
      { kind: "after_turn", turn: nativeRef("turn-5"), laterTerminalTurns: 0 },
    ],
    [
      "S3-67 not a subagent's, unless the provider can",
      [reach("turn"), from({ ofChild: true }), anywhere],
      "no_fork_of_child",
    ],
    [
      "S3-67 a subagent's where the provider can",
      [reach("head", { forkFromChild: true }), from({ ofChild: true }), anywhere],
      { kind: "head" },
    ],
  ])("C5.18 %s", ([, input, expected]) => {
    const place = nativeFork(...input);
    expect(typeof place === "string" ? place : place.boundary).toEqual(expected);
    if (typeof place !== "string") expect(place.sourceRef).toEqual(nativeRef("native-s"));
  });
});

describe("availability", () => {
  test.for<[string, Parameters<typeof forkAvailability>, object]>([
    ["S2-15 both", [reach("turn"), at(), anywhere], { native: true, replay: true }],
    [
      "S2-13 S2-32 replay only",
      [reach("head"), at({ ordinal: 2 }), anywhere],
      { native: "point_before_head", replay: true },
    ],
    [
      "native only",
      [reach("turn"), at(), { replay: false, target: null }],
      { native: true, replay: "replay_disabled" },
    ],
    [
      "S2-32 neither",
      [reach("head"), at({ ordinal: 2 }), { replay: false, target: null }],
      { native: "point_before_head", replay: "replay_disabled" },
    ],
    [
      "nothing to carry",
      [reach("turn"), at({ carries: false }), anywhere],
      { native: "nothing_to_carry", replay: "nothing_to_carry" },
    ],
  ])("C5.12 %s", ([, input, expected]) => {
    expect(forkAvailability(...input)).toEqual(expected);
  });

  test("C5.11 law: offered exactly when a place can be named, and a turn behind the point is never inside", () => {
    const some = fc.record({
      fork: fc.constantFrom("none" as const, "head" as const, "turn" as const, "item" as const),
      ordinal: fc.integer({ min: 1, max: 5 }),
      wholeRun: fc.boolean(),
      item: fc.constantFrom(null, nativeRef("item")),
      named: fc.boolean(),
    });
    fc.assert(
      fc.property(some, ({ fork, named, ...more }) => {
        const facts = at({ ...more, source: { ...source, turns: named ? source.turns : [] } });
        const place = nativeFork(reach(fork), facts, anywhere);
        const { native } = forkAvailability(reach(fork), facts, anywhere);
        expect(native === true).toBe(typeof place !== "string");
        if (typeof place === "string") return;
        if (place.boundary.kind === "head") expect(more.ordinal).toBe(5);
        if (place.boundary.kind === "after_turn") {
          expect(place.boundary).toMatchObject({
            turn: nativeRef(`turn-${more.ordinal}`),
            laterTerminalTurns: 5 - more.ordinal,
          });
        }
        expect(place.boundary.kind.endsWith("_item")).toBe(!more.wholeRun);
      }),
    );
  });
});

describe("the first run of a fork", () => {
  type Changes = Partial<Pick<StartFacts, "continuity" | "providerThreads" | "failedResume">> & {
    readonly transfer?: Parameters<typeof transfer>[2];
    readonly fork?: Partial<NonNullable<StartFacts["fork"]>> | null;
    readonly target?: Partial<StartFacts["target"]>;
  };
  const plan = ({ transfer: more, fork, target, ...rest }: Changes) =>
    resolveStartContext(
      startFacts({
        ...rest,
        pending: [transfer("fork", "f", more)],
        fork: fork === null ? null : { point: at(), replay: true, nativeFailed: false, ...fork },
        ...(target !== undefined && { target }),
      }),
    ).base;
  const far = { provider: "far", instanceId: "far-1", driver: "far" } as const;
  const noFork = capabilities({ threads: { fork: "none" } });
  const native = { kind: "native_fork", transferId: "xfr_f", sourceRef: nativeRef("native-s") };
  const text = {
    kind: "handoff",
    into: "new",
    transferId: "xfr_f",
    coverage: "full",
    runs: [],
    staleness: [],
  };
  const strict = { requestedStrategy: "native" } as const;
  const forked = {
    status: "resolved_native",
    resolution: { strategy: "native_fork", providerThreadRef: nativeRef("native-n") },
  } as const;
  const mine = providerThread("n", [], { forkedFrom: nativeRef("native-s") });

  test.for<[string, Changes, object]>([
    ["S0-6 S0-44 S3-64 C5.14 auto goes natively where it can", {}, native],
    ["S0-7 S3-65 C5.14 auto goes by text to another provider", { target: far }, text],
    [
      "S0-20 S0-32 S0-45 S2-12 C5.14 auto goes by text where the provider cannot",
      { target: { capabilities: noFork } },
      text,
    ],
    ["S2-20 C5.14 auto goes by text where the provider has failed", { fork: { nativeFailed: true } }, text],
    ["auto goes by text where a clean context is wanted", { target: { cleanContext: true } }, text],
    ["auto goes by text where nothing is known of the source", { fork: null }, text],
    [
      "S3-66 C4.8 auto gives a checkpoint where no native thread is behind it",
      {
        fork: { point: at({ source: null }) },
        transfer: { sourcePoint: point({ ordinal: 3, checkpointId: "ckp_1" }) },
      },
      { ...text, coverage: "checkpoint" },
    ],
    ["S0-31 C5.18 native is taken where it can be", { transfer: strict }, native],
    [
      "S2-18 C5.13 native is refused where it cannot",
      { transfer: strict, target: { capabilities: noFork } },
      { code: "FORK_NATIVE_UNSUPPORTED" },
    ],
    [
      "C20.6 native is refused on another provider",
      { transfer: strict, target: far },
      { code: "FORK_NATIVE_UNSUPPORTED" },
    ],
    [
      "S2-53 C5.13 native is not given up for a failure",
      { transfer: strict, fork: { nativeFailed: true } },
      native,
    ],
    [
      "S2-16 C5.15 replay never asks the provider to fork",
      { transfer: { requestedStrategy: "replay" } },
      text,
    ],
    [
      "C5.15 replay that is switched off",
      { transfer: { requestedStrategy: "replay" }, fork: { replay: false } },
      { code: "FORK_REPLAY_DISABLED" },
    ],
    [
      "S2-32 C5.15 auto that needs replay, switched off",
      { target: far, fork: { replay: false } },
      { code: "FORK_REPLAY_DISABLED" },
    ],
    ["auto that does not need it", { fork: { replay: false } }, native],
    [
      "C5.15 replay of nothing",
      { transfer: { requestedStrategy: "replay" }, fork: { point: at({ carries: false }) } },
      { code: "FORK_SEED_EMPTY" },
    ],
    [
      "S0-47 C4.9 text for a provider that takes none",
      { target: { ...far, capabilities: MUTE } },
      { code: "CONTEXT_UNSUPPORTED" },
    ],
    [
      "S2-38 C5.10 a fork that carries nothing starts like any thread",
      { transfer: { requestedStrategy: "none" } },
      { kind: "none", providerThreadId: null, transferId: "xfr_f" },
    ],
    [
      "S2-17 C5.16 a conversation that was only pointed at is not resolved",
      { transfer: { requestedStrategy: "new_session" } },
      { kind: "none", transferId: "xfr_f" },
    ],
    [
      "C5.19 X-4 a fork whose outcome is not known is not asked for again",
      { transfer: { intent: { id: "int_1", at: 1 } } },
      { code: "FORK_NATIVE_INDETERMINATE" },
    ],
    [
      "C5.19 it does not keep another provider from starting",
      { transfer: { intent: { id: "int_1", at: 1 } }, target: far },
      text,
    ],
    [
      "C4.13 X-4 a fork made for a refused attempt is resumed",
      { transfer: forked, providerThreads: [mine] },
      { kind: "none", providerThreadId: "pth_n", transferId: "xfr_f" },
    ],
    [
      "C4.13 and made anew where it cannot be",
      { transfer: forked, providerThreads: [mine], failedResume: ["pth_n"] },
      native,
    ],
    [
      "C4.13 and told by text to another provider",
      { transfer: forked, providerThreads: [mine], target: far },
      text,
    ],
    [
      "X-1 an empty provider thread of a refused attempt is used",
      { target: far, providerThreads: [farThread("e", [])] },
      { ...text, providerThreadId: "pth_e" },
    ],
    [
      "C4.14 projected-only opens on the snapshot",
      { continuity: "projected-only" },
      { kind: "projected", transferId: "xfr_f" },
    ],
    [
      "C4.14 C5.13 and refuses a strict native fork",
      { continuity: "projected-only", transfer: strict },
      { code: "FORK_NATIVE_UNSUPPORTED" },
    ],
    [
      "C4.14 C5.10 and a fork that carries nothing is over with it",
      { continuity: "projected-only", transfer: { requestedStrategy: "none" } },
      { kind: "projected", transferId: "xfr_f" },
    ],
  ])("C4.4 %s", ([, changes, expected]) => {
    expect(plan(changes)).toMatchObject(expected);
  });

  test("C4.4 a switch that was pending is obsolete beside a fork", () => {
    const pending = [transfer("fork", "f"), transfer("provider_handoff", "s")];
    const fork = { point: at(), replay: true, nativeFailed: false };
    const facts = startFacts({ pending, fork, target: far });
    expect(resolveStartContext(facts)).toMatchObject({ base: { transferId: "xfr_f" }, obsolete: ["xfr_s"] });
  });
});
