/** A thread as its readers see it (lineage C1.1, C1.3, C14.5): one look at the store, nothing stored twice. */
import type { AgentRecord, ThreadState } from "../protocol/agent.ts";
import type { AgentPath } from "../protocol/agent-path.ts";
import { RejectedError } from "../protocol/errors.ts";
import {
  isThreadId,
  type ProviderThreadId,
  type RunId,
  type ThreadId,
  type TreeId,
} from "../protocol/ids.ts";
import type { OrdinalRange } from "../protocol/ordinals.ts";
import { isSettled, type RunRecord } from "../protocol/run.ts";
import type { ExecutionRef, RunOutcome, ThreadFacts } from "../protocol/thread.ts";
import type { ProvenDead } from "../protocol/process-identity.ts";
import type { OriginOf } from "../lineage/chain.ts";
import { liveOwner } from "../control/live-owner.ts";
import { deliveredInto } from "../control/start-facts.ts";
import { gapOf, handoffsIn } from "../lineage/coverage.ts";
import type { Page, PageRequest, StoreView } from "../store/port.ts";

/** Computed, never stored: `unsettled` is a run that nobody drives (C14.5). */
export type ThreadActivity =
  | { readonly kind: "idle" }
  | { readonly kind: "running" | "unsettled"; readonly executionId: RunId };

/** A thread as lists show it. */
export interface ThreadSummary extends Pick<ThreadFacts, "agentId" | "title" | "lineage" | "continuity"> {
  readonly id: ThreadId;
  readonly treeId: TreeId;
  readonly path: AgentPath;
  readonly workspace: string | null;
  readonly status: ThreadState;
  readonly revision: number;
  /** The provider it is bound to; null before its first run was accepted. */
  readonly provider: string | null;
  readonly model: string | null;
  readonly executions: number;
  readonly activity: ThreadActivity;
  readonly createdBy: AgentRecord["createdBy"];
  readonly createdAt: number;
  readonly updatedAt: number;
  /** From before there were threads: no lineage, no snapshots, nothing invented (C17.6). */
  readonly legacy: boolean;
}

/** What a provider thread knows, and how (S3-16). */
export interface ProviderCoverage {
  readonly id: ProviderThreadId;
  readonly provider: string;
  readonly model: string | null;
  readonly active: boolean;
  readonly continuity: "ok" | "divergent";
  readonly native: readonly OrdinalRange[];
  /** Runs that handoffs have told it, each with the handoff's id. */
  readonly told: readonly { readonly handoffId: string; readonly runs: readonly OrdinalRange[] }[];
  /** Retained runs that it does not know. */
  readonly gap: readonly OrdinalRange[];
}

/** A thread with where it comes from, what it is on, and who knows what. */
export interface ThreadDocument extends ThreadSummary {
  readonly forkedFrom: ThreadFacts["forkedFrom"];
  readonly forkPolicy: ThreadFacts["forkPolicy"];
  readonly activeProviderThreadId: ProviderThreadId | null;
  readonly selection: ThreadFacts["selection"];
  readonly currentContext: ThreadFacts["currentContext"];
  readonly rolledBack: readonly OrdinalRange[];
  readonly messages: number;
  readonly compactions: number;
  readonly coverage: readonly ProviderCoverage[];
}

/** @throws RejectedError `THREAD_NOT_FOUND`, before anything is made of what a user wrote (C1.1). */
export function requireThread(view: StoreView, id: string): AgentRecord {
  const agent = isThreadId(id) ? view.agent(id) : undefined;
  if (agent !== undefined) return agent;
  const shown = id.length > 80 ? `${id.slice(0, 80)}…` : id;
  throw new RejectedError("THREAD_NOT_FOUND", `no thread \`${shown}\` is in this store; list the threads.`, {
    id: shown,
  });
}

const LEGACY: Pick<ThreadFacts, "title" | "continuity"> = { title: null, continuity: "resume-native" };

