/**
 * Results of works: one transfer and one mail to whoever is owed the answer (WRK-5, WRK-6), and whether its arrival
 * starts a run (WAI-1).
 */
import { isWithin, ROOT_PATH, parentPath, type AgentPath } from "../protocol/agent-path.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import type { WorkOutcome, WorkRecord } from "../protocol/work.ts";
import { salvageLines, textlessResult } from "../lineage/salvage.ts";
import type { MailContent } from "../protocol/mail.ts";
import { boundToReservation } from "../mailbox/content.ts";
import { resultRoom } from "../mailbox/capacity.ts";
import { byteLength, headBytes } from "../platform/text.ts";
import { deliver, storeContent } from "./delivery.ts";
import { putResultTransfer } from "./result-transfer.ts";
import { setTrigger } from "./mail-states.ts";
import type { Transaction } from "./transaction.ts";
import { unreadOf } from "./unread.ts";

/** What header lines take beside a payload. */
const HEADER_ROOM = 1024;

/** Writes transfer and mail of an ended work, or nothing when no agent is owed it. Returns the record to store. */
export function sendResult(tx: Transaction, work: WorkRecord, quiet: boolean | AgentPath): WorkRecord {
  const outcome = work.outcome!;
  if (work.replyTo === null || tx.profile.results !== "per_work") return work;
  if (outcome.ending === "interrupted" && !tx.profile.interruptedResults) return work;
  const owed = tx.agent(work.replyTo.threadId);
  const { recipient, redirected } = livingRecipient(tx, owed);
  const to = { owed, recipient, redirected };
  // Nobody wants it by now; whoever does asks for it (lineage C8.9).
  if (wasRolledBack(tx, work)) {
    const text = headBytes(resultText(work, outcome), tx.limits.mailInlineBytes);
    return { ...work, resultTransferId: putResultTransfer(tx, work, owed, text, true) };
  }
  const content = contentOf(tx, work, to);
  const transfer = putResultTransfer(tx, work, recipient ?? owed, content.text, false);
  return { ...postResult(tx, work, to, content, quiet), resultTransferId: transfer };
}

/** The run that asked for it, for itself, was taken back. */
export function wasRolledBack(tx: Transaction, { originRunId, replyTo }: WorkRecord): boolean {
  const origin = originRunId === null ? undefined : tx.store.run(originRunId);
  return origin !== undefined && origin.rolledBack !== null && origin.threadId === replyTo?.threadId;
}

interface Addressee {
  readonly owed: AgentRecord;
  /** Who lives of those who may get it. */
  readonly recipient: AgentRecord | null;
  readonly redirected: boolean;
}

/** A result that was kept back is sent to whoever was owed it, and waits for its next run (lineage C8.9). */
export function sendKeptResult(tx: Transaction, work: WorkRecord): WorkRecord {
  const owed = tx.agent(work.replyTo!.threadId);
  const to = { owed, ...livingRecipient(tx, owed) };
  return postResult(tx, work, to, contentOf(tx, work, to), true);
}

function contentOf(
  tx: Transaction,
  work: WorkRecord,
  { owed, recipient, redirected }: Addressee,
): MailContent {
  const text = resultText(work, work.outcome!);
  return resultContent(tx, recipient ?? owed, text, redirected, tx.agent(work.executor).config.provider);
}

function postResult(
  tx: Transaction,
  work: WorkRecord,
  { owed, recipient, redirected }: Addressee,
  content: MailContent,
  quiet: boolean | AgentPath,
): WorkRecord {
  const outcome = work.outcome!;
  const executor = tx.agent(work.executor);
  const author = { kind: "agent", threadId: executor.threadId, path: executor.path } as const;
  const letter = {
    author,
    kind: "final_answer",
    authority: "agent",
    text: content.text,
    content,
    resultOf: work.id,
    redirectedFrom: redirected ? owed.path : null,
    overLimit: true,
  } as const;
  // With no living ancestor the tree's inbox keeps it: unread mail of the closed root, which nobody consumes (WRK-6).
  const mail =
    recipient === null
      ? tx.store.appendMail({
          ...inboxDraft(tx, owed),
          author,
          resultOf: work.id,
          content,
          redirectedFrom: owed.path,
        })
      : deliver(tx, recipient, {
          ...letter,
          trigger: !isQuiet(quiet, recipient) && !redirected && wakes(tx, work, recipient),
        });
  if (recipient === null) {
    tx.inboxed.add(mail.id);
    tx.putTree({ inbox: tx.tree().inbox + 1 });
  }
  if (redirected) {
    tx.emit(
      "mail.redirected",
      owed,
      { workId: work.id },
      { mailId: mail.id, to: recipient?.path ?? "inbox" },
    );
  }
  return {
    ...work,
    artifacts: content.artifact === null ? work.artifacts : [...work.artifacts, content.artifact.id],
    outcome: {
      ...outcome,
      // What did not complete keeps its own words, bounded; the artifact holds what its reader got.
      text: outcome.ending === "completed" ? content.text : headBytes(outcome.text, textBytes(tx)),
      artifactId: content.artifact?.id ?? null,
    },
    resultMailId: mail.id,
    resultPending: recipient !== null,
  };
}

