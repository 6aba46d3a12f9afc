/**
 * Sums of usage below a path (BUD-4), remembered between asks: budgets are checked at every spawn and step, and a sum over
 * all agents of a tree each time would make a tree's life quadratic. The truth is the aggregate over the agents' rows;
 * an entry follows what is put.
 *
 * What has no price and what reported nothing is counted, so that a sum that contains it can still follow. What is remembered
 * is bounded for all trees together: the trees that were asked for longest ago are forgotten (RES-7).
 */
import { type AgentPath, parentPath } from "../protocol/agent-path.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import type { TreeId } from "../protocol/ids.ts";
import type { Usage, UsageSum } from "../protocol/usage.ts";

const MAX_PATHS = 4096;

/** A sum of usages that can be taken apart again. */
export interface UsageTotals {
  inputTokens: number;
  cachedInputTokens: number;
  outputTokens: number;
  reasoningTokens: number;
  /** Of those that have a price. */
  cost: number;
  unpriced: number;
  incomplete: number;
}

export function totalsOf(usages: Iterable<Usage>): UsageTotals {
  const totals: UsageTotals = {
    inputTokens: 0,
    cachedInputTokens: 0,
    outputTokens: 0,
    reasoningTokens: 0,
    cost: 0,
    unpriced: 0,
    incomplete: 0,
  };
  for (const usage of usages) add(totals, usage, 1);
  return totals;
}

export class UsageCache {
  /** The tree that was asked for last stands last. */
  readonly #trees = new Map<TreeId, Map<AgentPath, UsageTotals>>();
  #paths = 0;

  /** How many sums it remembers. */
  get size(): number {
    return this.#paths;
  }

  sum(tree: TreeId, under: AgentPath, aggregate: () => UsageTotals): UsageSum {
    const paths = this.#trees.get(tree) ?? new Map<AgentPath, UsageTotals>();
    let totals = paths.get(under);
    if (totals === undefined) {
      totals = aggregate();
      paths.set(under, totals);
      this.#paths += 1;
    }
    this.#trees.delete(tree);
    this.#trees.set(tree, paths);
    if (this.#paths > MAX_PATHS) this.#forgetOldest();
    return {
      inputTokens: totals.inputTokens,
      cachedInputTokens: totals.cachedInputTokens,
      outputTokens: totals.outputTokens,
      reasoningTokens: totals.reasoningTokens,
      cost: totals.unpriced > 0 ? null : totals.cost,
      pricedCost: totals.cost,
      complete: totals.incomplete === 0,
    };
  }

  /** An agent was stored; `before` is what stood there, undefined for a new one. */
  follow(before: AgentRecord | undefined, after: AgentRecord): void {
    const paths = this.#trees.get(after.treeId);
    if (paths === undefined || before?.usage === after.usage) return;
    for (let path: AgentPath | null = after.path; path !== null; path = parentPath(path)) {
      const totals = paths.get(path);
      if (totals === undefined) continue;
      if (before !== undefined) add(totals, before.usage, -1);
      add(totals, after.usage, 1);
    }
  }

  clear(): void {
    this.#trees.clear();
    this.#paths = 0;
  }

  #forgetOldest(): void {
    for (const [tree, paths] of this.#trees) {
      this.#trees.delete(tree);
      this.#paths -= paths.size;
      return;
    }
  }
}

function add(totals: UsageTotals, usage: Usage, sign: 1 | -1): void {
  totals.inputTokens += sign * usage.inputTokens;
  totals.cachedInputTokens += sign * usage.cachedInputTokens;
  totals.outputTokens += sign * usage.outputTokens;
  totals.reasoningTokens += sign * usage.reasoningTokens;
  if (usage.cost === null) totals.unpriced += sign;
  else totals.cost += sign * usage.cost;
  if (!usage.complete) totals.incomplete += sign;
}
