/** Provider threads: a provider's own conversations behind a thread of ours, and what each of them knows (lineage C1.6, C1.7). */
import { z } from "zod";
import type { HandoffId, ProviderThreadId, ThreadId, TreeId } from "./ids.ts";
import type { OrdinalRange } from "./ordinals.ts";

/** Evidence, never a key: looked up within its driver and thread only. */
export const nativeRefSchema = z.strictObject({
  driver: z.string().min(1),
  nativeId: z.string().min(1),
  strength: z.enum(["strong", "weak", "none"]),
  ordinal: z.number().int().min(0).optional(),
  fingerprint: z.string().optional(),
});
export type NativeRef = z.output<typeof nativeRefSchema>;

export type ProviderThreadStatus = "not_loaded" | "idle" | "active" | "error" | "closed" | "archived";

/** An agent of the provider's own, as far as it has told (lineage C8.1). */
export interface NativeChild {
  readonly prompt: string;
  /** Null while it is at work. */
  readonly outcome: "completed" | "failed" | "interrupted" | null;
  readonly text: string;
}

export interface ProviderThreadRecord {
  readonly id: ProviderThreadId;
  readonly treeId: TreeId;
  /** Adapter's name in the runtime's options, as in runs and configurations. */
  readonly provider: string;
  /** Adapters that share it may resume each other's threads (C4.3). */
  readonly instanceId: string;
  readonly driver: string;
  readonly appThreadId: ThreadId;
  /** The node whose child conversation it is; null for the thread's own. */
  readonly ownerNodeId: string | null;
  /** Of a node's: what it was asked for, and what came of it, in short and without secrets. */
  readonly child?: NativeChild;
  readonly nativeThreadRef: NativeRef | null;
  /** The newest turn of ours in it. */
  readonly nativeHeadRef: NativeRef | null;
  readonly model: string | null;
  readonly status: ProviderThreadStatus;
  /** `divergent` for ever once it knows what was rolled back (C2.7). */
  readonly continuity: "ok" | "divergent";
  readonly nativeRunOrdinals: readonly OrdinalRange[];
  /** Delivered into it, in order; superseded ones too. */
  readonly handoffIds: readonly HandoffId[];
  readonly forkedFrom: NativeRef | null;
  /** Turns since the last one that was accepted which it may hold, and of which nobody here knows; none where it is left out. */
  readonly unsureTurns?: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}
