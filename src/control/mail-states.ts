/** Moves of a message's state (MBX-7). They only go forward; an undelivered result that goes leaves a notice (WRK-4). */
import type { EventType } from "../protocol/events.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { DeadLetterReason, MailRecord } from "../protocol/mail.ts";
import type { RunId } from "../protocol/ids.ts";
import { InvariantError } from "../protocol/errors.ts";
import type { Transaction } from "./transaction.ts";

export function markDelivered(tx: Transaction, mail: MailRecord, runId: RunId | null): MailRecord {
  requireState(mail, "accepted", "delivered");
  const next: MailRecord = { ...mail, state: "delivered", runId };
  tx.store.putMail(next);
  tx.effects.mail.add(mail.recipient);
  tellMail(tx, "mail.delivered", next);
  return next;
}

export function markSettled(tx: Transaction, mail: MailRecord): void {
  requireState(mail, "delivered", "settled");
  tx.store.putMail({ ...mail, state: "settled", settledAt: tx.now });
  tellMail(tx, "mail.settled", mail);
}

export function deadLetter(tx: Transaction, mail: MailRecord, reason: DeadLetterReason): void {
  requireState(mail, "accepted", "dead_lettered");
  tx.store.putMail({ ...mail, state: "dead_lettered", reason, settledAt: tx.now });
  tx.effects.mail.add(mail.recipient);
  tellMail(tx, "mail.dead_lettered", mail, { reason });
}

/** Turns queue-only mail into trigger-turn mail, or back. */
export function setTrigger(tx: Transaction, mail: MailRecord, trigger: boolean): void {
  if (mail.trigger === trigger) return;
  tx.store.putMail({ ...mail, trigger });
  tx.effects.mail.add(mail.recipient);
  tellMail(tx, "mail.triggered", mail, { trigger });
}

/** The event of what has happened to a message; of its run where it is in one. */
export function tellMail(
  tx: Transaction,
  type: Extract<EventType, `mail.${string}`>,
  mail: MailRecord,
  more: JsonObject = {},
): void {
  tx.emit(
    type,
    tx.agent(mail.recipient),
    { runId: mail.runId, workId: mail.workId ?? mail.resultOf },
    { mailId: mail.id, seq: mail.seq, ...more },
  );
}

function requireState(mail: MailRecord, from: MailRecord["state"], to: MailRecord["state"]): void {
  if (mail.state === from) return;
  throw new InvariantError(
    `message ${mail.id} is ${mail.state} and cannot become ${to}`,
    { id: mail.id },
    "ILLEGAL_TRANSITION",
  );
}
