/**
 * Delivery: the one way by which mail gets into a mailbox, and what its arrival does.
 *
 * - D1 Trigger-turn mail to an idle agent wakes it; to a running one it joins at a step boundary (MBX-3).
 * - D2 Arrival, the end of waits and the wake are one commit with the mail itself (MBX-6, WAI-4).
 * - D3 A host-driven root gets queue-only mail alone (HDR-1).
 * - D4 A mailbox is full at its limit, save for the one message that starts the run of an idle agent: without it nobody would
 *   ever make room (MBX-8).
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { AgentPath } from "../protocol/agent-path.ts";
import type { WorkId } from "../protocol/ids.ts";
import type {
  Authority,
  MailAuthor,
  MailContent,
  MailKind,
  MailRecord,
  StartOptions,
} from "../protocol/mail.ts";
import { buildContent } from "../mailbox/content.ts";
import { mailboxRoom } from "../mailbox/capacity.ts";
import { senderName } from "../mailbox/render.ts";
import { tellMail } from "./mail-states.ts";
import type { Transaction } from "./transaction.ts";
import { endWaitsForMail } from "./wait-ends.ts";

export interface Letter {
  /** Given when the work was made before its mail. */
  readonly id?: MailRecord["id"];
  readonly author: MailAuthor;
  readonly kind: MailKind;
  readonly authority: Authority;
  readonly trigger: boolean;
  readonly text: string;
  /** Content already stored, such as a result whose artifact exists. */
  readonly content?: MailContent;
  readonly steer?: boolean;
  readonly nextRun?: boolean;
  readonly workId?: WorkId | null;
  readonly resultOf?: WorkId | null;
  readonly start?: StartOptions | null;
  readonly redirectedFrom?: AgentPath | null;
  readonly key?: string | null;
  /** Notices and redirected results go in over the limit (MBX-8). */
  readonly overLimit?: boolean;
}

/** Payload as a mail carries it: whole, or an artifact's head and tail (MBX-9). The artifact is stored in this commit. */
export function storeContent(
  tx: Transaction,
  text: string,
  provider: string | null,
  maximumInline = tx.limits.mailInlineBytes,
): MailContent {
  const built = buildContent(text, {
    artifactId: () => tx.id("art"),
    inlineBytes: tx.profile.boundedResults ? maximumInline : Number.MAX_SAFE_INTEGER,
    headBytes: tx.limits.artifactHeadBytes,
    tailBytes: tx.limits.artifactTailBytes,
  });
  if (built.artifact !== null) {
    tx.store.putArtifact({ ...built.artifact, treeId: tx.treeId, provider, createdAt: tx.now });
  }
  return built.content;
}

/**
 * Puts a letter into an agent's mailbox.
 * @throws RejectedError `AGENT_CLOSED`, or `MAILBOX_FULL` with limit and use; nothing is stored then (MBX-8).
 */
export function deliver(tx: Transaction, recipient: AgentRecord, letter: Letter): MailRecord {
  requireOpen(recipient);
  const content = letter.content ?? storeContent(tx, letter.text, providerOf(tx, letter.author));
  const wakesRoot =
    tx.profile.wakeOnAgentMessages &&
    recipient.parent === null &&
    recipient.currentRun === null &&
    letter.kind !== "user";
  const trigger = !recipient.hostDriven && (letter.trigger || wakesRoot);
  if (letter.overLimit !== true) requireRoom(tx, recipient, content.bytes, trigger);
  const mail = tx.store.appendMail({
    id: letter.id ?? tx.id("msg"),
    treeId: tx.treeId,
    recipient: recipient.threadId,
    recipientPath: recipient.path,
    author: letter.author,
    kind: letter.kind,
    authority: letter.authority,
    trigger,
    steer: letter.steer ?? false,
    nextRun: letter.nextRun ?? false,
    workId: letter.workId ?? null,
    resultOf: letter.resultOf ?? null,
    content,
    start: letter.start ?? null,
    redirectedFrom: letter.redirectedFrom ?? null,
    key: letter.key ?? null,
    createdAt: tx.now,
  });
  tellAccepted(tx, mail);
  arrive(tx, recipient, mail);
  return mail;
}

/** The event of mail that is in a mailbox now. */
export function tellAccepted(tx: Transaction, mail: MailRecord): void {
  tellMail(tx, "mail.accepted", mail, {
    kind: mail.kind,
    trigger: mail.trigger,
    author: senderName(mail.author),
    bytes: mail.content.bytes,
  });
}

/** What an accepted message does to its recipient: ends waits that it must end, and wakes who is idle. */
export function arrive(tx: Transaction, recipient: AgentRecord, mail: MailRecord): void {
  tx.effects.mail.add(recipient.threadId);
  endWaitsForMail(tx, recipient, mail);
  if (mail.trigger && recipient.currentRun === null) tx.effects.wake.add(recipient.threadId);
}

export function requireOpen(agent: AgentRecord): void {
  if (agent.state === "open") return;
  throw new RejectedError(
    "AGENT_CLOSED",
    `agent ${agent.path} is ${agent.state} and takes no mail; its last outcome was ${agent.lastOutcome?.status ?? "none"}.`,
    { path: agent.path, state: agent.state, lastOutcome: agent.lastOutcome?.status ?? null },
  );
}

/** @throws RejectedError `MAILBOX_FULL` unless one more message of so many bytes fits beside what is reserved. */
function requireRoom(tx: Transaction, recipient: AgentRecord, bytes: number, trigger: boolean): void {
  const mailbox = tx.store.mailbox(recipient.threadId);
  const idle = recipient.currentRun === null && !recipient.hostDriven;
  const room = mailboxRoom(
    mailbox,
    { messages: tx.limits.mailboxMessages, bytes: tx.limits.mailboxBytes },
    { messages: 1, bytes },
    trigger && idle,
  );
  if (room.fits) return;
  const asleep = idle && mailbox.triggers === 0 && mailbox.unread > 0;
  throw new RejectedError(
    "MAILBOX_FULL",
    `the mailbox of ${recipient.path} has no room: ${room.detail}. ` +
      (asleep
        ? "It is idle and reads when a request starts its next run; the next request is taken all the same."
        : "Wait until it has read, then send again."),
    { path: recipient.path, ...room.details },
  );
}

function providerOf(tx: Transaction, author: MailAuthor): string | null {
  return author.kind === "agent" ? tx.agent(author.threadId).config.provider : null;
}

/** Reserves room for one result in the mailbox that is to get it (MBX-8); refuses the asker when there is none. */
export function reserveReply(tx: Transaction, replyTo: AgentRecord): void {
  requireRoom(tx, replyTo, tx.limits.resultReservationBytes, false);
  tx.store.reserveMailbox(replyTo.threadId, 1, tx.limits.resultReservationBytes);
}
