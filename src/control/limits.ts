/** Limits that are checked in the commit that would break them (BUD-1, BUD-3, EXE-2). */
import { isWithin, type AgentPath } from "../protocol/agent-path.ts";
import type { AgentRecord, TreeRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { Budgets } from "../protocol/limits.ts";
import { budgetExhausted } from "../policy/budget.ts";
import { admitRate } from "../policy/rates.ts";
import { budgetOf, spentByPayer } from "./budget-scopes.ts";
import type { Transaction } from "./transaction.ts";
import { agentsUnder, lineOf } from "./family.ts";
import { runningScopesAt } from "./memory-change.ts";
import { spentScope } from "./spent-scope.ts";

/** @throws RejectedError `LIMIT_REACHED`, `AGENT_LIMIT_REACHED` or `BUDGET_EXHAUSTED`, with limit, value, use and what frees it. */
export function requireSpawnLimits(tx: Transaction, parent: AgentRecord, path: AgentPath): void {
  requireBudgetLeft(tx, path);
  if (tx.profile.depthLimits) {
    refuseOver("depth", tx.limits.depth, parent.depth, "Spawn from an agent nearer to the root.");
    refuseChildren(tx, "directChildren", tx.limits.directChildren, parent);
  }
  const tree = tx.tree();
  const { agentsPerTree } = tx.limits;
  requireAgentsLeft(tree, agentsPerTree, 1);
  refuseRate(tx, "spawnsPerMinute", tree.recentSpawns, tx.limits.spawnsPerMinute);
  // A spawn starts a run: over the runs a minute it is refused like a follow-up (BUD-5).
  refuseRate(tx, "runsPerMinute", tree.recentRuns, tx.limits.runsPerMinute);
  for (const above of lineOf(tx.store, parent)) requireScope(tx, above, above.config.budgets, parent);
}

/**
 * Threads that an agent makes count in the agents, the spawn rate and the budgets of its tree (lineage C1.2).
 * @throws RejectedError as `requireSpawnLimits`.
 */
export function requireThreadLimits(tx: Transaction, maker: AgentRecord, count: number): void {
  requireBudgetLeft(tx, maker.path);
  const tree = tx.tree();
  requireAgentsLeft(tree, tx.limits.agentsPerTree, count);
  refuseRate(tx, "spawnsPerMinute", tree.recentSpawns, tx.limits.spawnsPerMinute, count);
  for (const above of lineOf(tx.store, maker)) requireBelow(tx, above, above.config.budgets, count);
}

function requireAgentsLeft(tree: TreeRecord, limit: number | null, count: number): void {
  const use = tree.agents + (tree.billed ?? 0);
  if (limit === null || use + count <= limit) return;
  const frees = "Follow up with one that is open.";
  throw new RejectedError(
    "AGENT_LIMIT_REACHED",
    `the tree has ${use} agents${tree.billed ? ", with the threads that they made," : ""} and at most ${limit} are allowed. ${frees}`,
    { limit: "agentsPerTree", value: limit, use, frees },
  );
}

/** Subtree budgets on depth, children, agents and spawn rate, carried by the parent and every agent above it. */
function requireScope(tx: Transaction, top: AgentRecord, budgets: Budgets, parent: AgentRecord): void {
  const { depth = null, directChildren = null } = budgets;
  refuseOver(`depth below ${top.path}`, depth, parent.depth - top.depth, "Spawn nearer to it.");
  refuseChildren(tx, `directChildren below ${top.path}`, directChildren, parent);
  requireBelow(tx, top, budgets, 1);
}

/** Those on agents and spawn rate: `count` more are wanted. */
function requireBelow(tx: Transaction, top: AgentRecord, budgets: Budgets, count: number): void {
  const { agents = null, spawnsPerMinute = null } = budgets;
  if (agents === null && spawnsPerMinute === null) return;
  const made = spawnedBelow(tx, top);
  refuseOver(`agents below ${top.path}`, agents, made.length + count - 1, "Follow up with one that is open.");
  refuseRate(tx, `spawnsPerMinute below ${top.path}`, made, spawnsPerMinute, count);
}

/** When every agent below this one came to be, closed ones too, and every thread that one at or below it has made. */
function spawnedBelow(tx: Transaction, top: AgentRecord): number[] {
  const agents = [...agentsUnder(tx.store, tx.treeId, top.path, true)].filter(
    ({ threadId }) => threadId !== top.threadId,
  );
  const threads = (tx.tree().billed ?? 0) === 0 ? [] : tx.store.billed(tx.treeId);
  const own = threads.filter(({ billedTo }) => isWithin(billedTo!.path, top.path));
  return [...agents, ...own].map(({ createdAt }) => createdAt);
}

/** Those that are closed do not count: the number of agents bounds them. */
function refuseChildren(tx: Transaction, limit: string, value: number | null, parent: AgentRecord): void {
  if (value === null) return;
  refuseOver(limit, value, tx.store.openChildren(parent.threadId), "Follow up with one of them.");
}

function refuseOver(limit: string, value: number | null, use: number, frees: string): void {
  if (value === null || use < value) return;
  throw new RejectedError("LIMIT_REACHED", `the limit ${limit} is ${value} and ${use} are in use. ${frees}`, {
    limit,
    value,
    use,
    frees,
  });
}

export function refuseRate(
  tx: Transaction,
  limit: string,
  times: readonly number[],
  value: number | null,
  count = 1,
): void {
  let decision = admitRate(times, tx.now, value);
  for (let more = count - 1; more > 0 && decision.kind === "admitted"; more -= 1)
    decision = admitRate(decision.times, tx.now, value);
  if (decision.kind === "admitted") return;
  const { retryAfterMs } = decision;
  const frees =
    retryAfterMs === null ? "Nothing frees it but a higher limit." : `Try again in ${retryAfterMs} ms.`;
  throw new RejectedError(
    "LIMIT_REACHED",
    `the limit ${limit} is ${decision.limit} and ${decision.use} happened within the last minute. ${frees}`,
    { limit, value: decision.limit, use: decision.use, frees, retryAfterMs },
  );
}

/** New requests are refused in a scope whose budget is spent, until it is raised (BUD-2). */
export function requireBudgetLeft(tx: Transaction, path: AgentPath): void {
  const payer = spentByPayer(tx.store, tx.tree());
  if (payer !== null) throw budgetExhausted(payer);
  const spent = spentScope(tx.tree().exhausted, path);
  if (spent === null) return;
  const top = tx.store.agentAt(tx.treeId, spent.path)!;
  const { limit, spent: use } = budgetOf(tx.store, tx.tree(), top, spent.budget);
  throw budgetExhausted({ ...spent, limit, spent: use, reserved: 0 });
}

/**
 * What no permit will ever be given to is refused, not queued (BUD-1).
 * @throws RejectedError `LIMIT_REACHED` where the tree's limit of running children is zero, or a budget on them at the
 * parent or above it.
 */
export function requireRunnable(tx: Transaction, parent: ThreadId): void {
  refuseOver("running", tx.limits.running, 0, "Nothing frees it but a tree with a higher limit.");
  for (const { path, limit } of runningScopesAt(tx, parent))
    refuseOver(`running below ${path}`, limit, 0, `Nothing below ${path} ever runs; use an agent elsewhere.`);
}

/**
 * A new request to an agent that is to be loaded must find room for it, at least in the queue (EXE-2, RES-3).
 * @throws RejectedError `QUEUE_FULL` when it would have to wait and too many wait already; `AGENT_LIMIT_REACHED` when only
 * agents that are kept resident by their mail could make room.
 */
export function requireQueueRoom(tx: Transaction, executor: ThreadId | null): void {
  if ((executor === null || !tx.context.loaded(executor)) && tx.context.onlyPinnedInTheWay()) {
    const frees = "Give one of them a task that reads it, then ask again.";
    throw new RejectedError(
      "AGENT_LIMIT_REACHED",
      `every agent in memory that could make room is kept there by its unread mail. ${frees}`,
      { limit: "residents", pinned: true, frees },
    );
  }
  const bound = tx.limits.queue;
  if (bound === null) return;
  const room = bound + tx.context.permitsFree();
  // No more can wait than there are: where that fits already nobody is counted, however long the queue is.
  if (tx.tree().agents < room) return;
  // Of the store, not of memory: commits of one tick see each other there alone.
  const queued = tx.store.triggered(tx.treeId).filter((id) => {
    const agent = tx.store.agent(id);
    return (
      agent !== undefined && agent.parent !== null && agent.currentRun === null && !tx.context.isStarting(id)
    );
  }).length;
  if (queued < room) return;
  const frees = "Wait for results first.";
  throw new RejectedError(
    "QUEUE_FULL",
    `${queued} agents wait for a permit and at most ${bound} may. ${frees}`,
    { limit: "queue", value: bound, use: queued, frees },
  );
}
