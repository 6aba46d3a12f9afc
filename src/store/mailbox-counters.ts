/**
 * The arithmetic of a mailbox's counters, the same for every adapter. Unread is what is `accepted`; a recount over the
 * rows must give the same figures at any time.
 */
import { InvariantError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { Mailbox, MailboxCapacity, MailRecord } from "../protocol/mail.ts";

/** A mailbox without what an index answers. */
export type Counters = Omit<Mailbox, "oldestUnreadAt">;

/** What the counters need to know of one mail. */
export interface Counted {
  readonly unread: boolean;
  readonly trigger: boolean;
  readonly bytes: number;
}

export function emptyCounters(threadId: ThreadId): Counters {
  return {
    threadId,
    lastSeq: 0,
    unread: 0,
    unreadBytes: 0,
    triggers: 0,
    reservedMessages: 0,
    reservedBytes: 0,
  };
}

export function countedOf(mail: Pick<MailRecord, "state" | "trigger" | "content">): Counted {
  return { unread: mail.state === "accepted", trigger: mail.trigger, bytes: mail.content.bytes };
}

/** The counters after a mail has come, gone or changed; `null` stands for "not there". */
export function recount(
  counters: Counters,
  before: Counted | null,
  after: Counted,
  lastSeq: number = counters.lastSeq,
): Counters {
  const was = before?.unread === true ? before : null;
  const is = after.unread ? after : null;
  return {
    threadId: counters.threadId,
    lastSeq,
    unread: counters.unread + (is === null ? 0 : 1) - (was === null ? 0 : 1),
    unreadBytes: counters.unreadBytes + (is?.bytes ?? 0) - (was?.bytes ?? 0),
    triggers: counters.triggers + (is?.trigger === true ? 1 : 0) - (was?.trigger === true ? 1 : 0),
    reservedMessages: counters.reservedMessages,
    reservedBytes: counters.reservedBytes,
  };
}

export function reserve(counters: Counters, messages: number, bytes: number): Counters {
  const reservedMessages = counters.reservedMessages + messages;
  const reservedBytes = counters.reservedBytes + bytes;
  if (reservedMessages < 0 || reservedBytes < 0) {
    throw new InvariantError("More room was given back to a mailbox than was reserved in it.", {
      threadId: counters.threadId,
      reservedMessages,
      reservedBytes,
    });
  }
  return { ...counters, reservedMessages, reservedBytes };
}

/**
 * Unread and reserved room together stay within the capacity (MBX-8), save for the one message that starts the run of an
 * idle agent: nothing else would ever make room.
 */
export function hasRoom(
  counters: Counters,
  capacity: MailboxCapacity,
  bytes: number,
  startsRun: boolean,
): boolean {
  return (
    (counters.unread + counters.reservedMessages + 1 <= capacity.messages &&
      counters.unreadBytes + counters.reservedBytes + bytes <= capacity.bytes) ||
    (startsRun && counters.triggers === 0 && bytes <= capacity.bytes)
  );
}
