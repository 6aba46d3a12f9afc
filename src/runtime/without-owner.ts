/**
 * A plan on a tree that this process does not own: what it may know of a tree that nobody has in memory. What a runtime knows
 * beside it, its providers say, is given.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { TreeId } from "../protocol/ids.ts";
import { ASSUMED_CONTEXT_WINDOW } from "../protocol/limits.ts";
import { DEFAULT_LINEAGE_LIMITS } from "../protocol/lineage-limits.ts";
import { PROFILES } from "../protocol/profile.ts";
import type { PlanContext } from "../control/transaction.ts";
import { sha256 } from "../platform/digest.ts";
import type { Ids } from "../platform/ids.ts";
import { createRedactor } from "../platform/redact.ts";
import type { StoreView } from "../store/port.ts";
import { THREAD_VERBS } from "../threads/inbox-verbs.ts";

export function withoutOwner(
  view: StoreView,
  treeId: TreeId,
  ids: Ids,
  known: Partial<PlanContext> = {},
): PlanContext {
  const record = view.tree(treeId)!;
  const nothing = (): never => {
    throw new RejectedError("NOT_OWNER", "a tree without an owner takes no such command; open it first.", {
      treeId,
    });
  };
  return {
    treeId,
    profile: PROFILES[record.profile],
    limits: record.limits,
    ids,
    composed: () => true,
    parksWaits: () => true,
    loop: () => "ours",
    contextWindow: (agent) => agent.config.contextWindow ?? ASSUMED_CONTEXT_WINDOW,
    windowOf: () => ASSUMED_CONTEXT_WINDOW,
    drainedSeq: () => 0,
    permitsFree: () => 0,
    isStarting: () => false,
    onlyPinnedInTheWay: () => false,
    resolveConfig: nothing,
    verbs: THREAD_VERBS,
    rebind: nothing,
    withinCeiling: nothing,
    // Who opens the tree has the providers, and says so when the run is to start.
    requireProvider: () => undefined,
    toolEffects: () => [],
    loaded: () => false,
    modelHint: () => null,
    position: () => 0,
    lineage: DEFAULT_LINEAGE_LIMITS,
    workspaces: { capture: null, worktrees: null },
    redact: createRedactor([]),
    mintTokenDigest: () => sha256(ids.mint("tok")),
    ...known,
  };
}
