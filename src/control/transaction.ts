/**
 * One transition of a tree: a plan over the store together with what memory must do once it is durable.
 *
 * - T1 A plan only writes through the transaction. What memory must do is collected in `effects` and applied in one
 *   synchronous block after the commit (design, "the store is the truth").
 * - T2 Every state change writes its event in the same commit (OBS-1).
 */
import type { AgentConfig, AgentRecord, AgentWorktree, Effect, TreeRecord } from "../protocol/agent.ts";
import { InvariantError, RejectedError } from "../protocol/errors.ts";
import type { EventDraft, EventType, RuntimeEvent } from "../protocol/events.ts";
import type { IdPrefix, MailId, RunId, ThreadId, TreeId, WorkId } from "../protocol/ids.ts";
import type { CommandVerb } from "../protocol/command.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { Limits } from "../protocol/limits.ts";
import type { LineageLimits } from "../protocol/lineage-limits.ts";
import type { Caller, ToolSpec } from "../protocol/tool.ts";
import type { Profile } from "../protocol/profile.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { Ids } from "../platform/ids.ts";
import type { Redact } from "../platform/redact.ts";
import type { WorkspaceCapture, Worktrees } from "../platform/workspace/port.ts";
import type { ResolveInput } from "../policy/resolve-config.ts";
import type { StoreTx, StoreView } from "../store/port.ts";

export interface Effects {
  /** Agents whose records were written. */
  readonly agents: Set<ThreadId>;
  /** Agents that have trigger-turn mail and no run. */
  readonly wake: Set<ThreadId>;
  /** Agents whose waits have all ended, or whose question was answered. */
  readonly resume: Set<ThreadId>;
  /** Runs that were settled from the store and whose drive must end. */
  readonly stop: { readonly threadId: ThreadId; readonly runId: RunId; readonly why: string }[];
  readonly settled: { readonly threadId: ThreadId; readonly runId: RunId }[];
  readonly closed: ThreadId[];
  /** With who has done them: a record that holds its whole answer now is not read back for that. */
  readonly worksEnded: Map<WorkId, ThreadId>;
  /** Unread mail of these agents has come, gone or changed; host-driven waiters look again. */
  readonly mail: Set<ThreadId>;
  /** A wait or a question of these agents has ended. */
  readonly answered: Set<ThreadId>;
  /** Items appended to transcripts, for the sessions that are loaded. */
  readonly items: { readonly threadId: ThreadId; readonly items: readonly TranscriptItem[] }[];
  readonly events: RuntimeEvent[];
  /** A deadline may have become the earliest. */
  deadlines: boolean;
  /** Waits for threads of other trees may be open. */
  threadWaits: boolean;
  /** Runs that wait for a budget's reservations may fit now. */
  budgetRaised: boolean;
}

/** Commands by name, as another process leaves them in a tree's inbox. */
export type Verbs = Readonly<
  Partial<Record<CommandVerb, (tx: Transaction, given: JsonObject, by: Caller) => JsonObject>>
>;

/** What a plan needs to know of its tree beside the store. */
export interface PlanContext {
  readonly treeId: TreeId;
  readonly profile: Profile;
  readonly limits: Limits;
  readonly ids: Ids;
  /** The first request of this agent's run has been composed (WAI-1). */
  composed(threadId: ThreadId): boolean;
  /** The newest mail that a request of this agent's run, not accepted yet, has taken in; 0 for none. */
  drainedSeq(threadId: ThreadId): number;
  /** The adapter of a provider can park an open wait (RES-2). */
  parksWaits(provider: string): boolean;
  /** Whose loop it is; ours for a provider that is not known. */
  loop(provider: string): "ours" | "theirs";
  contextWindow(agent: AgentRecord): number;
  /** The context window of a provider's model, in tokens; assumed where nobody knows it. */
  windowOf(provider: string, model: string | null): number;
  /** Permits that are free for running children of this tree. */
  permitsFree(): number;
  /** Admitted: it has its permit and will have its run. */
  isStarting(threadId: ThreadId): boolean;
  /** Only agents that are kept resident by their mail could make room for another session (RES-3). */
  onlyPinnedInTheWay(): boolean;
  /** Resolves the effective configuration of a child (SPN-7, POL-1). @throws RejectedError in the order of agents.md 17. */
  resolveConfig(request: ConfigRequest): AgentConfig;
  loaded(threadId: ThreadId): boolean;
  /** The mode hint of a model's own, if it has one (POL-4). */
  modelHint(provider: string, model: string | null): string | null;
  /** Where an agent stands in the queue, 1 for the next. */
  position(threadId: ThreadId): number;
  readonly lineage: LineageLimits;
  readonly workspaces: Workspaces;
  /** Commands on threads, which stand above this folder. */
  readonly verbs: Verbs;
  /** @throws RejectedError `PROVIDER_UNAVAILABLE` for one that this runtime was not given, `POLICY_UNMET`. */
  requireProvider(provider: string, effects: readonly Effect[]): void;
  /** The configuration on another provider or model (lineage C4.16). @throws RejectedError `INVALID_ARGUMENT`. */
  rebind(config: AgentConfig, to: Pick<AgentConfig, "provider" | "model" | "effort">): AgentConfig;
  /** A configuration within what these allow now (RES-8, POL-1). */
  withinCeiling(config: AgentConfig, above: readonly AgentConfig[]): AgentConfig;
  /** Tools of an agent, and what they may do. */
  toolEffects(agent: AgentRecord): readonly Pick<ToolSpec, "name" | "effects">[];
  readonly redact: Redact;
  /** Digest of a freshly minted agent token; the token itself is only known to the runtime. */
  mintTokenDigest(threadId: ThreadId): string;
}

