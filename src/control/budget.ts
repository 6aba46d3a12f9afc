/**
 * Budgets (BUD-2): what a request may use at most is reserved before it starts and given back when its usage is stored.
 *
 * - B1 A request starts only if spent + reserved + its own fits every scope above it.
 * - B2 What would fit without the outstanding reservations waits for them; what does not fit `spent` alone exhausts the
 *   scope, which ends its works once and tells the root once.
 */
import { isWithin, type AgentPath } from "../protocol/agent-path.ts";
import type { AgentRecord, TreeRecord } from "../protocol/agent.ts";
import { totalTokens } from "../protocol/usage.ts";
import {
  admit,
  type Admission,
  type BudgetKind,
  type BudgetScope,
  type RequestEstimate,
} from "../policy/budget.ts";
import type { StoreView } from "../store/port.ts";
import { deliver } from "./delivery.ts";
import { type PartialText, stopRun, subtree } from "./interrupt.ts";
import type { Transaction } from "./transaction.ts";
import { endWork } from "./works.ts";

/** Reservations of requests under way; memory alone, since a crash ends the requests too. */
export class Reservations {
  readonly #open = new Map<symbol, { readonly path: AgentPath; readonly estimate: RequestEstimate }>();
  readonly #onRelease: () => void;
  /** Grows with each that is given back. */
  released = 0;

  constructor(onRelease: () => void) {
    this.#onRelease = onRelease;
  }

  take(path: AgentPath, estimate: RequestEstimate): Disposable {
    const key = Symbol(path);
    this.#open.set(key, { path, estimate });
    return {
      [Symbol.dispose]: () => {
        if (!this.#open.delete(key)) return;
        this.released += 1;
        this.#onRelease();
      },
    };
  }

  reserved(scope: AgentPath, budget: BudgetKind): number {
    let sum = 0;
    for (const { path, estimate } of this.#open.values()) {
      if (!isWithin(path, scope)) continue;
      sum += budget === "tokens" ? estimate.tokens : budget === "money" ? (estimate.money ?? 0) : 0;
    }
    return sum;
  }
}

/** Every scope that a request of this agent falls under, with what is spent. */
export function scopesOf(
  view: StoreView,
  tree: TreeRecord,
  agent: AgentRecord,
  reserved: Reservations,
): BudgetScope[] {
  const scopes: BudgetScope[] = [];
  const add = (
    path: AgentPath,
    createdAt: number,
    limits: Partial<Record<BudgetKind, number | null | undefined>>,
  ): void => {
    const usage = view.usageUnder(tree.treeId, path);
    const spent: Record<BudgetKind, number> = {
      tokens: totalTokens(usage),
      money: usage.cost ?? 0,
      wallClock: view.now() - createdAt,
    };
    for (const budget of ["tokens", "money", "wallClock"] as const) {
      const limit = limits[budget];
      if (limit === undefined || limit === null) continue;
      scopes.push({ path, budget, limit, spent: spent[budget], reserved: reserved.reserved(path, budget) });
    }
  };
  add("/root", tree.createdAt, {
    tokens: tree.limits.tokensPerTree,
    money: tree.limits.moneyPerTree,
    wallClock: tree.limits.treeWallClockMs,
  });
  for (let at: AgentRecord | undefined = agent; at !== undefined;) {
    const { tokens, money, wallClockMs } = at.config.budgets;
    add(at.path, at.createdAt, { tokens, money, wallClock: wallClockMs });
    at = at.parent === null ? undefined : view.agent(at.parent);
  }
  return scopes;
}

export function admitRequest(
  view: StoreView,
  tree: TreeRecord,
  agent: AgentRecord,
  reserved: Reservations,
  estimate: RequestEstimate,
): Admission {
  return admit(scopesOf(view, tree, agent, reserved), estimate);
}

/** Ends what is unfinished in a spent scope, once. */
export function exhaust(
  tx: Transaction,
  scope: { readonly path: string; readonly budget: BudgetKind },
  partial: PartialText,
): void {
  const path = scope.path as AgentPath;
  const tree = tx.tree();
  const known = tree.exhausted.some((entry) => entry.path === path && entry.budget === scope.budget);
  if (!known) tx.putTree({ exhausted: [...tree.exhausted, { path, budget: scope.budget }] });
  const top = tx.store.agentAt(tx.treeId, path);
  if (top === undefined) return;
  tx.emit("budget.spent", top, {}, { budget: scope.budget });
  for (const target of subtree(tx, top)) {
    for (const work of tx.store.openWorksOf(target.threadId)) {
      endWork(tx, work.id, {
        ending: "budget_exhausted",
        text: work.servedBy === null ? "" : partial(target.threadId),
        error: {
          code: "BUDGET_EXHAUSTED",
          message: `the ${scope.budget} budget of ${path} is spent`,
          status: null,
        },
        runId: work.servedBy,
        quiet: path,
      });
    }
    const agent = tx.agent(target.threadId);
    const run = agent.currentRun === null ? undefined : tx.store.run(agent.currentRun);
    if (run !== undefined) stopRun(tx, agent, run, "budget_exhausted", partial(agent.threadId), path);
    tx.effects.wake.delete(agent.threadId);
  }
  if (!known) tellRoot(tx, path, scope.budget);
}

function tellRoot(tx: Transaction, path: AgentPath, budget: BudgetKind): void {
  const root = tx.agent(tx.treeId);
  if (root.state !== "open") return;
  deliver(tx, root, {
    author: { kind: "runtime" },
    kind: "notice",
    authority: "runtime",
    trigger: path !== "/root" && root.lastOutcome?.status === "completed",
    text: `The ${budget} budget of ${path} is spent. Its unfinished work ended; nothing new starts there until the budget is raised.`,
    overLimit: true,
  });
}

/** Raises a budget of the tree or of an agent; its scope takes requests again. */
export function raiseBudget(
  tx: Transaction,
  agent: AgentRecord,
  budget: BudgetKind,
  limit: number | null,
): void {
  if (agent.parent === null) {
    const limits = tx.tree().limits;
    const key =
      budget === "tokens" ? "tokensPerTree" : budget === "money" ? "moneyPerTree" : "treeWallClockMs";
    tx.putTree({ limits: { ...limits, [key]: limit } });
  } else {
    const key = budget === "wallClock" ? "wallClockMs" : budget;
    tx.putAgent(agent, { config: { ...agent.config, budgets: { ...agent.config.budgets, [key]: limit } } });
  }
  tx.putTree({
    exhausted: tx.tree().exhausted.filter((entry) => entry.path !== agent.path || entry.budget !== budget),
  });
  tx.emit("budget.raised", agent, {}, { budget, limit });
  for (const id of tx.store.triggered(tx.treeId)) tx.effects.wake.add(id);
}
