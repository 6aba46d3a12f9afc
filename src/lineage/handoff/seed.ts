/** The seed of a fork (C5.15, C5.22, C18.7, C18.8): the one builder under a cap in characters and a window of messages. */
import { LINEAGE_BOUNDS } from "../../protocol/lineage-limits.ts";
import type { ForkPolicy } from "../../protocol/thread.ts";
import { type BudgetRequest, budgetFor, clamp } from "./budget.ts";
import { buildHandoff } from "./build.ts";
import type { HandoffBuild, HandoffInput } from "./input.ts";

export type SeedInput = Omit<HandoffInput, "purpose" | "extent" | "mode" | "budget" | "window"> & {
  readonly policy: ForkPolicy["replay"];
  readonly room: Omit<BudgetRequest, "limits" | "configured">;
};

export type SeedBuild =
  | Exclude<HandoffBuild, { kind: "empty" }>
  | { readonly kind: "failed"; readonly code: "FORK_SEED_EMPTY" };

export function replaySeed({ policy, room, ...given }: SeedInput): SeedBuild {
  const { limits } = given;
  const build = buildHandoff({
    ...given,
    purpose: "fork",
    extent: "full",
    mode: policy.mode,
    budget: budgetFor({ ...room, limits, configured: { unit: "chars", limit: policy.maxSeedChars } }),
    window: {
      candidates: clamp(limits.seedMessages, LINEAGE_BOUNDS.seedMessages),
      most: clamp(policy.recentMessages, LINEAGE_BOUNDS.recentMessages),
      clipChars: limits.messageChars === 0 ? null : clamp(limits.messageChars, LINEAGE_BOUNDS.messageChars),
    },
  });
  return build.kind === "empty" ? { kind: "failed", code: "FORK_SEED_EMPTY" } : build;
}
