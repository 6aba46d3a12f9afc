/**
 * One tree as its owner holds it: the lease, the loaded sessions, the runs under way. Everything in here is a cache of the
 * store or belongs to a request that a crash would end as well.
 *
 * - O1 Memory changes in `apply`, one synchronous block after a commit, and nowhere else.
 * - O2 After `lose` nothing is committed and nothing is dispatched; what runs is aborted (REC-6).
 */
import type { AgentPath } from "../protocol/agent-path.ts";
import type { AgentConfig, AgentRecord, TreeRecord } from "../protocol/agent.ts";
import { CoppiceError, InterruptedError, RejectedError, TransientError } from "../protocol/errors.ts";
import type { CommandId, ThreadId, TreeId } from "../protocol/ids.ts";
import { ASSUMED_CONTEXT_WINDOW, type Limits } from "../protocol/limits.ts";
import type { LineageLimits } from "../protocol/lineage-limits.ts";
import type { Mailbox } from "../protocol/mail.ts";
import type { Profile } from "../protocol/profile.ts";
import type { Timer } from "../platform/clock.ts";
import { sha256 } from "../platform/digest.ts";
import type { Ids } from "../platform/ids.ts";
import type { Redact } from "../platform/redact.ts";
import type { AdmissionLane } from "../execution/admission.ts";
import type { PermitPool } from "../execution/permits.ts";
import { Tally } from "../execution/tally.ts";
import type { Residency } from "../residency/slots.ts";
import type { Session } from "../session/session.ts";
import type { Lease, StoreView } from "../store/port.ts";
import { Reservations } from "./budget-scopes.ts";
import { closeSession } from "./close-session.ts";
import type { Grant } from "./dispatch.ts";
import type { ActiveRun } from "./active-run.ts";
import { EventHub } from "./event-hub.ts";
import { HeldRuns } from "./held-runs.ts";
import { type MemoryChange, memoryChange } from "./memory-change.ts";
import { parksWaits, requireAdapter, type Shared, windowOf } from "./shared.ts";
import {
  type ConfigRequest,
  type Effects,
  Look,
  type PlanContext,
  Transaction,
  type Workspaces,
} from "./transaction.ts";
import { Watchers, waitsOf } from "./watchers.ts";
import type { Loading } from "./open-provider.ts";
import type { Reactions } from "./tree-reactions.ts";
import { untilMended } from "./until-mended.ts";
import { WorkspaceJobs } from "./workspace-jobs.ts";

export interface TreeParts {
  readonly shared: Shared;
  readonly treeId: TreeId;
  readonly lease: Lease;
  readonly profile: Profile;
  readonly bounds: Pick<TreeRecord, "limits" | "exhausted">;
  readonly residency: Residency;
  readonly permits: PermitPool;
  readonly lane: AdmissionLane<Grant>;
  /** Called once, when the tree is another's or nobody's. */
  readonly onLost: (why: string) => void;
}

/** An agent that wants to run, with what its admission needs to know. */
export interface Candidate {
  readonly threadId: ThreadId;
  readonly path: AgentPath;
  readonly root: boolean;
  /** Subtree budgets on running children above it, nearest first. */
  readonly runningScopes: readonly { readonly path: AgentPath; readonly limit: number }[];
}

export class Tree implements PlanContext {
  readonly shared: Shared;
  readonly treeId: TreeId;
  readonly profile: Profile;
  readonly residency: Residency;
  readonly permits: PermitPool;
  readonly lane: AdmissionLane<Grant>;
  readonly sessions = new Map<ThreadId, Session>();
  /** Loads under way. */
  readonly loading = new Map<ThreadId, Loading>();
  readonly runs = new Map<ThreadId, ActiveRun>();
  /** Unread mail of loaded agents, for the choice of whom to unload. */
  readonly mailboxes = new Map<ThreadId, Mailbox>();
  readonly reservations: Reservations;
  readonly held: HeldRuns;
  readonly events = new EventHub();
  readonly watchers: Watchers;
  readonly jobs = new WorkspaceJobs(() => this.reactions.drained(this));
  /** Admitted and not running yet, or let go and not given up yet; a failure may let go of one that is being started. */
  readonly starting = new Tally<ThreadId>();
  /** Reserved before a commit, for the wake that comes with it (`admission: reject`). */
  readonly granted = new Map<ThreadId, Grant>();
  readonly runningPools = new Map<AgentPath, PermitPool>();
  /** Commands of others that are under way. */
  readonly commands = new Set<CommandId>();
  /** Ends a group of processes each; called when this owner gives up or is lost (REC-6). */
  readonly groups = new Set<() => void>();
  limits: Limits;
  /** Scopes whose budget is spent. */
  exhausted: TreeRecord["exhausted"];
  lease: Lease;
  deadline: { readonly at: number; readonly timer: Timer } | null = null;
  /** Set while waits for threads of other trees are open. */
  threadWatch: Timer | null = null;
  /** Dispatch of new runs rests, for the runs a minute (BUD-5), until its timer fires. */
  rateHeld = false;
  rateTimer: Timer | null = null;
  /** Set while memory is to be held against the store. */
  doubt: Timer | null = null;
  /** Set while the last host of a host-driven root is gone and the next has time to come. */
  hostGrace: Timer | null = null;
  state: "owned" | "closing" | "lost" = "owned";
  reactions!: Reactions;
  readonly #onLost: (why: string) => void;
  /** Starts, drives, and ends of providers' sessions: the lease is not given back before they are over. */
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(parts: TreeParts) {
    this.shared = parts.shared;
    this.reservations = new Reservations(parts.shared.releases);
    this.held = new HeldRuns(parts.shared.releases, (candidate) => {
      if (this.state === "owned") this.reactions.resume(this, candidate);
    });
    this.watchers = new Watchers(() => parts.shared.clock.hold?.());
    this.treeId = parts.treeId;
    this.lease = parts.lease;
    this.profile = parts.profile;
    this.limits = parts.bounds.limits;
    this.exhausted = parts.bounds.exhausted;
    this.residency = parts.residency;
    this.permits = parts.permits;
    this.lane = parts.lane;
    this.#onLost = parts.onLost;
  }

