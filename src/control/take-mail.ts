/**
 * Mail that has been taken in: it is `delivered`, its works are served, its transfers consumed (MBX-7, lineage C4.13). By a
 * run whose request was accepted, or by the host of a root that has none.
 */
import type { MailId, RunId } from "../protocol/ids.ts";
import type { MailRecord } from "../protocol/mail.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { WorkRecord } from "../protocol/work.ts";
import { deliverHandoff } from "../lineage/handoff-record.ts";
import { consume, handoffOf } from "../lineage/transfer.ts";
import { markDelivered } from "./mail-states.ts";
import { must, type Transaction } from "./transaction.ts";
import { resultDelivered, serveWork, workOf, worksAskedBy } from "./works.ts";

export function takeMail(tx: Transaction, run: RunRecord, id: MailId): RunRecord {
  const mail = must(tx.store.mail(id), "message", id);
  if (mail.state !== "accepted") return run;
  markDelivered(tx, mail, run.id);
  let next = run;
  for (const asked of worksAskedBy(tx, mail)) {
    next = serveWork(tx, next, asked);
    next = { ...next, chain: Math.max(next.chain, must(tx.store.work(asked), "work", asked).chain) };
  }
  if (workOf(tx, mail.workId) !== undefined) consumeTransfer(tx, mail, "subagent_spawn", run.id);
  const ended = workOf(tx, mail.resultOf);
  if (ended !== undefined) {
    const result = resultDelivered(tx, ended);
    consumeTransfer(tx, mail, "subagent_result", run.id);
    let serves = false;
    for (const holder of result.holds) {
      const work = must(tx.store.work(holder), "work", holder);
      if (work.executor !== run.threadId || work.state === "ended") continue;
      serves = true;
      if (work.state === "awaiting_children") next = serveWork(tx, next, holder);
    }
    next = { ...next, chain: Math.max(next.chain, chainBehind(run, mail, result, serves)) };
  }
  return next;
}

/**
 * What a result adds to the chain of causes behind a run (BUD-5). Where a work waits for it, that work is the cause. Else,
 * when it has woken the run, the result is: or two agents could feed each other for ever.
 */
function chainBehind(run: RunRecord, mail: MailRecord, result: WorkRecord, serves: boolean): number {
  const woke = !serves && run.causes.some((cause) => cause.mailId === mail.id);
  return woke ? result.chain : result.chain - 1;
}

function consumeTransfer(
  tx: Transaction,
  mail: MailRecord,
  type: "subagent_spawn" | "subagent_result",
  runId: RunId | null,
): void {
  const transfer = tx.store.transferOfWork((mail.workId ?? mail.resultOf)!, type);
  if (transfer === undefined || transfer.status === "consumed") return;
  const moved = consume(transfer, runId === null ? { hostDriven: true } : { runId }, tx.now);
  tx.store.putTransfer(moved);
  const handoffId = handoffOf(transfer);
  const handoff = handoffId === null ? undefined : tx.store.handoff(handoffId);
  if (handoff?.status === "ready") tx.store.putHandoff(deliverHandoff(handoff, runId, tx.now));
  tx.emit(
    "transfer.moved",
    tx.agent(mail.recipient),
    { runId, workId: mail.workId ?? mail.resultOf },
    {
      transferId: transfer.id,
      status: "consumed",
    },
  );
}

/** Consumes what a host-driven root acknowledged; it has no run (lineage C1.9). */
export function acknowledgeMail(tx: Transaction, mail: MailRecord): void {
  markDelivered(tx, mail, null);
  const result = workOf(tx, mail.resultOf);
  if (result === undefined) return;
  resultDelivered(tx, result);
  consumeTransfer(tx, mail, "subagent_result", null);
}
