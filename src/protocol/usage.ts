/** Token usage and cost. `cost` is `null` where no price is known (BUD-7); `complete` is false where a provider gave none. */
export interface Usage {
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  /** USD, or null when any part of it ran on a model without a price. */
  readonly cost: number | null;
  /** True when every request behind these figures reported its usage. */
  readonly complete: boolean;
}

/** A sum over several agents. */
export interface UsageSum extends Usage {
  /** USD of the part that has a price, also where `cost` is null. */
  readonly pricedCost: number;
}

export const NO_USAGE: Usage = {
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  cost: 0,
  complete: true,
};

/** What is known of a request whose provider said nothing. */
export const UNREPORTED_USAGE: Usage = { ...NO_USAGE, complete: false };

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    cachedInputTokens: a.cachedInputTokens + b.cachedInputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    cost: a.cost === null || b.cost === null ? null : a.cost + b.cost,
    complete: a.complete && b.complete,
  };
}

/** Tokens that count against a budget: everything sent and everything received. */
export function totalTokens(usage: Usage): number {
  return usage.inputTokens + usage.outputTokens;
}

/** What a result reports: the work's own runs, and those plus all non-detached works under it (BUD-4). */
export interface UsageReport {
  readonly own: Usage;
  readonly subtree: Usage;
}
