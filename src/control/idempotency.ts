/** Same key and arguments: the same receipt and no second effect; other arguments are refused (SPN-6). */
import { canonicalJson } from "../platform/canonical-json.ts";
import { keyText, sha256 } from "../platform/digest.ts";
import type { ReceiptRecord } from "../protocol/command.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { Json } from "../protocol/json.ts";
import type { Caller } from "../protocol/tool.ts";
import type { StoreTx, StoreView } from "../store/port.ts";
import type { Transaction } from "./transaction.ts";

/**
 * The scope of a key: the agent for one that is given, the name for a user's. A call of a run without one is known by agent,
 * run, step and call id, since call ids repeat; a host has no runs, and its call ids are its own to keep apart.
 */
export function receiptKey(caller: Caller, key: string | undefined): string | null {
  if (key !== undefined)
    return `${caller.kind === "agent" ? caller.threadId : caller.name}:key:${keyText(key)}`;
  if (caller.kind !== "agent" || caller.callId === null) return null;
  const call = keyText(caller.callId);
  if (caller.runId === null) return `${caller.threadId}:host:call:${call}`;
  return `${caller.threadId}:${caller.runId}:${caller.step}:call:${call}`;
}

export function once<T extends Json>(tx: Transaction, key: string | null, asked: unknown, act: () => T): T {
  if (key === null) return act();
  const known = recall<T>(tx, key, asked);
  if (known !== undefined) return known;
  const answer = act();
  noteAt(tx.store, { treeId: tx.treeId, key }, asked, answer);
  return answer;
}

/** The receipt of an earlier call with this key; undefined when there was none. */
export function recall<T extends Json>(tx: Transaction, key: string | null, asked: unknown): T | undefined {
  return key === null ? undefined : recallAt<T>(tx.store, { treeId: tx.treeId, key }, asked);
}

/** Where a receipt lies. */
export type Place = Pick<ReceiptRecord, "treeId" | "key">;

/** Of the id alone: a command that has one is the same command in the whole store, whatever it is about (lineage C3.12). */
export function placeOfCommand(commandId: string): Place {
  return { treeId: `thread_${sha256(commandId).slice(0, 21)}`, key: "command" };
}

/** The digest of no arguments at all. */
const FORGOTTEN = "";

/** Null for what was begun and has no answer yet. @throws RejectedError `COMMAND_ID_CONFLICT`. */
export function recallAt<T extends Json>(view: StoreView, place: Place, asked: unknown): T | undefined {
  const known = view.receipt(place.treeId, place.key);
  if (known?.argumentsDigest === FORGOTTEN) return undefined;
  if (known === undefined || known.argumentsDigest === sha256(canonicalJson(asked))) {
    return known?.answer as T | undefined;
  }
  throw usedBefore(place);
}

export function usedBefore({ key }: Place): RejectedError {
  const told = "this id was used before with other arguments; use a new one.";
  return new RejectedError("COMMAND_ID_CONFLICT", told, { key });
}

export function noteAt(tx: StoreTx, place: Place, asked: unknown, answer: Json): void {
  const argumentsDigest = sha256(canonicalJson(asked));
  tx.putReceipt({ ...place, argumentsDigest, answer, createdAt: tx.now() });
}

/** What was noted there was nothing: the place is free. */
export function forgetAt(tx: StoreTx, place: Place): void {
  tx.putReceipt({ ...place, argumentsDigest: FORGOTTEN, answer: null, createdAt: tx.now() });
}
