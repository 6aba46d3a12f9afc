/**
 * Output schemas (WRK-8), which agents write, and answers checked against them, which agents write too: neither may hold up
 * the process for long, or break anything.
 *
 * - J1 The checks of an answer end: by themselves, or cut off when their time is up, which they all share. Whatever goes wrong
 *   in one is a fault of the answer, never an error. None is made in a commit: how many others that one is grouped with
 *   nobody knows.
 * - J2 The text of a fault is bounded, whatever the answer holds.
 */
import { z } from "zod";
import { RejectedError } from "../protocol/errors.ts";
import type { Json, JsonObject } from "../protocol/json.ts";
import { faultsOf } from "../platform/check.ts";
import { DEEPEST, isTooDeep } from "../platform/depth.ts";
import { byteLength, headBytes } from "../platform/text.ts";
import { type Limited, TimeAllowance, withinTimeLimit } from "../platform/time-limit.ts";

/** For all the checks of one answer, or for one schema: a small part of what a lease can bear. */
const CHECK_MS = 250;
/** It is written with each change of its work. */
const SCHEMA_BYTES = 64 * 1024;
const FAULT_BYTES = 2048;

export type Checked =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly fault: string };

/** Schemas that answers can be checked against, by identity: the commit that stores one only asks. */
const SOUND = new WeakSet<JsonObject>();

export function markSound(schema: JsonObject): void {
  try {
    const looked = withinTimeLimit(CHECK_MS, () => isSound(schema) && compile(schema) !== undefined);
    if (looked.kind === "done" && looked.value) SOUND.add(schema);
  } catch {
    // Which part of it cannot be read is not said in words that would help a model.
  }
}

function isSound(schema: JsonObject): boolean {
  return !isTooDeep(schema) && byteLength(JSON.stringify(schema)) <= SCHEMA_BYTES;
}

/** @throws RejectedError `INVALID_ARGUMENT` for a schema that was not marked sound. */
export function requireOutputSchema(schema: JsonObject): JsonObject {
  if (SOUND.has(schema)) return schema;
  throw new RejectedError(
    "INVALID_ARGUMENT",
    "output_schema is no JSON Schema that can be checked; use a plainer one.",
    { argument: "output_schema" },
  );
}

/** Parses an answer as JSON, with or without a code fence, and validates it against each of the schemas. */
export function checkAnswer(text: string, schemas: readonly JsonObject[]): readonly Checked[] {
  const parsed = parse(text);
  if (!parsed.ok) return schemas.map(() => parsed);
  const allowance = new TimeAllowance(CHECK_MS);
  return schemas.map((schema, index) =>
    checkValue(parsed.value, (value) => allowance.run(schemas.length - index, () => faultOf(schema, value))),
  );
}

function parse(text: string): Checked {
  let value: Json;
  try {
    value = JSON.parse(unfenced(text)) as Json;
  } catch {
    return { ok: false, fault: "it is not JSON" };
  }
  if (isTooDeep(value)) return { ok: false, fault: `it is nested more than ${DEEPEST} levels deep` };
  return { ok: true, value };
}

function checkValue(value: Json, check: (value: Json) => Limited<string | null>): Checked {
  try {
    const checked = check(value);
    if (checked.kind === "cut_off") return { ok: false, fault: "it takes too long to be checked" };
    return checked.value === null ? { ok: true, value } : { ok: false, fault: checked.value };
  } catch {
    return { ok: false, fault: "it cannot be checked against this schema" };
  }
}

function faultOf(schema: JsonObject, value: Json): string | null {
  const parsed = compile(schema).safeParse(value);
  return parsed.success ? null : headBytes(faultsOf(parsed.error).words, FAULT_BYTES);
}

function compile(schema: JsonObject): z.ZodType {
  return z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
}

function unfenced(text: string): string {
  const trimmed = text.trim();
  const firstLine = trimmed.indexOf("\n");
  if (firstLine === -1 || !trimmed.startsWith(FENCE) || !trimmed.endsWith(FENCE)) return text;
  const language = trimmed.slice(FENCE.length, firstLine).trim();
  return language === "" || language === "json" ? trimmed.slice(firstLine, -FENCE.length) : text;
}

const FENCE = "```";
