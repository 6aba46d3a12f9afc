/**
 * The end of a budget, and its rise (BUD-2). What a budget holds and what is spent of it is `budget-scopes.ts`.
 *
 * - B3 A spent scope ends its unfinished works once, settles the runs in it, wakes nobody there and tells the root once. A
 *   wall clock is at rest with that: it refuses nothing, and is spent anew where the next work goes on for too long.
 */
import type { AgentPath } from "../protocol/agent-path.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import type { BudgetKind, BudgetScope } from "../policy/budget.ts";
import { AGENT_KEYS, TREE_KEYS } from "./budget-scopes.ts";
import { deliver } from "./delivery.ts";
import { keepUnsent, unsentOf } from "./drafts.ts";
import { type PartialText, stopRun, subtree } from "./interrupt.ts";
import type { Transaction } from "./transaction.ts";
import { abortWaitsOf } from "./wait-ends.ts";
import { endWork } from "./works.ts";

/** Ends what is unfinished in a spent scope, once. */
export function exhaust(
  tx: Transaction,
  scope: Pick<BudgetScope, "path" | "budget" | "payer">,
  partial: PartialText,
): void {
  const path = scope.path as AgentPath;
  const top = tx.store.agentAt(tx.treeId, path);
  if (top === undefined) return;
  const agents = subtree(tx, top);
  const { budget } = scope;
  const known = tx.tree().exhausted.some((entry) => entry.path === path && entry.budget === budget);
  // What another tree pays for is refused by what is left there, and goes on when that is raised.
  const announced = known || scope.payer !== undefined;
  if (!announced) {
    if (budget !== "wallClock") tx.putTree({ exhausted: [...tx.tree().exhausted, { path, budget }] });
    tx.emit("budget.spent", top, {}, { budget });
  }
  const error = {
    code: "BUDGET_EXHAUSTED",
    message: `the ${scope.budget} budget of ${scope.payer ?? path} is spent`,
    status: null,
  };
  abortWaitsOf(tx, agents);
  for (const target of agents) {
    const running = tx.agent(target.threadId);
    const run = running.currentRun === null ? undefined : tx.store.run(running.currentRun);
    if (run !== undefined)
      stopRun(tx, running, run, "budget_exhausted", partial(running.threadId), path, error);
    const works = tx.store.openWorksOf(target.threadId);
    const unsent = works.flatMap((work) => unsentOf(tx, work));
    for (const work of works) {
      endWork(tx, work.id, { ending: "budget_exhausted", text: "", error, quiet: path });
    }
    keepUnsent(tx, target.threadId, unsent);
    tx.effects.wake.delete(target.threadId);
  }
  if (!announced) tellRoot(tx, path, scope.budget);
}

function tellRoot(tx: Transaction, path: AgentPath, budget: BudgetKind): void {
  const root = tx.agent(tx.treeId);
  if (root.state !== "open") return;
  deliver(tx, root, {
    author: { kind: "runtime" },
    kind: "notice",
    authority: "runtime",
    trigger: path !== "/root" && root.lastOutcome?.status === "completed",
    text: `The ${budget} budget of ${path} is spent. Its unfinished work ended; ${WHAT_NOW[budget]}.`,
    overLimit: true,
  });
}

const NOTHING_NEW = "nothing new starts there until the budget is raised";
const WHAT_NOW: Readonly<Record<BudgetKind, string>> = {
  tokens: NOTHING_NEW,
  money: NOTHING_NEW,
  wallClock: "a new request begins a new clock",
};

/** Raises a budget of the tree or of an agent; its scope takes requests again. */
export function raiseBudget(
  tx: Transaction,
  agent: AgentRecord,
  budget: BudgetKind,
  limit: number | null,
): void {
  if (limit !== null && !(limit >= 0)) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `a ${budget} budget is a number from 0 up, or null for none.`,
      {
        argument: "limit",
        value: Number.isFinite(limit) ? limit : String(limit),
      },
    );
  }
  const { budgets } = agent.config;
  const key = AGENT_KEYS[budget];
  if (agent.parent === null) tx.putTree({ limits: { ...tx.tree().limits, [TREE_KEYS[budget]]: limit } });
  if (agent.parent !== null || budgets[key] !== undefined) {
    tx.putAgent(agent, { config: { ...agent.config, budgets: { ...budgets, [key]: limit } } });
  }
  tx.putTree({
    exhausted: tx.tree().exhausted.filter((entry) => entry.path !== agent.path || entry.budget !== budget),
  });
  tx.emit("budget.raised", agent, {}, { budget, limit });
  tx.effects.budgetRaised = true;
  for (const id of tx.store.triggered(tx.treeId)) tx.effects.wake.add(id);
}
