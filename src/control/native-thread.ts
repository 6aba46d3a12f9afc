/** What the record of a provider thread holds of the provider's own conversation: its id, its turns, whether it is at work. */
import type { ProviderThreadId } from "../protocol/ids.ts";
import type { NativeChildEvent } from "../protocol/native-events.ts";
import type { NativeChild, NativeRef } from "../protocol/provider-thread.ts";
import type { RunRecord } from "../protocol/run.ts";
import { headBytes } from "../platform/text.ts";
import type { NativeAcceptance } from "../session/ports.ts";
import { newProviderThread } from "./start-write.ts";
import type { Transaction } from "./transaction.ts";
import { isCorrupt } from "../store/corrupt-row.ts";

/** In the commit of the acceptance: where the run went to, for later resumes, forks and rollbacks (lineage C4.13). */
export function acceptTurn(
  tx: Transaction,
  run: RunRecord,
  { thread, turn, unsure }: NativeAcceptance,
): RunRecord {
  const record = tx.store.providerThread(thread.id);
  if (record === undefined) return run;
  const { ref, forkedFrom } = thread.thread;
  const { unsureTurns = 0, ...known } = record;
  tx.store.putProviderThread({
    ...known,
    nativeHeadRef: turn,
    nativeThreadRef: ref,
    forkedFrom: known.forkedFrom ?? forkedFrom,
    status: "active",
    updatedAt: tx.now,
  });
  // One without a name keeps its place: it may be named at its end. One that may not even be there has none either.
  const maybe = Array.from({ length: unsure + unsureTurns }, () => null);
  const taken = { ...run, nativeTurns: [...run.nativeTurns, ...maybe, turn] };
  tx.store.putRun(taken);
  return taken;
}

/** A turn was asked for, and nobody knows whether the provider has taken it. False where the conversation has no record yet. */
export function doubtTurn(tx: Transaction, id: ProviderThreadId): boolean {
  const record = tx.store.providerThread(id);
  if (record === undefined) return false;
  tx.store.putProviderThread({ ...record, unsureTurns: (record.unsureTurns ?? 0) + 1, updatedAt: tx.now });
  return true;
}

/** The process has died between the reservation of a run and its acceptance: the provider may have been asked (REC-5). */
export function doubtLost(tx: Transaction, run: RunRecord): void {
  if (tx.context.loop(run.provider) !== "theirs") return;
  const id = run.providerThreadId ?? tx.agent(run.threadId).thread?.activeProviderThreadId ?? null;
  if (id !== null && tx.store.providerThread(id)?.provider === run.provider) doubtTurn(tx, id);
}

/** The newest turn of a run has another name by now, or its first one. */
export function nameTurn(tx: Transaction, run: RunRecord, id: ProviderThreadId, turn: NativeRef): RunRecord {
  const record = tx.store.providerThread(id);
  if (record === undefined || run.nativeTurns.at(-1)?.nativeId === turn.nativeId) return run;
  const named = { ...run, nativeTurns: [...run.nativeTurns.slice(0, -1), turn] };
  tx.store.putRun(named);
  tx.store.putProviderThread({ ...record, nativeHeadRef: turn, updatedAt: tx.now });
  return named;
}

/** Its run is over, and so is its turn as far as we are concerned, with those of the provider's own agents below it. */
export function restThread(tx: Transaction, run: RunRecord): void {
  if (run.providerThreadId === null) return;
  try {
    const record = tx.store.providerThread(run.providerThreadId);
    if (record?.status !== "active") return;
    tx.store.putProviderThread({ ...record, status: "idle", updatedAt: tx.now });
    for (const { ownerNodeId, nativeThreadRef: child, status } of tx.store.providerThreadsOf(run.threadId))
      if (ownerNodeId?.startsWith(`${run.id}/`) === true && status === "active" && child !== null)
        observeChild(tx, run, { type: "child.terminal", child, outcome: "interrupted", text: "" });
  } catch (error) {
    // One that cannot be read is gone on with by nobody, and keeps no run open (REC-1).
    if (!isCorrupt(error)) throw error;
  }
}

/**
 * A subagent of the provider's own: a node of the run with the provider's conversation behind it, which is never gone on
 * with here and can be a source of forks where the provider allows it (lineage C8.1, C5.1).
 */
export function observeChild(tx: Transaction, run: RunRecord, event: NativeChildEvent): void {
  const node = `${run.id}/${event.child.nativeId}`;
  const known = tx.store.providerThreadsOf(run.threadId).find(({ ownerNodeId }) => ownerNodeId === node);
  const parent = run.providerThreadId === null ? undefined : tx.store.providerThread(run.providerThreadId);
  const agent = tx.agent(run.threadId);
  const ended = event.type === "child.terminal";
  const shown = (text: string): string => headBytes(tx.context.redact(text), SHOWN_BYTES);
  const prompt = ended ? (known?.child?.prompt ?? "") : shown(event.prompt);
  const child: NativeChild = ended
    ? { prompt, outcome: event.outcome, text: shown(event.text) }
    : { prompt, outcome: null, text: "" };
  tx.store.putProviderThread({
    ...(known ?? newProviderThread(run, parent ?? OF_NOBODY, tx.id("pth"), tx.now)),
    ownerNodeId: node,
    child,
    nativeThreadRef: event.child,
    nativeRunOrdinals: [[run.ordinal, run.ordinal]],
    status: ended ? "idle" : "active",
    updatedAt: tx.now,
  });
  const called = { node: tx.context.redact(node) };
  if (!ended && known === undefined)
    tx.emit("child.started", agent, { runId: run.id }, { ...called, prompt });
  if (!ended) return;
  const { outcome, text } = child;
  tx.emit("child.ended", agent, { runId: run.id }, { ...called, outcome, text });
}

const OF_NOBODY = { instanceId: "", driver: "" };
const SHOWN_BYTES = 512;
