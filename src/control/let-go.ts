/**
 * The one way in which memory lets go of an agent when a failure has left open what is stored of its run (REC-3).
 *
 * - G1 Memory forgets first, so that who is woken loads anew; then the store decides (`recoverAgent`), however long it fails;
 *   only then is the grant given back: until then the run may be open there, and counts as running (EXE-4). Where what is
 *   stored is in the way, that may be never, and others need the grant.
 * - G2 Nobody else is admitted for the agent meanwhile: it stays `starting` until all of that is done.
 */
import { InterruptedError, TransientError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import { delay } from "../platform/clock.ts";
import { closeSession } from "./close-session.ts";
import type { Grant } from "./dispatch.ts";
import { forget } from "./load.ts";
import { recoverAgent } from "./recovery.ts";
import { STORE_RETRY_MS } from "./store-retry.ts";
import type { Tree } from "./tree.ts";

/** `grant` is that of a start; the one of a run in memory is with it. */
export async function letGo(tree: Tree, threadId: ThreadId, why: string, grant?: Grant): Promise<void> {
  const held = tree.runs.get(threadId)?.grant;
  const place = tree.starting.hold(threadId);
  drop(tree, threadId, why);
  const giveBack = (): void => {
    held?.[Symbol.dispose]();
    grant?.[Symbol.dispose]();
  };
  await decide(tree, threadId, giveBack);
  place[Symbol.dispose]();
  tree.reactions.drained(tree);
}

/** Out of memory, with its slot; what is stored knows nothing of it. */
export function drop(tree: Tree, threadId: ThreadId, why: string): void {
  const session = tree.sessions.get(threadId);
  if (session === undefined) return;
  forget(tree, threadId);
  tree.residency.release(threadId);
  session.abort?.abort(new InterruptedError("RUN_INTERRUPTED", why));
  tree.track(closeSession(tree, session));
}

/** Resolves when the store has decided, or the tree is another's; the grant is given back by then. */
async function decide(tree: Tree, threadId: ThreadId, giveBack: () => void): Promise<void> {
  let held = true;
  while (tree.state === "owned") {
    try {
      await tree.transact((tx) => recoverAgent(tx, threadId));
      break;
    } catch (error) {
      const { treeId } = tree;
      tree.shared.logger.warn({ treeId, threadId, err: error }, "what becomes of a run is not decided yet");
      if (held && !(error instanceof TransientError)) {
        held = false;
        giveBack();
      }
      await delay(tree.shared.clock, STORE_RETRY_MS);
    }
  }
  if (held) giveBack();
}
