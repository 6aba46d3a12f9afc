/** Stored messages that cannot be read go to the dead letters, and the agent goes on (MBX-10). */
import type { AgentRecord } from "../protocol/agent.ts";
import type { MailId } from "../protocol/ids.ts";
import type { WorkRecord } from "../protocol/work.ts";
import type { StoreView } from "../store/port.ts";
import { deliver } from "./delivery.ts";
import type { Look, Transaction } from "./transaction.ts";
import { endWork } from "./works.ts";

/** Whether there is something to put out of the way. */
export function mustQuarantine({ store }: Look, agent: AgentRecord): boolean {
  return store.unreadable(agent.threadId).length > 0 || lostResultsOf(store, agent).length > 0;
}

/** Answers the agent as it is after that. */
export function quarantine(tx: Transaction, agent: AgentRecord): AgentRecord {
  const gone = new Set(tx.store.unreadable(agent.threadId));
  for (const id of gone) {
    tx.store.deadLetterUnreadable(id);
    tx.effects.mail.add(agent.threadId);
    tx.emit("mail.dead_lettered", agent, {}, { mailId: id, reason: "unreadable" });
  }
  if (gone.size > 0) lostRequests(tx, agent, gone);
  lostResults(tx, agent);
  return tx.agent(agent.threadId);
}

/** Nobody can carry out what nobody can read. */
function lostRequests(tx: Transaction, agent: AgentRecord, gone: ReadonlySet<MailId>): void {
  const message = "the stored request cannot be read; ask again.";
  for (const work of tx.store.openWorksOf(agent.threadId)) {
    if (!gone.has(work.requestMailId) && (work.retryMailId === null || !gone.has(work.retryMailId))) continue;
    endWork(tx, work.id, {
      ending: "failed",
      text: "",
      error: { code: "STORE_CORRUPT", message, status: null },
    });
  }
}

/** A result whose mail is gone undelivered leaves a trigger-turn notice, so that what waits for it is not stranded (WRK-4). */
function lostResults(tx: Transaction, agent: AgentRecord): void {
  for (const work of lostResultsOf(tx.store, agent)) {
    const notice = deliver(tx, agent, {
      author: { kind: "runtime" },
      kind: "notice",
      authority: "runtime",
      trigger: true,
      text: `The result of ${work.id} by ${work.executorPath} could not be delivered; it ended ${work.outcome?.ending ?? "unknown"}.`,
      resultOf: work.id,
      overLimit: true,
    });
    tx.store.putWork({ ...work, resultMailId: notice.id });
  }
}

/** Works with a result that has no mail to come with any more. */
function lostResultsOf(view: StoreView, { threadId }: AgentRecord): WorkRecord[] {
  const waiting = view.openWorksOf(threadId).filter(({ openUnder }) => openUnder > 0);
  if (waiting.length === 0) return [];
  return view.strandedResults(threadId).filter(({ parents, resultMailId }) => {
    const mail = view.mail(resultMailId!);
    const isLost = mail === undefined || mail.state === "dead_lettered";
    return isLost && waiting.some(({ id }) => parents.includes(id));
  });
}
