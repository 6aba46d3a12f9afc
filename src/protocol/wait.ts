/** Waits of runs, stored when they begin so that they survive unload and crash (WAI, RES-2). */
import type { RequestId, RunId, ThreadId, TreeId, WaitId, WorkId } from "./ids.ts";

/** Threads that one wait takes. */
export const THREAD_WAIT_TARGETS = 8;
/** The longest wait for threads, in milliseconds. */
export const THREAD_WAIT_MS = 120_000;

export type WaitEnd = "settled" | "activity" | "new_input" | "timed_out" | "aborted" | "cycle";

/** The call id of a wait that a call from outside holds: of no call of a transcript, so the run loop looks for none. */
export const OUTSIDE_CALL = "outside";

/** An open or ended wait of a run. */
export interface WaitRecord {
  readonly id: WaitId;
  readonly treeId: TreeId;
  readonly threadId: ThreadId;
  readonly runId: RunId;
  readonly callId: string;
  /** Steps of the run so far; call ids repeat from step to step. */
  readonly step: number;
  /** No targets: any mail ends it (agents.md 32). Else the works it waits for, and how many of them must end. */
  readonly works: readonly WorkId[];
  /** Agents named as targets: mail from one of them ends the wait as `new_input`. */
  readonly agents: readonly ThreadId[];
  readonly need: number;
  /** Roots of other trees that it waits for; it takes no works and no mail then (XTR-4). */
  readonly threads?: readonly ThreadId[];
  /** Mail up to this `seq` had been seen when the wait began. */
  readonly sinceSeq: number;
  readonly startedAt: number;
  readonly deadlineAt: number;
  /** The asked time-out was below the minimum and was raised to this (agents.md 30). */
  readonly clampedToMs: number | null;
  /** What this caller was told before, so that one event is reported once: works, or how it saw threads. */
  readonly cursor: string | null;
  readonly end: WaitEnd | null;
  readonly endedAt: number | null;
  readonly loop: readonly string[] | null;
}

export type RuntimeRequestStatus = "pending" | "resolved" | "expired" | "cancelled";

/** The call of a tool that a question or an approval is about. */
export interface AskedAbout {
  readonly tool: string;
  /** Its arguments as JSON text, as far as they are told. */
  readonly input: string;
}

/** A question or an approval that an agent waits for (lineage C2.10). */
export interface RuntimeRequestRecord {
  readonly id: RequestId;
  readonly treeId: TreeId;
  readonly threadId: ThreadId;
  readonly runId: RunId;
  readonly callId: string;
  readonly kind: "question" | "approval";
  readonly text: string;
  /** Absent when it is about no call of a tool. */
  readonly about?: AskedAbout;
  /** Asked by a call from outside, which waits for the answer itself; the run goes on without it. */
  readonly outside?: true;
  readonly status: RuntimeRequestStatus;
  readonly answer: string | null;
  readonly createdAt: number;
  readonly answeredAt: number | null;
}