/** What a spawn asks for, and the step of the parent it is asked from. */
export interface ConfigRequest {
  /** With the model and effort of its current step. */
  readonly parent: AgentConfig;
  readonly asked: ResolveInput["asked"];
  /** Effects and budgets of the parent and of each agent above it. */
  readonly above: readonly AgentConfig[];
  readonly worktree?: PlacedWorktree | undefined;
}

/** A worktree that was made, and the folder in it that is to be the agent's workspace. */
export interface PlacedWorktree {
  readonly folder: string;
  readonly worktree: AgentWorktree;
}

/** What a runtime can do with workspaces; null what it was not given. */
export interface Workspaces {
  readonly capture: WorkspaceCapture | null;
  readonly worktrees: Worktrees | null;
}

/** What a plan that changes nothing looks at; it runs in a read, or as a part of a transaction. */
export class Look {
  readonly store: StoreView;
  readonly context: PlanContext;
  readonly now: number;

  constructor(store: StoreView, context: PlanContext) {
    this.store = store;
    this.context = context;
    this.now = store.now();
  }

  get treeId(): TreeId {
    return this.context.treeId;
  }

  get limits(): Limits {
    return this.context.limits;
  }

  get profile(): Profile {
    return this.context.profile;
  }

  tree(): TreeRecord {
    return must(this.store.tree(this.treeId), "tree", this.treeId);
  }

  agent(id: ThreadId): AgentRecord {
    const agent = must(this.store.agent(id), "agent", id);
    if (agent.treeId !== this.treeId) {
      throw new RejectedError(
        "AGENT_NOT_FOUND",
        `agent ${id} is not in this tree; list the agents of this tree.`,
        { id },
      );
    }
    return agent;
  }
}

export class Transaction extends Look {
  declare readonly store: StoreTx;
  readonly effects: Effects = {
    agents: new Set(),
    wake: new Set(),
    resume: new Set(),
    stop: [],
    settled: [],
    closed: [],
    worksEnded: new Map(),
    mail: new Set(),
    answered: new Set(),
    items: [],
    events: [],
    deadlines: false,
    threadWaits: false,
    budgetRaised: false,
  };

  constructor(store: StoreTx, context: PlanContext) {
    super(store, context);
  }

  id<P extends IdPrefix>(prefix: P): `${P}_${string}` {
    return this.context.ids.mint(prefix);
  }

  /** Writes an agent's record with the next revision and returns it. */
  putAgent(agent: AgentRecord, change: Partial<AgentRecord>): AgentRecord {
    // Of the record as this commit has left it: what was read before may be older.
    const now = this.agent(agent.threadId);
    const next: AgentRecord = { ...now, ...change, revision: now.revision + 1 };
    this.store.putAgent(next);
    this.effects.agents.add(next.threadId);
    return next;
  }

  /** Agents that this commit closes: nothing is passed on to them any more (WRK-6). */
  readonly closing = new Set<ThreadId>();

  /** Results that this commit has put into the tree's inbox. */
  readonly inboxed = new Set<MailId>();

  /** The tree's limits were written, or which of its budgets are spent: memory takes them over. */
  boundsChanged = false;

  putTree(change: Partial<TreeRecord>): void {
    if (change.limits !== undefined || change.exhausted !== undefined) this.boundsChanged = true;
    const tree = this.tree();
    this.store.putTree({ ...tree, ...change, revision: tree.revision + 1 });
  }

  emit(
    type: EventType,
    agent: Pick<AgentRecord, "path" | "threadId"> | null,
    about: { readonly runId?: RunId | null; readonly workId?: WorkId | null } = {},
    data: JsonObject = {},
  ): void {
    const draft: EventDraft = {
      type,
      path: agent?.path ?? null,
      threadId: agent?.threadId ?? null,
      runId: about.runId ?? null,
      workId: about.workId ?? null,
      data,
    };
    this.effects.events.push(this.store.appendEvent(this.treeId, this.id("evt"), this.now, draft));
  }
}

export function must<T>(value: T | undefined, what: string, id: string): T {
  if (value === undefined) throw new InvariantError(`${what} ${id} is not in the store`, { id });
  return value;
}
