/** Output schemas and answers that were written to do harm: a check always ends, and says what is wrong in few words. */
import { expect, test } from "vitest";
import { checkAnswer, markSound, requireOutputSchema } from "../../../src/control/output-schema.ts";
import type { JsonObject } from "../../../src/protocol/json.ts";

const nested = (levels: number): JsonObject =>
  JSON.parse(`${'{"items":'.repeat(levels)}{}${"}".repeat(levels)}`) as JsonObject;
const faultOf = (schema: JsonObject, answer: string): string => {
  const [checked] = checkAnswer(answer, [schema]);
  if (checked?.ok !== false) throw new Error("The answer was taken.");
  return checked.fault;
};

test("an answer is taken with and without a code fence", () => {
  const schema = { type: "object", properties: { n: { type: "number" } } };
  const taken = { ok: true, value: { n: 1 } };
  for (const answer of [
    '{"n":1}',
    '```json\n{"n":1}\n```',
    ' ```\n{"n":1}\n```\n',
    '```json  \n\n{"n":1}\n  ```',
  ]) {
    expect(checkAnswer(answer, [schema])).toEqual([taken]);
  }
  for (const answer of ["", "```", "```json\n```", '```sql\n{"n":1}\n```', "n is 1"])
    expect(faultOf(schema, answer)).toBe("it is not JSON");
});

test("WRK-8 a pattern that backtracks without end is cut off", () => {
  const schema = { type: "string", pattern: "^(a+)+$" };
  expect(faultOf(schema, JSON.stringify(`${"a".repeat(60)}!`))).toBe("it takes too long to be checked");
});

test("WRK-8 all the checks of an answer share their time", () => {
  // Each with a time of its own, these would take longer than a test may.
  const slow = Array.from({ length: 10 }, () => ({ type: "string", pattern: "^(a+)+$" }));
  expect(checkAnswer(JSON.stringify(`${"a".repeat(60)}!`), slow)).toEqual(
    slow.map(() => ({ ok: false, fault: "it takes too long to be checked" })),
  );
});

test("WRK-8 a schema that never gets anywhere, and answers deeper than any code bears, are faults", () => {
  expect(faultOf({ $ref: "#" }, "1")).toBe("it cannot be checked against this schema");
  for (const levels of [202, 100_000])
    expect(faultOf({}, "[".repeat(levels) + "]".repeat(levels))).toBe(
      "it is nested more than 200 levels deep",
    );
});

test("WRK-8 a fault is told in the words of every other refusal", () => {
  const schema = {
    type: "object",
    properties: { n: { type: "number" } },
    required: ["n"],
    additionalProperties: false,
  };
  expect(faultOf(schema, '{"n":"x","m":1}')).toBe(
    "n: Invalid input: expected number, received string; unknown field `m`",
  );
});

test("WRK-8 the text of a fault is bounded, whatever the answer holds", () => {
  const many = faultOf({ type: "array", items: { type: "string" } }, JSON.stringify(Array(5_000).fill(1)));
  expect(many).toContain("; and 4992 more");
  expect(many.length).toBeLessThan(4096);
  const long = JSON.stringify({ ["k".repeat(1_000_000)]: 1 });
  expect(faultOf({ type: "object", properties: {}, additionalProperties: false }, long).length).toBeLessThan(
    4096,
  );
});

test("a schema that cannot be checked is refused when it is asked for", () => {
  const sound = { type: "string" };
  markSound(sound);
  expect(requireOutputSchema(sound)).toBe(sound);
  // Nobody has looked at this one.
  expect(() => requireOutputSchema({ type: "string" })).toThrow(/output_schema is no JSON Schema/);
  for (const schema of [
    { type: "string", pattern: "(" },
    { $ref: "http://127.0.0.1/schema" },
    { type: 5 },
    nested(5000),
    { description: "d".repeat(100_000) },
  ]) {
    markSound(schema);
    expect(() => requireOutputSchema(schema)).toThrow(/output_schema is no JSON Schema/);
  }
});