export function summaryOf(view: StoreView, agent: AgentRecord, provenDead: ProvenDead): ThreadSummary {
  const { thread, threadId } = agent;
  const active = thread?.activeProviderThreadId ?? null;
  const bound = active === null ? undefined : view.providerThread(active);
  return {
    id: threadId,
    treeId: agent.treeId,
    path: agent.path,
    agentId: thread?.agentId ?? agent.path,
    ...(thread === null ? LEGACY : { title: thread.title, continuity: thread.continuity }),
    lineage: thread?.lineage ?? {
      parentThreadId: null,
      relationshipToParent: null,
      rootThreadId: threadId,
    },
    workspace: agent.config.workspace,
    status: agent.state,
    revision: agent.revision,
    provider: bound?.provider ?? (thread === null ? agent.config.provider : null),
    model: bound === undefined ? null : agent.config.model,
    executions: agent.runs,
    activity: activityOf(view, agent, provenDead),
    createdBy: agent.createdBy,
    createdAt: agent.createdAt,
    updatedAt: agent.lastActiveAt,
    legacy: thread === null,
  };
}

export function activityOf(view: StoreView, agent: AgentRecord, provenDead: ProvenDead): ThreadActivity {
  if (agent.currentRun === null) return { kind: "idle" };
  return {
    kind: liveOwner(view, agent.treeId, provenDead) === null ? "unsettled" : "running",
    executionId: agent.currentRun,
  };
}

export function documentOf(view: StoreView, agent: AgentRecord, provenDead: ProvenDead): ThreadDocument {
  const { thread } = agent;
  return {
    ...summaryOf(view, agent, provenDead),
    forkedFrom: thread?.forkedFrom ?? null,
    forkPolicy: thread?.forkPolicy ?? null,
    activeProviderThreadId: thread?.activeProviderThreadId ?? null,
    selection: thread?.selection ?? null,
    currentContext: thread?.currentContext ?? null,
    rolledBack: thread?.rolledBack ?? [],
    messages: thread?.messages ?? 0,
    compactions: thread?.compactions ?? 0,
    coverage: coverageOf(view, agent),
  };
}

export function coverageOf(view: StoreView, agent: AgentRecord): readonly ProviderCoverage[] {
  const { thread, threadId } = agent;
  if (thread === null) return [];
  // As the next run would see it.
  const runs = { ordinal: agent.runs + 1, rolledBack: thread.rolledBack, voided: thread.voided };
  const own = view.providerThreadsOf(threadId).filter(({ ownerNodeId }) => ownerNodeId === null);
  return own.map((one) => {
    const handoffs = deliveredInto(view, one);
    return {
      id: one.id,
      provider: one.provider,
      model: one.model,
      active: one.id === thread.activeProviderThreadId,
      continuity: one.continuity,
      native: one.nativeRunOrdinals,
      told: handoffsIn(one, handoffs)
        .filter(({ sourceThreadId }) => sourceThreadId === threadId)
        .map(({ id, coveredRuns }) => ({ handoffId: id, runs: coveredRuns })),
      gap: gapOf(runs, one, handoffs),
    };
  });
}

/** A run seen as the record of what it was allowed and on what it opened. Null for one from before threads. */
export function executionOf(run: RunRecord): ExecutionRef | null {
  const { binding } = run;
  if (binding === null) return null;
  const outcome = run.rolledBack === null ? run.status : run.rolledBack.from;
  return {
    executionId: run.id,
    sequence: run.ordinal,
    contextRevision: binding.contextRevision,
    contextDigest: binding.contextDigest,
    reservedAt: run.reservedAt,
    settled:
      !isSettled(run) || run.completedAt === null
        ? null
        : {
            outcome: outcome as RunOutcome,
            finishedAt: run.completedAt,
            nextContextRevision: run.nextContextRevision,
          },
    history: run.history,
  };
}

export function executionsOf(view: StoreView, id: ThreadId, page: PageRequest): Page<ExecutionRef> {
  const { rows, next } = view.runsOf(id, page);
  return { rows: rows.flatMap((run) => executionOf(run) ?? []), next };
}

/** Where each thread was forked from: null for one that was not, undefined for one that is not there. */
export function originsIn(view: StoreView): OriginOf {
  return (id) => {
    const agent = view.agent(id);
    return agent === undefined ? undefined : (agent.thread?.forkedFrom?.point ?? null);
  };
}
