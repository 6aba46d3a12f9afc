/**
 * The acceptance barrier (lineage C4.13): in the commit in which a provider's acceptance is stored, and in no other,
 * transfers are consumed, handoffs delivered, the provider thread knows the run and the thread is bound to it.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { addOrdinal } from "../protocol/ordinals.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { ProviderSelection } from "../protocol/thread.ts";
import { deliverHandoff } from "../lineage/handoff-record.ts";
import { consume, isOpen } from "../lineage/transfer.ts";
import { clearDraft } from "./drafts.ts";
import type { RunStart } from "./start-run.ts";
import { dropText, supersedeTransfer, tellMoved } from "./transfer-moves.ts";
import { must, type Transaction } from "./transaction.ts";

export function acceptStart(
  tx: Transaction,
  run: RunRecord,
  start: RunStart,
): { readonly agent: AgentRecord; readonly run: RunRecord } {
  const agent = tx.agent(run.threadId);
  const thread = agent.thread!;
  for (const id of start.handoffs) {
    tx.store.putHandoff(deliverHandoff(must(tx.store.handoff(id), "handoff", id), run.id, tx.now));
  }
  for (const id of [...start.transfers, ...start.empty]) {
    const transfer = must(tx.store.transfer(id), "transfer", id);
    const nothing = start.empty.includes(id);
    // A text of an earlier attempt tells of what is not to be told any more.
    if (nothing) dropText(tx, transfer);
    const consumed = consume(transfer, { runId: run.id, nothing }, tx.now);
    tx.store.putTransfer(consumed);
    tellMoved(tx, agent, consumed, run.id);
  }
  for (const id of start.obsolete) {
    if (isOpen(must(tx.store.transfer(id), "transfer", id))) supersedeTransfer(tx, id);
  }
  const { providerThread } = start;
  // Counted since the start was planned.
  const unsureTurns = tx.store.providerThread(providerThread.id)?.unsureTurns;
  tx.store.putProviderThread({
    ...providerThread,
    provider: run.provider,
    model: run.model,
    status: "idle",
    nativeRunOrdinals: addOrdinal(providerThread.nativeRunOrdinals, run.ordinal),
    handoffIds: [...providerThread.handoffIds, ...start.handoffs],
    ...(unsureTurns === undefined ? {} : { unsureTurns }),
    updatedAt: tx.now,
  });
  clearDraft(tx, run);
  const wished = thread.selection;
  const chosen = usedBy(run, wished) ? wished : null;
  const rebound = run.provider !== agent.config.provider || chosen !== null;
  // What was chosen while this run was about to start is for the next one; a clean context is made once (C10).
  const spent = start.cleanContext && wished?.provider === run.provider;
  const left = spent ? { ...wished, cleanContext: false } : wished;
  const selection = chosen === null ? left : null;
  const { starting: _, ...begun } = run;
  const bound: RunRecord = { ...begun, providerThreadId: providerThread.id };
  tx.store.putRun(bound);
  return {
    run: bound,
    agent: tx.putAgent(agent, {
      thread: { ...thread, activeProviderThreadId: providerThread.id, selection },
      ...(rebound ? { config: tx.context.rebind(agent.config, run) } : {}),
    }),
  };
}

/** Whether the run is what was selected: its message may have named a model where nothing but a provider was. */
function usedBy({ provider, model, effort }: RunRecord, selection: ProviderSelection | null): boolean {
  if (selection === null || selection.provider !== provider) return false;
  return (selection.model ?? model) === model && (selection.effort ?? effort) === effort;
}
