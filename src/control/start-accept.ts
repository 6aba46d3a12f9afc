/**
 * The acceptance barrier (lineage C4.13): in the commit in which a provider's acceptance is stored, and in no other,
 * transfers are consumed, handoffs delivered, the provider thread knows the run and the thread is bound to it.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { addOrdinal } from "../protocol/ordinals.ts";
import type { RunRecord } from "../protocol/run.ts";
import { consume, deliverHandoff } from "../lineage/transfer.ts";
import type { RunStart } from "./start-run.ts";
import { tellMoved } from "./start-write.ts";
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
    const by = { runId: run.id, nothing: start.empty.includes(id) };
    const consumed = consume(must(tx.store.transfer(id), "transfer", id), by, tx.now);
    tx.store.putTransfer(consumed);
    tellMoved(tx, agent, consumed, run.id);
  }
  const { providerThread } = start;
  tx.store.putProviderThread({
    ...providerThread,
    provider: run.provider,
    model: run.model,
    status: "idle",
    nativeRunOrdinals: addOrdinal(providerThread.nativeRunOrdinals, run.ordinal),
    handoffIds: [...providerThread.handoffIds, ...start.handoffs],
    updatedAt: tx.now,
  });
  const draft = tx.store.draft(agent.threadId);
  if (draft !== undefined && draft.clearedAt === null) tx.store.putDraft({ ...draft, clearedAt: tx.now });
  const { selection } = thread;
  const chosen = selection?.provider === run.provider ? selection : null;
  const rebound = run.provider !== agent.config.provider || chosen !== null;
  const bound = { ...run, providerThreadId: providerThread.id };
  tx.store.putRun(bound);
  return {
    run: bound,
    agent: tx.putAgent(agent, {
      thread: { ...thread, activeProviderThreadId: providerThread.id, selection: null },
      ...(rebound ? { config: tx.context.rebind(agent.config, run) } : {}),
    }),
  };
}
