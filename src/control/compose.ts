/**
 * What goes into the next request of a run: the runtime's own texts and the mail that is due (MBX-4, MBX-5, MBX-15). It writes
 * nothing: mail that cannot be read is to be out of the way before.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import type { Limits } from "../protocol/limits.ts";
import type { MailRecord } from "../protocol/mail.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { ContextTopic, ItemBody, TranscriptItem } from "../protocol/transcript.ts";
import { selectBatch } from "../mailbox/drain.ts";
import { artifactLine, senderName, renderMail, renderResultStub } from "../mailbox/render.ts";
import { chooseModeHint, hintToSend } from "../policy/mode-hint.ts";
import type { NextInput } from "../session/ports.ts";
import { childrenNote } from "./children-note.ts";
import { deadLetter } from "./mail-states.ts";
import type { Look, Transaction } from "./transaction.ts";
import { unreadOf } from "./unread.ts";

/** Runs in a row that the provider refused before queue-only mail is kept out (MBX-15). */
const REFUSALS = 3;

export interface ComposedInput extends NextInput {
  readonly wrapUp: "turn_limit" | "time_limit" | null;
  readonly modeHint: string | null;
}

export function composeInput(
  look: Look,
  run: RunRecord,
  items: readonly TranscriptItem[],
  limit: ComposedInput["wrapUp"],
  carried: readonly ItemBody[],
): ComposedInput {
  const first = run.acceptedAt === null;
  const agent = look.agent(run.threadId);
  const byUser = run.causes.some((cause) => look.store.mail(cause.mailId)?.kind === "user");
  const batch = selectBatch({
    unread: unreadOf(look.store, agent.threadId),
    runId: run.id,
    reservedSeq: run.reservedSeq,
    phase: first ? "first" : "boundary",
    budgetBytes: look.limits.mailPerRequestBytes ?? look.context.contextWindow(agent),
    lateAfter: look.profile.userRunDrainsLate && byUser ? seenByLastRun(look, agent) : null,
    withoutQueueOnly: first && agent.refusals >= REFUSALS,
  });
  const modeHint = first ? dueModeHint(look, agent, run) : null;
  const notes = [
    ...(first ? openingNotes(look, agent, run, modeHint) : []),
    ...(limit !== null && !run.wrapUpOffered ? [note("wrap_up", wrapUpText(limit))] : []),
  ];
  const stubs = batch.stubs.map(
    (mail): ItemBody => ({ ...itemOf(look, mail), text: stubText(look, mail) }) as ItemBody,
  );
  return {
    mail: batch.mail,
    stubs: batch.stubs,
    leftOut: batch.leftOut.filter((mail) => mail.resultOf === null),
    bodies: [
      ...(first ? carried : []),
      ...notes,
      ...stubs,
      ...(first ? inputLast(batch.mail) : batch.mail).map((mail) => itemOf(look, mail)),
    ],
    handed: handedOut(look, run, items),
    wrapUp: limit !== null && !run.wrapUpOffered ? limit : null,
    modeHint,
  };
}

/** Up to where mail was there when the agent's last run began (agents.md 49). */
function seenByLastRun(look: Look, agent: AgentRecord): number {
  const last = agent.lastOutcome?.runId ?? null;
  return last === null ? 0 : (look.store.run(last)?.reservedSeq ?? 0);
}

/** The limit that a run has reached, if any; time in waits does not count (RUN-3). */
export function overLimit(limits: Limits, run: RunRecord, now: number): "turn_limit" | "time_limit" | null {
  if (limits.stepsPerRun !== null && run.steps >= limits.stepsPerRun) return "turn_limit";
  const elapsed = now - run.reservedAt - run.waitedMs;
  if (limits.runWallClockMs !== null && elapsed >= limits.runWallClockMs) return "time_limit";
  return null;
}

/** The provider has accepted a request without them: what the refused ones held is given up (MBX-15). */
export function leaveOut(tx: Transaction, input: NextInput): void {
  for (const left of input.leftOut) {
    const mail = tx.store.mail(left.id);
    if (mail?.state === "accepted") deadLetter(tx, mail, "provider_refused");
  }
}

