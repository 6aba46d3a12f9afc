/** Snapshots: immutable revisions of what a thread has pinned, with their digests (lineage C1.11, C1.12, C12). */
import type { CheckpointId, PinId, RunId, ThreadId } from "./ids.ts";
import type { OrdinalRange } from "./ordinals.ts";

export const PIN_SECTIONS = ["decisions", "constraints", "openItems", "nextActions"] as const;
/** Under which heading a line is kept: `decisions`, `constraints`, `openItems` or `nextActions`. */
export type PinSection = (typeof PIN_SECTIONS)[number];

/** A line that a run has pinned; copied verbatim wherever it goes (C6.4). */
export interface Pin {
  readonly pinId: PinId;
  readonly section: PinSection;
  readonly text: string;
}

export interface SnapshotLine {
  readonly text: string;
  readonly sourceExecutionId: RunId;
  readonly pinId?: PinId;
}

/** A revision of the pinned context of a thread, immutable. */
export interface SnapshotRecord {
  readonly version: 1;
  readonly threadId: ThreadId;
  /** 1, 2, 3 …; revision 0 has no record, only `EMPTY_CONTEXT`. */
  readonly revision: number;
  readonly objective: string | null;
  readonly decisions: readonly SnapshotLine[];
  readonly constraints: readonly SnapshotLine[];
  readonly openItems: readonly SnapshotLine[];
  readonly nextActions: readonly SnapshotLine[];
  readonly outcomes: readonly SnapshotLine[];
  readonly delegations?: readonly SnapshotLine[];
  /** The checkpoint of the run behind it was missing or did not match its hash (C12.4). */
  readonly degraded: boolean;
  /** Revisions that a rollback, or its undo, has made void; the chain itself only grows (C9.7). */
  readonly supersedesRevisions?: readonly OrdinalRange[];
  readonly createdAt: number;
  /** SHA-256 of the canonical JSON of all other fields (C11.8). */
  readonly digest: string;
}

/** Written with the settle of a run, always (C1.18). */
export interface CheckpointRecord {
  readonly id: CheckpointId;
  readonly pins: readonly Pin[];
  /** Over the run's id and its pins. */
  readonly digest: string;
  /**
   * State of the workspace. `none`: the checkpoint is of the context alone, because no capture is configured or nothing
   * can be captured there; `missing`: not captured yet, or it failed.
   */
  readonly workspace:
    | { readonly status: "none" | "missing"; readonly reason?: string }
    | {
        readonly status: "ready";
        readonly ref: string;
        readonly summary: string;
        readonly files: readonly string[];
        /** A restore of it was begun: what stood there before is kept with it. */
        readonly written?: boolean;
        /** Its reference was removed; what it told stays. */
        readonly gone?: boolean;
      };
}

export interface CompactionRecord {
  readonly version: 1;
  readonly id: `compaction-${number}`;
  readonly threadId: ThreadId;
  readonly fromRevision: number;
  readonly toRevision: number;
  readonly droppedCount: number;
  readonly fromMessageSequence: number;
  readonly toMessageSequence: number;
  readonly inputDigest: string;
  readonly outputContextRevision: number;
  readonly outputContextDigest: string;
  readonly strategy: "deterministic";
  readonly droppedLines: readonly {
    readonly section: string;
    readonly sourceExecutionId: RunId;
    readonly digest: string;
    /** The line is there, cut short. */
    readonly truncated: boolean;
  }[];
  readonly createdAt: number;
}
