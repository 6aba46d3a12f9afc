/**
 * `admission: reject`: permit and slot are reserved before a spawn or follow-up is stored, and released on any failure
 * (SPN-2, EXE-2). What is reserved waits for the commit's wake, which begins the run with it.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import { Grant } from "./dispatch.ts";
import type { Tree } from "./tree.ts";

/** @throws RejectedError `AGENT_LIMIT_REACHED` when no permit or no slot can be had now. */
export async function admitNow(tree: Tree, threadId: ThreadId, pump: () => void): Promise<Grant> {
  if (tree.lane.size > 0 || !tree.permits.available) throw limitReached(tree);
  const permit = tree.permits.take();
  if (permit === null) throw limitReached(tree);
  try {
    const slot = await reserveSlot(tree, threadId);
    if (slot === null) throw limitReached(tree);
    return new Grant(slot, permit, pump);
  } catch (error) {
    permit[Symbol.dispose]();
    pump();
    throw error;
  }
}

/** Unloads the least recently used when that makes room; null when nobody may go. */
async function reserveSlot(tree: Tree, threadId: ThreadId) {
  return tree.watchers
    .until(async () => {
      const slot = tree.residency.reserve(threadId);
      if (slot !== null) return { slot };
      return tree.residency.makeRoom(1) > 0 ? undefined : { slot: null };
    })
    .then(({ slot }) => slot);
}

function limitReached(tree: Tree): RejectedError {
  const limit = tree.permits.limit;
  return new RejectedError(
    "AGENT_LIMIT_REACHED",
    `${tree.permits.inUse} agents run and at most ${limit} may; wait for one of them, then ask again.`,
    { limit: "running", value: limit, use: tree.permits.inUse, resident: tree.residency.count },
  );
}
