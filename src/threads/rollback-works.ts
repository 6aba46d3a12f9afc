/**
 * What becomes of works when runs are taken back (lineage C9.2, C8.9): those that were served end, those that were asked for
 * go on by themselves, and their results are kept for whoever asks.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import type { RunId } from "../protocol/ids.ts";
import type { MailRecord } from "../protocol/mail.ts";
import { deadLetter } from "../control/mail-states.ts";
import { wasRolledBack } from "../control/results.ts";
import type { Transaction } from "../control/transaction.ts";
import { unreadOf } from "../control/unread.ts";
import { endWork, resultDelivered, worksAskedBy } from "../control/works.ts";

/** The runs are `rolled_back` in the store by now. */
export function releaseWorks(tx: Transaction, agent: AgentRecord, runs: ReadonlySet<RunId>): void {
  for (const work of tx.store.openWorksOf(agent.threadId)) {
    if (!work.servedRuns.some((id) => runs.has(id))) continue;
    endWork(tx, work.id, { ending: "cancelled", text: "" });
    dropRetry(tx, work.retryMailId === null ? undefined : tx.store.mail(work.retryMailId));
  }
  // Whatever held them has ended with that, or is over long since: they are detached.
  for (const work of tx.store.openWorksAskedBy(agent.threadId)) {
    if (work.originRunId !== null && runs.has(work.originRunId)) tx.store.putWork({ ...work, wake: "never" });
  }
  for (const mail of unreadOf(tx.store, agent.threadId)) keepBack(tx, mail);
}

/** The notice that asks again for a lost run's works, once none of them is open. */
function dropRetry(tx: Transaction, mail: MailRecord | undefined): void {
  if (mail?.state === "accepted" && worksAskedBy(tx, mail).length === 0) deadLetter(tx, mail, "work_ended");
}

/** A result that has come and was not read yet. */
function keepBack(tx: Transaction, mail: MailRecord): void {
  const work = mail.resultOf === null ? undefined : tx.store.work(mail.resultOf);
  if (work === undefined || mail.kind !== "final_answer" || !wasRolledBack(tx, work)) return;
  tx.store.putMail({ ...mail, state: "superseded", settledAt: tx.now });
  tx.effects.mail.add(mail.recipient);
  const { resultTransferId } = resultDelivered(tx, work);
  tx.store.putWork({ ...tx.store.work(work.id)!, resultMailId: null, wake: "never" });
  const transfer = resultTransferId === null ? undefined : tx.store.transfer(resultTransferId);
  if (transfer !== undefined) tx.store.putTransfer({ ...transfer, staleBase: true, updatedAt: tx.now });
}
