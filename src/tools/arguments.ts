/**
 * Arguments of a call: parsed once at the edge, refused with each fault named (agents.md 11, 17).
 *
 * - A1 `null` for a field means that it is left out: vendors whose strict mode wants every field send it so.
 */
import type { z } from "zod";
import { RejectedError } from "../protocol/errors.ts";
import { argumentsFault, clip } from "../platform/check.ts";
import { DEEPEST, isTooDeep } from "../platform/depth.ts";
import { byteLength } from "../platform/text.ts";

/** @throws RejectedError `INVALID_ARGUMENT` for text that is no JSON object. No text at all is an empty object. */
export function parseObject(tool: string, text: string, maximumBytes: number): Record<string, unknown> {
  const refuse = (reason: string, details: Record<string, number> = {}): never => {
    throw new RejectedError("INVALID_ARGUMENT", `the arguments of ${tool} ${reason}`, { tool, ...details });
  };
  const bytes = byteLength(text);
  if (bytes > maximumBytes) {
    refuse(
      `have ${bytes} bytes and at most ${maximumBytes} are taken; send less, or a reference to a file.`,
      {
        bytes,
        limit: maximumBytes,
      },
    );
  }
  if (text.trim() === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    refuse("are not JSON; send one JSON object.");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) refuse("must be one JSON object.");
  return value as Record<string, unknown>;
}

/** @throws RejectedError `INVALID_ARGUMENT` naming each fault, and the accepted fields where one is unknown. */
export function checkArguments<Schema extends z.ZodObject>(
  tool: string,
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new RejectedError("INVALID_ARGUMENT", `the arguments of ${tool} must be one JSON object.`, {
      tool,
    });
  }
  const given = Object.fromEntries(
    Object.entries(value).filter(([name, field]) => !(field === null && Object.hasOwn(schema.shape, name))),
  );
  for (const [name, field] of Object.entries(given)) {
    if (!isTooDeep(field)) continue;
    const argument = clip(name.toWellFormed());
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `${argument} is nested more than ${DEEPEST} levels deep; send it flatter, or as text.`,
      { argument },
    );
  }
  const broken = malformedText(given);
  if (broken !== null) {
    throw new RejectedError("INVALID_ARGUMENT", `${broken} is not well-formed Unicode; send valid text.`, {
      argument: broken,
    });
  }
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  throw argumentsFault(tool, parsed.error, schema, { tool });
}

/** The first top-level field that holds text no store could keep (lone surrogates); null when there is none. */
function malformedText(fields: Record<string, unknown>): string | null {
  const broken = (value: unknown): boolean => {
    if (typeof value === "string") return !value.isWellFormed();
    if (typeof value !== "object" || value === null) return false;
    return Object.entries(value).some(([name, field]) => !name.isWellFormed() || broken(field));
  };
  const found = Object.entries(fields).find(([name, field]) => !name.isWellFormed() || broken(field));
  return found === undefined ? null : found[0].isWellFormed() ? clip(found[0]) : "a field name";
}
