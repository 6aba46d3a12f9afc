/** What a run has used, written down wherever it counts (BUD-4). */
import type { StepUsage } from "../protocol/provider-events.ts";
import type { RunRecord } from "../protocol/run.ts";
import { addUsage, UNREPORTED_USAGE, type Usage } from "../protocol/usage.ts";
import { costOf, priceOf } from "../policy/budget.ts";
import type { Shared } from "./shared.ts";
import { must, type Transaction } from "./transaction.ts";

/** Usage is stored at the run and with each work it serves, and derived upwards from there (BUD-4). */
export function chargeRun(tx: Transaction, run: RunRecord, usage: Usage): RunRecord {
  const next = { ...run, usage: addUsage(run.usage, usage) };
  tx.store.putRun(next);
  for (const id of run.serves) {
    const work = must(tx.store.work(id), "work", id);
    if (work.state !== "ended") tx.store.putWork({ ...work, usage: addUsage(work.usage, usage) });
  }
  return next;
}

/** Says in run, works and agent that the figures lack something (BUD-4). */
export function markUnreported(tx: Transaction, run: RunRecord): RunRecord {
  return charge(tx, run, UNREPORTED_USAGE);
}

/** What a provider says that it has used, at the price of its model. */
export function pricedUsage(
  { prices }: Pick<Shared, "prices">,
  { provider, model }: Pick<RunRecord, "provider" | "model">,
  used: StepUsage,
): Usage {
  return { ...used, cost: costOf(used, priceOf(prices, provider, model)), complete: true };
}

/** Usage beside that of a step. */
export function charge(tx: Transaction, run: RunRecord, usage: Usage): RunRecord {
  const agent = tx.agent(run.threadId);
  tx.putAgent(agent, { usage: addUsage(agent.usage, usage) });
  return chargeRun(tx, run, usage);
}
