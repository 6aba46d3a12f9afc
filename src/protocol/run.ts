/** Run: one counted turn of a thread (RUN-1; lineage C1.5, C2.3). */
import type { MailId, RunId, ThreadId, TreeId, WorkId } from "./ids.ts";
import type { Usage } from "./usage.ts";
import type { WorkEnding } from "./work.ts";

/** Reserved = `queued | starting`; accepted = `acceptedAt` set; settled = any of the last four (WRK-10). */
export type RunStatus =
  | "queued"
  | "starting"
  | "running"
  | "waiting"
  | "completed"
  | "failed"
  | "interrupted"
  | "cancelled";

export type RunReason = WorkEnding | "not_accepted" | "closed";

/** Why the run was started: every trigger-turn mail that was pending (MBX-14). */
export interface RunCause {
  readonly mailId: MailId;
  readonly workId: WorkId | null;
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
  readonly policyHash: string;
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
    run.status === "cancelled"
  );
}
