/** What the runtime itself has to do is done again when the store has failed at it. */
import { CoppiceError } from "../protocol/errors.ts";
import type { Tree } from "./tree.ts";

/** A store that fails is asked again after so long. */
export const STORE_RETRY_MS = 500;

/** Not when the tree is another's by now, and not after a refusal, which would be given again. */
export function retry(tree: Tree, error: unknown, again: () => void): void {
  if (tree.state !== "owned") return;
  tree.shared.logger.warn({ treeId: tree.treeId, err: error }, "the store failed; trying again");
  if (CoppiceError.is(error) && error.family === "rejected") return;
  tree.shared.clock.setTimer(STORE_RETRY_MS, again, { keepAlive: true });
}
