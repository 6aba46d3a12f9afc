/** Errors as tool results: what a model may read of them, bounded (BUD-3, ERR-1). */
import { CoppiceError, InvariantError, RejectedError } from "../protocol/errors.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { Logger } from "../platform/logger.ts";
import { headBytes } from "../platform/text.ts";

const TEXT_BYTES = 2048;
const DETAILS_CHARACTERS = 4096;

/** What a model may read of an error; what it sees only the code of goes to the log whole. */
export function errorOutput(tool: string, error: unknown, logger: Logger): JsonObject {
  const known = CoppiceError.is(error) ? error : new InvariantError("a tool of the runtime failed", {});
  if (known.family !== "rejected" && known.family !== "interrupted")
    logger.error({ tool, err: error }, "a tool call failed");
  return refusalOutput(known);
}

/** A refusal with its details (limit, value, use); of everything else one line with the code. */
export function refusalOutput(error: CoppiceError): JsonObject {
  return {
    error: headBytes(error.forModel(), TEXT_BYTES),
    code: error.code,
    ...(error.retryable ? { retryable: true } : {}),
    ...(error.family === "rejected" ? shownDetails(error.details) : {}),
  };
}

export function unknownTool(name: string, available: readonly string[]): RejectedError {
  return new RejectedError(
    "INVALID_ARGUMENT",
    `there is no tool \`${name.slice(0, 80)}\`; yours are ${available.join(", ")}.`,
    {
      argument: "name",
      available: [...available],
    },
  );
}

function shownDetails(details: JsonObject): JsonObject {
  if (Object.keys(details).length === 0 || JSON.stringify(details).length > DETAILS_CHARACTERS) return {};
  return { details };
}
