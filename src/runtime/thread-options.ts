/** What the commands of `runtime.threads` take, and what plans and references of threads are. */
import type { OnBusy } from "../control/messages.ts";
import type { ForkAvailability } from "../lineage/fork-availability.ts";
import type { ForkPoint, ForkPointName } from "../lineage/fork-points.ts";
import type { CallOptions } from "../platform/abortable.ts";
import type { RestoreRequest } from "../platform/workspace/port.ts";
import type { RunId } from "../protocol/ids.ts";
import type { ForkPolicyInput } from "../protocol/thread.ts";
import type { ContextSourcePoint } from "../protocol/transfer.ts";
import type { Identified, ThreadOptions } from "../threads/create.ts";

/** What every command on threads takes. */
export interface ThreadCommandOptions extends Identified, CallOptions {}

/** What `threads.create` takes. */
export interface CreateThreadOptions extends ThreadOptions, CallOptions {}

/** How input to a thread is taken; a provider that is left out is the one that it is on. */
export interface ContinueOptions extends ThreadCommandOptions {
  readonly provider?: string;
  readonly model?: string;
  readonly effort?: string;
  /** A busy thread refuses (default), queues, or takes it in at its next step. */
  readonly onBusy?: OnBusy;
  /** The revision that this was planned on. */
  readonly expectedRevision?: number;
}

/** A point of a thread, to be pointed at. */
export interface ThreadReference {
  readonly point: ContextSourcePoint;
  readonly title: string | null;
  /** For the first message of another thread. */
  readonly text: string;
}

/** Where a fork begins, and how its first run gets its context. */
export interface ForkOptions extends ThreadCommandOptions {
  /** Default: the latest completed run that has a checkpoint. */
  readonly at?: ForkPointName;
  readonly policy?: ForkPolicyInput;
  readonly title?: string;
}

/** What comes back of a fork. */
export interface MergeOptions extends ThreadCommandOptions {
  /** Default, and all that is taken: the thread that it was forked from. */
  readonly into?: string;
  /** Up to this run of the fork; default: its latest completed one. */
  readonly run?: RunId;
}

/** What of a thread's history is read again. */
export interface SyncOptions extends ThreadCommandOptions {
  /** Of this run alone; default: of all. */
  readonly run?: string;
}

/** Which checkpoint is written back, and how much of it. */
export interface RestoreOptions extends RestoreRequest, ThreadCommandOptions {
  readonly run: string;
}

/** What a fork would be. */
export interface PlannedFork extends Pick<ForkPoint, "point" | "draft" | "carries"> {
  readonly title: string | null;
  readonly availability: ForkAvailability;
}
