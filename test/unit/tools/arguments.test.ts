/** Arguments that are wrong in every way a model has found so far. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { CoppiceError } from "../../../src/protocol/errors.ts";
import { checkArguments, parseObject } from "../../../src/tools/arguments.ts";

const schema = z.strictObject({ name: z.string(), count: z.number().int().optional() });

function refusal(act: () => unknown): CoppiceError {
  try {
    act();
  } catch (error) {
    if (CoppiceError.is(error)) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("text", () => {
  test.each(["{", "not json", '"text"', "[1]", "12", "null"])("%s is refused", (text) => {
    expect(refusal(() => parseObject("look", text, 100)).message).toMatch(/^the arguments of look /);
  });

  test("none at all is an empty object", () => {
    expect(parseObject("look", " ", 100)).toEqual({});
  });

  test("over the limit is refused before it is parsed, with both figures", () => {
    expect(refusal(() => parseObject("look", "{".repeat(101), 100)).details).toMatchObject({
      bytes: 101,
      limit: 100,
    });
  });
});

describe("fields", () => {
  test("an unknown one is named, with those that are accepted", () => {
    const { message, details } = refusal(() => checkArguments("look", schema, { name: "a", items: [] }));
    expect(message).toBe(
      "the arguments of look are wrong: unknown field `items`. Accepted fields: name, count.",
    );
    expect(details).toMatchObject({ accepted: ["name", "count"] });
  });

  test("one of the wrong type is named", () => {
    expect(refusal(() => checkArguments("look", schema, { name: 3 })).message).toContain("name: ");
  });

  test("a null stands for one that is left out", () => {
    expect(checkArguments("look", schema, { name: "a", count: null })).toEqual({ name: "a" });
    expect(refusal(() => checkArguments("look", schema, { name: null })).message).toContain("name: ");
  });

  test("text that no store could keep is refused, however deep", () => {
    const deep = z.strictObject({ data: z.unknown() });
    expect(refusal(() => checkArguments("look", deep, { data: [{ a: "x\ud800" }] })).details).toEqual({
      argument: "data",
    });
  });

  test("a refusal does not repeat what was sent at length", () => {
    const error = refusal(() => checkArguments("look", schema, { name: "a", ["x".repeat(100_000)]: 1 }));
    expect(JSON.stringify(error.toJSON()).length).toBeLessThan(1000);
  });
});
