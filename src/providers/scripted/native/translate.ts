/**
 * From a boundary of ours to each provider's own call (lineage 3.2). Turn ids are inclusive for one, message ids inclusive
 * for the second and exclusive for the third; the others fork at the head or not at all.
 */
import { RejectedError } from "../../../protocol/errors.ts";
import type { Boundary } from "../../../protocol/provider-capabilities.ts";
import type { NativeTurn } from "../../../protocol/native-events.ts";
import { capabilityMissing } from "../../native-call.ts";
import type { Conversation } from "./conversations.ts";
import type { Wire } from "./wire.ts";

export interface Cut {
  readonly wire: Wire;
  /** Native id of the conversation. */
  readonly id: string;
  readonly boundary: Boundary;
  readonly turns: readonly NativeTurn[];
}

export interface Translator {
  readonly start: (wire: Wire) => Conversation;
  readonly fork: ((cut: Cut) => Conversation) | null;
  readonly rollback: ((cut: Cut) => Conversation) | null;
}

/** Inclusive turn ids; without one, a fork of the head that is cut back, which legacy history alone allows. */
export function byTurn(options: { readonly revert: boolean }): Translator {
  return {
    start: (wire) => wire.call("thread/start"),
    fork({ wire, id, boundary, turns }) {
      if (boundary.kind === "head") return wire.call("thread/fork", { threadId: id });
      if ("item" in boundary) throw tooFine("item");
      const turn = boundary.kind === "start" ? turns[0]?.ref : boundary.turn;
      if (turn?.strength === "strong") {
        const bound =
          boundary.kind === "after_turn" ? { lastTurnId: turn.nativeId } : { beforeTurnId: turn.nativeId };
        return wire.call("thread/fork", { threadId: id, ...bound });
      }
      const fork = wire.call("thread/fork", { threadId: id });
      const later = behind(boundary, turns);
      if (later === 0) return fork;
      if (fork.history === "legacy")
        return wire.call("thread/rollback", { threadId: fork.id, numTurns: later });
      throw new RejectedError(
        "FORK_NATIVE_FAILED",
        "The provider cannot cut its fork back without the id of the turn; fork with `replay`.",
        { orphan: fork.id },
      );
    },
    rollback({ wire, id, boundary, turns }) {
      const thread = wire.call("thread/read", { threadId: id, includeTurns: false });
      if (boundary.kind === "after_item" || boundary.kind === "before_item") throw tooFine("item");
      const later = behind(boundary, turns);
      if (later === 0) return thread;
      if (thread.history === "legacy") return wire.call("thread/rollback", { threadId: id, numTurns: later });
      if (!options.revert) {
        throw new RejectedError(
          "ROLLBACK_NATIVE_UNSUPPORTED",
          "The provider's paginated history cannot be rolled back; roll back without demanding that.",
          { history: thread.history },
        );
      }
      return wire.call("thread/revert", { threadId: id, beforeTurnId: firstRemoved(boundary, turns) });
    },
  };
}

/** Inclusive message ids; a turn is named by its last message, and to go back to the start is to begin anew. */
export const byItem: Translator = {
  start: (wire) => wire.call("query"),
  fork(cut) {
    const last = lastKept(cut);
    if (last === null) return cut.wire.call("query");
    return cut.wire.call("forkSession", { sessionId: cut.id, ...(last && { upToMessageId: last }) });
  },
  rollback(cut) {
    const last = lastKept(cut);
    if (last === null) return cut.wire.call("query");
    return cut.wire.call("query", { resume: cut.id, ...(last && { resumeSessionAt: last }) });
  },
};

/** The message up to which is kept; undefined for all of them, null for none. */
function lastKept({ wire, id, boundary, turns }: Cut): string | null | undefined {
  switch (boundary.kind) {
    case "head":
      return undefined;
    case "start":
      return null;
    case "after_item":
      return boundary.item.nativeId;
    case "after_turn":
      return boundary.turn.nativeId;
    case "before_turn": {
      const at = turns.findIndex(({ ref }) => ref?.nativeId === boundary.turn.nativeId);
      const before = turns[at - 1];
      if (at < 0 || before?.ref === null) throw unknownTurn(boundary.turn.nativeId);
      return before?.ref.nativeId ?? null;
    }
    case "before_item": {
      const { items } = wire.call("getSessionMessages", { sessionId: id });
      const at = items.findIndex((item) => item.id === boundary.item.nativeId);
      if (at < 0) throw unknownTurn(boundary.item.nativeId);
      return items[at - 1]?.id ?? null;
    }
  }
}

/** Exclusive message ids: the one given is the first that is gone; a turn is named by its first message. */
export const byFirstGone: Translator = {
  start: (wire) => wire.call("POST /session"),
  fork(cut) {
    const messageID = firstGone(cut);
    return cut.wire.call("POST /session/fork", { id: cut.id, ...(messageID !== null && { messageID }) });
  },
  rollback(cut) {
    const messageID = firstGone(cut);
    if (messageID === null) return cut.wire.call("GET /session/message", { id: cut.id });
    return cut.wire.call("POST /session/revert", { id: cut.id, messageID });
  },
};

/** Null when nothing goes. */
function firstGone({ wire, id, boundary }: Cut): string | null {
  if (boundary.kind === "head") return null;
  const { items, turns } = wire.call("GET /session/message", { id });
  if (boundary.kind === "start") return items[0]?.id ?? null;
  const named = "turn" in boundary ? boundary.turn.nativeId : boundary.item.nativeId;
  const at = items.findIndex((item) => item.id === named);
  if (at < 0) throw unknownTurn(named);
  switch (boundary.kind) {
    case "before_item":
    case "before_turn":
      return items[at]!.id;
    case "after_item":
      return items[at + 1]?.id ?? null;
    case "after_turn": {
      const next = turns[turns.findIndex((turn) => turn.id === items[at]!.turn) + 1];
      return items.find((item) => item.turn === next?.id)?.id ?? null;
    }
  }
}

/** A fork of the whole, or none. */
export function byHead(forks: boolean): Translator {
  return {
    start: (wire) => wire.call("session/new"),
    fork: forks
      ? ({ wire, id, boundary }) => {
          if (boundary.kind !== "head") throw tooFine("turn");
          return wire.call("session/fork", { sessionId: id });
        }
      : null,
    rollback: null,
  };
}

function behind(boundary: Boundary, turns: readonly NativeTurn[]): number {
  if (boundary.kind === "start") return turns.length;
  return "laterTerminalTurns" in boundary ? boundary.laterTerminalTurns : 0;
}

function firstRemoved(boundary: Boundary, turns: readonly NativeTurn[]): string {
  const at = "turn" in boundary ? turns.findIndex(({ ref }) => ref?.nativeId === boundary.turn.nativeId) : 0;
  const first = turns[boundary.kind === "after_turn" ? at + 1 : at]?.ref ?? null;
  if (at < 0 || first === null) throw unknownTurn("turn" in boundary ? boundary.turn.nativeId : "the first");
  return first.nativeId;
}

function tooFine(granularity: "turn" | "item"): RejectedError {
  return capabilityMissing(
    "threads.fork",
    `the boundary names ${granularity === "item" ? "an item" : "a turn"}`,
  );
}

function unknownTurn(id: string): RejectedError {
  return new RejectedError("ROLLBACK_TURN_UNAVAILABLE", `The provider has no turn or message ${id}.`, { id });
}
