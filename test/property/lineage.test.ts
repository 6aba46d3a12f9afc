/** Laws of the projection of history, of canonical JSON and of redaction. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  inheritedItems,
  projectHistory,
  type HistoryRequest,
  type ForkTurns,
} from "../../src/lineage/project-history.ts";
import { canonicalJson } from "../../src/platform/canonical-json.ts";
import { createRedactor, redact } from "../../src/platform/redact.ts";
import type { RunId } from "../../src/protocol/ids.ts";
import type { AssistantPart, ItemBody, TranscriptItem } from "../../src/protocol/transcript.ts";

const text = fc.string({ maxLength: 8 });
const part: fc.Arbitrary<AssistantPart> = fc.oneof(
  text.map((value) => ({ type: "text" as const, text: value })),
  text.map((value) => ({ type: "reasoning" as const, text: value })),
  text.map((input) => ({ type: "tool_call" as const, callId: "c", name: "look", input })),
);
const body: fc.Arbitrary<ItemBody> = fc.oneof(
  fc.record({
    kind: fc.constant("user" as const),
    text,
    mailId: fc.constantFrom(null, "msg_1" as const),
    workId: fc.constantFrom(null, "wrk_1" as const),
    inherited: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant("assistant" as const),
    phase: fc.constantFrom("answer" as const, "intermediate" as const, "tools" as const),
    parts: fc.array(part, { maxLength: 3 }),
    model: fc.constant("m"),
    inherited: fc.boolean(),
  }),
  text.map((value) => ({
    kind: "mail" as const,
    mailId: "msg_2" as const,
    mail: "message" as const,
    author: "/root/a" as const,
    recipient: "/root" as const,
    workId: null,
    resultOf: null,
    text: value,
  })),
  text.map((output) => ({
    kind: "tool_result" as const,
    callId: "c",
    name: "look",
    output,
    isError: false,
    mailIds: [],
    waitId: null,
    elapsedMs: 0,
  })),
  text.map((value) => ({ kind: "context" as const, topic: "children" as const, text: value })),
);

/** A transcript in which each item belongs to the run before it or to the next one, and where the call stands. */
const history = fc
  .record({
    rows: fc.array(fc.record({ body, next: fc.boolean(), step: fc.nat(3) }), { maxLength: 40 }),
    woken: fc.array(fc.boolean(), { minLength: 41, maxLength: 41 }),
    before: fc.nat(40),
  })
  .map(({ rows, woken, before }): HistoryRequest => {
    let ordinal = 0;
    const items = rows.map((row, index): TranscriptItem => {
      if (row.next) ordinal += 1;
      const runId: RunId | null = ordinal === 0 ? null : `run_${ordinal}`;
      return { ...row.body, index, runId, step: row.step, at: index };
    });
    const runs = Array.from({ length: ordinal }, (_, at) => ({
      id: `run_${at + 1}` as const,
      ordinal: at + 1,
      woken: woken[at]!,
    }));
    const call = Math.min(before, items.length);
    return {
      items,
      before: call,
      runs,
      currentRun: items[call - 1]?.runId ?? null,
      turns: "all",
    };
  });
const turns: fc.Arbitrary<ForkTurns> = fc.oneof(
  fc.constantFrom("none" as const, "all" as const),
  fc.integer({ min: 1, max: 12 }),
);

const indexes = (request: HistoryRequest): number[] => projectHistory(request).map(({ index }) => index);

const inherited = (request: HistoryRequest) =>
  inheritedItems({
    kept: projectHistory(request),
    pinned: "",
    leftOut: 0,
    parent: "/root",
    redact,
    toOtherProvider: false,
  });

