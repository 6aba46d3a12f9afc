/** Same key and arguments: the same receipt and no second effect; other arguments are refused (SPN-6). */
import { canonicalJson } from "../platform/canonical-json.ts";
import { sha256 } from "../platform/digest.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { Json } from "../protocol/json.ts";
import type { Caller } from "../protocol/tool.ts";
import type { Transaction } from "./transaction.ts";

/**
 * The scope of a key: the agent for one that is given, the name for a user's. A call of a run without one is known by agent,
 * run, step and call id, since call ids repeat; a host has no runs, and its call ids are its own to keep apart.
 */
export function receiptKey(caller: Caller, key: string | undefined): string | null {
  if (key !== undefined) return `${caller.kind === "agent" ? caller.threadId : caller.name}:key:${key}`;
  if (caller.kind !== "agent" || caller.callId === null) return null;
  if (caller.runId === null) return `${caller.threadId}:host:call:${caller.callId}`;
  return `${caller.threadId}:${caller.runId}:${caller.step}:call:${caller.callId}`;
}

export function once<T extends Json>(tx: Transaction, key: string | null, asked: unknown, act: () => T): T {
  if (key === null) return act();
  const known = recall<T>(tx, key, asked);
  if (known !== undefined) return known;
  const answer = act();
  const argumentsDigest = sha256(canonicalJson(asked));
  tx.store.putReceipt({ treeId: tx.treeId, key, argumentsDigest, answer, createdAt: tx.now });
  return answer;
}

/** The receipt of an earlier call with this key; undefined when there was none. */
export function recall<T extends Json>(tx: Transaction, key: string | null, asked: unknown): T | undefined {
  const known = key === null ? undefined : tx.store.receipt(tx.treeId, key);
  if (known === undefined || known.argumentsDigest === sha256(canonicalJson(asked))) {
    return known?.answer as T | undefined;
  }
  throw new RejectedError(
    "COMMAND_ID_CONFLICT",
    "this idempotency key was used before with other arguments; use a new key.",
    { key },
  );
}
