/** Room of a handoff, what goes in first, and what a long thread costs (C6.7 to C6.9). */
import { describe, expect, test } from "vitest";
import { budgetFor, Meter, type BudgetRequest } from "../../../src/lineage/handoff/budget.ts";
import { buildHandoff } from "../../../src/lineage/handoff/build.ts";
import { headChars } from "../../../src/lineage/handoff/words.ts";
import { byteLength } from "../../../src/platform/text.ts";
import { DEFAULT_LINEAGE_LIMITS } from "../../../src/protocol/lineage-limits.ts";
import {
  answer,
  between,
  built,
  call,
  chars,
  inputOf,
  pin,
  section,
  snapshot,
  thread,
  user,
} from "./handoff-fixtures.ts";

const limits = DEFAULT_LINEAGE_LIMITS;
const room = (changes: Partial<BudgetRequest> = {}) =>
  budgetFor({
    limits,
    configured: null,
    providerMaxChars: null,
    window: 1_000_000,
    occupied: 0,
    message: { text: "", images: 0, attachments: 0 },
    ...changes,
  });

describe("the budget", () => {
  test("C18.11 is a handoff's own where nothing else is narrower, with one byte as one token", () => {
    expect(room()).toEqual({ unit: "tokens", limit: 16_000, maxBytes: 16_000, maxChars: 16_000 });
  });

  test.for([
    [1, 1_024],
    [1_000_000, 64_000],
    [20_000, 20_000],
  ] as const)("C18.11 configured as %i tokens is %i", ([limit, expected]) => {
    expect(room({ configured: { unit: "tokens", limit } }).limit).toBe(expected);
  });

  test("C18.11 has a cap in bytes beside its tokens", () => {
    const narrow = { ...limits, handoffBytes: 9_000 };
    expect(room({ limits: narrow })).toMatchObject({ unit: "bytes", limit: 9_000, maxBytes: 9_000 });
  });

  test.for([
    [100, 1_024],
    [1_000_000, 200_000],
    [5_000, 5_000],
  ] as const)("C18.7 a seed configured as %i characters is %i", ([limit, expected]) => {
    expect(room({ configured: { unit: "chars", limit } })).toMatchObject({ unit: "chars", limit: expected });
  });

  test("C6.7 is what the provider recommends at most", () => {
    expect(room({ providerMaxChars: 3_000 })).toEqual({
      unit: "chars",
      limit: 3_000,
      maxBytes: 16_000,
      maxChars: 3_000,
    });
  });

  test("C6.7 is what the window leaves after what is in it, this message and a reserve", () => {
    const message = { text: "ä".repeat(500), images: 1, attachments: 2 };
    const spoken = 1_000 + 8_192 + 2 * 4_096;
    expect(room({ window: 100_000, occupied: 50_000, message }).limit).toBe(
      100_000 - 50_000 - spoken - 25_000,
    );
    expect(room({ window: 40_000, occupied: 20_000 }).limit).toBe(4_000);
    expect(room({ window: 40_000, occupied: 50_000 }).limit).toBe(0);
  });

  test("C18.11 takes an unknown window for one of 128 000 tokens", () => {
    const seed = { unit: "chars", limit: 200_000 } as const;
    expect(room({ window: null, configured: seed })).toMatchObject({ unit: "tokens", limit: 96_000 });
    expect(room({ window: null, occupied: 90_000 }).limit).toBe(6_000);
  });

  test("C6.7 a share spends from its whole, and neither goes over", () => {
    const meter = new Meter(100, 100);
    const half = meter.share(1 / 2);
    expect(half.take("x".repeat(51))).toBe(false);
    expect(half.take("x".repeat(50))).toBe(true);
    expect(meter.take("x".repeat(51))).toBe(false);
    expect(meter.take("ä".repeat(25))).toBe(true);
    expect(meter.fits("x")).toBe(false);
  });
});

const long = (name: string) => `${name} ${"-".repeat(400)}`;
const talk = (count: number) =>
  thread(Array.from({ length: count }, (_, at) => [user(long(`asked ${at}`)), answer(long(`said ${at}`))]));
const saidIn = (text: string): string[] => text.match(/(?:asked|said) \d+/g) ?? [];

