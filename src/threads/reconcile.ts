/**
 * Reconciling a thread (lineage C14): what nobody will settle any more is settled, by whoever looks. A tree with a living owner
 * is that owner's business; of one without, a claim that lasts for one commit is enough.
 *
 * - Q1 Decided outside, decided again in the commit: a settle that came meanwhile stands (C14.1).
 * - Q2 Nothing begins to run by it: what a settled run leaves to do waits for the next owner.
 */
import { CoppiceError } from "../protocol/errors.ts";
import { liveOwner } from "../control/live-owner.ts";
import { isLeft, recoverUnowned } from "../control/recovery.ts";
import type { Look } from "../control/transaction.ts";
import type { ThreadPorts } from "./ports.ts";
import { requireThread } from "./thread-view.ts";

/** @throws RejectedError `THREAD_NOT_FOUND`. */
export async function reconcileThread(ports: ThreadPorts, id: string): Promise<void> {
  const agent = await ports.store.read((view) => requireThread(view, id));
  const { reservationTtlMs } = ports.lineage;
  const left = await ports.look(
    agent.treeId,
    (look) =>
      liveOwner(look.store, look.treeId, ports.provenDead) === null && anyLeft(look, reservationTtlMs),
  );
  if (left) {
    try {
      await ports.apply(agent.treeId, (tx) => recoverUnowned(tx, reservationTtlMs));
    } catch (error) {
      // Somebody owns it by now, and recovers it.
      if (!CoppiceError.is(error) || (error.code !== "NOT_OWNER" && error.code !== "FENCED")) throw error;
    }
  }
}

function anyLeft(look: Look, ttlMs: number): boolean {
  return look.store.openRuns(look.treeId).some((run) => isLeft(look, run, ttlMs));
}
