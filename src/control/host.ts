/**
 * Host-driven roots (HDR): a root whose loop belongs to somebody else. It has a mailbox and works it asked for, no runs; what
 * cannot be injected comes with tool results.
 *
 * - H1 Mail that a wait returns is `delivered` when a later call carries its cursor; until then it is returned again,
 *   marked `repeated` (HDR-3).
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { MailRecord } from "../protocol/mail.ts";
import type { Json } from "../protocol/json.ts";
import { addUsage } from "../protocol/usage.ts";
import { costOf, priceOf, type Prices } from "../policy/budget.ts";
import { senderName } from "../mailbox/render.ts";
import { figures } from "./figures.ts";
import { quarantine } from "./quarantine.ts";
import { acknowledgeMail } from "./take-mail.ts";
import type { Transaction } from "./transaction.ts";
import { unreadOf } from "./unread.ts";
import { wrongCursor } from "./waits.ts";

/** Bounds of one answer. */
const MESSAGES = 32;
const BYTES = 64 * 1024;

export interface HostMail {
  readonly messages: readonly Json[];
  /** Carry it in the next call, as proof that these were taken in. Null when there are none. */
  readonly cursor: string | null;
  readonly more: boolean;
}

/**
 * Marks everything up to a cursor as delivered. Old cursors change nothing.
 * @throws RejectedError `INVALID_ARGUMENT` for text that is no cursor.
 */
export function acknowledge(tx: Transaction, agent: AgentRecord, cursor: string | null | undefined): void {
  quarantine(tx, agent);
  if (cursor === null || cursor === undefined || cursor === "") return;
  const upTo = Number(/^seq:(\d+)$/.exec(cursor)?.[1] ?? Number.NaN);
  if (Number.isNaN(upTo)) throw wrongCursor();
  for (const mail of unreadOf(tx.store, agent.threadId)) {
    if (mail.seq <= upTo && mail.handedOut > 0) acknowledgeMail(tx, mail);
  }
}

/** Hands out unread mail, oldest first, bounded. */
export function handOut(tx: Transaction, agent: AgentRecord): HostMail {
  const unread = tx.store.unread(agent.threadId, { limit: MESSAGES + 1 });
  const messages: Json[] = [];
  let bytes = 0;
  let last: MailRecord | null = null;
  for (const mail of unread.slice(0, MESSAGES)) {
    bytes += mail.content.bytes;
    if (messages.length > 0 && bytes > BYTES) break;
    messages.push(hostMessage(tx, mail));
    tx.store.putMail({ ...mail, handedOut: mail.handedOut + 1 });
    last = mail;
  }
  return {
    messages,
    cursor: last === null ? null : `seq:${last.seq}`,
    more: messages.length < unread.length,
  };
}

function hostMessage(tx: Transaction, mail: MailRecord): Json {
  const outcome = mail.resultOf === null ? null : (tx.store.work(mail.resultOf)?.outcome ?? null);
  return {
    message_id: mail.id,
    type: mail.kind,
    from: senderName(mail.author),
    ...(mail.workId === null ? {} : { work_id: mail.workId }),
    ...(mail.resultOf === null ? {} : { result_of: mail.resultOf }),
    text: mail.content.text,
    ...(mail.content.artifact === null ? {} : { artifact: mail.content.artifact.id }),
    authority: mail.authority,
    ...(outcome === null || !tx.profile.boundedResults ? {} : { usage: figures(outcome.usage) }),
    ...(mail.handedOut > 0 ? { repeated: true } : {}),
  };
}

/** Ends every other tool result of a host: how much is unread, and from whom (HDR-2). Null when nothing is. */
export function unreadNotice(tx: Transaction, agent: AgentRecord): string | null {
  quarantine(tx, agent);
  const { unread } = tx.store.mailbox(agent.threadId);
  if (unread === 0) return null;
  const senders = [
    ...new Set(tx.store.unread(agent.threadId, { limit: 50 }).map((mail) => senderName(mail.author))),
  ];
  const shown = senders.slice(0, 5).join(", ");
  return `[${unread} unread message${unread === 1 ? "" : "s"} from ${shown}${senders.length > 5 ? ", …" : ""}; call wait_agent to read]`;
}

/** What a host's own loop has used; `cost` in USD where it is known, else it follows from the prices. */
export interface HostUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens?: number;
  readonly reasoningTokens?: number;
  readonly cost?: number | null;
}

/** Until something is reported, the figures of the tree are marked partial; budgets count what is. */
export function chargeHost(tx: Transaction, root: AgentRecord, used: HostUsage, prices: Prices): void {
  if (!root.hostDriven) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      "only a host-driven root reports its usage; others are measured.",
      {
        path: root.path,
      },
    );
  }
  const figures = { cachedInputTokens: 0, reasoningTokens: 0, ...used };
  const price = priceOf(prices, root.config.provider, root.config.model);
  const cost = used.cost === undefined ? costOf(figures, price) : used.cost;
  const sum = addUsage(root.usage, { ...figures, cost, complete: true });
  tx.putAgent(root, { usage: { ...sum, complete: true } });
}
