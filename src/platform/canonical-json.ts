/**
 * Canonical JSON: one text for equal data, so that a digest of it means something. Keys are sorted by code unit, never
 * by a locale; properties that are `undefined` are left out, as JSON does.
 */
import { InvariantError } from "../protocol/errors.ts";

/** @throws InvariantError for what JSON cannot hold: functions, symbols, big integers, `undefined`, NaN, infinities. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value).filter(([, field]) => field !== undefined);
    // Keys are unique, so "less than" alone orders them; it compares UTF-16 code units.
    const sorted = fields.toSorted(([a], [b]) => (a < b ? -1 : 1));
    return `{${sorted.map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field)}`).join(",")}}`;
  }
  if (typeof value === "number" && !Number.isFinite(value)) return refuse(String(value));
  if (
    value === null ||
    typeof value === "number" ||
    typeof value === "string" ||
    typeof value === "boolean"
  ) {
    return JSON.stringify(value);
  }
  return refuse(typeof value);
}

function refuse(what: string): never {
  throw new InvariantError(`canonical JSON cannot hold ${what}`);
}
