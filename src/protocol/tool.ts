/** Tools as the run loop sees them: a port, so that sessions know no tool's body (design, "the knots, cut"). */
import type { AgentRecord, Effect } from "./agent.ts";
import type { RequestId, RunId, ThreadId, WaitId } from "./ids.ts";
import type { Json, JsonObject } from "./json.ts";
import type { Limits } from "./limits.ts";
import type { Profile } from "./profile.ts";

/** What a host may want to know before it lets a model call. */
export interface ToolHints {
  readonly readOnly: boolean;
  readonly destructive: boolean;
  readonly idempotent: boolean;
  /** It reaches what is outside of the caller's tree. */
  readonly openWorld: boolean;
}

export interface ToolSpec {
  readonly name: string;
  /** For people. */
  readonly title?: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: JsonObject;
  readonly effects: readonly Effect[];
  readonly hints?: ToolHints;
}

export interface ToolInvocation {
  readonly callId: string;
  readonly name: string;
  /** The arguments as the model wrote them. */
  readonly input: string;
}

export interface ToolContext {
  readonly agent: AgentRecord;
  readonly runId: RunId;
  readonly step: number;
  /** Aborted by interrupt, close and limits (INT-4). */
  readonly signal: AbortSignal;
  /** Aborted when the agent is unloaded, closed or given up; made when it is first asked for. */
  readonly lifetime: () => AbortSignal;
}

export type ToolOutcome =
  | { readonly kind: "result"; readonly output: Json; readonly isError: boolean }
  /**
   * The call waits for what is stored: a wait, whose end brings its result, or an approval, after whose answer it is made
   * again.
   */
  | { readonly kind: "waiting"; readonly on: WaitId | RequestId };

/** What of a tree decides which tools its agents have, and how they are described. */
export interface ToolSetting {
  readonly profile: Profile;
  readonly limits: Limits;
}

export interface ToolHost {
  /** The tools an agent has in a tree with this profile and these limits, in a stable order. */
  specs(agent: AgentRecord, tree: ToolSetting): readonly ToolSpec[];
  /** Never throws for a refusal: that is a result with `isError` (BUD-3). */
  execute(call: ToolInvocation, context: ToolContext): Promise<ToolOutcome>;
}

/** Identity of a caller, filled in by the runtime from its token or its run; never from a parameter (SEC-1). */
export type Caller =
  | {
      readonly kind: "agent";
      readonly threadId: ThreadId;
      readonly runId: RunId | null;
      readonly step: number;
      readonly callId: string | null;
    }
  | { readonly kind: "user"; readonly name: "user" | "cli" | "library" };
