/** What the trees of one runtime share: its parts, and what its options say. Built once, in `createRuntime`. */
import type { ChooseSummariser } from "../lineage/handoff/summarise.ts";
import type { AgentConfig, Effect } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadId, TreeId } from "../protocol/ids.ts";
import { ASSUMED_CONTEXT_WINDOW } from "../protocol/limits.ts";
import type { LineageLimits } from "../protocol/lineage-limits.ts";
import type { Profile } from "../protocol/profile.ts";
import type { ToolHost } from "../protocol/tool.ts";
import type { Clock } from "../platform/clock.ts";
import type { Ids, Random } from "../platform/ids.ts";
import type { Logger } from "../platform/logger.ts";
import type { OneATurn } from "../platform/one-a-turn.ts";
import type { Redact } from "../platform/redact.ts";
import type { Tracer } from "../platform/telemetry.ts";
import type { BackOff } from "../execution/back-off.ts";
import type { Prices } from "../policy/budget.ts";
import type { ProviderAdapter } from "../providers/port.ts";
import type { Inspect } from "../session/lifecycle.ts";
import type { Store } from "../store/port.ts";
import type { BetweenTrees } from "./between-trees.ts";
import type { Releases, ReservationsOf } from "./budget-scopes.ts";
import type { Folders } from "./folders.ts";
import type { LongVerbs } from "./long-commands.ts";
import { requireEnforced } from "../policy/resolve-config.ts";
import type { ConfigRequest, PlanContext, Workspaces } from "./transaction.ts";

/** What all trees of a runtime share. */
export interface Shared {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: Random;
  readonly logger: Logger;
  readonly tracer: Tracer;
  readonly redact: Redact;
  readonly lineage: LineageLimits;
  readonly verbs: PlanContext["verbs"];
  readonly longVerbs: LongVerbs;
  /** Who writes a summary of a handoff; it answers null where none are wanted. */
  readonly summariser: ChooseSummariser;
  /** Secrets known by value, for text that is redacted while it streams. */
  readonly secrets: readonly string[];
  readonly prices: Prices;
  /** What takes its time and is in no commit. */
  readonly checks: OneATurn;
  readonly betweenTrees: BetweenTrees;
  /** Sessions of providers that are being closed. */
  readonly closing: Map<ThreadId, Promise<void>>;
  /** Folders in which runs begin, captures are taken or checkpoints written back, in whatever tree. */
  readonly folders: Folders;
  /** Trees that this runtime has. */
  readonly treesHere: () => Iterable<TreeId>;
  /** Native forks that a provider has not answered, also of runs that are over: what they will have made cannot be looked for yet. */
  readonly forking: Map<ThreadId, Promise<void>>;
  readonly reservationsOf: ReservationsOf;
  readonly releases: Releases;
  readonly inspect: Inspect | undefined;
  readonly toolHost: ToolHost;
  readonly adapter: (provider: string) => ProviderAdapter | undefined;
  readonly backOff: (provider: string) => BackOff;
  /** Own tools of the runtime, by name. */
  readonly hasTool: (name: string) => boolean;
  readonly resolveConfig: (request: ConfigRequest, profile: Profile) => AgentConfig;
  /** The same configuration on another provider or model. */
  readonly rebind: (
    config: AgentConfig,
    to: Pick<AgentConfig, "provider" | "model" | "effort">,
  ) => AgentConfig;
  /** Stored policy within what the agents above may do now (RES-8). */
  readonly withinCeiling: (config: AgentConfig, above: readonly AgentConfig[]) => AgentConfig;
  /** A root's run has settled whose provider keeps its own record of it: that is mirrored, when there is time. */
  readonly mirror: (threadId: ThreadId) => void;
  readonly workspaceExists: (path: string) => boolean;
  readonly workspaces: Workspaces;
}

/** @throws RejectedError `PROVIDER_UNAVAILABLE`; `POLICY_UNMET` for one that cannot hold an agent to these effects. */
export function requireAdapter(
  shared: Pick<Shared, "adapter">,
  provider: string,
  effects: readonly Effect[],
): void {
  const adapter = shared.adapter(provider);
  requireEnforcedBy(adapter, provider, effects);
  if (adapter !== undefined) return;
  throw new RejectedError(
    "PROVIDER_UNAVAILABLE",
    `this runtime was given no provider \`${provider}\`; add it by name, or choose another one.`,
    { provider },
  );
}

/** Of a provider that this runtime was not given nothing is known: its waits are left as they are stored (RES-9). */
export function parksWaits(shared: Pick<Shared, "adapter">, provider: string): boolean {
  const adapter = shared.adapter(provider);
  return adapter === undefined || (adapter.loop === "ours" && adapter.capabilities.parksWaits);
}

/** The context window of a model, in tokens; of one that nobody here knows, what is assumed of those. */
export function windowOf(adapter: ProviderAdapter | undefined, model: string | null): number {
  const name = model ?? adapter?.defaultModel ?? null;
  return (name === null ? null : adapter?.models()?.[name]?.contextWindow) ?? ASSUMED_CONTEXT_WINDOW;
}

/** Effects of agents whose loop is ours the runtime enforces itself. @throws RejectedError `POLICY_UNMET`. */
export function requireEnforcedBy(
  adapter: ProviderAdapter | undefined,
  provider: string,
  effects: readonly Effect[],
): void {
  if (adapter?.loop === "theirs") requireEnforced(provider, effects, adapter.effectiveEffects(effects));
}
