/**
 * The turns of a provider's conversation that carried runs of ours, as their runs name them. A turn that a native rollback
 * has taken away went with its run: the conversation does not count that one any more.
 */
import type { NativeTurn } from "../protocol/native-events.ts";
import { countOrdinals, type OrdinalRange } from "../protocol/ordinals.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { RunRecord } from "../protocol/run.ts";

/** A provider thread with the turns that a plan needs of it. */
export interface NamedThread extends ProviderThreadRecord {
  readonly turns: readonly NativeTurn[];
}

type RunAt = (ordinal: number) => Pick<RunRecord, "ordinal" | "providerThreadId" | "nativeTurns"> | undefined;

/** Oldest first, those of runs from `from` on: it costs as many reads as there are runs behind that. */
export function nativeTurns(
  { id, nativeRunOrdinals }: Pick<ProviderThreadRecord, "id" | "nativeRunOrdinals">,
  runAt: RunAt,
  from = 1,
): readonly NativeTurn[] {
  const turns: NativeTurn[] = [];
  for (const [first, last] of nativeRunOrdinals) {
    for (let ordinal = Math.max(first, from); ordinal <= last; ordinal += 1) {
      const run = runAt(ordinal);
      // A conversation of a run's subagent counts the run, whose turns are another conversation's.
      if (run?.providerThreadId !== id) continue;
      for (const ref of run.nativeTurns) turns.push({ ordinal, ref });
    }
  }
  return turns;
}

/**
 * Whether these are the turns of these runs, no more and no less. How many a run took that has none is not known: its row
 * could not be read. One without a name may not have been taken at all.
 */
export function countsAll(turns: readonly NativeTurn[], runs: readonly OrdinalRange[]): boolean {
  if (turns.some(({ ref }) => ref === null)) return false;
  return new Set(turns.map(({ ordinal }) => ordinal)).size === countOrdinals(runs);
}
