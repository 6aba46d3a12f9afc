/** A conversation of OpenCode's as turns: a message of the user's, with what was said to it (pure). */
import { RejectedError } from "../../protocol/errors.ts";
import type { NativeHistoryPage, NativeThread, NativeTurn } from "../../protocol/native-events.ts";
import type { Boundary } from "../../protocol/provider-capabilities.ts";
import type { NativeRef } from "../../protocol/provider-thread.ts";
import { capabilityMissing } from "../native-call.ts";
import { refOf } from "./translate.ts";
import { type OpenCodeSaid, partOfInterest } from "./wire.ts";

export interface OpenCodeTurnSaid {
  readonly id: string;
  readonly said: readonly OpenCodeSaid[];
}

/**
 * An answer belongs to what it answers, also where the names of messages, by which they are sorted, are of two clocks. What it has put
 * between two turns by itself, such as a summary of what was before, belongs to the one before.
 */
export function turnsOf(messages: readonly OpenCodeSaid[]): readonly OpenCodeTurnSaid[] {
  const turns: { readonly id: string; readonly said: OpenCodeSaid[] }[] = [];
  for (const message of messages) if (isPrompt(message)) turns.push({ id: message.info.id, said: [message] });
  const named = new Map(turns.map((turn) => [turn.id, turn]));
  let before: (typeof turns)[number] | undefined;
  for (const message of messages) {
    const { id, parentID = "" } = message.info;
    const own = named.get(id);
    if (own === undefined) (named.get(parentID) ?? before)?.said.push(message);
    else before = own;
  }
  return turns;
}

/** The first message that goes, which a fork takes for its end; null when none does. */
export function firstRemoved(
  boundary: Boundary,
  there: readonly OpenCodeTurnSaid[],
  turns: readonly NativeTurn[],
): string | null {
  switch (boundary.kind) {
    case "head":
      return null;
    case "start":
      return turns[0]?.ref?.nativeId ?? there[0]?.id ?? null;
    case "before_turn":
      return placeOf(boundary.turn.nativeId, there).turn.id;
    case "after_turn":
      return there[placeOf(boundary.turn.nativeId, there).at + 1]?.id ?? null;
    default:
      throw capabilityMissing("threads.fork", "a message of OpenCode's may hold several items");
  }
}

export function historyOf(turns: readonly OpenCodeTurnSaid[], running: boolean): NativeHistoryPage {
  return {
    turns: turns.map((turn, at) => ({
      ref: refOf(turn.id),
      status: running && at === turns.length - 1 ? "running" : statusOf(turn),
      items: turn.said.flatMap(itemsOf),
    })),
    next: null,
  };
}

function placeOf(id: string, there: readonly OpenCodeTurnSaid[]) {
  const at = there.findIndex((turn) => turn.id === id);
  const turn = there[at];
  if (turn !== undefined) return { at, turn };
  throw new RejectedError("PROVIDER_REFUSED", `OpenCode's conversation has no turn ${id}.`, { id });
}

function isPrompt({ info, parts }: OpenCodeSaid): boolean {
  if (info.role !== "user") return false;
  const words = parts.map((part) => partOfInterest(part)).filter((part) => part?.type === "text");
  return words.some((part) => part?.type === "text" && part.synthetic !== true);
}

type Item = NativeHistoryPage["turns"][number]["items"][number];

function statusOf({ said }: OpenCodeTurnSaid): NativeHistoryPage["turns"][number]["status"] {
  const last = said.findLast(({ info }) => info.role === "assistant")?.info;
  if (last?.error !== undefined) return last.error.name === "MessageAbortedError" ? "interrupted" : "failed";
  return last?.finish === undefined ? "interrupted" : "completed";
}

function itemsOf({ info, parts }: OpenCodeSaid): Item[] {
  const read = parts.map((part) => partOfInterest(part));
  if (info.role === "user") {
    const text = read.flatMap((part) => (part?.type === "text" ? [part.text] : [])).join("\n");
    return [{ ref: refOf(info.id), role: "user", text }];
  }
  return read.flatMap((part): Item[] => {
    if (part?.type === "text") return [{ ref: refOf(part.id), role: "assistant", text: part.text }];
    if (part?.type !== "tool") return [];
    const { tool, state } = part;
    return [{ ref: refOf(part.id), role: "tool", text: JSON.stringify({ tool, ...state }) }];
  });
}

/** A conversation with the turns that it has. */
export function nativeThread(
  ref: NativeRef,
  turns: readonly OpenCodeTurnSaid[],
  forkedFrom: NativeRef | null,
): NativeThread {
  const named = turns.map(({ id }) => refOf(id));
  return { ref, head: named.at(-1) ?? null, turns: named, forkedFrom };
}
