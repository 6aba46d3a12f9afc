/**
 * Why a provider thread is not gone on with (lineage C10). Only signals are told here; what follows from them is
 * decided where the run's start is planned.
 *
 * - A1 Some signals forbid to resume at all (`FORBIDDING`): they hold even where the provider thread knows everything.
 *   The others weigh how a gap is closed, and say nothing where there is none.
 */
import { countOrdinals } from "../protocol/ordinals.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { LineageLimits } from "../protocol/lineage-limits.ts";
import { STALENESS_SIGNALS, type StalenessSignal } from "../protocol/transfer.ts";
import { handoffsIn, lastOrdinal, retainedBefore, type RunsBefore, type Telling } from "./coverage.ts";

/** What an adapter says to a change from a provider thread's settings to the wanted ones; a refusal never gets here. */
export type SelectionChange = "apply_next_turn" | "restart_session" | "handoff";

export interface StalenessFacts {
  readonly runs: RunsBefore;
  readonly providerThread: Pick<
    ProviderThreadRecord,
    "handoffIds" | "nativeRunOrdinals" | "continuity" | "status"
  >;
  readonly handoffs: readonly Telling[];
  readonly change: SelectionChange;
  readonly resumeFailed: boolean;
  readonly cleanContext: boolean;
  readonly contextFull: boolean;
  /** Whether the text of the gap keeps within the provider's context policy; null while it is not known. */
  readonly deltaFits: boolean | null;
  readonly limits: Pick<LineageLimits, "offProviderRuns" | "handoffsHard">;
}

const FORBIDDING: ReadonlySet<StalenessSignal> = new Set([
  "incompatible_settings",
  "resume_failed",
  "divergent",
  "clean_context",
  "context_full",
]);

/** The signals that hold, in the order of `STALENESS_SIGNALS`. */
export function stalenessOf(facts: StalenessFacts): readonly StalenessSignal[] {
  const { providerThread, limits } = facts;
  const holds: Readonly<Record<StalenessSignal, boolean>> = {
    off_provider_runs: offProviderRuns(facts) > limits.offProviderRuns,
    handoff_chain: handoffsIn(providerThread, facts.handoffs).length > limits.handoffsHard,
    // A session that restarts still resumes the same conversation.
    incompatible_settings: facts.change === "handoff",
    // `error` is what a provider thread becomes when it could not be resumed (C4.15).
    resume_failed: facts.resumeFailed || providerThread.status === "error",
    divergent: providerThread.continuity === "divergent",
    clean_context: facts.cleanContext,
    context_full: facts.contextFull,
    delta_too_large: facts.deltaFits === false,
  };
  return STALENESS_SIGNALS.filter((signal) => holds[signal]);
}

/** Those that forbid to resume even a provider thread that knows everything. */
export function forbidding(signals: readonly StalenessSignal[]): readonly StalenessSignal[] {
  return signals.filter((signal) => FORBIDDING.has(signal));
}

/** Retained runs that went elsewhere since the provider thread had its last one. */
function offProviderRuns({ runs, providerThread }: StalenessFacts): number {
  const last = lastOrdinal(providerThread.nativeRunOrdinals);
  const since = retainedBefore(runs).flatMap(([from, to]) =>
    to > last ? [[Math.max(from, last + 1), to] as const] : [],
  );
  return countOrdinals(since);
}
