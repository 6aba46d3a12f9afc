/**
 * What ends an open wait: mail, the end of a work, time, an abort. All of it happens in the commit that causes it, so a
 * wait can neither miss an end nor see it twice (WAI-3, WAI-4).
 */
import type { AgentRecord } from "../protocol/agent.ts";
import type { MailRecord } from "../protocol/mail.ts";
import type { RunId, ThreadId, WorkId } from "../protocol/ids.ts";
import type { WaitEnd, WaitRecord } from "../protocol/wait.ts";
import { hasToWait } from "./status.ts";
import type { Transaction } from "./transaction.ts";

export function endWait(
  tx: Transaction,
  wait: WaitRecord,
  end: WaitEnd,
  loop: readonly string[] | null = null,
): void {
  tx.store.putWait({ ...wait, end, endedAt: tx.now, loop });
  tx.effects.answered.add(wait.threadId);
  const agent = tx.agent(wait.threadId);
  tx.emit("wait.ended", agent, { runId: wait.runId }, { waitId: wait.id, end });
  resumeWhenFree(tx, wait.threadId, wait.runId);
}

/**
 * The next request needs every result of the step, so a run goes on when its last wait and question have ended. One that
 * has not suspended yet looks itself before it does.
 */
export function resumeWhenFree(tx: Transaction, threadId: ThreadId, runId: RunId): void {
  if (tx.store.run(runId)?.status !== "waiting") return;
  if (hasToWait(tx.store, threadId)) return;
  tx.effects.resume.add(threadId);
}

/** Mail that reaches a waiter (WAI-3). */
export function endWaitsForMail(tx: Transaction, recipient: AgentRecord, mail: MailRecord): void {
  for (const wait of tx.store.openWaitsOf(recipient.threadId)) {
    const end = endForMail(wait, mail);
    if (end !== null) endWait(tx, wait, end);
  }
}

export function endForMail(
  wait: Pick<WaitRecord, "sinceSeq" | "works" | "agents" | "threads">,
  mail: MailRecord,
): WaitEnd | null {
  if (mail.seq <= wait.sinceSeq) return null;
  const input = mail.authority === "user";
  if (wait.threads !== undefined) return input || mail.trigger ? "new_input" : null;
  if (wait.works.length === 0) return input ? "new_input" : "activity";
  // The result of an awaited work is what the wait is for; it is judged when the work ends.
  if (mail.resultOf !== null && wait.works.includes(mail.resultOf)) return null;
  if (input || mail.trigger) return "new_input";
  return mail.author.kind === "agent" && wait.agents.includes(mail.author.threadId) ? "new_input" : null;
}

/** The end of a work counts for every wait on it. */
export function endWaitsOnWork(tx: Transaction, work: WorkId): void {
  for (const wait of tx.store.openWaitsOn(work)) {
    if (settledWorks(tx, wait) >= wait.need) endWait(tx, wait, "settled");
  }
}

export function settledWorks(tx: Transaction, wait: Pick<WaitRecord, "works">): number {
  return wait.works.filter((id) => tx.store.work(id)?.state === "ended").length;
}

/** So many in one commit: thousands that are due at once must not hold up everything else. */
const DUE_AT_ONCE = 100;

/** `at` is the time for which a timer was set: it counts as come when the timer has fired, wherever the wall clock stands. */
export function endDueWaits(tx: Transaction, at = 0): void {
  const due = tx.store.dueWaits(tx.treeId, Math.max(tx.now, at), DUE_AT_ONCE);
  for (const wait of due) endWait(tx, wait, "timed_out");
  // What is left is the earliest deadline now, and is looked at again at once.
  tx.effects.deadlines = true;
}

/** What is ended together must not look as if one had waited for the end of the other (INT-8). */
export function abortWaitsOf(tx: Transaction, agents: readonly AgentRecord[]): void {
  for (const { threadId, currentRun } of agents)
    if (currentRun !== null) abortWaits(tx, threadId, currentRun);
}

/** A run that settles takes its open waits with it. */
export function abortWaits(tx: Transaction, threadId: ThreadId, runId: RunId): void {
  for (const wait of tx.store.openWaitsOf(threadId)) {
    if (wait.runId !== runId) continue;
    tx.store.putWait({ ...wait, end: "aborted", endedAt: tx.now });
    tx.effects.answered.add(threadId);
    tx.emit("wait.ended", tx.agent(threadId), { runId }, { waitId: wait.id, end: "aborted" });
  }
}
