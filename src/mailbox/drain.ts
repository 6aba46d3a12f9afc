/**
 * Which unread mail goes into the next request of a run (MBX-4, MBX-5). Pure: the store's rows in, a batch out. Whether mail
 * may join at all is control's (`answer.ts`), as is marking it `delivered`, once the provider has accepted.
 *
 * - D1 Oldest first, without a gap: what does not fit waits together with all that came later.
 * - D2 Never nothing while there is something to take, however large the first message is.
 * - D3 Mail that a wait of this run handed out is not drained as mail (WAI-3); mail for the next run does not join one that
 *   was reserved before it.
 */
import type { RunId } from "../protocol/ids.ts";
import type { MailRecord } from "../protocol/mail.ts";
import type { RunRecord } from "../protocol/run.ts";

export interface DrainRequest {
  /** Oldest first. */
  readonly unread: Iterable<MailRecord>;
  readonly runId: RunId;
  /** `first`: no request of this run was accepted yet. */
  readonly phase: "first" | "boundary";
  readonly budgetBytes: number;
  /**
   * A run which the user started takes only the user's input into its first request (`userRunDrainsLate`), and mail up to
   * this `seq`, which was there before the run before it: nothing is more than one run late. Null: it takes all.
   */
  readonly lateAfter?: number | null;
  /** After requests that the provider refused: queue-only mail stays out, of results a stub goes in (MBX-15). */
  readonly withoutQueueOnly?: boolean;
  /** Mail for the next run that was there when this one was reserved is for this one. */
  readonly reservedSeq?: number;
}

export interface Batch {
  /** Goes in whole. */
  readonly mail: readonly MailRecord[];
  /** Results of which a stub goes in; empty unless `withoutQueueOnly`. */
  readonly stubs: readonly MailRecord[];
  /** Queue-only mail which `withoutQueueOnly` kept out, stubbed results included. */
  readonly leftOut: readonly MailRecord[];
  /** Mail that could have gone in but for the budget. */
  readonly more: boolean;
}

export function selectBatch(request: DrainRequest): Batch {
  const mail: MailRecord[] = [];
  const leftOut: MailRecord[] = [];
  let bytes = 0;
  let more = false;
  for (const one of request.unread) {
    if (!mayJoin(one, request)) continue;
    if (request.withoutQueueOnly === true && !one.trigger) {
      leftOut.push(one);
      continue;
    }
    bytes += one.content.bytes;
    if (mail.length > 0 && bytes > request.budgetBytes) {
      more = true;
      break;
    }
    mail.push(one);
  }
  return { mail, stubs: leftOut.filter((one) => one.resultOf !== null), leftOut, more };
}

/** What a later request of the run can take, and nothing else can hold its end up. */
export function joining(
  unread: Iterable<MailRecord>,
  { id, reservedSeq }: Pick<RunRecord, "id" | "reservedSeq">,
): readonly MailRecord[] {
  return [...unread].filter((mail) => mayJoin(mail, { runId: id, phase: "boundary", reservedSeq }));
}

/** Mail that waits for a run after the one that was reserved up to `reservedSeq`. */
export function isForLater(
  { nextRun, seq }: Pick<MailRecord, "nextRun" | "seq">,
  reservedSeq: number,
): boolean {
  return nextRun && seq > reservedSeq;
}

function mayJoin(mail: MailRecord, request: Omit<DrainRequest, "unread" | "budgetBytes">): boolean {
  const { runId, phase, lateAfter = null, reservedSeq = 0 } = request;
  if (mail.state !== "accepted" || mail.boundRunId === runId || isForLater(mail, reservedSeq)) return false;
  return phase === "boundary" || lateAfter === null || mail.kind === "user" || mail.seq <= lateAfter;
}
