/**
 * What a provider thread knows of its thread's runs (lineage C1.6, C4.5). Who calls it decides what to do about a gap.
 *
 * - V1 Known is what ran in it, and what a handoff told it: one that was delivered into it, was not superseded, and
 *   tells of this thread. A merge-back or a fork's context tells of another thread, whose ordinals mean other runs.
 * - V2 A handoff counts while it stands in the provider thread's `handoffIds`: a native rollback takes its text out of
 *   the conversation and its id out of there, and leaves the record as it is.
 * - V3 A gap holds no run that was rolled back and none that no provider ever accepted: nobody is to hear of them.
 */
import { NO_ORDINALS, type OrdinalRange, unite, without } from "../protocol/ordinals.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { ThreadFacts } from "../protocol/thread.ts";
import type { HandoffRecord } from "../protocol/transfer.ts";

/** Of a provider thread, what decides on its knowledge. */
export type Knowing = Pick<ProviderThreadRecord, "appThreadId" | "nativeRunOrdinals" | "handoffIds">;
/** Of a handoff, what decides whether and where it counts. */
export type Telling = Pick<
  HandoffRecord,
  "id" | "sourceThreadId" | "status" | "deliveredAt" | "coveredRuns" | "coveredRanges"
> & { readonly payload?: Pick<HandoffRecord["payload"], "mergeBackIds"> };
/** A thread's runs seen from one of them. */
export type RunsBefore = Pick<ThreadFacts, "rolledBack" | "voided"> & {
  /** The run that is about to start; every earlier one is over. */
  readonly ordinal: number;
};

/** The handoffs whose text is in this provider thread's conversation, whatever thread they tell of. */
export function handoffsIn<H extends Telling>(
  { handoffIds }: Pick<Knowing, "handoffIds">,
  handoffs: readonly H[],
): readonly H[] {
  const inside = new Set(handoffIds);
  return handoffs.filter(
    ({ id, status, deliveredAt }) => inside.has(id) && deliveredAt !== null && status === "ready",
  );
}

/** Runs of its thread that the provider thread knows. */
export function covered(providerThread: Knowing, handoffs: readonly Telling[]): readonly OrdinalRange[] {
  const told = handoffsIn(providerThread, handoffs)
    .filter(({ sourceThreadId }) => sourceThreadId === providerThread.appThreadId)
    .flatMap(({ coveredRuns }) => coveredRuns);
  return unite(providerThread.nativeRunOrdinals, told);
}

/** Earlier runs that count for what comes: neither rolled back nor void. */
export function retainedBefore({ ordinal, rolledBack, voided }: RunsBefore): readonly OrdinalRange[] {
  const earlier: readonly OrdinalRange[] = ordinal > 1 ? [[1, ordinal - 1]] : NO_ORDINALS;
  return without(without(earlier, rolledBack), voided);
}

/** Retained runs that the provider thread does not know; all of them where there is no provider thread. */
export function gapOf(
  runs: RunsBefore,
  providerThread: Knowing | null,
  handoffs: readonly Telling[],
): readonly OrdinalRange[] {
  const retained = retainedBefore(runs);
  return providerThread === null ? retained : without(retained, covered(providerThread, handoffs));
}

/**
 * Earlier runs of which a provider thread's conversation holds nothing: they went elsewhere, or were rolled back. What stands
 * in the transcript of one that no provider took (a request that was cut off, and a word about it) belongs to every one.
 */
export function foreignBefore(
  { ordinal, rolledBack, voided }: RunsBefore,
  { nativeRunOrdinals }: Pick<Knowing, "nativeRunOrdinals">,
): readonly OrdinalRange[] {
  const earlier: readonly OrdinalRange[] = ordinal > 1 ? [[1, ordinal - 1]] : NO_ORDINALS;
  return without(earlier, without(unite(nativeRunOrdinals, voided), rolledBack));
}

/** The highest ordinal of a set; 0 where it is empty. */
export function lastOrdinal(ranges: readonly OrdinalRange[]): number {
  return ranges.at(-1)?.[1] ?? 0;
}
