/** What all trees of a runtime share, built once of its options: its parts, with what is left out filled in. */
import type { AgentControl } from "../control/agent-control.ts";
import { Releases } from "../control/budget-scopes.ts";
import { Folders } from "../control/folders.ts";
import { requireEnforcedBy, type Shared } from "../control/shared.ts";
import { BackOff } from "../execution/back-off.ts";
import type { ThreadId, TreeId } from "../protocol/ids.ts";
import { lineageLimitsSchema } from "../protocol/lineage-limits.ts";
import { threadToolsSchema } from "../protocol/thread-tools.ts";
import { systemClock } from "../platform/clock.ts";
import { createIds, systemRandom } from "../platform/ids.ts";
import { guardedLogger, silentLogger } from "../platform/logger.ts";
import { OneATurn } from "../platform/one-a-turn.ts";
import { createRedactor } from "../platform/redact.ts";
import { defaultTracer } from "../platform/telemetry.ts";
import { folderExists } from "../platform/workspace.ts";
import { gitCapture } from "../platform/workspace/git-capture.ts";
import { gitWorktrees } from "../platform/workspace/git-worktrees.ts";
import { loadRoles } from "../policy/roles.ts";
import { rebindConfig, withinCeiling } from "../policy/resolve-config.ts";
import { answeringInTime } from "../providers/in-time.ts";
import { createMemoryStore } from "../store/memory.ts";
import { AgentThreads } from "../threads/between-trees.ts";
import type { ThreadPorts } from "../threads/ports.ts";
import { THREAD_VERBS } from "../threads/inbox-verbs.ts";
import { longVerbs } from "../threads/long-verbs.ts";
import { createToolHost } from "../tools/host.ts";
import { configResolver, type ConfigSources, providerFacts } from "./configs.ts";
import type { RuntimeOptions } from "./options.ts";
import { summarisersOf } from "./summarisers.ts";

/** What only the runtime itself knows: its trees, and its threads. */
export interface OfTheRuntime {
  readonly control: (tree: TreeId) => AgentControl;
  readonly threadPorts: () => ThreadPorts;
  readonly reservationsOf: Shared["reservationsOf"];
  readonly treesHere: Shared["treesHere"];
  readonly mirror: (thread: ThreadId) => Promise<void>;
}

export function sourcesOf(options: RuntimeOptions): ConfigSources {
  const tools = options.tools ?? [];
  const { providerCallMs: milliseconds } = lineageLimitsSchema.parse(options.lineage ?? {});
  return {
    providers: answeringInTime(options.providers ?? {}, {
      clock: options.clock ?? systemClock,
      milliseconds,
    }),
    tools,
    roles: options.roles ?? loadRoles([], tools),
    subagents: options.subagents ?? {},
    prices: options.prices ?? {},
  };
}

export function sharedOf(options: RuntimeOptions, sources: ConfigSources, of: OfTheRuntime): Shared {
  const clock = options.clock ?? systemClock;
  const random = options.random ?? systemRandom;
  const redact = createRedactor(options.secrets ?? []);
  const logger = guardedLogger(options.logger ?? silentLogger, redact);
  const { providers, tools } = sources;
  const threadTools = threadToolsSchema.parse(options.threadTools ?? { allow: "none" });
  const lineage = lineageLimitsSchema.parse(options.lineage ?? {});
  const adapter: Shared["adapter"] = (name) => (Object.hasOwn(providers, name) ? providers[name] : undefined);
  const backOffs = new Map<string, BackOff>();
  return {
    store: options.store ?? createMemoryStore({ clock }),
    clock,
    random,
    logger,
    ids: createIds(random),
    tracer: options.tracer ?? defaultTracer(),
    redact,
    summariser: summarisersOf({
      configured: options.summariser,
      adapter,
      clock,
      milliseconds: lineage.summaryMs,
      redact,
    }),
    verbs: THREAD_VERBS,
    longVerbs: longVerbs(of.threadPorts),
    lineage,
    secrets: options.secrets ?? [],
    prices: options.prices ?? {},
    checks: new OneATurn(clock),
    betweenTrees: new AgentThreads(of.threadPorts, threadTools),
    reservationsOf: of.reservationsOf,
    releases: new Releases(),
    closing: new Map(),
    forking: new Map(),
    folders: new Folders(),
    treesHere: of.treesHere,
    inspect: options.inspect,
    toolHost: createToolHost({
      tools,
      control: of.control,
      allow: threadTools.allow,
      redact,
      logger,
    }),
    adapter,
    backOff: (name) => {
      let backOff = backOffs.get(name);
      if (backOff === undefined) {
        backOff = new BackOff({ clock, random });
        backOffs.set(name, backOff);
      }
      return backOff;
    },
    hasTool: (name) => tools.some((tool) => tool.name === name),
    resolveConfig: configResolver(sources),
    rebind: (config, to) => rebindConfig(config, to, providerFacts(providers)),
    withinCeiling(config, above) {
      const ceilings = above.map((one) => one.effects);
      const left = { ...config, ...withinCeiling(config, ceilings, tools) };
      requireEnforcedBy(providers[config.provider], config.provider, left.effects);
      return left;
    },
    mirror(threadId) {
      of.mirror(threadId).catch((error: unknown) => {
        logger.warn({ threadId, err: error }, "the history of a run was not mirrored");
      });
    },
    workspaceExists: folderExists,
    workspaces: {
      capture: options.workspaceCapture === "git" ? gitCapture() : (options.workspaceCapture ?? null),
      worktrees: options.worktrees === undefined ? null : gitWorktrees(options.worktrees),
    },
  };
}