  get ids(): Ids {
    return this.shared.ids;
  }

  get verbs(): PlanContext["verbs"] {
    return this.shared.verbs;
  }

  requireProvider: PlanContext["requireProvider"] = (provider, effects) =>
    requireAdapter(this.shared, provider, effects);

  rebind: PlanContext["rebind"] = (config, to) => this.shared.rebind(config, to);

  withinCeiling: PlanContext["withinCeiling"] = (config, above) => this.shared.withinCeiling(config, above);

  toolEffects: PlanContext["toolEffects"] = (agent) => this.shared.toolHost.specs(agent, this);

  get lineage(): LineageLimits {
    return this.shared.lineage;
  }

  get workspaces(): Workspaces {
    return this.shared.workspaces;
  }

  get redact(): Redact {
    return this.shared.redact;
  }

  composed(threadId: ThreadId): boolean {
    // Not under way here: it is parked or waits for its permit, so it was composed long ago.
    return this.runs.get(threadId)?.composed ?? true;
  }

  drainedSeq(threadId: ThreadId): number {
    return this.runs.get(threadId)?.drainedSeq ?? 0;
  }

  parksWaits(provider: string): boolean {
    return parksWaits(this.shared, provider);
  }

  loop(provider: string): "ours" | "theirs" {
    return this.shared.adapter(provider)?.loop ?? "ours";
  }

  contextWindow(agent: AgentRecord): number {
    return agent.config.contextWindow ?? ASSUMED_CONTEXT_WINDOW;
  }

  windowOf(provider: string, model: string | null): number {
    return windowOf(this.shared.adapter(provider), model);
  }

  permitsFree(): number {
    return this.permits.free;
  }

  isStarting(threadId: ThreadId): boolean {
    return this.starting.has(threadId);
  }

  onlyPinnedInTheWay(): boolean {
    const { residency } = this;
    if (residency.room > 0 || residency.unloading > 0) return false;
    return residency.victims(1).length === 0 && residency.victims(1, true).length > 0;
  }

  loaded(threadId: ThreadId): boolean {
    return this.sessions.has(threadId);
  }

  modelHint(provider: string, model: string | null): string | null {
    const models = this.shared.adapter(provider)?.models() ?? null;
    return model === null ? null : (models?.[model]?.modeHint ?? null);
  }

  position(threadId: ThreadId): number {
    return this.lane.position(threadId) ?? 0;
  }

  resolveConfig(request: ConfigRequest): AgentConfig {
    return this.shared.resolveConfig(request, this.profile);
  }

  mintTokenDigest(): string {
    return sha256(this.shared.ids.mint("tok"));
  }

