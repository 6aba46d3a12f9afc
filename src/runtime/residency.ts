/** The places for loaded sessions, of a runtime or of one tree: who may be unloaded, and who is asked when one is free. */
import { unload, unloadFacts } from "../control/load.ts";
import type { Shared } from "../control/shared.ts";
import type { Tree } from "../control/tree.ts";
import type { ThreadId } from "../protocol/ids.ts";
import { Residency } from "../residency/slots.ts";

export interface ResidencyPorts {
  readonly shared: () => Pick<Shared, "clock" | "logger">;
  readonly trees: () => Iterable<Tree>;
  /** Asks those again who wait to be admitted. */
  readonly pump: () => void;
}

export function residencyOf(limit: number, { shared, trees, pump }: ResidencyPorts): Residency {
  /** Where a session was found last: it is asked for again and again, and there may be thousands of trees. */
  const found = new Map<ThreadId, Tree>();
  const treeOf = (threadId: ThreadId): Tree | undefined => {
    const known = found.get(threadId);
    if (known?.sessions.has(threadId) === true) return known;
    for (const tree of trees()) {
      if (!tree.sessions.has(threadId)) continue;
      found.set(threadId, tree);
      return tree;
    }
    return undefined;
  };
  const lookAgain = (): void => {
    pump();
    for (const tree of trees()) tree.watchers.changed();
  };
  const residency: Residency = new Residency({
    limit,
    facts: (threadId) => {
      const tree = treeOf(threadId);
      return tree === undefined ? NOT_LOADED : unloadFacts(tree, threadId);
    },
    unload: async (threadId) => {
      const tree = treeOf(threadId);
      if (tree === undefined) return true;
      try {
        const gone = await unload(tree, threadId);
        // Who waited for this place meanwhile is asked again when the slot has its state back.
        if (!gone) shared().clock.defer(lookAgain);
        return gone;
      } catch (error) {
        // The store failed: it stays resident (RES-4), and who waits is asked again after a while.
        shared().logger.warn({ threadId, err: error }, "an agent could not be unloaded");
        const again = (): void => {
          residency.askAgain(threadId);
          lookAgain();
        };
        shared().clock.setTimer(UNLOAD_RETRY_MS, again, { keepAlive: true });
        return false;
      }
    },
    onRoom: lookAgain,
    onReleased: (threadId) => found.delete(threadId),
  });
  return residency;
}

/** After a store failed under an unload. */
const UNLOAD_RETRY_MS = 500;

/** A slot whose load is under way, or whose session is just gone. */
const NOT_LOADED = {
  lastRunSettled: false,
  inParkableWait: false,
  reserved: true,
  triggerMailPending: false,
  queueOnlyMailPending: false,
  requestPending: false,
  pinPendingMail: false,
} as const;