function textBytes(tx: Transaction): number {
  return tx.profile.boundedResults ? tx.limits.mailInlineBytes : Number.MAX_SAFE_INTEGER;
}

function isQuiet(quiet: boolean | AgentPath, recipient: AgentRecord): boolean {
  return typeof quiet === "boolean" ? quiet : isWithin(recipient.path, quiet);
}

function inboxDraft(tx: Transaction, owed: AgentRecord) {
  const root = tx.agent(tx.treeId);
  return {
    id: tx.id("msg"),
    treeId: tx.treeId,
    recipient: root.threadId,
    recipientPath: root.path,
    kind: "final_answer",
    authority: "agent",
    trigger: false,
    steer: false,
    nextRun: false,
    workId: null,
    start: null,
    redirectedFrom: owed.path,
    key: null,
    createdAt: tx.now,
  } as const;
}

/** The agent itself, or its nearest living ancestor; null when the whole line is closed. */
function livingRecipient(
  tx: Transaction,
  owed: AgentRecord,
): { recipient: AgentRecord | null; redirected: boolean } {
  if (owed.state === "open") return { recipient: owed, redirected: false };
  for (let path = parentPath(owed.path); path !== null; path = path === ROOT_PATH ? null : parentPath(path)) {
    const ancestor = tx.store.agentAt(tx.treeId, path);
    if (ancestor?.state === "open" && !tx.closing.has(ancestor.threadId))
      return { recipient: ancestor, redirected: true };
  }
  return { recipient: null, redirected: true };
}

/** A result that finds no other room carries at most its reservation; the rest is an artifact (MBX-8). */
function resultContent(
  tx: Transaction,
  recipient: AgentRecord,
  text: string,
  redirected: boolean,
  provider: string,
) {
  if (redirected) return storeContent(tx, text, provider);
  // Its own reservation has been given back already, and counts as its room.
  const room = resultRoom(
    tx.store.mailbox(recipient.threadId),
    { messages: tx.limits.mailboxMessages, bytes: tx.limits.mailboxBytes - tx.limits.resultReservationBytes },
    tx.limits.resultReservationBytes,
  );
  const whole = room >= Math.min(byteLength(text), tx.limits.mailInlineBytes) + HEADER_ROOM;
  if (whole || !tx.profile.boundedResults) return storeContent(tx, text, provider);
  return storeContent(tx, text, provider, boundToReservation(tx.limits.resultReservationBytes));
}

/** The text of a result as its reader gets it; "no result" never reads as "clean" (WRK-7). */
export function resultText(work: WorkRecord, outcome: WorkOutcome): string {
  if (outcome.ending === "completed") return outcome.text;
  const salvage = outcome.salvage ?? { lastSteps: [] };
  const lines = [
    outcome.text === ""
      ? textlessResult(outcome.ending, salvage)
      : `[${outcome.ending}] This work did not complete.`,
  ];
  if (outcome.error !== null) {
    lines.push(`Error: ${outcome.error.code}: ${outcome.error.message}`);
  }
  if (outcome.text !== "") {
    lines.push("Partial text:", outcome.text);
    lines.push(...salvageLines(salvage));
  }
  lines.push(`The agent ${work.executorPath} keeps its history; a follow-up reaches it.`);
  return lines.join("\n");
}

/** Whether the result of an ended work starts a run of its recipient now (WAI-1). */
export function wakes(tx: Transaction, work: WorkRecord, recipient: AgentRecord): boolean {
  if (recipient.hostDriven || recipient.state !== "open") return false;
  const holders = work.holds.map((id) => tx.store.work(id)).filter((holder) => holder !== undefined);
  const askedUnderOpen = holders.some((holder) => holder.state !== "ended");
  const allowed = work.holds.length > 0 ? askedUnderOpen : recipient.lastOutcome?.status === "completed";
  const run = recipient.currentRun;
  const joins = run !== null && !tx.context.composed(recipient.threadId);
  if (!allowed && !joins) return false;
  // An awaiting work is woken by the results under it whatever their `wake` says (WRK-4).
  if (holders.some((holder) => holder.state === "awaiting_children")) return true;
  switch (work.wake) {
    case "always":
      return allowed;
    case "settled_only":
      return allowed && (run === null || joins);
    case "never":
      return false;
  }
}

/** The settle of a run turns results that are still undelivered into trigger-turn mail where they wake (WAI-1). */
export function turnResults(tx: Transaction, recipient: AgentRecord): void {
  for (const mail of unreadOf(tx.store, recipient.threadId)) {
    if (mail.trigger || mail.resultOf === null || mail.redirectedFrom !== null) continue;
    const work = tx.store.work(mail.resultOf);
    if (work !== undefined && wakes(tx, work, recipient)) setTrigger(tx, mail, true);
  }
}
