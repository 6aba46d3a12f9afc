/**
 * Which of a thread's provider threads a run could go on with (lineage C4.3). Whether it should is decided elsewhere.
 *
 * - K1 Same instance, the thread's own conversation, neither closed nor archived. Ids decide last, so that the same
 *   records give the same answer everywhere.
 * - K2 A provider thread in which no run was ever accepted knows nothing: it is no candidate, and is used where a new
 *   one is called for. So an attempt that was refused leaves no second one behind.
 */
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import { lastOrdinal } from "./coverage.ts";
import type { StartFacts } from "./start-plan.ts";

type Facts = Pick<StartFacts, "threadId" | "target" | "providerThreads" | "failedResume">;

/** The provider thread to go on with: the one with the latest run, then the latest change. */
export function candidateOf(facts: Facts): ProviderThreadRecord | null {
  return newest(
    facts,
    ({ continuity, nativeRunOrdinals }) => continuity === "ok" && nativeRunOrdinals.length > 0,
  );
}

/** The one that would be the candidate, had a rollback or a fork not made it tell of what is no more. */
export function divergentOf(facts: Facts): ProviderThreadRecord | null {
  return newest(facts, ({ continuity }) => continuity === "divergent");
}

/** An empty one of these very settings, from an attempt that nobody accepted. */
export function unusedOf(facts: Facts): ProviderThreadRecord | null {
  return newest(
    facts,
    (one) =>
      one.continuity === "ok" &&
      one.status !== "error" &&
      one.nativeRunOrdinals.length === 0 &&
      one.handoffIds.length === 0 &&
      one.forkedFrom === null &&
      one.model === facts.target.model &&
      !facts.failedResume.includes(one.id),
  );
}

function newest(
  { threadId, target, providerThreads }: Facts,
  fits: (record: ProviderThreadRecord) => boolean,
): ProviderThreadRecord | null {
  const fitting = providerThreads.filter(
    (one) =>
      one.appThreadId === threadId &&
      one.ownerNodeId === null &&
      one.instanceId === target.instanceId &&
      one.driver === target.driver &&
      one.status !== "closed" &&
      one.status !== "archived" &&
      fits(one),
  );
  return fitting.toSorted(byRank)[0] ?? null;
}

function byRank(a: ProviderThreadRecord, b: ProviderThreadRecord): number {
  return (
    lastOrdinal(b.nativeRunOrdinals) - lastOrdinal(a.nativeRunOrdinals) ||
    b.updatedAt - a.updatedAt ||
    (a.id < b.id ? -1 : 1)
  );
}