function openingNotes(look: Look, agent: AgentRecord, run: RunRecord, modeHint: string | null): ItemBody[] {
  const notes: ItemBody[] = [];
  if (modeHint !== null) notes.push(note("mode_hint", modeHint));
  const children = agent.children === 0 ? null : childrenNote(look, agent);
  if (children !== null) notes.push(note("children", children));
  if (run.woken && run.causes.some((cause) => look.store.mail(cause.mailId)?.kind === "notice")) {
    notes.push(note("lost_run", "Mail of the runtime is among what follows; it is not from the user."));
  }
  return notes;
}

/** Whether and what of a mode hint is due; a leaf cannot delegate and gets none (POL-4). */
function dueModeHint(look: Look, agent: AgentRecord, run: RunRecord): string | null {
  if (agent.config.leaf) return null;
  const hint = chooseModeHint({
    configured: agent.config.modeHint,
    ofModel: look.context.modelHint(run.provider, run.model),
    effort: run.effort,
  });
  return hintToSend(hint, agent.sentModeHint);
}

function note(topic: ContextTopic, text: string): ItemBody {
  return { kind: "context", topic, text };
}

function wrapUpText(limit: "turn_limit" | "time_limit"): string {
  const which = limit === "turn_limit" ? "number of steps" : "time";
  return `The ${which} allowed for this run is used up. This is its last request and no tools can be called: say what you have, what is missing, and what should come next.`;
}

/** Results that waits handed out with outputs which no accepted request has held yet (WAI-3). */
function handedOut(look: Look, run: RunRecord, items: readonly TranscriptItem[]): MailRecord["id"][] {
  const ids: MailRecord["id"][] = [];
  for (let at = items.length - 1; at >= 0 && items[at]!.kind === "tool_result"; at -= 1) {
    const item = items[at]!;
    if (item.kind === "tool_result" && item.runId === run.id) ids.push(...item.mailIds);
  }
  return ids.filter((id) => look.store.mail(id)?.state === "accepted");
}

function stubText(look: Look, mail: MailRecord): string {
  return renderResultStub(mail, look.store.work(mail.resultOf!)?.outcome?.ending ?? "failed");
}

/** Mail by `seq`, the user's message that the run was started for last (lineage C4.11). */
function inputLast(batch: readonly MailRecord[]): readonly MailRecord[] {
  const isInput = (mail: MailRecord): boolean => mail.kind === "user" && mail.trigger;
  return [...batch.filter((mail) => !isInput(mail)), ...batch.filter(isInput)];
}

/** Input of the user whole, or its head and tail and where the rest is (MBX-9). */
function userText({ content }: MailRecord): string {
  return content.artifact === null ? content.text : `${content.text}\n\n[${artifactLine(content.artifact)}]`;
}

/** The transcript item of a message. */
export function itemOf(look: Look, mail: MailRecord): ItemBody {
  if (mail.kind === "user") {
    return { kind: "user", text: userText(mail), mailId: mail.id, workId: mail.workId, inherited: false };
  }
  const author = senderName(mail.author);
  return {
    kind: "mail",
    mailId: mail.id,
    mail: mail.kind,
    author: author as Extract<ItemBody, { kind: "mail" }>["author"],
    recipient: mail.recipientPath,
    workId: mail.workId,
    resultOf: mail.resultOf,
    text: mailText(look, mail),
  };
}

/** Rendered, with what a result has cost, and without secrets where it goes to another provider (SEC-3). */
function mailText(look: Look, mail: MailRecord): string {
  const outcome = mail.resultOf === null ? null : (look.store.work(mail.resultOf)?.outcome ?? null);
  const text = renderMail(mail, {
    withWork: look.profile.richOutputs,
    usage: look.profile.boundedResults && mail.kind === "final_answer" ? (outcome?.usage ?? null) : null,
  });
  if (mail.author.kind === "user" || mail.author.kind === "runtime") return text;
  const from = look.store.agent(mail.author.threadId)?.config.provider;
  return from === look.agent(mail.recipient).config.provider ? text : look.context.redact(text);
}
