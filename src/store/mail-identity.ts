/** Identity of mail: whose key it carries, and what is left of a row that cannot be read (MBX-10). */
import { keyText } from "../platform/digest.ts";
import type { AgentPath } from "../protocol/agent-path.ts";
import type { MailId, ThreadId, TreeId } from "../protocol/ids.ts";
import type { MailDraft, MailRecord } from "../protocol/mail.ts";

/**
 * The text under which a sender's idempotency key is unique. Agents are told apart by thread; users and the runtime, who
 * have no identity beyond a name, within a tree.
 */
export function authorKey(draft: MailDraft): string | null {
  const { author } = draft;
  if (draft.key === null) return null;
  const key = keyText(draft.key);
  if (author.kind === "agent" || author.kind === "thread") return `${author.threadId}:${key}`;
  return `${draft.treeId}:${author.kind === "user" ? author.name : "runtime"}:${key}`;
}

/** A draft as its first stored row. */
export function accepted(draft: MailDraft, seq: number): MailRecord {
  return {
    ...draft,
    seq,
    state: "accepted",
    reason: null,
    runId: null,
    boundRunId: null,
    handedOut: 0,
    settledAt: null,
  };
}

/** The record that stands for a dead letter whose content could not be read. */
export function unreadableLetter(row: {
  readonly id: MailId;
  readonly treeId: TreeId;
  readonly recipient: ThreadId;
  readonly recipientPath: AgentPath;
  readonly seq: number;
  readonly bytes: number;
  readonly createdAt: number;
  readonly at: number;
}): MailRecord {
  const { at, bytes, ...known } = row;
  return {
    ...known,
    author: { kind: "runtime" },
    kind: "notice",
    authority: "runtime",
    trigger: false,
    steer: false,
    nextRun: false,
    workId: null,
    resultOf: null,
    content: { text: "", bytes, artifact: null },
    start: null,
    redirectedFrom: null,
    key: null,
    state: "dead_lettered",
    reason: "unreadable",
    runId: null,
    boundRunId: null,
    handedOut: 0,
    settledAt: at,
  };
}
