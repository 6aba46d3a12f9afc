import { expect, test } from "vitest";
import { z } from "zod";
import { check, optionsOf, variantsOf } from "../../../src/platform/check.ts";

type Point =
  | { readonly kind: "latest" }
  | { readonly kind: "run"; readonly id: string }
  | { readonly kind: "message"; readonly seq: number | null };

const point = variantsOf<Point>({
  latest: {},
  run: { id: z.string() },
  message: { seq: z.number().nullable() },
});

test("one of a union is taken by its kind, with the fields of that kind and no others", () => {
  for (const given of [{ kind: "latest" }, { kind: "run", id: "a" }, { kind: "message", seq: null }])
    expect(check("f", point, given)).toEqual(given);
  for (const given of [{ kind: "run" }, { kind: "latest", id: "a" }, { kind: "step" }, { id: "a" }, "latest"])
    expect(() => check("f", point, given)).toThrow(/the arguments of f are wrong/);
});

test("a table with another list of fields or of kinds does not compile", () => {
  // @ts-expect-error a field is missing
  optionsOf<{ readonly a?: string; readonly b?: string }>({ a: z.string().optional() });
  // @ts-expect-error a kind is missing
  variantsOf<Point>({ latest: {}, run: { id: z.string() } });
  // @ts-expect-error a field of a kind is missing
  variantsOf<Point>({ latest: {}, run: {}, message: { seq: z.number() } });
  // @ts-expect-error no such kind
  variantsOf<Point>({ latest: {}, run: { id: z.string() }, message: { seq: z.number() }, step: {} });
  // @ts-expect-error the field has another type
  variantsOf<Point>({ latest: {}, run: { id: z.number() }, message: { seq: z.number() } });
});
