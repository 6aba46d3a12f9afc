/** Agents: threads that stand in a tree under an `AgentPath`, and the trees themselves. */
import type { AgentPath } from "./agent-path.ts";
import type { RunId, ThreadId, TreeId } from "./ids.ts";
import type { Budgets, Limits } from "./limits.ts";
import type { ProfileName } from "./profile.ts";
import type { RunReason, RunStatus } from "./run.ts";
import type { ThreadFacts } from "./thread.ts";
import type { Usage } from "./usage.ts";

export const EFFECTS = ["read", "write", "execute", "network"] as const;
/** What a tool may do to the world. A tool that declares none counts as all of them (POL-1). */
export type Effect = (typeof EFFECTS)[number];

/** What a tool may do; one that declares nothing may do everything (POL-1). */
export function effectsOf(tool: { readonly effects?: readonly Effect[] }): readonly Effect[] {
  return tool.effects === undefined || tool.effects.length === 0 ? EFFECTS : tool.effects;
}

/** The effective configuration of an agent, resolved once at its spawn and stored (SPN-7). */
export interface AgentConfig {
  readonly provider: string;
  readonly model: string | null;
  readonly effort: string | null;
  readonly role: string | null;
  /** System text of the agent: base instructions, then the role's. */
  readonly instructions: string | null;
  /** Names of own tools, in order; the six and the result tools are added by the runtime unless `leaf`. */
  readonly tools: readonly string[];
  /** A leaf gets no collaboration tools (agents.md 82). */
  readonly leaf: boolean;
  /** Its role makes it a leaf, whatever model it moves to. */
  readonly leafByRole?: true;
  readonly effects: readonly Effect[];
  readonly workspace: string | null;
  /** The worktree that was made for it, if one was; it goes or stays by rule when the agent is closed. */
  readonly worktree: AgentWorktree | null;
  readonly budgets: Budgets;
  readonly maxOutputTokens: number | null;
  readonly contextWindow: number | null;
  readonly modeHint: string | null;
  readonly onLostRun: "notify" | "retry";
  readonly pinPendingMail: boolean;
  readonly policyHash: string;
  /** What was asked for and not granted, so that *effective* is honest (POL-2). */
  readonly adjustments: readonly {
    readonly field: string;
    readonly asked: string;
    readonly effect: "clipped" | "ignored";
  }[];
}

/** A worktree of its own (`isolation: "worktree"`). */
export interface AgentWorktree {
  readonly path: string;
  readonly repository: string;
  /** The commit whose content it began with. */
  readonly base: string;
}

export type ThreadState = "open" | "closed" | "archived";

export interface LastOutcome {
  readonly runId: RunId | null;
  readonly status: Extract<RunStatus, "completed" | "failed" | "interrupted" | "cancelled">;
  readonly reason: RunReason | null;
  /** At most `artifactHeadBytes` of the answer or error (LST-1). */
  readonly text: string;
  readonly at: number;
}

/** An agent as it is stored. */
export interface AgentRecord {
  readonly threadId: ThreadId;
  readonly treeId: TreeId;
  readonly path: AgentPath;
  readonly parent: ThreadId | null;
  readonly depth: number;
  readonly state: ThreadState;
  /** Grows by one with each write of this record (lineage C1.1). */
  readonly revision: number;
  readonly config: AgentConfig;
  /** Its life as a thread; null in records from before threads (lineage C17.6). */
  readonly thread: ThreadFacts | null;
  /** The root's loop belongs to somebody else (HDR). */
  readonly hostDriven: boolean;
  /** SHA-256 of the agent's token (SEC-1). */
  readonly tokenDigest: string;
  readonly createdAt: number;
  readonly createdBy: "user" | "agent";
  readonly bornInRun: RunId | null;
  readonly currentRun: RunId | null;
  readonly runs: number;
  readonly items: number;
  /** That it has ever had. */
  readonly children: number;
  readonly lastOutcome: LastOutcome | null;
  readonly lastActiveAt: number;
  /** Questions and approvals that are pending (WAI-2). */
  readonly openRequests: number;
  /** Runs in a row that were refused before acceptance as not retryable (MBX-15). */
  readonly refusals: number;
  readonly loadFailures: number;
  readonly usage: Usage;
  /** The mode hint that was last sent (POL-4). */
  readonly sentModeHint: string | null;
}

/** A tree as it is stored. */
export interface TreeRecord {
  readonly treeId: TreeId;
  readonly title: string | null;
  readonly profile: ProfileName;
  readonly limits: Limits;
  readonly createdAt: number;
  readonly revision: number;
  readonly agents: number;
  /** Start times of recent spawns and runs, for the rates a minute (BUD-1, BUD-5). */
  readonly recentSpawns: readonly number[];
  readonly recentRuns: readonly number[];
  /** Scopes whose budget was spent and announced: path and the budget's name (BUD-2). A wall clock is at rest again at once. */
  readonly exhausted: readonly {
    readonly path: AgentPath;
    readonly budget: "tokens" | "money";
  }[];
  /** The tree's inbox: results that no living agent could take (WRK-6). */
  readonly inbox: number;
  /** What the tree was made with (B49); null, or absent as in rows of older versions, is the profile's default. */
  readonly wakeOnAgentMessages?: boolean | null;
  /** The agent that made this tree: tokens and money count in its tree's budgets too. Without one a tree pays for itself. */
  readonly billedTo?: Payer;
  /** Its last owner gave it back in order, and left runs behind: they were stopped, and count as no attempt of theirs (REC-1). */
  readonly leftInOrder?: boolean;
  /** Trees that agents of this one have made. */
  readonly billed?: number;
}

/** An agent whose tree pays for another one (lineage C1.2). */
export interface Payer {
  readonly treeId: TreeId;
  readonly threadId: ThreadId;
  readonly path: AgentPath;
}

/** Agent status: derived from state, run, work and mail; never stored. */
export type AgentStatus =
  | { readonly kind: "queued"; readonly position: number }
  | { readonly kind: "starting" }
  | { readonly kind: "running" }
  | { readonly kind: "waiting"; readonly on: readonly string[] }
  | { readonly kind: "awaiting_children" }
  | { readonly kind: "awaiting_approval" }
  | { readonly kind: "idle"; readonly last: LastOutcome["status"] | null }
  | { readonly kind: "closed" };

/** The status words of the `codex` profile (agents.md 42). */
export type CodexStatus =
  | "pending_init"
  | "running"
  | "interrupted"
  | "shutdown"
  | "not_found"
  | { readonly completed: string | null }
  | { readonly errored: string };
