/**
 * What a program or a model gives, looked at once, at the edge: a strict schema, and one refusal that names each fault and,
 * where something unknown was given, what would have been taken.
 *
 * - C1 Nothing wrong or unknown is passed over in silence.
 * - C2 A refusal never repeats what was given at any length; names and texts are cut.
 * - C3 The schema of an options type names exactly its fields, that of a union exactly its kinds with the fields of each;
 *   another list of them does not compile.
 */
import { z } from "zod";
import { describeError, RejectedError } from "../protocol/errors.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { Clock } from "./clock.ts";

const SHOWN_FAULTS = 8;
const SHOWN_CHARACTERS = 120;

/** A schema for each field of a type. */
export type Shape<T> = { readonly [Name in keyof T]-?: z.ZodType<T[Name] | undefined> };

/** Options as one strict object. */
export function optionsOf<T>(shape: Shape<T>): z.ZodType<T> {
  return z.strictObject(shape) as unknown as z.ZodType<T>;
}

/** For each kind of a union a schema for each of its fields. */
export type Variants<T extends { readonly kind: string }> = {
  readonly [Kind in T["kind"]]: Shape<Omit<Extract<T, { readonly kind: Kind }>, "kind">>;
};

/** One of several strict objects, told apart by their `kind`. */
export function variantsOf<T extends { readonly kind: string }>(variants: Variants<T>): z.ZodType<T> {
  const [first, ...rest] = Object.entries<z.ZodRawShape>(variants).map(([kind, shape]) =>
    z.strictObject({ kind: z.literal(kind), ...shape }),
  );
  return z.discriminatedUnion("kind", [first!, ...rest]) as unknown as z.ZodType<T>;
}

/**
 * Checks the arguments of `what`: its only one, or all by name.
 * @throws RejectedError `INVALID_ARGUMENT`.
 */
export function check<T>(what: string, schema: z.ZodType<T>, given: unknown): T {
  const parsed = parse(what, schema, given);
  if (parsed.success) return parsed.data;
  throw argumentsFault(what, parsed.error, schema, { what });
}

/** A value may throw when it is read: a getter, or a proxy. */
function parse<T>(what: string, schema: z.ZodType<T>, given: unknown): z.ZodSafeParseResult<T> {
  try {
    return schema.safeParse(given);
  } catch (cause) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `the arguments of ${what} cannot be read: ${clip(describeError(cause))}. Give plain values.`,
      { what },
      cause,
    );
  }
}

/** The refusal of what does not fit a schema. */
export function argumentsFault(
  what: string,
  error: z.ZodError,
  schema: z.ZodType,
  details: JsonObject,
): RejectedError {
  const { faults, words } = faultsOf(error);
  const issues = error.issues.slice(0, SHOWN_FAULTS);
  const missed = issues.find(
    ({ code, path }) =>
      (code === "unrecognized_keys" || code === "invalid_type") && fieldsAt(schema, path).length > 0,
  );
  const accepted = missed === undefined ? [] : fieldsAt(schema, missed.path);
  const place = missed === undefined || missed.path.length === 0 ? "" : ` of ${clip(missed.path.join("."))}`;
  const fields = missed === undefined ? "" : ` Accepted fields${place}: ${accepted.join(", ")}.`;
  return new RejectedError("INVALID_ARGUMENT", `the arguments of ${what} are wrong: ${words}.${fields}`, {
    ...details,
    faults: [...faults],
    ...(missed === undefined ? {} : { accepted: [...accepted] }),
  });
}

/** What is wrong, fault by fault and in one line of words; of many faults the first, and how many there are more. */
export function faultsOf({ issues }: z.ZodError): {
  readonly faults: readonly { readonly path: string; readonly message: string }[];
  readonly words: string;
} {
  const faults = issues.slice(0, SHOWN_FAULTS).map((issue) => ({
    path: clip(issue.path.join(".")),
    message:
      issue.code === "unrecognized_keys"
        ? `unknown field ${issue.keys
            .slice(0, SHOWN_FAULTS)
            .map((key) => `\`${clip(key)}\``)
            .join(", ")}`
        : clip(issue.message),
  }));
  const words = faults.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  if (issues.length > faults.length) words.push(`and ${issues.length - faults.length} more`);
  return { faults, words: words.join("; ") };
}

export function clip(text: string): string {
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

/** The fields of the object at a path of a schema; none where there is no object. */
function fieldsAt(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  const inner = schema instanceof z.ZodOptional || schema instanceof z.ZodNullable ? schema.unwrap() : schema;
  if (inner !== schema) return fieldsAt(inner as z.ZodType, path);
  if (!(schema instanceof z.ZodObject)) return [];
  const [first, ...rest] = path;
  if (first === undefined) return Object.keys(schema.shape);
  const next = Object.hasOwn(schema.shape, first) ? schema.shape[String(first)] : undefined;
  return next === undefined ? [] : fieldsAt(next as z.ZodType, rest);
}

/** Something that is known by what it can do; `words` say what to give. */
export function withMethods<T>(words: string, ...names: readonly string[]): z.ZodType<T> {
  return z.custom<T>(
    (value) =>
      typeof value === "object" &&
      value !== null &&
      names.every((name) => typeof (value as Record<string, unknown>)[name] === "function"),
    words,
  );
}

export function functionOf<T>(words: string): z.ZodType<T> {
  return z.custom<T>((value) => typeof value === "function", words);
}

export const signalSchema = z.custom<AbortSignal>(
  (value) => value instanceof AbortSignal,
  "is no AbortSignal; give one, such as AbortSignal.timeout(10_000)",
);

export const clockSchema = withMethods<Clock>(
  "is no clock; give `systemClock` or a virtual one",
  "now",
  "monotonic",
  "setTimer",
  "defer",
);
