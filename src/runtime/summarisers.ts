/**
 * Who writes a summary (lineage C6.6): the provider whose conversation it was, where it can; else the one that the runtime was
 * given; the deterministic one for want of either. Each within the same time.
 */
import type { Clock } from "../platform/clock.ts";
import type { Redact } from "../platform/redact.ts";
import {
  type ChooseSummariser,
  deterministic,
  modelSummariser,
  type Summariser,
  withinTime,
} from "../lineage/handoff/summarise.ts";
import type { ProviderAdapter } from "../providers/port.ts";

export function summarisersOf(given: {
  /** Null: none are written, by nobody. */
  readonly configured: Summariser | null | undefined;
  readonly adapter: (name: string) => ProviderAdapter | undefined;
  readonly clock: Clock;
  readonly milliseconds: number;
  readonly redact: Redact;
}): ChooseSummariser {
  const { configured, adapter, clock, milliseconds, redact } = given;
  const timed = (summariser: Summariser): Summariser => withinTime(summariser, clock, milliseconds);
  return async (left) => {
    if (configured === null) return null;
    const own = left === null ? undefined : adapter(left);
    if (own?.summarise !== undefined && (await canSummarise(own))) {
      const ask = own.summarise.bind(own);
      return timed(modelSummariser(left!, (prompt, signal) => ask(prompt, signal), redact));
    }
    return configured === undefined ? deterministic : timed(configured);
  };
}

/** A provider that does not answer that does not summarise either. */
async function canSummarise(adapter: ProviderAdapter): Promise<boolean> {
  if (adapter.loop === "ours") return adapter.threads.context.canSummarise;
  const capabilities = await adapter.capabilities().catch(() => null);
  return capabilities?.context.canSummarise ?? false;
}
