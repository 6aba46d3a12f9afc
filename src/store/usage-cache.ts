/**
 * Sums of usage below a path (BUD-4), remembered between asks: budgets are checked at every spawn and step, and a sum over
 * all agents of a tree each time would make a tree's life quadratic. The truth is the aggregate over the agents' rows;
 * an entry follows what is put, or is dropped where it cannot.
 */
import { type AgentPath, isWithin } from "../protocol/agent-path.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import type { TreeId } from "../protocol/ids.ts";
import type { Usage } from "../protocol/usage.ts";

const MAX_PATHS = 1024;

export class UsageCache {
  readonly #trees = new Map<TreeId, Map<AgentPath, Usage>>();

  sum(tree: TreeId, under: AgentPath, aggregate: () => Usage): Usage {
    const paths = this.#trees.get(tree) ?? new Map<AgentPath, Usage>();
    this.#trees.set(tree, paths);
    const known = paths.get(under);
    if (known !== undefined) return known;
    const usage = aggregate();
    if (paths.size >= MAX_PATHS) paths.clear();
    paths.set(under, usage);
    return usage;
  }

  /** An agent was stored; `before` is what stood there, undefined for a new one, null when it is not known. */
  follow(before: AgentRecord | undefined | null, after: AgentRecord): void {
    const paths = this.#trees.get(after.treeId);
    if (paths === undefined || before?.usage === after.usage) return;
    for (const [path, sum] of paths) {
      if (!isWithin(after.path, path)) continue;
      const moved = before === null ? null : shifted(sum, before?.usage, after.usage);
      if (moved === null) paths.delete(path);
      else paths.set(path, moved);
    }
  }

  clear(): void {
    this.#trees.clear();
  }
}

/** Null where a price or a report is missing on any side: then only a new sum can tell. */
function shifted(sum: Usage, before: Usage | undefined, after: Usage): Usage | null {
  const was = before ?? {
    ...after,
    inputTokens: 0,
    cachedInputTokens: 0,
    outputTokens: 0,
    reasoningTokens: 0,
    cost: 0,
  };
  if (sum.cost === null || was.cost === null || after.cost === null) return null;
  if (!sum.complete || !was.complete || !after.complete) return null;
  return {
    inputTokens: sum.inputTokens + after.inputTokens - was.inputTokens,
    cachedInputTokens: sum.cachedInputTokens + after.cachedInputTokens - was.cachedInputTokens,
    outputTokens: sum.outputTokens + after.outputTokens - was.outputTokens,
    reasoningTokens: sum.reasoningTokens + after.reasoningTokens - was.reasoningTokens,
    cost: sum.cost + after.cost - was.cost,
    complete: true,
  };
}
