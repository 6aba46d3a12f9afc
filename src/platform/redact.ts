/**
 * Takes secrets out of text that leaves the store: logs, events, spans, handoffs, salvage, another provider (SEC-3). What is
 * a secret, the steps know; transcripts and mail in the store are not their business.
 */
import type { Json } from "../protocol/json.ts";
import { LABELS, MARKER, redactionSteps } from "./redaction-steps.ts";

export type Redact = (text: string) => string;

/** A filter that also knows secrets by value, such as the keys given to the runtime. Values under 3 letters are ignored. */
export function createRedactor(secrets: readonly string[]): Redact {
  const steps = redactionSteps(secrets);
  return (text) => steps.reduce((clean, step) => step.clean(clean), text);
}

/** The filter for secrets that are known by their shape alone. */
export const redact: Redact = createRedactor([]);

/** Redacts every text inside a JSON value; a text under a label such as `password` goes whole. */
export function redactJson(value: Json, filter: Redact = redact): Json {
  if (typeof value === "string") return filter(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one: Json) => redactJson(one, filter));
  const fields = Object.entries(value).map(([key, field]): [string, Json] => {
    const hidden = typeof field === "string" && field.length >= MARKER.length && endsInLabel(key);
    return [key, hidden ? MARKER : redactJson(field, filter)];
  });
  return Object.fromEntries(fields);
}

function endsInLabel(key: string): boolean {
  for (const match of key.matchAll(LABELS)) if (match.index + match[0].length === key.length) return true;
  return false;
}
