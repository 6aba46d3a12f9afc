/** Laws of the builder: whatever the thread, no budget is passed, no character cut, no secret told, no message halved. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { buildHandoff } from "../../../src/lineage/handoff/build.ts";
import type { HandoffInput } from "../../../src/lineage/handoff/input.ts";
import { createRedactor } from "../../../src/platform/redact.ts";
import { byteLength } from "../../../src/platform/text.ts";
import type { ItemBody } from "../../../src/protocol/transcript.ts";
import {
  answer,
  assistant,
  call,
  context,
  inputOf,
  mail,
  pin,
  type RunSpec,
  snapshot,
  thread,
  user,
} from "./handoff-fixtures.ts";

const SECRET = "S3cretValue";
const redact = createRedactor([SECRET]);

const words = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 40 }),
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.integer({ min: 1, max: 1_500 }).map((count) => "long ".repeat(count)),
  fc.integer({ min: 1, max: 700 }).map((count) => "😀".repeat(count)),
  fc.constantFrom("== Left out ==", "password: ", "lone \ud83d", "\udc00", "line\nline"),
);
const text = fc
  .tuple(words, fc.boolean(), words)
  .map(([before, secret, after]) => before + (secret ? SECRET : "") + after);

const bodies: fc.Arbitrary<ItemBody[]> = fc.oneof(
  text.map((said) => [user(said)]),
  text.map((said) => [answer(said)]),
  text.map((said) => [assistant([{ type: "reasoning", text: said }])]),
  text.map((said) => [mail("/root/a", said)]),
  text.map((said) => [mail("/root/a", said, true)]),
  text.map((said) => [context("handoff", said)]),
  fc
    .tuple(
      text,
      fc.constantFrom("bash", "write_file", "apply_patch", "todo_write", "unknown"),
      text,
      fc.boolean(),
    )
    .chain(([argument, name, output, isError]) =>
      fc
        .constantFrom<object | string>(
          { command: argument },
          { path: argument },
          { patch: `+++ b/x\n+${argument}` },
          { todos: [{ content: argument, status: "open" }] },
          argument,
        )
        .map((args) => call(name, args as string, output, isError)),
    ),
);
const run: fc.Arbitrary<RunSpec> = fc.record({
  status: fc.constantFrom("completed" as const, "failed" as const, "interrupted" as const),
  provider: fc.constantFrom("near", "far"),
  rolledBack: fc.boolean(),
  error: fc.constantFrom(null, { code: "PROVIDER_REFUSED", message: SECRET }),
  said: fc.array(bodies, { maxLength: 6 }),
});
const segments = fc
  .array(fc.tuple(fc.array(run, { maxLength: 5 }), fc.option(text)), { minLength: 1, maxLength: 3 })
  .map((threads) => threads.map(([runs, title], at) => thread(runs, { threadId: `thread_${at}`, title })));

const input: fc.Arbitrary<HandoffInput> = fc
  .record({
    segments,
    pins: fc.array(text, { maxLength: 4 }),
    requests: fc.array(text, { maxLength: 2 }),
    summary: text,
    limit: fc.integer({ min: 0, max: 6_000 }),
    unit: fc.constantFrom("chars" as const, "bytes" as const, "tokens" as const),
    extent: fc.constantFrom("full" as const, "delta" as const, "checkpoint" as const),
    purpose: fc.constantFrom("provider_handoff" as const, "fork" as const, "subagent_spawn" as const),
    mode: fc.constantFrom("recent" as const, "summary_plus_recent" as const),
    readTool: fc.constantFrom(null, "read_thread"),
  })
  .map(({ segments: threads, pins, requests, summary, limit, unit, ...rest }) =>
    inputOf(threads, {
      ...rest,
      redact,
      snapshot: snapshot({ objective: pins[0] ?? null, decisions: pins.map((one) => pin(one)) }),
      openRequests: requests.map((one) => ({ kind: "question", askedBy: "/root", text: one })),
      summary: { kind: "text", text: summary, author: "far", fallback: null },
      budget: { limit, unit, maxBytes: unit === "chars" ? limit * 3 : limit, maxChars: limit },
    }),
  );

/** Text as it stands in a handoff, where it is not cut. */
const shown = (said: string): string =>
  redact(said.toWellFormed()).replaceAll(/^(?=[^\S\n\r\u2028\u2029]*={2,3} )/gm, "\u00a6 ");

describe("a handoff", () => {
  test("S2-31 C6.7 never passes its budget, and says truly how much of it it takes", () => {
    fc.assert(
      fc.property(input, (given) => {
        const build = buildHandoff(given);
        if (build.kind !== "built") return;
        expect(byteLength(build.text)).toBeLessThanOrEqual(given.budget.maxBytes);
        expect(build.text.length).toBeLessThanOrEqual(given.budget.maxChars);
        const { used, limit, unit } = build.about.budget;
        expect(used).toBe(unit === "chars" ? build.text.length : byteLength(build.text));
        expect(used).toBeLessThanOrEqual(limit);
      }),
      { numRuns: 400 },
    );
  });

  test("C6.9 C6.12 is well-formed and holds no secret", () => {
    fc.assert(
      fc.property(input, (given) => {
        const build = buildHandoff(given);
        if (build.kind !== "built") return;
        expect(build.text.isWellFormed()).toBe(true);
        expect(build.text).not.toContain(SECRET);
        expect(redact(build.text)).toBe(build.text);
      }),
      { numRuns: 400 },
    );
  });

  test("C6.8 C6.9 holds each message whole or lists it as left out, and never none of them", () => {
    fc.assert(
      fc.property(input, (given) => {
        const build = buildHandoff(given);
        if (build.kind !== "built") return;
        const source = given.segments.at(-1)!;
        const omitted = new Set(build.about.payload.omittedItemIds);
        const retained = new Map(source.runs.map((one) => [one.id, !one.rolledBack]));
        const held = new Set<number>();
        for (const [from, to] of build.coveredRanges) for (let at = from; at < to; at += 1) held.add(at);
        for (const item of source.items) {
          const inside = retained.get(item.runId!) === true;
          const told = inside && !omitted.has(item.index);
          // A subagent is told what was said, and of nothing else that was done.
          const said =
            given.purpose !== "subagent_spawn" || item.kind === "user" ? told : held.has(item.index);
          if (item.kind !== "user" || item.text.trim() !== "")
            expect(held.has(item.index)).toBe(said && told);
          if (item.kind !== "user" || !held.has(item.index)) continue;
          if (item.text.trim() !== "") expect(build.text).toContain(shown(item.text).trim());
        }
        const said = given.segments.some((one) =>
          one.items.some(
            (item) =>
              item.kind === "user" &&
              item.text.trim() !== "" &&
              one.runs.some(({ id, rolledBack }) => id === item.runId && !rolledBack),
          ),
        );
        if (said) expect(build.about.payload.items).toBeGreaterThan(0);
      }),
      { numRuns: 400 },
    );
  });

  test("C4.1 is the same for the same input", () => {
    fc.assert(
      fc.property(input, (given) => {
        expect(buildHandoff(structuredCloneOf(given))).toEqual(buildHandoff(given));
      }),
    );
  });
});

/** Another value of the same content; what is no data is taken over. */
function structuredCloneOf(given: HandoffInput): HandoffInput {
  const { effects, redact: filter, ...data } = given;
  return { ...structuredClone(data), effects: new Map(effects), redact: filter };
}
