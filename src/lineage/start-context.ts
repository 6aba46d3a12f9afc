/**
 * How a run's provider gets to know its thread: one decision, neutral to providers (lineage C4). It reads what it is
 * given, writes nothing and asks nobody.
 *
 * - N1 Order: what a subagent is told of its parent, a pending fork, projected-only, then the strategies by number; the lowest that fits wins (C4.10).
 * - N2 Total: any facts give a plan. One that cannot be carried out is `unsupported`, and nothing is sent (C4.9).
 * - N3 What forbids to resume is looked at before the gap: a provider thread that may not be resumed knows nothing that
 *   could be used. A gap that is empty outranks all other signals.
 * - N4 A delta tells of the gap exactly; every other handoff tells of all retained runs.
 */
import type { TransferId } from "../protocol/ids.ts";
import type { StalenessSignal, TransferRecord } from "../protocol/transfer.ts";
import { covered, gapOf, handoffsIn, lastOrdinal, retainedBefore } from "./coverage.ts";
import { candidateOf, divergentOf, unusedOf } from "./start-candidates.ts";
import { contextUnsupported, resolveFork, resolveSpawn } from "./start-fork.ts";
import type { HandoffBase, StartBase, StartFacts, StartPlan } from "./start-plan.ts";
import { isOpen } from "./transfer.ts";
import { forbidding, stalenessOf } from "./staleness.ts";

/** What a run of this thread starts with (C4.1). */
export function resolveStartContext(facts: StartFacts): StartPlan {
  const open = facts.pending
    .filter(({ targetThreadId }) => targetThreadId === facts.threadId)
    .filter(isOpen)
    // Of one and the same moment they come in the order in which they were made.
    .toSorted((a, b) => a.createdAt - b.createdAt);
  const switches = open.filter(({ type }) => type === "provider_handoff");
  const forks = open.filter(({ type }) => type === "fork");
  const spawned = open.findLast(
    ({ type, requestedStrategy }) => type === "subagent_spawn" && requestedStrategy !== "none",
  );
  // What a fork inherits comes before its own first run: one that has run is told of what it has not seen.
  const inherits = lastOrdinal(retainedBefore(facts)) === 0;
  const base =
    spawned === undefined
      ? resolveBase(facts, (inherits ? forks.at(-1) : undefined) ?? null, switches)
      : resolveSpawn(facts, spawned);
  const merges = open.filter(({ type, staleBase }) => type === "merge_back" && !staleBase);
  const newest = new Map(merges.map(({ sourceThreadId, id }) => [sourceThreadId, id]));
  const older = merges.filter(({ sourceThreadId, id }) => newest.get(sourceThreadId) !== id);
  // Only the snapshot crosses there (C4.14).
  const mergeBacks = base.kind === "projected" ? [] : merges.filter((one) => !older.includes(one));
  if (base.kind === "unsupported") return { base, mergeBacks: [], obsolete: [] };
  if (mergeBacks.length > 0 && facts.target.capabilities.context.channels.length === 0) {
    return { base: contextUnsupported(facts.target), mergeBacks: [], obsolete: [] };
  }
  return {
    base,
    mergeBacks: mergeBacks.map(({ id }) => id),
    obsolete: [...(inherits ? [] : forks), ...switches, ...older]
      .map(({ id }) => id)
      .filter((id) => id !== base.transferId),
  };
}

function resolveBase(
  facts: StartFacts,
  fork: TransferRecord | null,
  switches: readonly TransferRecord[],
): StartBase {
  const inherited = fork === null ? null : resolveFork(facts, fork);
  if (inherited !== null) return inherited;
  // A fork that carries nothing is over with the first run that is accepted, whatever that starts with.
  const named = (base: StartBase, transferId: TransferId | null): StartBase =>
    base.kind === "unsupported" || base.kind === "native_fork" ? base : { ...base, transferId };
  if (facts.continuity === "projected-only") return { kind: "projected", transferId: fork?.id ?? null };
  const base = resolveGap(facts);
  if (fork !== null) return named(base, fork.id);
  const match = base.kind === "handoff" ? switches.findLast((one) => isFor(one, facts, base)) : undefined;
  return named(base, match?.id ?? null);
}

/** The strategies of C4.5 to C4.9, in that order. */
function resolveGap(facts: StartFacts): StartBase {
  const { target, handoffs, limits } = facts;
  const candidate = candidateOf(facts);
  const signals = signalsOf(facts);
  const resumable = forbidding(signals).length === 0 ? candidate : null;
  const gap = gapOf(facts, resumable, handoffs);
  if (gap.length === 0) {
    const id = (resumable ?? unusedOf(facts))?.id ?? null;
    return { kind: "none", providerThreadId: id, transferId: null };
  }
  const { channels, delta, full } = target.capabilities.context;
  if (channels.length === 0) return contextUnsupported(target);
  const retained = retainedBefore(facts);
  const told = {
    kind: "handoff",
    transferId: null,
    runs: retained,
    baseOrdinal: null,
    sourceOrdinal: lastOrdinal(retained),
  } as const;
  if (resumable !== null && signals.length === 0) {
    const into = { into: "existing", providerThreadId: resumable.id } as const;
    const inLimits =
      gap.length <= limits.gapRangesSoft && handoffsIn(resumable, handoffs).length <= limits.handoffsSoft;
    // A soft limit gives way where the provider takes nothing but deltas.
    if (delta && (inLimits || !full)) {
      const baseOrdinal = lastOrdinal(covered(resumable, handoffs));
      return { ...told, ...into, coverage: "delta", runs: gap, baseOrdinal };
    }
    return full ? { ...told, ...into, coverage: "full" } : contextUnsupported(target);
  }
  if (!full) return contextUnsupported(target);
  const providerThreadId = unusedOf(facts)?.id ?? null;
  return { ...told, into: "new", providerThreadId, coverage: "full", staleness: signals };
}

/** Why the provider thread that was last used there is not simply gone on with; empty where there is none. */
function signalsOf(facts: StartFacts): readonly StalenessSignal[] {
  const { target, handoffs, limits } = facts;
  const candidate = candidateOf(facts);
  const providerThread = candidate ?? divergentOf(facts);
  if (providerThread === null) return [];
  return stalenessOf({
    runs: facts,
    providerThread,
    handoffs,
    // The adapter was asked about the candidate.
    change: candidate === null ? "apply_next_turn" : target.change,
    resumeFailed: facts.failedResume.includes(providerThread.id),
    cleanContext: target.cleanContext,
    contextFull: candidate !== null && target.contextFull,
    deltaFits: candidate === null ? null : target.deltaFits,
    limits,
  });
}

/** Whether a switch that is pending from an earlier attempt is this very one. */
function isFor(record: TransferRecord, { target }: StartFacts, base: HandoffBase): boolean {
  const staleness = base.into === "new" ? base.staleness : [];
  return (
    record.targetProvider === target.provider &&
    (record.basePoint?.ordinal ?? null) === base.baseOrdinal &&
    record.sourcePoint.ordinal === base.sourceOrdinal &&
    record.staleness.join() === staleness.join()
  );
}