  /** What it was to be loaded for is over; who asks for more has a place in the queue. */
  #callOff(threadId: ThreadId): void {
    const why = `${threadId} has nothing to be loaded for any more.`;
    this.loading.get(threadId)?.off.abort(new InterruptedError("RUN_INTERRUPTED", why));
  }

  partialText = (threadId: ThreadId): string => this.sessions.get(threadId)?.partialText ?? "";

  /**
   * Commits a plan and applies what it asks of memory; `absorb` runs first, in the same synchronous block, so that what a
   * later commit asks finds memory as this one has left it. Neither happens when the tree was given up meanwhile: what was
   * committed is the next owner's to act on.
   * @throws what the plan throws; `FENCED` when the tree has another owner, after which this one is lost.
   */
  transact<T>(plan: (tx: Transaction) => T, absorb?: (value: T) => void): Promise<T> {
    return untilMended(() => this.commit(plan, absorb), this);
  }

  /** As `transact`, for a plan that mends rows itself. */
  async commit<T>(plan: (tx: Transaction) => T, absorb?: (value: T) => void): Promise<T> {
    this.requireOwned();
    try {
      const { value, effects, change } = await this.shared.store.commit(this.lease, (store) => {
        const tx = new Transaction(store, this);
        const result = plan(tx);
        return { value: result, effects: tx.effects, change: memoryChange(tx) };
      });
      if (this.state === "owned") {
        absorb?.(value);
        this.apply(effects, change);
      }
      return value;
    } catch (error) {
      if (CoppiceError.is(error) && error.code === "FENCED") this.lose("its lease was taken over");
      if (error instanceof TransientError) this.reactions.doubtful(this);
      throw error;
    }
  }

  read<T>(plan: (view: StoreView) => T): Promise<T> {
    const attempt = (): Promise<T> => this.shared.store.read(plan);
    // Who does not own it mends nothing.
    return this.state === "owned" ? untilMended(attempt, this) : attempt();
  }

  /** A plan that changes nothing. */
  look<T>(plan: (look: Look) => T): Promise<T> {
    return this.read((view) => plan(new Look(view, this)));
  }

  requireOwned(): void {
    if (this.state === "owned") return;
    if (this.state === "closing")
      throw new InterruptedError("RUNTIME_CLOSED", "the tree was given back; open it again.");
    throw new RejectedError(
      "FENCED",
      `this process has lost the tree ${this.treeId}; open it again before acting on it.`,
      {
        treeId: this.treeId,
      },
    );
  }

  /** This process does not own the tree any more: abort everything, commit nothing. */
  lose(why: string): void {
    if (this.state === "lost") return;
    this.state = "lost";
    const reason = new RejectedError("FENCED", `tree ${this.treeId}: ${why}.`, { treeId: this.treeId });
    this.jobs.callOff(reason);
    this.shared.logger.warn({ treeId: this.treeId, why }, "tree lost");
    this.abandon(reason);
    this.#onLost(why);
  }

  track(what: Promise<unknown>): void {
    const mine = what.then(IGNORE, IGNORE).finally(() => this.#underWay.delete(mine));
    this.#underWay.add(mine);
  }

  /** Resolves when nothing is under way any more. */
  async over(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  /** Drops all that is in memory; the store has the rest. */
  abandon(reason: Error): void {
    this.deadline?.timer.cancel();
    this.threadWatch?.cancel();
    this.rateTimer?.cancel();
    this.doubt?.cancel();
    this.hostGrace?.cancel();
    this.lane.cancelAll();
    for (const { off } of this.loading.values()) off.abort(reason);
    for (const end of this.groups) end();
    for (const [threadId, session] of this.sessions) {
      session.generation += 1;
      session.abort?.abort(reason);
      session.end();
      this.runs.get(threadId)?.grant?.[Symbol.dispose]();
      this.residency.release(threadId);
      this.track(closeSession(this, session));
    }
    this.sessions.clear();
    this.runs.clear();
    this.watchers.fail(reason);
    this.events.close();
  }

  apply(effects: Effects, change: MemoryChange): void {
    if (change.bounds !== null) ({ limits: this.limits, exhausted: this.exhausted } = change.bounds);
    for (const [threadId, mailbox] of change.mailboxes) {
      if (this.sessions.has(threadId)) this.mailboxes.set(threadId, mailbox);
    }
    for (const threadId of effects.agents) {
      const loading = this.loading.get(threadId);
      if (loading !== undefined) loading.stale = true;
    }
    for (const { threadId, items } of effects.items) this.sessions.get(threadId)?.append(items);
    this.events.publish(effects.events);
    for (const { threadId, runId, why } of effects.stop) this.reactions.stop(this, threadId, runId, why);
    for (const threadId of change.unqueued) {
      // Where who is not loaded is not found, the load goes on, and has its time.
      if (!this.profile.interruptQueuesTriggers) this.#callOff(threadId);
      if (this.lane.isWaiting(threadId, "new")) this.lane.cancel(threadId);
    }
    // Before the permits of what has settled are given back: a return goes first (EXE-3).
    for (const candidate of change.resume) this.reactions.resume(this, candidate);
    for (const { threadId, runId } of effects.settled) {
      this.#callOff(threadId);
      this.reactions.settled(this, threadId, runId);
    }
    for (const threadId of effects.closed) {
      this.#callOff(threadId);
      this.reactions.closed(this, threadId);
    }
    for (const candidate of change.wake) this.reactions.wake(this, candidate);
    if (effects.deadlines) this.reactions.deadlines(this);
    if (effects.threadWaits) this.reactions.threadWaits(this);
    if (effects.budgetRaised) this.shared.releases.tell();
    this.residency.shrink();
    const ended = [...effects.answered, ...effects.settled.map(({ threadId }) => threadId)];
    this.watchers.changed(
      new Set<string>([...effects.worksEnded.keys(), ...effects.mail, ...ended.map(waitsOf)]),
    );
  }
}

const IGNORE = (): void => undefined;
