/**
 * What a request falls under: the budgets of its agent and of all above it, with what is spent and what is reserved for
 * requests under way (BUD-2). Ending what a spent budget ends is `budget.ts`.
 *
 * - B1 A request starts only if spent + reserved + its own fits every scope above it.
 * - B2 A reservation is given back after the usage of its request is stored, so that nothing is counted by neither.
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
import { lineOf } from "./family.ts";

/** Reservations of requests under way; memory alone, since a crash ends the requests too. */
export class Reservations {
  readonly #open = new Map<symbol, { readonly path: AgentPath; readonly estimate: RequestEstimate }>();
  readonly #onRelease: () => void;
  /** Grows with each that is given back, and when a budget is raised. */
  released = 0;

  constructor(onRelease: () => void) {
    this.#onRelease = onRelease;
  }

  take(path: AgentPath, estimate: RequestEstimate): Disposable {
    const key = Symbol(path);
    this.#open.set(key, { path, estimate });
    return {
      [Symbol.dispose]: () => {
        if (this.#open.delete(key)) this.lookAgain();
      },
    };
  }

  /** There may be room now for those that wait. */
  lookAgain(): void {
    this.released += 1;
    this.#onRelease();
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
  for (const at of lineOf(view, agent)) {
    const { path } = at;
    for (const budget of BUDGETS) {
      const limit = limitOf(tree, at, budget);
      // A sum for each agent without a budget would be remembered, and followed, for nothing.
      if (limit === null) continue;
      const spent = spentOn(view, tree, at, budget);
      scopes.push({ path, budget, limit, spent, reserved: reserved.reserved(path, budget) });
    }
  }
  return scopes;
}

const BUDGETS: readonly BudgetKind[] = ["tokens", "money", "wallClock"];

/** A budget of an agent and everything below it; the root's is the tree's too, whichever is less. Null is unlimited. */
export function budgetOf(
  view: StoreView,
  tree: TreeRecord,
  agent: AgentRecord,
  budget: BudgetKind,
): { readonly limit: number | null; readonly spent: number } {
  return { limit: limitOf(tree, agent, budget), spent: spentOn(view, tree, agent, budget) };
}

function limitOf(tree: TreeRecord, agent: AgentRecord, budget: BudgetKind): number | null {
  const own = agent.config.budgets[AGENT_KEYS[budget]] ?? null;
  const ofTree = agent.parent === null ? tree.limits[TREE_KEYS[budget]] : null;
  return own === null ? ofTree : ofTree === null ? own : Math.min(own, ofTree);
}

function spentOn(view: StoreView, tree: TreeRecord, agent: AgentRecord, budget: BudgetKind): number {
  if (budget === "wallClock") return view.now() - agent.createdAt;
  const usage = view.usageUnder(tree.treeId, agent.path);
  return budget === "tokens" ? totalTokens(usage) : usage.pricedCost;
}

/** The names of the budgets in an agent's configuration. */
export const AGENT_KEYS = { tokens: "tokens", money: "money", wallClock: "wallClockMs" } as const;
/** The names of the budgets among a tree's limits. */
export const TREE_KEYS = {
  tokens: "tokensPerTree",
  money: "moneyPerTree",
  wallClock: "treeWallClockMs",
} as const;

export function admitRequest(
  view: StoreView,
  tree: TreeRecord,
  agent: AgentRecord,
  reserved: Reservations,
  estimate: RequestEstimate,
): Admission {
  return admit(scopesOf(view, tree, agent, reserved), estimate);
}
