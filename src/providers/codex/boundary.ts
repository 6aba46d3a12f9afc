/** Places in a conversation as Codex names them: a fork takes its last turn or the first that it leaves out, a revert the latter. */
import { RejectedError } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type { NativeTurn } from "../../protocol/native-events.ts";
import type { Boundary } from "../../protocol/provider-capabilities.ts";
import { capabilityMissing } from "../native-call.ts";

export function cutOf(boundary: Boundary, turns: readonly NativeTurn[]): JsonObject {
  switch (boundary.kind) {
    case "head":
      return {};
    case "after_turn":
      return { lastTurnId: boundary.turn.nativeId };
    case "before_turn":
      return { beforeTurnId: boundary.turn.nativeId };
    case "start": {
      const first = turns[0]?.ref ?? null;
      if (first === null) throw unnamed();
      return { beforeTurnId: first.nativeId };
    }
    default:
      throw capabilityMissing("threads.fork", "Codex forks at turns, not inside of them");
  }
}

/** The first turn that goes, of those that there are; null when none does. */
export function firstRemoved(
  boundary: Boundary,
  turns: readonly NativeTurn[],
  there: readonly string[],
): string | null {
  switch (boundary.kind) {
    case "head":
      return null;
    case "start":
      return there[0] ?? null;
    case "before_turn":
      return boundary.turn.nativeId;
    case "after_turn": {
      const at = there.indexOf(boundary.turn.nativeId);
      if (at >= 0) return there[at + 1] ?? null;
      const next = turns[1]?.ref ?? null;
      if (next === null) throw unnamed();
      return next.nativeId;
    }
    default:
      throw capabilityMissing("threads.rollback", "Codex goes back to turns, not into them");
  }
}

function unnamed(): RejectedError {
  return new RejectedError("PROVIDER_REFUSED", "Codex has no name for the turn that is meant.", {});
}
