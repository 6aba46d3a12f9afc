/** Mail for the tests of this folder. */
import type { MailRecord } from "../../../src/protocol/mail.ts";

export function mailOf(seq: number, overrides: Partial<MailRecord> = {}): MailRecord {
  const text = overrides.content?.text ?? `message ${seq}`;
  return {
    id: `msg_${seq}`,
    treeId: "thread_root",
    recipient: "thread_worker",
    recipientPath: "/root/worker",
    author: { kind: "agent", threadId: "thread_root", path: "/root" },
    kind: "message",
    authority: "agent",
    trigger: false,
    steer: false,
    nextRun: false,
    workId: null,
    resultOf: null,
    content: { text, bytes: text.length, artifact: null },
    start: null,
    redirectedFrom: null,
    key: null,
    createdAt: seq,
    seq,
    state: "accepted",
    reason: null,
    runId: null,
    boundRunId: null,
    handedOut: 0,
    settledAt: null,
    ...overrides,
  };
}

export function payload(text: string): Pick<MailRecord, "content"> {
  return { content: { text, bytes: text.length, artifact: null } };
}
