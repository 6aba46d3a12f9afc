/**
 * Ends waits for threads of other trees. What happens there may happen in another process, so the owner of the waiting tree
 * looks at the store as often as it looks for mail, and only while such a wait is open; a new owner goes on with it.
 */
import { retry } from "./store-retry.ts";
import { threadsHaveNews } from "./thread-glance.ts";
import type { Tree } from "./tree.ts";
import { endWait } from "./wait-ends.ts";

/** Looks again after each poll's time, until no such wait is open. */
export function watchThreads(tree: Tree): void {
  if (tree.state !== "owned") return;
  tree.threadWatch ??= tree.shared.clock.setTimer(tree.limits.pollMs, () => {
    tree.threadWatch = null;
    endThoseWithNews(tree)
      .then((open) => (open ? watchThreads(tree) : undefined))
      .catch((error: unknown) => retry(tree, error, () => watchThreads(tree)));
  });
}

/** True when others are left. */
async function endThoseWithNews(tree: Tree): Promise<boolean> {
  const { open, ended } = await tree.read((view) => {
    const waits = view.openThreadWaits(tree.treeId);
    return { open: waits.length, ended: waits.filter((wait) => threadsHaveNews(view, wait)) };
  });
  if (ended.length > 0) {
    await tree.transact((tx) => {
      for (const { id } of ended) {
        const wait = tx.store.wait(id);
        if (wait?.end === null && threadsHaveNews(tx.store, wait)) endWait(tx, wait, "settled");
      }
    });
  }
  return open > ended.length;
}
