/** What the record of a provider thread holds of the provider's own conversation: its id, its turns, whether it is at work. */
import type { NativeTurn } from "../protocol/native-events.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { NativeAcceptance } from "../session/ports.ts";
import type { Transaction } from "./transaction.ts";

/** In the commit of the acceptance: where the run went to, for later resumes, forks and rollbacks (lineage C4.13). */
export function acceptTurn(tx: Transaction, run: RunRecord, { thread, turn }: NativeAcceptance): void {
  const record = tx.store.providerThread(thread.id);
  if (record === undefined) return;
  const { ref, forkedFrom } = thread.thread;
  const next = turn === null ? record : withTurn(record, { ordinal: run.ordinal, ref: turn });
  tx.store.putProviderThread({
    ...next,
    nativeThreadRef: ref,
    forkedFrom: record.forkedFrom ?? forkedFrom,
    status: "active",
    updatedAt: tx.now,
  });
}

/** A run that took several turns is named by its last. */
export function withTurn(record: ProviderThreadRecord, turn: NativeTurn): ProviderThreadRecord {
  const others = record.turns.filter(({ ordinal }) => ordinal !== turn.ordinal);
  return { ...record, turns: [...others, turn], nativeHeadRef: turn.ref };
}

/** Its run is over, and so is its turn as far as we are concerned. */
export function restThread(tx: Transaction, run: RunRecord): void {
  const record = run.providerThreadId === null ? undefined : tx.store.providerThread(run.providerThreadId);
  if (record?.status !== "active") return;
  tx.store.putProviderThread({ ...record, status: "idle", updatedAt: tx.now });
}
