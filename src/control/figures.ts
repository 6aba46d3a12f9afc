/** What a result says it has cost: its own runs, and those with all works under it (BUD-4). */
import type { JsonObject } from "../protocol/json.ts";
import { totalTokens, type UsageReport } from "../protocol/usage.ts";

export function figures({ own, subtree }: UsageReport): JsonObject {
  return {
    tokens: totalTokens(own),
    subtree_tokens: totalTokens(subtree),
    cost: subtree.cost,
    complete: subtree.complete,
  };
}
