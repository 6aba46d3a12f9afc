/** Where a page begins: the `next` of a page before it, and nothing else. */
import { RejectedError } from "../protocol/errors.ts";

/** The refusal of a cursor that names no row. */
export function unknownCursor(after: string): RejectedError {
  const shown = after.length > 80 ? `${after.slice(0, 80)}…` : after;
  return new RejectedError(
    "INVALID_ARGUMENT",
    `\`${shown}\` is no place in this list; pass the \`next\` of a page of it as \`after\`, or leave it out.`,
    { argument: "after", after: shown },
  );
}

/** A cursor that is a number, up to the last one there is. @throws RejectedError `INVALID_ARGUMENT`. */
export function numberCursor(after: string, last: number): number {
  if (/^\d{1,15}$/.test(after) && Number(after) <= last) return Number(after);
  throw unknownCursor(after);
}
