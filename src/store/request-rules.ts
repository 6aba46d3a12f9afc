/** What every store holds questions to: one is of the run that asked it, for ever. */
import { RejectedError } from "../protocol/errors.ts";
import type { RuntimeRequestRecord } from "../protocol/wait.ts";
import { isUnreadable } from "./corrupt-row.ts";

/**
 * A row that cannot be read may be replaced by what stands in for it (REC-1).
 * @throws RejectedError `THREAD_INVARIANT_VIOLATION`
 */
export function requireOwnRequest(
  { id, runId }: RuntimeRequestRecord,
  stored: () => RuntimeRequestRecord | undefined,
): void {
  let owner = runId;
  isUnreadable(() => (owner = stored()?.runId ?? runId));
  if (owner === runId) return;
  throw new RejectedError("THREAD_INVARIANT_VIOLATION", `The request ${id} is one of another run.`, {
    id,
    runId,
  });
}
