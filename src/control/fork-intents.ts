/**
 * A fork that a provider was asked for and of which nobody knows whether it was made (lineage C5.19): whose the forks are that
 * the provider has, and the commits that take one in, put them aside, or take the intent back.
 *
 * - I1 One that any thread of the lineage has is no orphan. Where it cannot be said whose the orphans are, none is taken, now
 *   or later: siblings were cut elsewhere.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { RunId, ThreadId, TransferId } from "../protocol/ids.ts";
import type { NativeThread } from "../protocol/native-events.ts";
import type { NativeRef, ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { TransferRecord } from "../protocol/transfer.ts";
import { resolveNative } from "../lineage/transfer.ts";
import { named } from "../providers/native-names.ts";
import type { StoreView } from "../store/port.ts";
import { must, type Transaction } from "./transaction.ts";
import { tellMoved } from "./transfer-moves.ts";

/** What a provider has of forks that nobody knows of. */
export interface Orphans {
  readonly orphans: readonly NativeThread[];
  /** The one that is the fork which was asked for; null where there is none, or it cannot be said. */
  readonly mine: NativeThread | null;
}

export function orphansAmong(
  view: StoreView,
  transfer: TransferRecord,
  driver: string,
  found: readonly NativeThread[],
): Orphans {
  const { targetThreadId } = transfer;
  const orphans = found.filter(
    ({ ref: { nativeId } }) => !isKnown(view, targetThreadId, { driver, nativeId }, "any"),
  );
  const [only] = orphans;
  const doubtful = orphans.length > 1 || siblingAsks(view, transfer);
  return { orphans, mine: only === undefined || doubtful ? null : named(only) };
}

/** The fork goes on as the thread's conversation. `record` is a new one, of what it was forked from. */
export function takeFork(
  tx: Transaction,
  id: TransferId,
  forked: NativeThread,
  record: ProviderThreadRecord,
  runId: RunId | null,
): void {
  const transfer = must(tx.store.transfer(id), "transfer", id);
  // A sibling may have taken it for its own between the call and this.
  if (isKnown(tx.store, transfer.targetThreadId, forked.ref, "in_use")) throw indeterminate(id);
  tx.store.putProviderThread({
    ...record,
    nativeThreadRef: forked.ref,
    nativeHeadRef: forked.head,
    status: "idle",
  });
  const resolved = { ...resolveNative(transfer, forked.ref, tx.now), targetProvider: record.provider };
  tx.store.putTransfer(resolved);
  tellMoved(tx, tx.agent(transfer.targetThreadId), resolved, runId);
}

/** Nobody ever takes them. `recordOf` gives a new record each. */
export function putAside(
  tx: Transaction,
  orphans: readonly NativeThread[],
  recordOf: () => ProviderThreadRecord,
): void {
  for (const { ref } of orphans)
    tx.store.putProviderThread({ ...recordOf(), nativeThreadRef: ref, status: "archived" });
}

export function takeBack(tx: Transaction, id: TransferId): void {
  const transfer = must(tx.store.transfer(id), "transfer", id);
  if (transfer.intent !== null) tx.store.putTransfer({ ...transfer, intent: null, updatedAt: tx.now });
}

/** Siblings are forks of the same conversation, and what one of them has is no orphan: it is looked for in the whole lineage. */
export function isKnown(
  view: StoreView,
  threadId: ThreadId,
  { driver, nativeId }: Pick<NativeRef, "driver" | "nativeId">,
  which: "any" | "in_use",
): boolean {
  const root = rootOf(view, threadId);
  return view
    .providerThreadsNamed(driver, nativeId)
    .some(
      ({ appThreadId, status }) =>
        (which === "any" || status !== "archived") && rootOf(view, appThreadId) === root,
    );
}

function rootOf(view: StoreView, threadId: ThreadId): ThreadId {
  return view.agent(threadId)?.thread?.lineage.rootThreadId ?? threadId;
}

/** Another fork of the lineage was asked for, and its outcome is not known either. */
function siblingAsks(view: StoreView, { id, targetThreadId }: TransferRecord): boolean {
  const root = rootOf(view, targetThreadId);
  return view.forksInDoubt().some((other) => other.id !== id && rootOf(view, other.targetThreadId) === root);
}

export function indeterminate(transferId: TransferId, cause?: unknown): RejectedError {
  return new RejectedError(
    "FORK_NATIVE_INDETERMINATE",
    "whether the provider has forked its conversation is not known; reconcile the thread, then send again.",
    { transferId },
    cause,
  );
}
