/**
 * Facts and plans of a run's start (lineage C4.2): what is decided on, and what can come out. The decision stands in
 * `start-context`; the executor carries a plan out, and only the acceptance of the run makes any of it true.
 *
 * - B1 A plan names the pending transfer that it resolves. One that was resolved in another way for an attempt that
 *   nobody accepted cannot be resolved twice (C2.5): the executor supersedes it by one with the same source point.
 */
import type { ProviderThreadId, ThreadId, TransferId } from "../protocol/ids.ts";
import type { LineageLimits } from "../protocol/lineage-limits.ts";
import type { OrdinalRange } from "../protocol/ordinals.ts";
import type { Boundary, ThreadCapabilities } from "../protocol/provider-capabilities.ts";
import type { NativeRef, ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { Continuity, ThreadFacts } from "../protocol/thread.ts";
import type { HandoffRecord, StalenessSignal, TransferRecord } from "../protocol/transfer.ts";
import type { ForkPointFacts } from "./fork-availability.ts";
import type { SelectionChange } from "./staleness.ts";

/** The provider that the run is about to use, and what it says of itself. */
export interface StartTarget extends Pick<ProviderThreadRecord, "provider" | "instanceId" | "driver"> {
  readonly model: string | null;
  readonly capabilities: ThreadCapabilities;
  /** The user wants a fresh provider thread with the whole history as text (C10). */
  readonly cleanContext: boolean;
  /** The conversation that would be gone on with is ours to send, and leaves a run too little of the window (C10). */
  readonly contextFull: boolean;
  /** What the adapter says to a change from the candidate's settings to these; no matter without a candidate. */
  readonly change: SelectionChange;
  /** Whether the text of the gap keeps within the provider's context policy; null while it has not been built. */
  readonly deltaFits: boolean | null;
}

/** What is known of the source of a pending fork. */
export interface ForkFacts {
  readonly point: ForkPointFacts;
  /** Whether replay is allowed (C5.15). */
  readonly replay: boolean;
  /** The provider has refused to fork, and not for want of a sign-in: `auto` goes on with text (C5.14). */
  readonly nativeFailed: boolean;
}

export interface StartFacts extends Pick<ThreadFacts, "rolledBack" | "voided"> {
  readonly threadId: ThreadId;
  readonly continuity: Continuity;
  /** Of the run that is about to start. */
  readonly ordinal: number;
  readonly target: StartTarget;
  /** All provider threads of the thread. */
  readonly providerThreads: readonly ProviderThreadRecord[];
  /** Handoffs that were delivered into those of them that the run could go on with, or could but for a rollback. */
  readonly handoffs: readonly HandoffRecord[];
  /** Transfers into this thread that are not over, oldest first. */
  readonly pending: readonly TransferRecord[];
  /** Null where no fork is pending, or nothing of its source can be found. */
  readonly fork: ForkFacts | null;
  /** Provider threads that could not be resumed when it was last tried. */
  readonly failedResume: readonly ProviderThreadId[];
  readonly limits: Pick<LineageLimits, "offProviderRuns" | "handoffsSoft" | "handoffsHard" | "gapRangesSoft">;
}

interface Handoff {
  readonly kind: "handoff";
  /** The pending transfer that it resolves; null: the executor makes one. */
  readonly transferId: TransferId | null;
  /** Runs of this thread that it tells of. */
  readonly runs: readonly OrdinalRange[];
  /** Last run that the target covers, the base point of a delta; null where everything is told (C4.12). */
  readonly baseOrdinal: number | null;
  /** Last retained run: the source point of a switch. */
  readonly sourceOrdinal: number;
}

/** A run starts on a provider thread of its own provider, told by text what it does not know. */
export type HandoffBase =
  | (Handoff & {
      readonly into: "existing";
      readonly providerThreadId: ProviderThreadId;
      readonly coverage: "delta" | "full";
    })
  | (Handoff & {
      readonly into: "new";
      /** Made for an attempt that nobody accepted, and empty; null: make one. */
      readonly providerThreadId: ProviderThreadId | null;
      readonly coverage: "full" | "checkpoint";
      /** Why the earlier provider thread is not resumed; for the transfer (C10). */
      readonly staleness: readonly StalenessSignal[];
    });

export interface UnsupportedBase {
  readonly kind: "unsupported";
  readonly code:
    | "CONTEXT_UNSUPPORTED"
    | "FORK_NATIVE_UNSUPPORTED"
    | "FORK_NATIVE_INDETERMINATE"
    | "FORK_REPLAY_DISABLED"
    | "FORK_SEED_EMPTY";
  /** What is wrong and what to do. */
  readonly text: string;
}

export type StartBase =
  /** Resume this provider thread, or make one where it is null. A transfer that is named is consumed with it. */
  | {
      readonly kind: "none";
      readonly providerThreadId: ProviderThreadId | null;
      readonly transferId: TransferId | null;
    }
  | {
      readonly kind: "native_fork";
      readonly transferId: TransferId;
      readonly sourceRef: NativeRef;
      readonly boundary: Boundary;
    }
  | HandoffBase
  /** The snapshot alone, on a provider thread of this run only; nothing native crosses (C4.14). */
  | { readonly kind: "projected"; readonly transferId: TransferId | null }
  | UnsupportedBase;

export interface StartPlan {
  readonly base: StartBase;
  /** Appended to the base, never merged into it, by age (C4.11). */
  readonly mergeBacks: readonly TransferId[];
  /** Pending switches that this plan does not resolve: what they were for is not what happens now. */
  readonly obsolete: readonly TransferId[];
}
