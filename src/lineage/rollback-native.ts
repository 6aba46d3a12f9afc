/**
 * What a rollback does to one provider thread (lineage C9.5, C9.6): nothing, its rollback, or the end of its use.
 *
 * - R1 The provider is told the last of its turns that stays, and how many go. Where that one has no name, or nobody
 *   knows how many a run that goes took, nothing is guessed: the conversation is given up.
 * - R2 Where the loop is ours the conversation is what the runs have left in the transcript, and has no name elsewhere: it
 *   is rolled back by leaving them out, and nobody has to be asked; one that is not the active one and of
 *   which nothing stays is given up.
 * - R3 A provider thread that the provider itself forked keeps what it was forked with: it is rolled back to before its
 *   first turn, and never to its start.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { HandoffId, ProviderThreadId, RunId } from "../protocol/ids.ts";
import { holdsOrdinal, type OrdinalRange, overlap, without } from "../protocol/ordinals.ts";
import type { NativeTurn } from "../protocol/native-events.ts";
import type { NativeRef } from "../protocol/provider-thread.ts";
import type { Boundary } from "../protocol/provider-capabilities.ts";
import { covered, lastOrdinal } from "./coverage.ts";
import { countsAll, type NamedThread } from "./native-turns.ts";
import type { RollbackFacts } from "./rollback-target.ts";

export type ProviderThreadStep = { readonly id: ProviderThreadId } & (
  | { readonly action: "untouched" }
  | { readonly action: "divergent" }
  | {
      readonly action: "roll_back";
      /** For its provider; null where none has to be asked. */
      readonly boundary: Boundary | null;
      /** Its turns from the last one that stays on. */
      readonly turns: readonly NativeTurn[];
      /** What it knows afterwards. */
      readonly nativeRunOrdinals: readonly OrdinalRange[];
      readonly handoffIds: readonly HandoffId[];
    }
);

/** @throws RejectedError where the provider's own rollback is demanded and not to be had. */
export function stepOf(
  record: NamedThread,
  rolledBack: readonly OrdinalRange[],
  facts: RollbackFacts,
  wasTakenBack: (runId: RunId | null) => boolean,
): ProviderThreadStep {
  const { id, continuity, nativeRunOrdinals, handoffIds } = record;
  if (continuity === "divergent" || !overlap(covered(record, facts.handoffs), rolledBack)) {
    return { id, action: "untouched" };
  }
  const gone = new Set(
    facts.handoffs.filter(({ targetRunId }) => wasTakenBack(targetRunId)).map((handoff) => handoff.id),
  );
  const trimmed = {
    nativeRunOrdinals: without(nativeRunOrdinals, rolledBack),
    handoffIds: handoffIds.filter((handoffId) => !gone.has(handoffId)),
  };
  const active = id === facts.activeProviderThreadId;
  // What a conversation holds that could not be resumed, or whose rollback was cut off, is not known.
  const unsure = record.status === "error";
  if (record.nativeThreadRef === null && !active && !unsure && trimmed.nativeRunOrdinals.length > 0) {
    return { id, action: "roll_back", boundary: null, turns: [], ...trimmed };
  }
  if (!active || facts.request.native === "avoided") {
    return { id, action: "divergent" };
  }
  const strict = facts.request.native === "demanded";
  const { capabilities } = facts;
  if (unsure || capabilities === null || capabilities.threads.rollback === "none") {
    if (!strict) return { id, action: "divergent" };
    throw new RejectedError(
      "ROLLBACK_NATIVE_UNSUPPORTED",
      `${record.provider} cannot roll its own conversation back; roll back without demanding that.`,
      { providerThreadId: id, provider: record.provider },
    );
  }
  const ours = facts.loop === "ours";
  const boundary = ours ? null : boundaryOf(record, rolledBack);
  if (boundary === null && !ours) {
    if (!strict) return { id, action: "divergent" };
    throw new RejectedError(
      "ROLLBACK_TURN_UNAVAILABLE",
      `${record.provider} has no name for the turn to go back to, or for one that follows it; roll back without demanding its own rollback.`,
      { providerThreadId: id, provider: record.provider },
    );
  }
  return {
    id,
    action: "roll_back",
    boundary,
    turns: ours ? [] : record.turns,
    ...trimmed,
  };
}

/** The place in its conversation behind which everything goes; null where it cannot be named or counted. */
function boundaryOf(record: NamedThread, rolledBack: readonly OrdinalRange[]): Boundary | null {
  const retained = without(record.nativeRunOrdinals, rolledBack);
  const removed = without(record.nativeRunOrdinals, retained);
  const gone = record.turns.filter(({ ordinal }) => holdsOrdinal(removed, ordinal));
  // A turn that may be there behind them is not counted by anybody either.
  if ((record.unsureTurns ?? 0) > 0 || !countsAll(gone, removed)) return null;
  const last = lastOrdinal(retained);
  if (last === 0 && record.forkedFrom === null) return { kind: "start" };
  const next = last === 0 ? gone[0] : record.turns.findLast(({ ordinal }) => ordinal === last);
  const turn = next?.ref ?? null;
  if (turn === null) return null;
  return { kind: last === 0 ? "before_turn" : "after_turn", turn, laterTerminalTurns: gone.length };
}

/** Whether a conversation that was rolled back ends where it was to end, as far as its provider names that (C9.5). */
export function endsAt(boundary: Boundary, turns: readonly NativeTurn[], head: NativeRef | null): boolean {
  if (head === null) return true;
  if (boundary.kind === "after_turn") return head.nativeId === boundary.turn.nativeId;
  return turns.every(({ ref }) => ref?.nativeId !== head.nativeId);
}
