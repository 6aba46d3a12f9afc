/** Errors as tool results: what a model may read of them, bounded (BUD-3, ERR-1). */
import { CoppiceError, InvariantError } from "../protocol/errors.ts";
import type { JsonObject } from "../protocol/json.ts";
import { headBytes } from "../platform/text.ts";

const TEXT_BYTES = 2048;
const DETAILS_CHARACTERS = 4096;

/** A refusal with its details (limit, value, use); of everything else only one line with the code. */
export function errorOutput(error: unknown): JsonObject {
  const known = CoppiceError.is(error) ? error : new InvariantError("a tool of the runtime failed", {});
  return {
    error: headBytes(known.forModel(), TEXT_BYTES),
    code: known.code,
    ...(known.retryable ? { retryable: true } : {}),
    ...(known.family === "rejected" ? shownDetails(known.details) : {}),
  };
}

function shownDetails(details: JsonObject): JsonObject {
  if (Object.keys(details).length === 0 || JSON.stringify(details).length > DETAILS_CHARACTERS) return {};
  return { details };
}
