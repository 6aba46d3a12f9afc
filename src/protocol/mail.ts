/** Mail: a message to an agent (MBX). A record's `state` only moves forward (MBX-7). */
import type { AgentPath } from "./agent-path.ts";
import type { ArtifactId, MailId, RunId, ThreadId, TreeId, WorkId } from "./ids.ts";

/**
 * - `new_task` a request that makes a work (spawn, follow-up)
 * - `message` a plain message
 * - `final_answer` the result of a work
 * - `user` input of the user, which alone carries user authority
 * - `notice` of the runtime itself
 */
export type MailKind = "new_task" | "message" | "final_answer" | "user" | "notice";
export type Authority = "user" | "agent" | "runtime";
export type MailState = "accepted" | "delivered" | "settled" | "superseded" | "dead_lettered";
export type DeadLetterReason =
  | "closed"
  | "work_ended"
  | "not_delivered"
  | "provider_refused"
  | "unreadable"
  | "load_failed";

export type MailAuthor =
  | { readonly kind: "agent"; readonly threadId: ThreadId; readonly path: AgentPath }
  /** An agent of another tree (XTR-1). */
  | {
      readonly kind: "thread";
      readonly threadId: ThreadId;
      readonly treeId: TreeId;
      readonly path: AgentPath;
    }
  | { readonly kind: "user"; readonly name: "user" | "cli" | "library" }
  | { readonly kind: "runtime" };

/** How a run that this mail starts is to be started (MBX-14, agents.md 46). Only trigger-turn mail carries them. */
export interface StartOptions {
  readonly parentRunId: RunId | null;
  readonly rootRunId: RunId | null;
  /** The choice made with a follow-up; `undefined` means "not chosen". */
  readonly provider?: string;
  readonly model?: string;
  readonly effort?: string;
}

export interface MailContent {
  /** The payload, or head and tail of it when `artifact` is set (MBX-9). */
  readonly text: string;
  readonly bytes: number;
  readonly artifact: { readonly id: ArtifactId; readonly bytes: number; readonly digest: string } | null;
}

export interface MailDraft {
  readonly id: MailId;
  readonly treeId: TreeId;
  readonly recipient: ThreadId;
  readonly recipientPath: AgentPath;
  readonly author: MailAuthor;
  readonly kind: MailKind;
  readonly authority: Authority;
  readonly trigger: boolean;
  /** User input that is to enter the live run at its next boundary and reopens one that has answered; never with `nextRun`. */
  readonly steer: boolean;
  /** Not taken by a run that was reserved before it came (`onBusy: "queue"`, or another provider than the run's). */
  readonly nextRun: boolean;
  /** The work this mail asks for. */
  readonly workId: WorkId | null;
  /** The work whose result this mail carries, or announces as a notice. */
  readonly resultOf: WorkId | null;
  readonly content: MailContent;
  readonly start: StartOptions | null;
  /** Set when the result went to somebody else than was asked for (WRK-6). */
  readonly redirectedFrom: AgentPath | null;
  /** The sender's idempotency key; unique per author. */
  readonly key: string | null;
  readonly createdAt: number;
}

/** A message as it is stored. */
export interface MailRecord extends MailDraft {
  /** Gapless per recipient, equal to commit order (MBX-2). */
  readonly seq: number;
  readonly state: MailState;
  readonly reason: DeadLetterReason | null;
  /** The run it was delivered to. */
  readonly runId: RunId | null;
  /** The run whose wait handed it out; not drained as mail by that run (WAI-3). */
  readonly boundRunId: RunId | null;
  /** How often it was handed out without an acknowledgement (HDR-3). */
  readonly handedOut: number;
  readonly settledAt: number | null;
}

/** Counters of a mailbox, kept by the store in the transaction that changes them. */
export interface Mailbox {
  readonly threadId: ThreadId;
  readonly lastSeq: number;
  readonly unread: number;
  readonly unreadBytes: number;
  /** Unread trigger-turn mail. */
  readonly triggers: number;
  readonly oldestUnreadAt: number | null;
  /** Room kept free for results of open works (MBX-8). */
  readonly reservedMessages: number;
  readonly reservedBytes: number;
}

export interface MailboxCapacity {
  readonly messages: number;
  readonly bytes: number;
}

/** What a sender may know of its message at any time (MBX-7). */
export interface MailReceipt {
  readonly id: MailId;
  readonly recipient: AgentPath;
  readonly seq: number;
  readonly state: MailState;
  readonly reason: DeadLetterReason | null;
  readonly runId: RunId | null;
}
