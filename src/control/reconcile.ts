/**
 * After a commit whose outcome is unknown: the store said that it failed, and may have stored it all the same. What memory
 * should have done for it is found again from the store (REC-3). A plan; it changes nothing where both agree.
 *
 * - Q1 A run that is being started or driven here is left alone; one that nobody here knows of is recovered as after a crash.
 * - Q2 What is asked of memory twice does nothing the second time.
 */
import type { ThreadId } from "../protocol/ids.ts";
import { isSettled } from "../protocol/run.ts";
import { recoverRun } from "./recovery.ts";
import type { Tree } from "./tree.ts";
import type { Transaction } from "./transaction.ts";

export function reconcile(tx: Transaction, tree: Tree): void {
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
}

function resumeIfDone(tx: Transaction, threadId: ThreadId): void {
  const open = tx.store.openWaitsOf(threadId).length + tx.store.openRequestsOf(threadId).length;
  if (open === 0) tx.effects.resume.add(threadId);
}
