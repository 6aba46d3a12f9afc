/** Places in a conversation as Claude names them: the last message that stays. */
import { RejectedError } from "../../protocol/errors.ts";
import type { NativeTurn } from "../../protocol/native-events.ts";
import type { Boundary } from "../../protocol/provider-capabilities.ts";
import type { ClaudeTurn } from "./history.ts";

/** What stays of a conversation. */
export type Kept = "all" | "nothing" | { readonly upTo: string };

/** @throws RejectedError `PROVIDER_REFUSED` for a place that the conversation does not have. */
export function keptOf(boundary: Boundary, there: readonly ClaudeTurn[], turns: readonly NativeTurn[]): Kept {
  switch (boundary.kind) {
    case "head":
      return "all";
    case "start": {
      const first = turns[0]?.ref ?? null;
      return first === null ? "nothing" : before(placeOf(first.nativeId, there), there);
    }
    case "before_turn":
      return before(placeOf(boundary.turn.nativeId, there), there);
    case "after_turn": {
      const at = placeOf(boundary.turn.nativeId, there);
      return at === there.length - 1 ? "all" : before(at + 1, there);
    }
    case "after_item":
    case "before_item": {
      const said = there.flatMap((turn) => turn.said);
      const at = said.findLastIndex(({ uuid }) => uuid === boundary.item.nativeId);
      if (at < 0) throw unknown(boundary.item.nativeId);
      const last = said[boundary.kind === "after_item" ? at : at - 1];
      return last === undefined ? "nothing" : { upTo: last.uuid };
    }
  }
}

function placeOf(id: string, there: readonly ClaudeTurn[]): number {
  const at = there.findIndex((turn) => turn.id === id);
  if (at < 0) throw unknown(id);
  return at;
}

function before(at: number, there: readonly ClaudeTurn[]): Kept {
  const last = there[at - 1]?.said.at(-1);
  return last === undefined ? "nothing" : { upTo: last.uuid };
}

function unknown(id: string): RejectedError {
  return new RejectedError("PROVIDER_REFUSED", `Claude's conversation has no ${id}.`, { id });
}
