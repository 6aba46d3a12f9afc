/**
 * `send`: mail from anybody, without a lease (S5, MBX-8, MBX-12). Runs inside a transaction and never throws for what a
 * sender may get wrong; each draft has its own answer. What a draft says of itself that only the tree could know is put
 * right: its bytes are counted, a host-driven root gets queue-only mail (HDR-1), and it names no work but its tree's.
 *
 * The common path is one look at the recipient and one insert: whether the mail is known already is asked of the insert,
 * and beforehand only where the answer would otherwise be a refusal.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import type { TreeId, WorkId } from "../protocol/ids.ts";
import type { MailDraft } from "../protocol/mail.ts";
import { byteLength } from "../platform/text.ts";
import type { BackendTx } from "./backend.ts";
import { isUnreadable } from "./corrupt-row.ts";
import { hasRoom } from "./mailbox-counters.ts";
import type { SendResult } from "./port.ts";

export function sendMail(tx: BackendTx, given: MailDraft): SendResult {
  const agent = tx.agent(given.recipient);
  const tree = agent === undefined ? undefined : tx.tree(agent.treeId);
  if (agent === undefined || tree === undefined || agent.treeId !== given.treeId) return { kind: "unknown" };
  const draft = putRight(tx, given, agent);
  if (agent.state !== "open") return duplicateOf(tx, draft) ?? { kind: "closed" };
  const capacity = { messages: tree.limits.mailboxMessages, bytes: tree.limits.mailboxBytes };
  const startsRun = draft.trigger && agent.currentRun === null;
  if (!hasRoom(tx.counters(draft.recipient), capacity, draft.content.bytes, startsRun)) {
    return duplicateOf(tx, draft) ?? { kind: "full", mailbox: tx.mailbox(draft.recipient), capacity };
  }
  const mail = tx.insertMail(draft, true);
  return mail === undefined ? duplicateOf(tx, draft)! : { kind: "accepted", seq: mail.seq, mail };
}

function duplicateOf(tx: BackendTx, draft: MailDraft): SendResult | undefined {
  const mail = tx.knownMail(draft);
  return mail === undefined ? undefined : { kind: "duplicate", mail };
}

function putRight(tx: BackendTx, draft: MailDraft, { hostDriven, path, treeId }: AgentRecord): MailDraft {
  const ofTree = (id: WorkId | null): WorkId | null => {
    let tree: TreeId | undefined;
    // A work that is there and cannot be read may be this tree's.
    const unreadable = id !== null && isUnreadable(() => (tree = tx.work(id)?.treeId));
    return unreadable || tree === treeId ? id : null;
  };
  return {
    ...draft,
    recipientPath: path,
    trigger: draft.trigger && !hostDriven,
    workId: ofTree(draft.workId),
    resultOf: ofTree(draft.resultOf),
    createdAt: Number.isFinite(draft.createdAt) ? draft.createdAt : tx.now(),
    content: { ...draft.content, bytes: byteLength(draft.content.text) },
  };
}