describe("the projection", () => {
  test("SPN-5 holds no call, result, mail, reasoning, interim text or note of the parent, and nothing from the call on", () => {
    fc.assert(
      fc.property(history, turns, (request, count) => {
        const items = inherited({ ...request, turns: count });
        for (const item of items.slice(0, -1)) {
          expect(item).toMatchObject({ inherited: true });
          if (item.kind === "assistant") {
            expect(item.phase).toBe("answer");
            expect(item.parts.every((one) => one.type === "text")).toBe(true);
          } else expect(item).toMatchObject({ kind: "user", mailId: null, workId: null });
        }
        if (items.length > 0)
          expect(items.at(-1)).toMatchObject({ kind: "context", topic: "inherited_history" });
        for (const index of indexes({ ...request, turns: count })) {
          const item = request.items[index]!;
          expect(index).toBeLessThan(request.before);
          if (item.runId === request.currentRun && item.runId !== null) expect(item.kind).toBe("user");
        }
      }),
    );
  });

  test("SPN-5 keeps the order, and each item its kind", () => {
    fc.assert(
      fc.property(history, turns, (request, count) => {
        const items = inherited({ ...request, turns: count });
        const held = indexes({ ...request, turns: count });
        expect(held).toEqual(held.toSorted((a, b) => a - b));
        expect(items.length).toBe(held.length === 0 ? 0 : held.length + 1);
        held.forEach((index, at) => expect(items[at]!.kind).toBe(request.items[index]!.kind));
      }),
    );
  });

  test("SPN-5 a greater number holds all that a smaller one holds, and all holds the most", () => {
    fc.assert(
      fc.property(history, fc.integer({ min: 1, max: 10 }), (request, count) => {
        const [fewer, more, every] = [count, count + 1, "all" as const].map(
          (n) => new Set(indexes({ ...request, turns: n })),
        );
        expect(fewer!.isSubsetOf(more!) && more!.isSubsetOf(every!)).toBe(true);
      }),
    );
  });

  test("SPN-5 what is appended after the call changes nothing", () => {
    fc.assert(
      fc.property(history, turns, (request, count) => {
        const cut = { ...request, turns: count, items: request.items.slice(0, request.before) };
        expect(projectHistory({ ...request, turns: count })).toEqual(projectHistory(cut));
      }),
    );
  });
});

describe("canonical JSON", () => {
  const shuffled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shuffled);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .toReversed()
        .map(([key, field]) => [key, shuffled(field)]),
    );
  };

  test("is the same for any order of keys, and reads back as the same data", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "grapheme" }), (value) => {
        const canonical = canonicalJson(value);
        expect(canonicalJson(shuffled(value))).toBe(canonical);
        expect(JSON.parse(canonical)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});

describe("redaction", () => {
  const secret = fc.stringMatching(/^[A-Za-z0-9]{6,20}$/);
  const piece = fc.oneof(
    fc.string({ maxLength: 12, unit: "grapheme" }),
    secret,
    fc.constantFrom(
      "password=",
      'password: "',
      String.raw`\"token\": \"`,
      "Authorization: Bearer ",
      "bearer ",
      "://user:",
      "@",
      '"',
      "'",
      "\\",
      "\n",
      " ",
      "***",
      "sk-",
      "AKIAIOSFODNN7EXAMPLE",
      "eyJhbGciOiJIUzI1.",
      "-----BEGIN PRIVATE KEY-----",
      "-----END PRIVATE KEY-----",
      "api_key=",
    ),
  );
  const texts = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(""));

  test("twice is once, and a text never grows", () => {
    fc.assert(
      fc.property(texts, fc.array(secret, { maxLength: 3 }), (value, secrets) => {
        const filter = createRedactor(secrets);
        const once = filter(value);
        expect(filter(once)).toBe(once);
        expect(once.length).toBeLessThanOrEqual(value.length);
      }),
      { numRuns: 3000 },
    );
  });

  test("leaves no secret that it is told of", () => {
    fc.assert(
      fc.property(texts, texts, secret, (before, after, own) => {
        expect(createRedactor([own])(before + own + after)).not.toContain(own);
      }),
    );
  });
});
