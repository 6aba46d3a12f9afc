/**
 * What a handoff is built from, and what comes out (C6.1, C6.2). Everything is canonical data of ours: transcript items,
 * runs, pins, checkpoints. Whoever reads it from a store cuts each thread at its point and says what each run covers.
 *
 * - I1 An item belongs to the text when its run is among the segment's `runs` and was not rolled back at the point, or
 *   when it has no run. So `runs` says what a delta covers.
 * - I2 Indexes of items and ordinals of runs that are reported are those of the last segment, the source's own.
 */
import type { Redact } from "../../platform/redact.ts";
import type { Effect } from "../../protocol/agent.ts";
import type { HandoffId, RunId, ThreadId, WorkId } from "../../protocol/ids.ts";
import type { LineageLimits } from "../../protocol/lineage-limits.ts";
import type { OrdinalRange } from "../../protocol/ordinals.ts";
import type { RunRecord } from "../../protocol/run.ts";
import type { CheckpointRecord, SnapshotRecord } from "../../protocol/snapshot.ts";
import type { TranscriptItem } from "../../protocol/transcript.ts";
import type { HandoffRecord, HandoffKind, HandoffStrategy } from "../../protocol/transfer.ts";
import type { HandoffBudget } from "./budget.ts";

export type HandoffPurpose = "provider_handoff" | "fork" | "merge_back" | "subagent_spawn";

export type HandoffRun = Pick<RunRecord, "id" | "ordinal" | "status" | "reason" | "provider"> & {
  /** Taken back before the point that is told of; a fork taken earlier still tells of it (C9.9). */
  readonly rolledBack: boolean;
  readonly error?: { readonly code: string; readonly message: string } | null;
};

/** What a fork has brought back into a run, in the words in which it was told. */
export interface MergeBackFact {
  readonly runId: RunId;
  readonly handoffId: HandoffId;
  readonly text: string;
}

export interface HandoffSegment {
  readonly threadId: ThreadId;
  readonly title: string | null;
  /** In order, cut at the segment's point. */
  readonly items: readonly TranscriptItem[];
  /** In order of their ordinals. */
  readonly runs: readonly HandoffRun[];
  /** In the order in which they were told. */
  readonly mergeBacks?: readonly MergeBackFact[];
}

export interface SubagentResult {
  readonly workId: WorkId | null;
  readonly agent: string;
  readonly status: string;
  readonly text: string;
}

/** An approval or a question that nobody has answered. */
export interface OpenRequest {
  readonly kind: "question" | "approval";
  readonly askedBy: string;
  readonly text: string;
}

/** The summary of a handoff, or why it has none (C6.5). `author` is null for the deterministic one. */
export type SummaryOutcome =
  | {
      readonly kind: "text";
      readonly text: string;
      readonly author: string | null;
      /** Why the summariser that was asked first did not write it. */
      readonly fallback: string | null;
    }
  | { readonly kind: "none"; readonly why: string };

/** Limits on the dialogue of a seed (C18.8). */
export interface DialogueWindow {
  /** Newest messages that are looked at. */
  readonly candidates: number;
  /** Of them, at most so many go in. */
  readonly most: number;
  /** Characters kept of one message; null keeps all. */
  readonly clipChars: number | null;
}

export interface HandoffInput {
  readonly purpose: HandoffPurpose;
  readonly extent: "full" | "delta" | "checkpoint";
  /** Oldest ancestor first; the last is the source itself. */
  readonly segments: readonly HandoffSegment[];
  /** How many ancestors are further up and were not given. */
  readonly further?: number;
  readonly snapshot: SnapshotRecord | null;
  /** Root that counts for the target (C6.13). */
  readonly workspace: string | null;
  readonly checkpoint: { readonly record: CheckpointRecord; readonly ordinal: number } | null;
  readonly openRequests: readonly OpenRequest[];
  /** Effects by a tool's name; one that is not in it may have them all (POL-1). */
  readonly effects: ReadonlyMap<string, readonly Effect[]>;
  readonly mode: "recent" | "summary_plus_recent";
  readonly summary: SummaryOutcome;
  /** Files that the target has changed too since the base (C7.7). */
  readonly conflicts?: readonly string[];
  readonly window?: DialogueWindow;
  readonly budget: HandoffBudget;
  /** The tool by which the target reads what was left out. */
  readonly readTool: string | null;
  readonly redact: Redact;
  readonly limits: LineageLimits;
}

/** Everything of a handoff record that the text decides; its ids and provider threads are the caller's. */
export interface BuiltHandoff {
  readonly kind: "built";
  readonly text: string;
  readonly about: {
    readonly kind: HandoffKind;
    readonly strategy: HandoffStrategy;
    readonly coveredRuns: readonly OrdinalRange[];
    readonly coveredRunOrdinals: HandoffRecord["coveredRunOrdinals"];
    readonly payload: HandoffRecord["payload"];
    readonly budget: HandoffRecord["budget"];
    readonly createdByProvider: string | null;
  };
  readonly coveredRanges: HandoffRecord["coveredRanges"];
  /** The sections of it that copy what was pinned. */
  readonly pinned: string;
  /** The mode that was used in the end (C6.5). */
  readonly mode: HandoffInput["mode"];
}

export type HandoffBuild =
  | BuiltHandoff
  /** There is something to tell, and no room for one item of it (C6.9). */
  | {
      readonly kind: "failed";
      readonly code: "HANDOFF_BUDGET_TOO_SMALL";
      readonly budget: HandoffBudget;
      /** What it would have covered: that does not depend on room. */
      readonly coveredRuns: readonly OrdinalRange[];
    }
  /** There is nothing to tell. */
  | { readonly kind: "empty" };
