/** Context transfers and handoffs: why and from where context moves (lineage C1.8 to C1.10, C2.5, C2.6). */
import type {
  ArtifactId,
  CheckpointId,
  HandoffId,
  IntentId,
  ProviderThreadId,
  RunId,
  ThreadId,
  TransferId,
  TreeId,
  WorkId,
} from "./ids.ts";
import type { OrdinalRange } from "./ordinals.ts";
import type { NativeRef } from "./provider-thread.ts";
import type { ContextReference, ForkStrategy, RunOutcome } from "./thread.ts";

export const TRANSFER_TYPES = [
  "fork",
  "provider_handoff",
  "merge_back",
  "subagent_spawn",
  "subagent_result",
] as const;
export type TransferType = (typeof TRANSFER_TYPES)[number];
export type TransferStatus =
  | "pending"
  | "resolved_native"
  | "resolved_portable"
  | "failed"
  | "consumed"
  | "superseded";

/** A place in the history of a thread: its last run inside, and where in that run it is cut (C1.8). */
export interface ContextSourcePoint {
  readonly threadId: ThreadId;
  readonly runId: RunId | null;
  readonly checkpointId: CheckpointId | null;
  /** Ordinal of the last run that is inside, wholly or in part; 0 for none. */
  readonly ordinal: number;
  /** Transcript items before this index are inside the point. */
  readonly items: number;
  /** Index of the item that was named; null when a run or the head was. */
  readonly turnItemId: number | null;
  readonly providerThreadRef: NativeRef | null;
  readonly providerTurnRef: NativeRef | null;
  readonly cut: "inclusive" | "exclusive";
}

/** How context was carried; the kind of its text where it was carried as text. */
export type TransferResolution =
  | { readonly strategy: "native_fork"; readonly providerThreadRef: NativeRef }
  | { readonly strategy: HandoffKind; readonly contextHandoffId: HandoffId };

/** Why a provider thread was not gone on with (C10). */
export const STALENESS_SIGNALS = [
  "off_provider_runs",
  "handoff_chain",
  "incompatible_settings",
  "resume_failed",
  "divergent",
  "clean_context",
  "context_full",
  "delta_too_large",
] as const;
/** Why a conversation of a provider is not gone on with, such as `resume_failed` or `off_provider_runs`. */
export type StalenessSignal = (typeof STALENESS_SIGNALS)[number];

/** How context was asked to be carried: as a fork asks for it, as text whole or since a point, or not at all. */
export type RequestedStrategy = ForkStrategy | "portable_context" | "delta_context" | "none";

/** Why and from where context has moved. */
export interface TransferRecord {
  readonly id: TransferId;
  /** The tree of its target. */
  readonly treeId: TreeId;
  readonly type: TransferType;
  readonly workId: WorkId | null;
  readonly sourceThreadId: ThreadId;
  readonly targetThreadId: ThreadId;
  readonly sourcePoint: ContextSourcePoint;
  readonly basePoint: ContextSourcePoint | null;
  readonly sourceProvider: string | null;
  readonly targetProvider: string | null;
  readonly targetRunId: RunId | null;
  readonly status: TransferStatus;
  readonly resolution: TransferResolution | null;
  /** `none` alone carries nothing and is consumed without a resolution. */
  readonly requestedStrategy: RequestedStrategy;
  /** `none`, `all` or a number, for a spawn; the ending, for a result. */
  readonly note: string;
  /** How the run of its source point had ended, where that was not `completed` (C5.3). */
  readonly sourceOutcome: Exclude<RunOutcome, "completed"> | null;
  /** Signals that kept the target's earlier provider thread from being resumed. */
  readonly staleness: readonly StalenessSignal[];
  /** A native fork was about to be asked for, and its outcome is not known (C5.19). */
  readonly intent: { readonly id: IntentId; readonly at: number } | null;
  /** What it rests on was rolled back: listed, never injected by itself (C8.9). */
  readonly staleBase: boolean;
  readonly supersededBy: TransferId | null;
  readonly error: string | null;
  readonly createdBy: "user" | "agent" | "system";
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly consumedAt: number | null;
  readonly digest: string;
}

/** A handoff of everything, of what was missed, or of what a checkpoint holds. */
export type HandoffKind = "portable_context" | "delta_context" | "checkpoint_context";
export type HandoffStrategy =
  | "delta_since_target_last_seen"
  | "full_thread_summary"
  | "checkpoint_summary"
  | "manual_context";

/** Text of a transfer. Its content never changes once it is `ready`; status, successor and delivery do. */
export interface HandoffRecord {
  readonly id: HandoffId;
  readonly transferId: TransferId;
  readonly treeId: TreeId;
  /** The thread that it tells of: `coveredRuns` and `coveredRanges` are that thread's. */
  readonly sourceThreadId: ThreadId;
  /** The thread that it is for. */
  readonly threadId: ThreadId;
  readonly targetRunId: RunId | null;
  readonly kind: HandoffKind;
  readonly strategy: HandoffStrategy;
  readonly fromProviderThreadIds: readonly ProviderThreadId[];
  readonly toProviderThreadId: ProviderThreadId | null;
  /** Runs of the source thread that it tells of, and their first and last. */
  readonly coveredRuns: readonly OrdinalRange[];
  readonly coveredRunOrdinals: { readonly from: number; readonly to: number } | null;
  /** Indexes of the source's items that it holds, as ranges `[from, to)`. */
  readonly coveredRanges: readonly (readonly [number, number])[];
  readonly status: "pending" | "ready" | "failed" | "superseded";
  readonly summaryText: string;
  readonly payload: {
    /** Names of the sections it has, in order (C6.2). */
    readonly sections: readonly string[];
    readonly items: number;
    /** Indexes of the source's items that were left out for want of room. */
    readonly omittedItemIds: readonly number[];
    readonly checkpointRef: CheckpointId | null;
    readonly snapshotRef: ContextReference | null;
    /** Handoffs of merge-backs whose words it has whole: who was told it was told those. */
    readonly mergeBackIds?: readonly HandoffId[];
  };
  readonly budget: {
    readonly limit: number;
    readonly used: number;
    readonly unit: "tokens" | "bytes" | "chars";
  };
  readonly bytes: number;
  /** Author of the summary; null for the deterministic one (C6.6). */
  readonly createdByProvider: string | null;
  readonly supersededBy: HandoffId | null;
  readonly deliveredAt: number | null;
  readonly digest: string;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface ArtifactRecord {
  readonly id: ArtifactId;
  readonly treeId: TreeId;
  readonly bytes: number;
  readonly digest: string;
  readonly text: string;
  /** Of the agent whose words these are; null when they are no agent's. Agents of others read them without secrets (SEC-3). */
  readonly provider: string | null;
  readonly createdAt: number;
}
