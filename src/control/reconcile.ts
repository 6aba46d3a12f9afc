/**
 * After a commit whose outcome is unknown: the store said that it failed, and may have stored it all the same. What memory
 * should have done for it is found again from the store (REC-3). A plan; it changes nothing where both agree.
 *
 * - Q1 A run that is in hand here is left alone; any other is recovered as after a crash.
 * - Q2 What is asked of memory twice does nothing the second time.
 * - Q3 A session whose transcript has grown without it is of no use: `staleSessions` names it, and it is dropped.
 */
import type { ThreadId } from "../protocol/ids.ts";
import { isSettled, type RunRecord } from "../protocol/run.ts";
import type { Session } from "../session/session.ts";
import { isLent } from "./lent-permit.ts";
import { recoverUndriven } from "./recovery.ts";
import type { Tree } from "./tree.ts";
import type { Transaction } from "./transaction.ts";

/** Answers how many items each loaded session has in the store; what the plan itself appends is not among them. */
export function reconcile(tx: Transaction, tree: Tree): ReadonlyMap<ThreadId, number> {
  const items = new Map([...tree.sessions.keys()].map((id) => [id, tx.agent(id).items]));
  // What was lost is told: who follows the events reads up to the last one.
  tx.effects.events.push(...tx.store.events(tx.treeId, tx.store.lastEvent(tx.treeId) - 1, 1));
  tx.boundsChanged = true;
  for (const threadId of tree.sessions.keys()) tx.effects.mail.add(threadId);
  for (const threadId of tree.loading.keys()) tx.effects.agents.add(threadId);
  recoverUndriven(tx, (run) => inHand(tree, run));
  for (const [threadId, { runId }] of tree.runs) {
    const run = tx.store.run(runId);
    if (run === undefined) continue;
    if (run.permitLent === true && !isLent(tree, run)) tx.store.putRun({ ...run, permitLent: false });
    if (!isSettled(run)) continue;
    tx.effects.stop.push({ threadId, runId, why: run.reason ?? run.status });
    tx.effects.settled.push({ threadId, runId });
  }
  for (const threadId of tree.sessions.keys()) {
    if (tx.agent(threadId).state !== "open") tx.effects.closed.push(threadId);
  }
  tx.effects.budgetRaised = true;
  return items;
}

/** Sessions that miss items. To be asked when everything that was committed before is in memory. */
export function staleSessions(tree: Tree, items: ReadonlyMap<ThreadId, number>): Session[] {
  return [...tree.sessions].flatMap(([id, session]) =>
    session.items.length < (items.get(id) ?? 0) ? [session] : [],
  );
}

/** It is being started or let go, its return is queued, or it is driven; who waits is resumed when its waits have ended. */
function inHand(tree: Tree, { id, threadId, status }: RunRecord): boolean {
  if (tree.starting.has(threadId) || tree.lane.isWaiting(threadId, "return")) return true;
  const session = tree.sessions.get(threadId);
  return status !== "waiting" && session?.run?.id === id && session.drive !== null;
}
