/** Whether a mailbox has room (MBX-8): arithmetic over the store's counters, read in the transaction that appends. */
import type { JsonObject } from "../protocol/json.ts";
import type { Mailbox, MailboxCapacity } from "../protocol/mail.ts";

export interface MailboxRoom {
  readonly fits: boolean;
  /** What is left beside unread mail and reservations; never negative. */
  readonly left: MailboxCapacity;
  /** Limit and use, for the text of the refusal. */
  readonly detail: string;
  /** Details of `MAILBOX_FULL`: limit, use and a retry hint. */
  readonly details: JsonObject;
}

/**
 * Unread mail and what is reserved for results count alike.
 * @param startsRun the message starts the run of an idle agent, which alone would make room: the first such goes in over the
 * limit, if an empty mailbox would hold it.
 */
export function mailboxRoom(
  mailbox: Mailbox,
  limit: MailboxCapacity,
  wanted: MailboxCapacity,
  startsRun = false,
): MailboxRoom {
  const used = {
    messages: mailbox.unread + mailbox.reservedMessages,
    bytes: mailbox.unreadBytes + mailbox.reservedBytes,
  };
  return {
    fits:
      (used.messages + wanted.messages <= limit.messages && used.bytes + wanted.bytes <= limit.bytes) ||
      (startsRun && mailbox.triggers === 0 && wanted.bytes <= limit.bytes),
    left: {
      messages: Math.max(0, limit.messages - used.messages),
      bytes: Math.max(0, limit.bytes - used.bytes),
    },
    detail:
      `${used.messages} of ${limit.messages} messages and ${used.bytes} of ${limit.bytes} bytes are in use, ` +
      `${mailbox.reservedMessages} messages of them kept for results`,
    details: {
      limit: { messages: limit.messages, bytes: limit.bytes },
      use: {
        unread: mailbox.unread,
        unreadBytes: mailbox.unreadBytes,
        reserved: mailbox.reservedMessages,
        reservedBytes: mailbox.reservedBytes,
      },
      wanted: { messages: wanted.messages, bytes: wanted.bytes },
      oldestUnreadAt: mailbox.oldestUnreadAt,
      retry: mailbox.unread > 0 ? "when_read" : "when_a_work_ends",
    },
  };
}

/**
 * The bytes that a result may bring without going over the limit: its reservation, or what is left with that freed. At least
 * the reservation, which was granted when the work was asked for.
 */
export function resultRoom(mailbox: Mailbox, limit: MailboxCapacity, reservationBytes: number): number {
  const others = mailbox.unreadBytes + mailbox.reservedBytes - reservationBytes;
  return Math.max(reservationBytes, limit.bytes - others);
}
