/**
 * Threads: what an agent's record holds of its conversation's life and descent (lineage C1.1 to C1.3, C1.14, C1.15). A
 * thread is an agent of ours seen as a conversation: id, workspace, state, revision and runs stand in `AgentRecord`,
 * what only threads have stands here. Lineage is for browsing and context, never for authority (C17).
 */
import { z } from "zod";
import type { MailId, ProviderThreadId, RunId, ThreadId, TransferId } from "./ids.ts";
import type { OrdinalRange } from "./ordinals.ts";
import type { Pin } from "./snapshot.ts";
import type { ContextSourcePoint } from "./transfer.ts";

export const CONTINUITIES = ["resume-native", "projected-only"] as const;
/** `resume-native`; or `projected-only`: every run opens on the snapshot alone and nothing native is resumed (C4.14). */
export type Continuity = (typeof CONTINUITIES)[number];

/** From which thread one has come, and how. */
export interface Lineage {
  readonly parentThreadId: ThreadId | null;
  readonly relationshipToParent: "fork" | "subagent" | null;
  readonly rootThreadId: ThreadId;
}

/** A revision of a snapshot, named by its digest. */
export interface ContextReference {
  readonly revision: number;
  readonly digest: string;
}

/** Where a fork was taken, and the snapshot there: by reference, never copied (C5.5). */
export interface ForkOrigin {
  readonly transferId: TransferId;
  readonly point: ContextSourcePoint;
  readonly context: (ContextReference & { readonly threadId: ThreadId }) | null;
}

export const FORK_STRATEGIES = ["auto", "native", "replay", "new_session"] as const;
export type ForkStrategy = (typeof FORK_STRATEGIES)[number];

export const forkPolicySchema = z.strictObject({
  strategy: z.enum(FORK_STRATEGIES).default("auto"),
  replay: z
    .strictObject({
      mode: z.enum(["recent", "summary_plus_recent"]).default("recent"),
      /** Characters of the whole seed, its frame included (C18.7); raised or lowered to 1,024 to 200,000. */
      maxSeedChars: z.number().int().min(1).default(120_000),
      /** Newest messages that may go in (C18.8); raised or lowered to 1 to 500. */
      recentMessages: z.number().int().min(1).default(500),
    })
    .prefault({}),
  /** Retries of one user action give one fork (C5.6). */
  requestId: z.string().max(128).regex(/\S/, "it is blank").nullable().default(null),
});
/** How a fork gets its context: a `strategy`, how text is made where it is replayed, and the id of the request. */
export type ForkPolicy = z.output<typeof forkPolicySchema>;
/**
 * The same as it is given, all of it optional: `strategy` (`auto`, `native`, `replay`, `new_session`), `replay` (`mode`:
 * `recent` or `summary_plus_recent`, `maxSeedChars`, `recentMessages`), `requestId`.
 */
export type ForkPolicyInput = z.input<typeof forkPolicySchema>;

/** What a user wants the next run to use; taken over into the binding when a provider has accepted it (C4.16). */
export interface ProviderSelection {
  readonly provider: string;
  readonly model: string | null;
  readonly effort: string | null;
  /** Start on a fresh provider thread with the whole history as text (C10). */
  readonly cleanContext: boolean;
}

/** What undoing a rollback needs; the rest stands in the runs that it took back (C9). */
export interface RollbackRecord {
  /** No earlier than any fork of the thread that was there, and no later than any that came after. */
  readonly at: number;
  /** Runs that it took back. */
  readonly runs: readonly OrdinalRange[];
  /** How many runs the thread had: with one more it cannot be undone. */
  readonly of: number;
  readonly undone: boolean;
}

/** What `AgentRecord` holds of a thread; null there for records from before threads (C17.6). */
export interface ThreadFacts {
  /** Whose thread it is: the agent's path at its birth. */
  readonly agentId: string;
  /** 1 to 200 characters; the only field that may change while archived. */
  readonly title: string | null;
  readonly lineage: Lineage;
  readonly forkedFrom: ForkOrigin | null;
  readonly forkPolicy: ForkPolicy | null;
  readonly continuity: Continuity;
  /** The provider thread that runs go to; null before the first run was accepted. */
  readonly activeProviderThreadId: ProviderThreadId | null;
  readonly selection: ProviderSelection | null;
  /** The newest snapshot; null at revision 0. */
  readonly currentContext: ContextReference | null;
  /** Lines that were pinned while no run was under way; the next one takes them over. */
  readonly pins: readonly Pin[];
  /** Runs that a rollback took back. */
  readonly rolledBack: readonly OrdinalRange[];
  /** The newest rollback; null before the first. */
  readonly lastRollback: RollbackRecord | null;
  /** Runs that no provider ever accepted: nothing of them is to be told to anybody. */
  readonly voided: readonly OrdinalRange[];
  /** Entries of the history mirror. */
  readonly messages: number;
  readonly compactions: number;
}

/** The text that a fork on a user message puts before the user; never part of a transcript (C1.15). */
export interface ForkDraft {
  readonly threadId: ThreadId;
  readonly text: string;
  readonly sourceMessageId: MailId | null;
  readonly createdAt: number;
  readonly clearedAt: number | null;
}

export const RUN_OUTCOMES = ["completed", "failed", "cancelled", "interrupted"] as const;
/** How a run has ended: `completed`, `failed`, `cancelled` or `interrupted`. */
export type RunOutcome = (typeof RUN_OUTCOMES)[number];

/** A view of a run as the immutable record of what it was allowed and on what it opened (C1.3). Its id is the run's. */
export interface ExecutionRef {
  readonly executionId: RunId;
  readonly sequence: number;
  readonly contextRevision: number;
  readonly contextDigest: string;
  readonly reservedAt: number;
  readonly settled: {
    readonly outcome: RunOutcome;
    readonly finishedAt: number;
    readonly nextContextRevision: number | null;
  } | null;
  readonly history: HistoryState | null;
}

/** How much of a run the history mirror has (C13.2 to C13.5), from best to worst. */
export const HISTORY_LEVELS = ["complete", "partial", "final-only", "unsupported"] as const;
/** How much of a run or a thread its history has: `complete`, `partial`, `final-only` or `unsupported`. */
export type HistoryLevel = (typeof HISTORY_LEVELS)[number];

/** What was collected of the history of a run. */
export interface HistoryState {
  readonly level: HistoryLevel;
  /** Source lines that could not be read. */
  readonly skipped: number;
  readonly entries: number;
  /** Where the next collection begins, in the bridge's own words. */
  readonly cursor: string | null;
}

/** What happened, mirrored from the provider's own record; no source of context for the projector (C1.13, C13.11). */
export interface HistoryEntry {
  readonly version: 1;
  /** `<executionId>:<nativeId>`, or a digest of the content where there is no native id. */
  readonly id: string;
  readonly threadId: ThreadId;
  readonly executionId: RunId;
  readonly nativeId: string | null;
  /** 1, 2, 3 … per thread. */
  readonly sequence: number;
  readonly createdAt: number;
  readonly body:
    | { readonly kind: "user" | "assistant"; readonly text: string }
    | {
        readonly kind: "tool";
        readonly name: string;
        readonly summary: string;
        readonly result: { readonly digest: string; readonly bytes: number; readonly tail: string } | null;
      }
    | { readonly kind: "change"; readonly path: string; readonly summary: string }
    | {
        readonly kind: "boundary";
        readonly level: HistoryLevel;
        readonly entries: number;
        readonly skipped: number;
      };
  readonly digest: string;
}
