/** Limits that are checked in the commit that would break them (BUD-1, BUD-3, EXE-2). */
import { depthOf, parentPath, type AgentPath } from "../protocol/agent-path.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { Budgets } from "../protocol/limits.ts";
import { admitRate } from "../policy/rates.ts";
import type { Transaction } from "./transaction.ts";

/** @throws RejectedError `LIMIT_REACHED`, `AGENT_LIMIT_REACHED` or `BUDGET_EXHAUSTED`, with limit, value, use and what frees it. */
export function requireSpawnLimits(tx: Transaction, parent: AgentRecord, path: AgentPath): void {
  requireBudgetLeft(tx, path);
  if (tx.profile.depthLimits) {
    refuseOver("depth", tx.limits.depth, depthOf(path) - 1, "Spawn from an agent nearer to the root.");
    refuseOver("direct children", tx.limits.directChildren, parent.children, "Follow up with one of them.");
  }
  const tree = tx.tree();
  if (tx.limits.agentsPerTree !== null && tree.agents >= tx.limits.agentsPerTree) {
    throw new RejectedError(
      "AGENT_LIMIT_REACHED",
      `the tree has ${tree.agents} agents and at most ${tx.limits.agentsPerTree} are allowed; follow up with one of them.`,
      { limit: "agentsPerTree", value: tx.limits.agentsPerTree, use: tree.agents },
    );
  }
  refuseRate(tx, "spawnsPerMinute", tree.recentSpawns, tx.limits.spawnsPerMinute);
  for (const scope of scopesAbove(tx, parent)) requireScope(tx, scope.agent, scope.budgets, path);
}

/** Subtree budgets on agents, depth and spawn rate, carried by the parent and every agent above it. */
function requireScope(tx: Transaction, agent: AgentRecord, budgets: Budgets, path: AgentPath): void {
  if (typeof budgets.depth === "number") {
    refuseOver(
      `depth below ${agent.path}`,
      budgets.depth,
      depthOf(path) - agent.depth - 1,
      "Spawn nearer to it.",
    );
  }
  if (typeof budgets.agents === "number") {
    let use = 0;
    for (let after: string | null = null; ;) {
      const page = tx.store.agents(tx.treeId, agent.path, { limit: 500, after, closed: true });
      use += page.rows.length;
      after = page.next;
      if (after === null) break;
    }
    refuseOver(`agents below ${agent.path}`, budgets.agents, use - 1, "Follow up with one of them.");
  }
}

function refuseOver(limit: string, value: number | null, use: number, frees: string): void {
  if (value === null || use < value) return;
  throw new RejectedError(
    "LIMIT_REACHED",
    `the limit on ${limit} is ${value} and ${use} are in use. ${frees}`,
    {
      limit,
      value,
      use,
      frees,
    },
  );
}

export function refuseRate(
  tx: Transaction,
  limit: string,
  times: readonly number[],
  value: number | null,
): void {
  const decision = admitRate(times, tx.now, value);
  if (decision.kind === "admitted") return;
  throw new RejectedError(
    "LIMIT_REACHED",
    `the limit ${limit} is ${decision.limit} and ${decision.use} happened within the last minute; try again later.`,
    { limit, value: decision.limit, use: decision.use, retryAfterMs: decision.retryAfterMs },
  );
}

export interface Scope {
  readonly agent: AgentRecord;
  readonly budgets: Budgets;
}

/** Agents at or above this one that carry budgets of their own, nearest first. */
export function scopesAbove(tx: Transaction, from: AgentRecord): Scope[] {
  const scopes: Scope[] = [];
  for (let agent: AgentRecord | undefined = from; agent !== undefined;) {
    if (Object.keys(agent.config.budgets).length > 0) scopes.push({ agent, budgets: agent.config.budgets });
    agent = agent.parent === null ? undefined : tx.store.agent(agent.parent);
  }
  return scopes;
}

/** New requests are refused in a scope whose budget is spent, until it is raised (BUD-2). */
export function requireBudgetLeft(tx: Transaction, path: AgentPath): void {
  const spent = spentScope(tx, path);
  if (spent === null) return;
  throw new RejectedError(
    "BUDGET_EXHAUSTED",
    `the ${spent.budget} budget of ${spent.path} is spent; raise it to go on.`,
    {
      path: spent.path,
      budget: spent.budget,
    },
  );
}

export function spentScope(tx: Transaction, path: AgentPath): { path: AgentPath; budget: string } | null {
  const exhausted = tx.tree().exhausted;
  if (exhausted.length === 0) return null;
  for (let at: AgentPath | null = path; at !== null; at = parentPath(at)) {
    const found = exhausted.find((scope) => scope.path === at);
    if (found !== undefined) return found;
  }
  return null;
}

/**
 * A new request to an agent that is to be loaded must find room for it, at least in the queue (EXE-2, RES-3).
 * @throws RejectedError `QUEUE_FULL` when it would have to wait and too many wait already; `AGENT_LIMIT_REACHED` when only
 * agents that are kept resident by their mail could make room.
 */
export function requireQueueRoom(tx: Transaction, executor: ThreadId | null): void {
  if ((executor === null || !tx.context.loaded(executor)) && tx.context.onlyPinnedInTheWay()) {
    throw new RejectedError(
      "AGENT_LIMIT_REACHED",
      "every agent in memory that could make room is kept there by its unread mail; give one of them a task that reads it, then ask again.",
      { limit: "residents", pinned: true },
    );
  }
  const bound = tx.limits.queue;
  if (bound === null) return;
  // Of the store, not of memory: commits of one tick see each other there alone.
  const queued = tx.store.triggered(tx.treeId).filter((id) => {
    const agent = tx.store.agent(id);
    return (
      agent !== undefined && agent.parent !== null && agent.currentRun === null && !tx.context.isStarting(id)
    );
  }).length;
  if (queued < bound + tx.context.permitsFree()) return;
  throw new RejectedError(
    "QUEUE_FULL",
    `${queued} agents wait for a permit and at most ${bound} may; wait for results first.`,
    {
      limit: "queue",
      value: bound,
      use: queued,
    },
  );
}
