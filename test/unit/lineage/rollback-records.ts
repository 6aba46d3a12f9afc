/** Facts of a rollback of eight runs, as its tests begin with them. */
import type { RollbackFacts, RollbackRequest } from "../../../src/lineage/rollback-target.ts";
import { capabilities, thread } from "./records.ts";

export const eight = Array.from({ length: 8 }, () => ({}));
export const to = (ordinal: number, native: RollbackRequest["native"] = "allowed"): RollbackRequest => ({
  to: { kind: "ordinal", ordinal },
  provider: null,
  native,
});
export const facts = (more: Partial<RollbackFacts> = {}): RollbackFacts => ({
  reader: thread(eight),
  request: to(5),
  activeRun: null,
  provider: "near",
  activeProviderThreadId: null,
  capabilities: capabilities(),
  loop: "theirs",
  providerThreads: [],
  handoffs: [],
  transfers: [],
  revision: 8,
  ...more,
});

/** A provider that rolls nothing back itself. */
export const unable = capabilities({ threads: { rollback: "none" } });