describe("the selection", () => {
  test("C6.8 is the latest of both, the first of the user, then from the newest, in the order they were said", () => {
    const one = built(buildHandoff(inputOf([talk(20)], { budget: chars(2_150) })));
    expect(saidIn(one.text)).toEqual(["asked 0", "asked 19", "said 19"]);
    const more = built(buildHandoff(inputOf([talk(20)], { budget: chars(3_200) })));
    expect(saidIn(more.text)).toEqual(["asked 0", "asked 18", "said 18", "asked 19", "said 19"]);
  });

  test("C6.8 the latest message of the user comes before all others", () => {
    const { text } = built(buildHandoff(inputOf([talk(20)], { budget: chars(1_300) })));
    expect(saidIn(text)).toEqual(["asked 19"]);
  });

  test("C6.8 what was left out is counted and listed, with the tool that reads it", () => {
    const handoff = built(buildHandoff(inputOf([talk(20)], { budget: chars(2_150) })));
    const omitted = Array.from({ length: 37 }, (_, at) => at + 1);
    expect(handoff.about.payload).toMatchObject({ items: 3, omittedItemIds: omitted });
    expect(handoff.coveredRanges).toEqual([
      [0, 1],
      [38, 40],
    ]);
    expect(section(handoff.text, "Left out")).toBe(
      "== Left out ==\n37 messages (items 1 to 37). Read them with `read_thread`.\n",
    );
    expect(handoff.about.coveredRuns).toEqual([[1, 20]]);
  });

  test("C6.8 nothing is said to be left out where everything fits", () => {
    const handoff = built(buildHandoff(inputOf([talk(3)])));
    expect(handoff.text).not.toContain("Left out");
    expect(handoff.about.payload.omittedItemIds).toEqual([]);
    expect(handoff.coveredRanges).toEqual([[0, 6]]);
  });

  test("C6.8 a message that could never fit does not keep older ones out", () => {
    const source = thread([
      [user("first"), answer("small")],
      [user("x".repeat(9_000)), answer("y".repeat(9_000))],
    ]);
    const handoff = built(buildHandoff(inputOf([source], { budget: chars(3_000) })));
    expect(handoff.text).toContain("first");
    expect(handoff.text).toContain("small");
    expect(handoff.about.payload.omittedItemIds).toEqual([2, 3]);
  });

  test("C6.7 messages have room beside many pins, and pins beside many messages", () => {
    const pins = Array.from({ length: 200 }, (_, at) => pin(long(`pinned ${at}`)));
    const input = inputOf([talk(50)], { snapshot: snapshot({ decisions: pins }), budget: chars(16_000) });
    const { text } = built(buildHandoff(input));
    expect(text.match(/pinned \d+/g)!.length).toBeGreaterThan(10);
    expect(text).toContain("pinned 199");
    expect(saidIn(text).length).toBeGreaterThan(10);
    expect(section(text, "Left out")).toMatch(/\d+ lines of sections/);
  });

  test("C6.9 no pin keeps the only message out that fits", () => {
    const pins = snapshot({ decisions: [pin("p".repeat(180))] });
    const kinds = (given: Parameters<typeof inputOf>[1]) =>
      Array.from({ length: 120 }, (_, at) => {
        const build = buildHandoff(inputOf([talk(1)], { ...given, budget: chars(800 + at * 5) }));
        return build.kind === "built" && saidIn(build.text).length > 0;
      });
    expect(kinds({ snapshot: pins })).toEqual(kinds({ snapshot: snapshot() }));
    expect(new Set(kinds({ snapshot: pins }))).toEqual(new Set([false, true]));
  });

  test("C6.9 where not one message fits, nothing is built", () => {
    const source = thread([[user("x".repeat(5_000)), answer("y".repeat(5_000))]]);
    const budget = chars(2_000);
    const pins = snapshot({ decisions: [pin("small")] });
    expect(buildHandoff(inputOf([source], { budget, snapshot: pins }))).toEqual({
      kind: "failed",
      code: "HANDOFF_BUDGET_TOO_SMALL",
      budget,
      coveredRuns: [[1, 1]],
    });
    expect(buildHandoff(inputOf([talk(1)], { budget: chars(100) }))).toMatchObject({ kind: "failed" });
    expect(buildHandoff(inputOf([talk(1)], { budget: chars(0) }))).toMatchObject({ kind: "failed" });
  });

  test("C6.9 where there is nothing to tell, there is no frame either", () => {
    expect(buildHandoff(inputOf([thread([])]))).toEqual({ kind: "empty" });
    expect(buildHandoff(inputOf([]))).toEqual({ kind: "empty" });
    expect(buildHandoff(inputOf([thread([], { title: "only a title" })]))).toEqual({ kind: "empty" });
  });

  test("C6.9 a cut leaves whole characters and a mark", () => {
    expect(headChars("ab😀cd", 3)).toBe("ab");
    expect(headChars("😀".repeat(50), 62)).toMatch(/^(?:😀){17}… \[cut from 100 characters\]$/u);
    expect(headChars("short", 5)).toBe("short");
  });
});

describe("a long thread", () => {
  const busy = thread(
    Array.from({ length: 2_000 }, (_, at) => [
      user(long(`asked ${at}`)),
      call("bash", { command: `make ${at}` }, "x".repeat(200)),
      call("write_file", { path: `src/${at}.ts` }),
      answer(long(`said ${at}`)),
    ]),
  );

  test("C20.16 of 12 000 items costs what goes in, not what is there", () => {
    let redacted = 0;
    const input = inputOf([busy], {
      budget: room(),
      redact: (text) => {
        redacted += text.length;
        return text;
      },
    });
    expect(busy.items.length).toBe(12_000);
    const { text } = built(buildHandoff(input));
    expect(byteLength(text)).toBeLessThanOrEqual(16_000);
    expect(byteLength(text)).toBeGreaterThan(15_000);
    expect(redacted).toBeLessThan(8 * 16_000);
  });

  test("C6.8 is looked at once, item by item, and a delta at its own items alone", () => {
    const watched = (segment: ReturnType<typeof thread>) => {
      const reads = { count: 0 };
      const items = new Proxy(segment.items, {
        get(target, key, receiver) {
          if (typeof key === "string" && /^\d+$/.test(key)) reads.count += 1;
          return Reflect.get(target, key, receiver) as unknown;
        },
      });
      return { reads, segment: { ...segment, items } };
    };
    const whole = watched(busy);
    built(buildHandoff(inputOf([whole.segment], { budget: room() })));
    expect(whole.reads.count).toBeLessThanOrEqual(busy.items.length + 10);
    const delta = watched(between(busy, 1_990, 1_995));
    built(buildHandoff(inputOf([delta.segment], { budget: room(), extent: "delta" })));
    expect(delta.reads.count).toBeLessThanOrEqual(36 + 10);
  });
});
