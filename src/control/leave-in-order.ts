/**
 * The last commit of an owner that gives its tree back (REC-1): it says that what still runs was stopped, and not lost by a crash. Where
 * it cannot be stored the next owner counts as after a crash.
 */
import type { RunRecord } from "../protocol/run.ts";
import { Transaction } from "./transaction.ts";
import type { Tree } from "./tree.ts";

export async function leaveInOrder(tree: Tree): Promise<void> {
  const { shared, lease, treeId } = tree;
  try {
    // A wait that is stored lives on without an owner, and is no loss of anybody's.
    const stops = ({ status, provider }: RunRecord): boolean =>
      status !== "waiting" || !tree.parksWaits(provider);
    if (!(await shared.store.read((view) => view.openRuns(treeId).some(stops)))) return;
    await shared.store.commit(lease, (store) => new Transaction(store, tree).putTree({ leftInOrder: true }));
  } catch (error) {
    shared.logger.warn({ treeId, err: error }, "what a tree was left with could not be noted");
  }
}
