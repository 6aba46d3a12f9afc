/** The draft of a thread as its runs move it: a message that was never sent becomes it, and the first that is sent clears it. */
import type { ThreadId } from "../protocol/ids.ts";
import type { MailRecord } from "../protocol/mail.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { WorkRecord } from "../protocol/work.ts";
import { must, type Transaction } from "./transaction.ts";

/** What a work was asked for with, before it ends, where no provider has accepted that. */
export function unsentOf(tx: Transaction, { requestMailId }: WorkRecord): readonly MailRecord[] {
  const request = tx.store.mail(requestMailId);
  return request?.state === "accepted" ? [request] : [];
}

/**
 * What the user has written is kept where no provider has accepted it (C4.9, C5.13). It takes the place of a draft that was
 * there when it was sent: that one was what the user went on from. One that has come since is not lost for it.
 */
export function keepUnsent(tx: Transaction, threadId: ThreadId, requests: readonly MailRecord[]): void {
  const messages = requests.filter(({ kind, content }) => kind === "user" && content.text !== "");
  const last = messages.at(-1);
  if (last === undefined) return;
  const draft = tx.store.draft(threadId);
  const since = draft !== undefined && draft.clearedAt === null && draft.createdAt >= last.createdAt;
  const texts = [...(since ? [draft.text] : []), ...messages.map((mail) => wholeText(tx, mail))];
  tx.store.putDraft({
    threadId,
    text: texts.join("\n\n"),
    sourceMessageId: last.id,
    createdAt: tx.now,
    clearedAt: null,
  });
}

/** A long message has its head and its tail in the mail. */
function wholeText(tx: Transaction, { content: { artifact, text } }: MailRecord): string {
  return artifact === null ? text : must(tx.store.artifact(artifact.id), "artifact", artifact.id).text;
}

/** With the first message that the user sends; a run that nobody but agents has asked for leaves it (C2.9). */
export function clearDraft(tx: Transaction, { threadId, causes }: RunRecord): void {
  const draft = tx.store.draft(threadId);
  if (draft === undefined || draft.clearedAt !== null) return;
  if (causes.some(({ mailId }) => tx.store.mail(mailId)?.kind === "user"))
    tx.store.putDraft({ ...draft, clearedAt: tx.now });
}
