/** Work: one request and its outcome (WRK). */
import type { AgentPath } from "./agent-path.ts";
import type { ArtifactId, MailId, RunId, ThreadId, TransferId, TreeId, WorkId } from "./ids.ts";
import type { Json, JsonObject } from "./json.ts";
import type { Usage, UsageReport } from "./usage.ts";

export type WorkState = "queued" | "running" | "awaiting_children" | "ended";

/** None but the first is success (WRK-3). */
export const WORK_ENDINGS = [
  "completed",
  "failed",
  "interrupted",
  "cancelled",
  "turn_limit",
  "time_limit",
  "budget_exhausted",
  "provider_error",
  "schema_failed",
  "empty_result",
  "runtime_lost",
] as const;
/** How a work can end; none but `completed` is success. */
export type WorkEnding = (typeof WORK_ENDINGS)[number];

/** `always`: starts a run. `settled_only`: waits for the live run to settle, then starts one. `never`: queue-only (WAI-1). */
export type Wake = "always" | "settled_only" | "never";

export type Requester =
  | { readonly kind: "agent"; readonly threadId: ThreadId; readonly path: AgentPath }
  | { readonly kind: "user"; readonly name: "user" | "cli" | "library" };

export type ReplyTo = {
  readonly kind: "agent";
  readonly threadId: ThreadId;
  readonly path: AgentPath;
} | null;

/** What is left of a run whose text does not say what it did, without secrets; each list bounded. */
export interface Salvage {
  readonly lastSteps: readonly string[];
  /** Lines that the run has pinned, each after its section. */
  readonly pins?: readonly string[];
  /** Files that its calls have changed, as far as calls say so. */
  readonly files?: readonly string[];
}

/** How a work ended. */
export interface WorkOutcome {
  readonly ending: WorkEnding;
  /**
   * The last non-empty text of the run. Where no agent is owed the result it is whole; else it is what the result mail carries:
   * head and tail above `mailInlineBytes`, with the whole in `artifactId`. Without success it is cut to that many bytes.
   */
  readonly text: string;
  readonly artifactId: ArtifactId | null;
  /** Parsed value, when an output schema was declared and met. */
  readonly value: Json;
  readonly error: { readonly code: string; readonly message: string; readonly status: number | null } | null;
  /** True when several works shared the run whose outcome this is (WRK-2). */
  readonly shared: boolean;
  /** Where there is no text: what can still be said (WRK-7). */
  readonly salvage: Salvage | null;
  readonly usage: UsageReport;
  readonly runId: RunId | null;
  readonly endedAt: number;
}

/** A work as it is stored. */
export interface WorkRecord {
  readonly id: WorkId;
  readonly treeId: TreeId;
  readonly requester: Requester;
  readonly executor: ThreadId;
  readonly executorPath: AgentPath;
  /** The works which the asking run served at that moment (WRK-4). */
  readonly parents: readonly WorkId[];
  /** Asked with `detached: true`, or answering to somebody else than its requester: no work waits for it. */
  readonly detached: boolean;
  /** The parents that wait for it and count it in their `openUnder`. A parent that ends otherwise lets go of it. */
  readonly holds: readonly WorkId[];
  readonly originRunId: RunId | null;
  readonly rootRunId: RunId | null;
  readonly replyTo: ReplyTo;
  readonly wake: Wake;
  readonly objective: string;
  readonly outputSchema: JsonObject | null;
  readonly acceptance: string | null;
  readonly artifacts: readonly ArtifactId[];
  readonly requestMailId: MailId;
  /** The notice that asks for it again after a lost run (`onLostRun: retry`). */
  readonly retryMailId: MailId | null;
  readonly resultMailId: MailId | null;
  /** The result, or the notice that stands for it, is not yet `delivered` to an agent that is owed it. */
  readonly resultPending: boolean;
  readonly resultTransferId: TransferId | null;
  /** Length of the longest chain of parent works that ends here, itself included (BUD-5). */
  readonly chain: number;
  readonly state: WorkState;
  /** The unsettled run that serves it. */
  readonly servedBy: RunId | null;
  /** Non-detached works under it that are open, or ended with their result pending. */
  readonly openUnder: number;
  readonly runsServed: number;
  /** The runs that served it; a run that serves several works counts once in their sum (BUD-4). */
  readonly servedRuns: readonly RunId[];
  /** Runs lost after acceptance and retried (`onLostRun: retry`). */
  readonly lostRuns: number;
  /** Runs that were reserved for it and lost before acceptance. */
  readonly voids: number;
  readonly schemaRepairs: number;
  /** Usage of the runs that served it. */
  readonly usage: Usage;
  /** What the run said that left it awaiting; kept where it ends without more (WRK-3). */
  readonly text: string;
  readonly outcome: WorkOutcome | null;
  /** Span of the asking call, in the form of the `traceparent` header (OBS-2). */
  readonly trace: string | null;
  readonly createdAt: number;
  /** When a run first took it up: the wall clock of a budget is measured from there (BUD-2). */
  readonly begunAt: number | null;
}
