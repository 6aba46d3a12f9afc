/**
 * Budgets and prices (BUD-2, BUD-7), as arithmetic. A scope is one limit on one agent and everything below it; whoever
 * calls gives every scope that a request falls under and keeps what is spent and reserved.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { Budgets } from "../protocol/limits.ts";
import type { Usage } from "../protocol/usage.ts";

export type BudgetKind = "tokens" | "money" | "wallClock";

export interface BudgetScope {
  readonly path: string;
  readonly budget: BudgetKind;
  /** Null is unlimited. */
  readonly limit: number | null;
  readonly spent: number;
  /** Held for requests that are under way. */
  readonly reserved: number;
  /** Of another tree, which pays for this one: who has this budget there. `path` is what it pays for. */
  readonly payer?: string;
}

/** What a request may use at most. `money` is null where its model has no price. */
export interface RequestEstimate {
  readonly tokens: number;
  readonly money: number | null;
}

export type Admission =
  | { readonly kind: "start" }
  /** It would fit if nothing were reserved: it waits for what is under way. */
  | { readonly kind: "wait"; readonly scope: BudgetScope }
  /** It does not fit beside what is spent: its work ends `budget_exhausted`. */
  | { readonly kind: "exhausted"; readonly scope: BudgetScope };

/** USD per million tokens. */
export interface Price {
  readonly input: number;
  readonly cachedInput: number;
  readonly output: number;
}

/** By `<provider>/<model>`. */
export type Prices = Readonly<Record<string, Price>>;

/** A spent scope decides over one that only has to wait, whichever comes first. */
export function admit(scopes: readonly BudgetScope[], request: RequestEstimate): Admission {
  let blocked: BudgetScope | undefined;
  for (const scope of scopes) {
    const own = shareOf(scope, request);
    if (scope.limit === null || own === null) continue;
    if (scope.spent + own > scope.limit) return { kind: "exhausted", scope };
    if (scope.spent + scope.reserved + own > scope.limit) blocked ??= scope;
  }
  return blocked === undefined ? { kind: "start" } : { kind: "wait", scope: blocked };
}

function shareOf(scope: BudgetScope, request: RequestEstimate): number | null {
  switch (scope.budget) {
    case "tokens":
      return request.tokens;
    case "money":
      return request.money;
    case "wallClock":
      // A request needs some time: none is left when the limit is reached.
      return 1;
  }
}

/** The refusal of a spent budget, with what would free it (BUD-3). */
export function budgetExhausted(scope: BudgetScope): RejectedError {
  const { budget, path, limit, spent, payer } = scope;
  return new RejectedError(
    "BUDGET_EXHAUSTED",
    `the ${budget} budget of ${payer ?? path} is spent: ${spent} of ${limit} used; raise it, or finish with what there is.`,
    {
      limit: budget,
      path,
      value: limit,
      use: spent,
      frees: "a higher budget",
      ...(payer === undefined ? {} : { payer }),
    },
  );
}

export function priceOf(prices: Prices, provider: string, model: string | null): Price | null {
  const key = `${provider}/${model}`;
  return model !== null && Object.hasOwn(prices, key) ? prices[key]! : null;
}

/** USD, or null without a price. Cached tokens are part of the input, reasoning tokens part of the output. */
export function costOf(
  usage: Pick<Usage, "inputTokens" | "cachedInputTokens" | "outputTokens">,
  price: Price | null,
): number | null {
  if (price === null) return null;
  const cached = Math.min(usage.cachedInputTokens, usage.inputTokens);
  const millionths =
    (usage.inputTokens - cached) * price.input +
    cached * price.cachedInput +
    usage.outputTokens * price.output;
  return millionths / 1_000_000;
}

/** The most that a request can use: nothing of its input cached, its answer as long as it may be. */
export function estimateRequest(
  inputTokens: number,
  maxOutputTokens: number,
  price: Price | null,
): RequestEstimate {
  return {
    tokens: inputTokens + maxOutputTokens,
    money: costOf({ inputTokens, cachedInputTokens: 0, outputTokens: maxOutputTokens }, price),
  };
}

/**
 * A money budget that somebody set wants a price; the tree's default counts only where prices are known.
 * @throws RejectedError `INVALID_ARGUMENT` when one of the budgets limits money and the model has no price.
 */
export function requirePrice(
  budgets: readonly Budgets[],
  prices: Prices,
  provider: string,
  model: string | null,
): void {
  if (priceOf(prices, provider, model) !== null) return;
  if (budgets.every(({ money }) => money === undefined || money === null)) return;
  const name = `${provider}/${model ?? "(default)"}`;
  throw new RejectedError(
    "INVALID_ARGUMENT",
    `no price is known for ${name}, so a money budget cannot be kept; add \`${name}\` to the prices, choose another ` +
      "model, or leave the money budget out.",
    { argument: "budgets.money", model: name },
  );
}
