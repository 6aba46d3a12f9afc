/**
 * `send`: mail from anybody, without a lease (S5, MBX-8, MBX-12). Runs inside a transaction and never throws for what a
 * sender may get wrong; each draft has its own answer.
 *
 * The common path is one look at the recipient and one insert: whether the mail is known already is asked of the insert,
 * and beforehand only where the answer would otherwise be a refusal.
 */
import type { MailDraft } from "../protocol/mail.ts";
import type { BackendTx } from "./backend.ts";
import { hasRoom } from "./mailbox-counters.ts";
import type { SendResult } from "./port.ts";

export function sendMail(tx: BackendTx, draft: MailDraft): SendResult {
  const agent = tx.agent(draft.recipient);
  const tree = agent === undefined ? undefined : tx.tree(agent.treeId);
  if (agent === undefined || tree === undefined || agent.treeId !== draft.treeId) return { kind: "unknown" };
  if (agent.state !== "open") return duplicateOf(tx, draft) ?? { kind: "closed" };
  const capacity = { messages: tree.limits.mailboxMessages, bytes: tree.limits.mailboxBytes };
  const startsRun = draft.trigger && !agent.hostDriven && agent.currentRun === null;
  if (!hasRoom(tx.counters(draft.recipient), capacity, draft.content.bytes, startsRun)) {
    return duplicateOf(tx, draft) ?? { kind: "full", mailbox: tx.mailbox(draft.recipient), capacity };
  }
  const mail = tx.insertMail(draft, true);
  return mail === undefined ? duplicateOf(tx, draft)! : { kind: "accepted", seq: mail.seq, mail };
}

function duplicateOf(tx: BackendTx, draft: MailDraft): SendResult | undefined {
  const mail = tx.knownMail(draft);
  return mail === undefined ? undefined : { kind: "duplicate", mail };
}
