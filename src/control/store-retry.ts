/** What the runtime itself has to do is done again when the store has failed at it. */
import { CoppiceError } from "../protocol/errors.ts";
import type { Tree } from "./tree.ts";

/** A store that fails is asked again after so long. */
export const STORE_RETRY_MS = 500;
/** So long for a row that cannot be read: somebody has to mend it first. */
const MENDED_MS = 30_000;

/** Not when the tree is another's by now, and not after a refusal, which would be given again. */
export function retry(tree: Tree, error: unknown, again: () => void): void {
  if (tree.state !== "owned") return;
  const { clock, logger } = tree.shared;
  const { treeId } = tree;
  const afterMs = retryAfter(error);
  if (afterMs === null) return logger.warn({ treeId, err: error }, "the store refused; not trying again");
  logger.warn({ treeId, err: error, afterMs }, "the store failed; trying again");
  clock.setTimer(afterMs, again, { keepAlive: true });
}

function retryAfter(error: unknown): number | null {
  if (!CoppiceError.is(error) || error.family !== "rejected") return STORE_RETRY_MS;
  return error.code === "STORE_CORRUPT" ? MENDED_MS : null;
}
