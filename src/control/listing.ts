/** What can be asked about a tree without changing it: agents, works, who owes what (LST-1, WRK-9, MBX-13, RES-1). */
import { type AgentPath, ROOT_PATH } from "../protocol/agent-path.ts";
import type { AgentRecord, AgentStatus, LastOutcome, TreeRecord } from "../protocol/agent.ts";
import type { ThreadId, TreeId, WorkId } from "../protocol/ids.ts";
import type { RuntimeRequestRecord } from "../protocol/wait.ts";
import type { WorkRecord } from "../protocol/work.ts";
import type { StoreView } from "../store/port.ts";
import { isHeld, statusOf } from "./status.ts";
import { agentsUnder, wholePage } from "./family.ts";

/** An agent as lists and snapshots show it. */
export interface AgentSummary {
  readonly path: AgentPath;
  readonly threadId: ThreadId;
  readonly status: AgentStatus;
  readonly resident: boolean;
  readonly model: string | null;
  readonly provider: string;
  readonly role: string | null;
  readonly lastOutcome: LastOutcome | null;
  readonly openWorks: readonly WorkId[];
  readonly unread: number;
  readonly oldestUnreadMs: number | null;
  readonly tokens: number;
  readonly lastActiveAt: number;
}

/** What only the owner's memory knows; without an owner nothing is resident and positions are unknown. */
export interface Live {
  readonly loaded: (threadId: ThreadId) => boolean;
  readonly position: (threadId: ThreadId) => number;
}

export const NOT_LIVE: Live = { loaded: () => false, position: () => 0 };

export function summarise(view: StoreView, agent: AgentRecord, live: Live): AgentSummary {
  const mailbox = view.mailbox(agent.threadId);
  return {
    path: agent.path,
    threadId: agent.threadId,
    status: statusOf(view, agent, live),
    resident: live.loaded(agent.threadId),
    model: agent.config.model,
    provider: agent.config.provider,
    role: agent.config.role,
    lastOutcome: agent.lastOutcome,
    openWorks: view.openWorksOf(agent.threadId).map((work) => work.id),
    unread: mailbox.unread,
    oldestUnreadMs: mailbox.oldestUnreadAt === null ? null : view.now() - mailbox.oldestUnreadAt,
    tokens: agent.usage.inputTokens + agent.usage.outputTokens,
    lastActiveAt: agent.lastActiveAt,
  };
}

/** Which agents a list shows: below a path, closed ones too, paged. */
export interface ListRequest {
  readonly under?: AgentPath;
  readonly closed?: boolean;
  readonly after?: string | null;
  readonly limit?: number;
}

export function pageOfAgents(view: StoreView, tree: TreeId, request: ListRequest) {
  const { under = ROOT_PATH, limit = 100, after = null, closed = false } = request;
  return view.agents(tree, under, { limit, after, closed });
}

/** @throws as `wholePage`. */
export function listAgents(view: StoreView, tree: TreeId, request: ListRequest, live: Live) {
  const page = wholePage(pageOfAgents(view, tree, request), (path) => view.agentAt(tree, path as AgentPath));
  return { agents: page.rows.map((agent) => summarise(view, agent, live)), next: page.next };
}

/** A tree at one moment. What happens after it are the events behind its cursor (OBS-1). */
export interface TreeSnapshot {
  /** The last event that is in it. */
  readonly cursor: number;
  readonly tree: TreeRecord;
  /** Closed ones too. */
  readonly agents: readonly AgentSummary[];
  readonly openWorks: readonly WorkRecord[];
}

/** Everything in one read, so that no event falls between two parts of it. */
export function snapshotOf(view: StoreView, treeId: TreeId, live: Live): TreeSnapshot {
  const agents = [...agentsUnder(view, treeId, ROOT_PATH, true)];
  return {
    cursor: view.lastEvent(treeId),
    tree: view.tree(treeId)!,
    agents: agents.map((agent) => summarise(view, agent, live)),
    openWorks: agents.flatMap((agent) => view.openWorksOf(agent.threadId)),
  };
}

/** An open work, with who has it. */
export interface OwedWork {
  readonly work: WorkRecord;
  /** Who has it, and what that agent is doing. */
  readonly executor: AgentPath;
  readonly status: AgentStatus;
}

/** Works that others owe to an agent. */
export function owed(view: StoreView, agent: AgentRecord, live: Live): OwedWork[] {
  return view.openWorksAskedBy(agent.threadId).map((work) => describe(view, work, live));
}

/** Works that an agent owes to others. */
export function owes(view: StoreView, agent: AgentRecord, live: Live): OwedWork[] {
  return view.openWorksOf(agent.threadId).map((work) => describe(view, work, live));
}

function describe(view: StoreView, work: WorkRecord, live: Live): OwedWork {
  const executor = view.agent(work.executor)!;
  return { work, executor: work.executorPath, status: statusOf(view, executor, live) };
}

/** A question or an approval, and the agent that waits for its answer. */
export interface AskedRequest extends RuntimeRequestRecord {
  readonly path: AgentPath;
}

/** What waits for an answer, of all agents or of one (WAI-2). */
export function openRequests(view: StoreView, tree: TreeId, of?: ThreadId): readonly AskedRequest[] {
  return openRequestRows(view, tree)
    .filter(({ threadId }) => of === undefined || threadId === of)
    .map(({ read }) => read());
}

/** The same, each to be read by itself: one that cannot be is in no other's way. */
export function openRequestRows(view: StoreView, tree: TreeId) {
  return view.openRows(tree).flatMap((row) => {
    if (row.table !== "requests") return [];
    const { id, threadId } = row;
    const read = (): AskedRequest => ({ ...view.request(id)!, path: view.agent(threadId)!.path });
    return [{ threadId, read }];
  });
}

/** Registered, resident and running are three numbers (RES-1). */
export interface Counts {
  readonly registered: number;
  readonly resident: number;
  readonly running: number;
  readonly queued: number;
}

/** Runs accepted, not settled, not in a wait. */
export function runningCount(view: StoreView, tree: TreeId): number {
  return view
    .openRuns(tree)
    .filter((run) => run.status === "running" && run.threadId !== tree && !isHeld(run)).length;
}
