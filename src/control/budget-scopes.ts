/**
 * What a request falls under: the budgets of its agent and of all above it, with what is spent and what is reserved for
 * requests under way (BUD-2). Ending what a spent budget ends is `budget.ts`.
 *
 * A tree that an agent has made falls under the budgets of that agent's tree as well, as if it stood below the agent
 * (lineage C1.2): tokens and money, not time.
 *
 * The wall clock of a scope bounds how long its work may go on without coming to rest: it is measured from when the oldest
 * work that is open in it was begun. At rest nothing of it is used, so the next request begins a new clock. It needs no
 * timer: it is looked at before each request, and what hangs within one is ended by the clock of its run (RUN-3).
 *
 * - B1 A request starts only if spent + reserved + its own fits every scope above it.
 * - B2 A reservation is given back after the usage of its request is stored, so that nothing is counted by neither.
 */
import { isWithin, ROOT_PATH, type AgentPath } from "../protocol/agent-path.ts";
import type { AgentRecord, TreeRecord } from "../protocol/agent.ts";
import type { TreeId } from "../protocol/ids.ts";
import { totalTokens, type UsageSum } from "../protocol/usage.ts";
import {
  admit,
  type Admission,
  type BudgetKind,
  type BudgetScope,
  type RequestEstimate,
} from "../policy/budget.ts";
import type { StoreView } from "../store/port.ts";
import { lineOf } from "./family.ts";

/** Tells those that wait for budgets, in whatever tree of the runtime, that something was given back. */
export class Releases {
  /** Grows with each that is given back, and when a budget is raised. */
  count = 0;
  readonly #waiting = new Set<() => void>();

  /** Called once, with the next that is given back. */
  wait(look: () => void): void {
    this.#waiting.add(look);
  }

  tell(): void {
    this.count += 1;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const look of waiting) look();
  }
}

/** Reservations of requests under way in one tree; memory alone, since a crash ends the requests too. */
export class Reservations {
  readonly #open = new Map<symbol, { readonly path: AgentPath; readonly estimate: RequestEstimate }>();
  readonly #releases: Releases;

  constructor(releases: Releases) {
    this.#releases = releases;
  }

  take(path: AgentPath, estimate: RequestEstimate): Disposable {
    const key = Symbol(path);
    this.#open.set(key, { path, estimate });
    return {
      [Symbol.dispose]: () => {
        if (this.#open.delete(key)) this.#releases.tell();
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

/** Reservations in a tree that this runtime owns. What others have reserved is not known: their requests are few. */
export type ReservationsOf = (tree: TreeId) => Reservations | undefined;

/** Every scope that a request of this agent falls under, with what is spent. */
export function scopesOf(
  view: StoreView,
  tree: TreeRecord,
  agent: AgentRecord,
  reservations: ReservationsOf,
): BudgetScope[] {
  const scopes: BudgetScope[] = [];
  const add = (of: TreeRecord, at: AgentRecord, budget: BudgetKind, names: Named): void => {
    const limit = limitOf(of, at, budget);
    // A sum for each agent without a budget would be remembered, and followed, for nothing.
    if (limit === null) return;
    const spent = spentOn(view, of, at, budget);
    scopes.push({ ...names, budget, limit, spent, reserved: reservedOn(view, of, at, budget, reservations) });
  };
  for (const at of lineOf(view, agent)) {
    for (const budget of BUDGETS) add(tree, at, budget, { path: at.path });
  }
  for (const { tree: payer, agent: at } of payersOf(view, tree)) {
    const names = { path: ROOT_PATH, payer: `${at.path} of ${payer.treeId}` };
    for (const budget of SHARED_BUDGETS) add(payer, at, budget, names);
  }
  return scopes;
}

type Named = Pick<BudgetScope, "path" | "payer">;

/** The agents whose budgets a tree falls under that was made by one of them, nearest first; none for a user's. */
export function* payersOf(
  view: StoreView,
  tree: TreeRecord,
): Generator<{ readonly tree: TreeRecord; readonly agent: AgentRecord }> {
  for (let at = tree.billedTo; at !== undefined;) {
    const payer = view.tree(at.treeId);
    const agent = view.agent(at.threadId);
    if (payer === undefined || agent === undefined) return;
    for (const above of lineOf(view, agent)) yield { tree: payer, agent: above };
    at = payer.billedTo;
  }
}

/** Trees that agents at or below a path have made, and those that agents of these have made. */
export function* billedUnder(view: StoreView, tree: TreeRecord, under: AgentPath): Generator<TreeRecord> {
  if ((tree.billed ?? 0) === 0) return;
  for (const made of view.billed(tree.treeId)) {
    if (!isWithin(made.billedTo!.path, under)) continue;
    yield made;
    yield* billedUnder(view, made, ROOT_PATH);
  }
}

/** What a payer has left of a budget that this tree falls under, where that is nothing (BUD-2). */
export function spentByPayer(view: StoreView, tree: TreeRecord): BudgetScope | null {
  for (const { tree: payer, agent } of payersOf(view, tree)) {
    for (const budget of SHARED_BUDGETS) {
      const { limit, spent } = budgetOf(view, payer, agent, budget);
      const told = payer.exhausted.some((one) => one.path === agent.path && one.budget === budget);
      if (!told && (limit === null || spent < limit)) continue;
      return {
        path: ROOT_PATH,
        budget,
        limit,
        spent,
        reserved: 0,
        payer: `${agent.path} of ${payer.treeId}`,
      };
    }
  }
  return null;
}

const BUDGETS: readonly BudgetKind[] = ["tokens", "money", "wallClock"];
/** Those that count across trees. */
const SHARED_BUDGETS: readonly BudgetKind[] = ["tokens", "money"];

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
  if (budget === "wallClock") {
    const begunAt = view.oldestBegun(tree.treeId, agent.path);
    return begunAt === null ? 0 : view.now() - begunAt;
  }
  const amount = (usage: UsageSum): number => (budget === "tokens" ? totalTokens(usage) : usage.pricedCost);
  let spent = amount(view.usageUnder(tree.treeId, agent.path));
  for (const { treeId } of billedUnder(view, tree, agent.path))
    spent += amount(view.usageUnder(treeId, ROOT_PATH));
  return spent;
}

function reservedOn(
  view: StoreView,
  tree: TreeRecord,
  { path }: AgentRecord,
  budget: BudgetKind,
  reservations: ReservationsOf,
): number {
  let reserved = reservations(tree.treeId)?.reserved(path, budget) ?? 0;
  for (const { treeId } of billedUnder(view, tree, path))
    reserved += reservations(treeId)?.reserved(ROOT_PATH, budget) ?? 0;
  return reserved;
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
  reservations: ReservationsOf,
  estimate: RequestEstimate,
): Admission {
  return admit(scopesOf(view, tree, agent, reservations), estimate);
}
