/** Run: one counted turn of a thread (RUN-1; lineage C1.5, C2.3). */
import type { ThreadBinding } from "./binding.ts";
import type {
  HandoffId,
  MailId,
  ProviderThreadId,
  RunId,
  ThreadId,
  TransferId,
  TreeId,
  WorkId,
} from "./ids.ts";
import type { CheckpointRecord, Pin } from "./snapshot.ts";
import type { NativeRef } from "./provider-thread.ts";
import type { HistoryState, RunOutcome } from "./thread.ts";
import type { Usage } from "./usage.ts";
import type { WorkEnding } from "./work.ts";

/** Reserved = `queued | starting`; accepted = `acceptedAt` set; settled = any of the last five (WRK-10). */
export type RunStatus =
  | "queued"
  | "starting"
  | "running"
  | "waiting"
  | "completed"
  | "failed"
  | "interrupted"
  | "cancelled"
  | "rolled_back";

export type RunReason = WorkEnding | "not_accepted" | "closed";

/** Why the run was started: every trigger-turn mail that was pending (MBX-14). */
export interface RunCause {
  readonly mailId: MailId;
  readonly workId: WorkId | null;
}

/** What a start has decided of transfers, beside the texts that are ready (lineage C4.13). */
export interface StartDecision {
  /** They are consumed with the acceptance: what they carry is in the provider's conversation or in the first request. */
  readonly transfers: readonly TransferId[];
  /** Of these nothing was to be told; they are over with the acceptance all the same. */
  readonly empty: readonly TransferId[];
  /** What these were for is not what happens; they are superseded with the acceptance. */
  readonly obsolete: readonly TransferId[];
  /** The user's wish for a clean context is fulfilled with the acceptance (lineage C10). */
  readonly cleanContext: boolean;
}

/** A run as it is stored. */
export interface RunRecord {
  readonly id: RunId;
  readonly treeId: TreeId;
  readonly threadId: ThreadId;
  /** 1, 2, 3 … per thread. */
  readonly ordinal: number;
  readonly status: RunStatus;
  readonly reason: RunReason | null;
  readonly error: { readonly code: string; readonly message: string; readonly status: number | null } | null;
  readonly causes: readonly RunCause[];
  /** True when no cause asks for a new work: the run was woken by a result or a notice. */
  readonly woken: boolean;
  readonly parentRunId: RunId | null;
  readonly rootRunId: RunId;
  readonly provider: string;
  readonly model: string | null;
  readonly effort: string | null;
  /** Over the agent's policy, what this run asks for and what it opened on (lineage C1.4, C11.10). */
  readonly policyHash: string;
  /** What the run opened on; null in records from before threads (C17.6). */
  readonly binding: ThreadBinding | null;
  /** The binding of the run that asked for this one, byte for byte (C8.4). */
  readonly delegatedFrom: ThreadBinding | null;
  readonly providerThreadId: ProviderThreadId | null;
  /**
   * Turns of the provider's that carried it, oldest first, as they are named now; for forks and rollbacks at a point. Null
   * for one without a name, or that may not have been taken at all; none where it was accepted and its turns are not known
   * any more.
   */
  readonly nativeTurns: readonly (NativeRef | null)[];
  /** Handoffs that its first request carries: a switch and merge-backs may meet. */
  readonly contextHandoffIds: readonly HandoffId[];
  /** There while handoffs are ready and the run was not accepted: another attempt starts as the first one was to. */
  readonly starting?: StartDecision;
  /** Lines pinned so far; in the checkpoint once it is settled. */
  readonly pins: readonly Pin[];
  /** Written with its settle. */
  readonly checkpoint: CheckpointRecord | null;
  /** The snapshot that its settle was projected into; null until then. */
  readonly nextContextRevision: number | null;
  readonly history: HistoryState | null;
  /** When a rollback took it back, and how it had ended. A fork made before still tells of it (C9.9). */
  readonly rolledBack: { readonly at: number; readonly from: RunOutcome } | null;
  /** Trigger-turn mail up to this `seq` must be in before the run may end `completed` (MBX-4). */
  readonly reservedSeq: number;
  readonly serves: readonly WorkId[];
  /** Longest chain of works behind what it serves and what woke it (BUD-5). */
  readonly chain: number;
  readonly steps: number;
  readonly usage: Usage;
  /** Index of the first transcript item of this run. */
  readonly firstItem: number;
  /** Milliseconds spent in waits, which do not count for the wall clock (RUN-3). */
  readonly waitedMs: number;
  readonly waitingSince: number | null;
  /** True while calls from outside wait in it, until its permit is back: it is driven, and counts as in a wait (EXE-4). */
  readonly permitLent?: boolean;
  readonly wrapUpOffered: boolean;
  readonly text: string;
  readonly reservedAt: number;
  readonly acceptedAt: number | null;
  readonly completedAt: number | null;
}

export function isSettled(run: Pick<RunRecord, "status">): boolean {
  return (
    run.status === "completed" ||
    run.status === "failed" ||
    run.status === "interrupted" ||
    run.status === "cancelled" ||
    run.status === "rolled_back"
  );
}
