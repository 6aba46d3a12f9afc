/** What a provider can do, as data: the orchestrator asks for a flag, never for a provider's name (lineage 3.1, C20.7, C20.8). */
import type { NativeRef } from "./provider-thread.ts";

export const CONTEXT_CHANNELS = ["system", "developer", "history_items", "synthetic_user"] as const;
/** Ways to give context beside the user's message, from best to worst (C6.10). */
export type ContextChannel = (typeof CONTEXT_CHANNELS)[number];
type Strength = "strong" | "weak" | "none";

export interface ThreadCapabilities {
  readonly threads: {
    /** The finest point at which its own conversation can be forked. */
    readonly fork: "none" | "head" | "turn" | "item";
    /** A source must not be at work in the provider meanwhile. */
    readonly forkIdleOnly: boolean;
    readonly rollback: "none" | "count" | "boundary";
    readonly rollbackReturnsSnapshot: boolean;
    readonly read: "none" | "full" | "paged";
    readonly forkFromChild: boolean;
  };
  readonly identity: {
    readonly thread: Strength;
    readonly turn: Strength;
    readonly item: Strength;
    readonly request: Strength;
  };
  readonly turns: {
    readonly steer: boolean;
    readonly interrupt: boolean;
    readonly queue: boolean;
    readonly acceptedEvent: boolean;
    readonly terminalQuality: Strength;
  };
  readonly sessions: {
    readonly multipleThreads: boolean;
    readonly modelSwitch: boolean;
    readonly singleWriter: boolean;
  };
  readonly context: {
    readonly channels: readonly ContextChannel[];
    readonly delta: boolean;
    readonly full: boolean;
    readonly canSummarise: boolean;
    /** Characters of a handoff that it recommends not to pass; null when it has no opinion. */
    readonly maxRecommendedChars: number | null;
  };
  readonly subagents: { readonly native: boolean; readonly childIds: boolean; readonly lifecycle: boolean };
  readonly history: { readonly bridge: boolean; readonly pinnedVersion: string | null };
  readonly requests: {
    readonly userQuestions: boolean;
    readonly approvals: boolean;
    readonly surviveRestart: boolean;
  };
}

/** A place in a provider's conversation; each adapter turns it into its own inclusive or exclusive id (lineage 3.1). */
export type Boundary =
  | { readonly kind: "head" }
  | { readonly kind: "start" }
  | {
      readonly kind: "after_turn" | "before_turn";
      readonly turn: NativeRef;
      /** Turns that are over and lie behind it. */
      readonly laterTerminalTurns: number;
    }
  | { readonly kind: "after_item" | "before_item"; readonly item: NativeRef };
