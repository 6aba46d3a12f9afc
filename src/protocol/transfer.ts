/** Context transfers and handoffs: why and from where context moves (lineage C1.9, C1.10, C2.5, C2.6). */
import type { HandoffId, RunId, ThreadId, TransferId, TreeId, WorkId } from "./ids.ts";

export type TransferType = "fork" | "provider_handoff" | "merge_back" | "subagent_spawn" | "subagent_result";
export type TransferStatus =
  | "pending"
  | "resolved_native"
  | "resolved_portable"
  | "failed"
  | "consumed"
  | "superseded";

export interface ContextSourcePoint {
  readonly threadId: ThreadId;
  readonly runId: RunId | null;
  /** Transcript items before this index are inside the point. */
  readonly items: number;
  readonly cut: "inclusive" | "exclusive";
}

/** Why and from where context has moved. */
export interface TransferRecord {
  readonly id: TransferId;
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
  readonly resolution: { readonly strategy: "portable_context"; readonly contextHandoffId: HandoffId } | null;
  readonly requestedStrategy: string;
  /** `none`, `all` or a number, for a spawn; the ending, for a result. */
  readonly note: string;
  readonly error: string | null;
  readonly createdBy: "user" | "agent" | "system";
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly consumedAt: number | null;
  readonly digest: string;
}

/** Text of a transfer. Immutable once ready. */
export interface HandoffRecord {
  readonly id: HandoffId;
  readonly transferId: TransferId;
  readonly treeId: TreeId;
  readonly threadId: ThreadId;
  readonly targetRunId: RunId | null;
  readonly kind: "portable_context";
  readonly status: "ready" | "failed" | "superseded";
  readonly summaryText: string;
  /** Indexes of the source's items that it holds, as ranges `[from, to)`. */
  readonly coveredRanges: readonly (readonly [number, number])[];
  readonly bytes: number;
  readonly deliveredAt: number | null;
  readonly digest: string;
  readonly createdAt: number;
}

export interface ArtifactRecord {
  readonly id: string;
  readonly treeId: TreeId;
  readonly bytes: number;
  readonly digest: string;
  readonly text: string;
  /** Of the agent whose words these are; null when they are no agent's. Agents of others read them without secrets (SEC-3). */
  readonly provider: string | null;
  readonly createdAt: number;
}
