/**
 * After a commit whose outcome is unknown: the store said that it failed, and may have stored it all the same. What memory
 * should have done for it is found again from the store (REC-3). A plan; it changes nothing where both agree.
 *
 * - Q1 A run that is being started or driven here is left alone; one that nobody here knows of is recovered as after a crash.
 * - Q2 What is asked of memory twice does nothing the second time.
 * - Q3 A session whose transcript has grown without it is of no use: `staleSessions` names it, and it is dropped.
 */
import type { ThreadId } from "../protocol/ids.ts";
import { isSettled } from "../protocol/run.ts";
import type { Session } from "../session/session.ts";
import { recoverRun } from "./recovery.ts";
import type { Tree } from "./tree.ts";
import type { Transaction } from "./transaction.ts";

/** Answers how many items each loaded session has in the store; what the plan itself appends is not among them. */
export function reconcile(tx: Transaction, tree: Tree): ReadonlyMap<ThreadId, number> {
  const items = new Map([...tree.sessions.keys()].map((id) => [id, tx.agent(id).items]));
  // What was lost is told: who follows the events reads up to the last one.
  tx.effects.events.push(...tx.store.events(tx.treeId, tx.store.lastEvent(tx.treeId) - 1, 1));
  tx.limitsChanged = true;
  for (const threadId of tree.sessions.keys()) tx.effects.mail.add(threadId);
  for (const threadId of tree.loading.keys()) tx.effects.agents.add(threadId);
  for (const run of tx.store.openRuns(tx.treeId)) {
    if (tree.starting.has(run.threadId) || tree.lane.isWaiting(run.threadId)) continue;
    const session = tree.sessions.get(run.threadId);
    if (session?.run?.id !== run.id) recoverRun(tx, run.id);
    else if (run.status === "waiting") resumeIfDone(tx, run.threadId);
    else if (session.drive === null) recoverRun(tx, run.id);
  }
  for (const [threadId, { runId }] of tree.runs) {
    const run = tx.store.run(runId);
    if (run === undefined || !isSettled(run)) continue;
    tx.effects.stop.push({ threadId, runId, why: run.reason ?? run.status });
    tx.effects.settled.push({ threadId, runId });
  }
  for (const threadId of tree.sessions.keys()) {
    if (tx.agent(threadId).state !== "open") tx.effects.closed.push(threadId);
  }
  for (const threadId of tx.store.triggered(tx.treeId)) {
    const agent = tx.agent(threadId);
    if (agent.currentRun === null && agent.state === "open") tx.effects.wake.add(threadId);
  }
  tx.effects.deadlines = true;
  tx.effects.budgetRaised = true;
  return items;
}

/** Sessions that miss items. To be asked when everything that was committed before is in memory. */
export function staleSessions(tree: Tree, items: ReadonlyMap<ThreadId, number>): Session[] {
  return [...tree.sessions].flatMap(([id, session]) =>
    session.items.length < (items.get(id) ?? 0) ? [session] : [],
  );
}

function resumeIfDone(tx: Transaction, threadId: ThreadId): void {
  const open = tx.store.openWaitsOf(threadId).length + tx.store.openRequestsOf(threadId).length;
  if (open === 0) tx.effects.resume.add(threadId);
}
