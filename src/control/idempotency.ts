/** Same key and arguments: the same receipt and no second effect; other arguments are refused (SPN-6). */
import { canonicalJson } from "../platform/canonical-json.ts";
import { sha256 } from "../platform/digest.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { Json } from "../protocol/json.ts";
import type { Caller } from "../protocol/tool.ts";
import type { Transaction } from "./transaction.ts";

/**
 * The scope of a key. Calls of a run are known by agent, run, step and call id, since call ids repeat; everybody else has
 * the key that was given, or none.
 */
export function receiptKey(caller: Caller, key: string | undefined): string | null {
  if (caller.kind === "agent" && caller.runId !== null) {
    const scope = `${caller.threadId}:${caller.runId}:${caller.step}`;
    if (key !== undefined) return `${scope}:key:${key}`;
    return caller.callId === null ? null : `${scope}:call:${caller.callId}`;
  }
  if (key === undefined) return null;
  return caller.kind === "agent" ? `${caller.threadId}:${key}` : `${caller.name}:${key}`;
}

export function once<T extends Json>(tx: Transaction, key: string | null, asked: unknown, act: () => T): T {
  if (key === null) return act();
  const argumentsDigest = sha256(canonicalJson(asked));
  const known = tx.store.receipt(tx.treeId, key);
  if (known !== undefined) {
    if (known.argumentsDigest === argumentsDigest) return known.answer as T;
    throw new RejectedError(
      "COMMAND_ID_CONFLICT",
      "this idempotency key was used before with other arguments; use a new key.",
      {
        key,
      },
    );
  }
  const answer = act();
  tx.store.putReceipt({ treeId: tx.treeId, key, argumentsDigest, answer, createdAt: tx.now });
  return answer;
}
