/** Options of `createRuntime` and `openTree`, checked at the edge and typed after (style: input is parsed once). */
import { isAbsolute } from "node:path";
import { z } from "zod";
import { EFFECTS, type Effect } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import { isThreadId, type TreeId } from "../protocol/ids.ts";
import {
  type Budgets,
  budgetsSchema,
  type Limits,
  limitsSchema,
  type LimitsInput,
} from "../protocol/limits.ts";
import { type LineageLimitsInput, lineageLimitsSchema } from "../protocol/lineage-limits.ts";
import type { Summariser } from "../lineage/handoff/summarise.ts";
import { type Profile, type ProfileName, PROFILES } from "../protocol/profile.ts";
import { type ThreadToolsPolicy, threadToolsSchema } from "../protocol/thread-tools.ts";
import { CONTINUITIES, type Continuity } from "../protocol/thread.ts";
import type { ProcessIdentity, ProvenDead } from "../protocol/process-identity.ts";
import type { CallOptions } from "../platform/abortable.ts";
import {
  check,
  clockSchema,
  functionOf,
  optionsOf,
  type Shape,
  signalSchema,
  withMethods,
} from "../platform/check.ts";
import type { Clock } from "../platform/clock.ts";
import type { Random } from "../platform/ids.ts";
import type { Logger } from "../platform/logger.ts";
import type { Tracer } from "../platform/telemetry.ts";
import type { WorkspaceCapture } from "../platform/workspace/port.ts";
import type { Prices } from "../policy/budget.ts";
import type { RoleSet } from "../policy/roles.ts";
import type { AgentChoice } from "../policy/resolve-config.ts";
import type { ProviderAdapter } from "../providers/port.ts";
import type { Inspect } from "../session/lifecycle.ts";
import type { Store } from "../store/port.ts";
import type { OwnTool } from "../tools/define-tool.ts";

/** What `createRuntime` takes; everything may be left out. */
export interface RuntimeOptions {
  /** Default: a store in memory, gone with the process. */
  readonly store?: Store;
  /** Adapters by the names that agents' records use. */
  readonly providers?: Readonly<Record<string, ProviderAdapter>>;
  readonly tools?: readonly OwnTool[];
  /** Role files, loaded with `loadRoles`; the built-in ones are always there. */
  readonly roles?: RoleSet;
  /**
   * Overrides of the defaults of BUD-6; for new trees. `residents`, `runningTotal`, those of leases and `pollMs` hold for the
   * runtime.
   */
  readonly limits?: LimitsInput;
  /** Numbers of threads, handoffs and snapshots (lineage C18). */
  readonly lineage?: LineageLimitsInput;
  /**
   * Writes the summaries of forks that ask for one, such as `modelSummariser(…)`, where the provider that is left does not write
   * its own; default: the deterministic one, which also stands in for one that fails or takes longer than `lineage.summaryMs`.
   * Null: none are written.
   */
  readonly summariser?: Summariser | null;
  /** USD per million tokens by `<provider>/<model>` (BUD-7). */
  readonly prices?: Prices;
  readonly profile?: ProfileName;
  /**
   * Tools with which agents reach threads of other trees, and whether somebody is asked before one acts there. Default: none;
   * agents stay in their tree. The `codex` profile has none of them.
   */
  readonly threadTools?: ThreadToolsPolicy;
  /** What children get that neither a spawn's argument nor a role chooses. */
  readonly subagents?: AgentChoice;
  /** Texts that must never reach logs, events, spans or handoffs, beside the shapes that are known (SEC-3). */
  readonly secrets?: readonly string[];
  /**
   * Captures the state of an agent's workspace after each of its runs: `git`, or a port of one's own. Default: none;
   * checkpoints are of the context alone then.
   */
  readonly workspaceCapture?: WorkspaceCapture | "git";
  /** A folder of its own, by its full path, for the worktrees of `isolation: "worktree"`; without it that is refused. */
  readonly worktrees?: string;
  /**
   * Told when a tree is this process's no more though it was not given back: another one has taken it over, or its lease could
   * not be renewed in time, as after a sleep of the machine. Its runs were cut off; `openTree` takes it back unless another has it.
   */
  readonly onTreeLost?: (treeId: TreeId, why: string) => unknown;
  readonly logger?: Logger;
  readonly tracer?: Tracer;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Watches the lifecycle of loaded sessions as xstate's inspectors do. */
  readonly inspect?: Inspect;
  /** Who this process is to others that share the store. */
  readonly identity?: ProcessIdentity;
  /** Whether another process of this host is proved dead. */
  readonly provenDead?: ProvenDead;
}

/**
 * What `openTree` takes: a new tree is made of it; of an existing one, `id`, `onHostGone` and `wakeOnAgentMessages`, of which
 * a tree that is open here already takes no other values.
 */
export interface TreeOptions {
  /** An existing tree, by the id of its root's thread; left out, a new tree is made. */
  readonly id?: string;
  readonly title?: string;
  /** The root's provider by name; default: the first one given. */
  readonly provider?: string;
  readonly model?: string;
  readonly effort?: string;
  readonly instructions?: string;
  readonly role?: string;
  /** Names of own tools; default: all that its effects allow. */
  readonly tools?: readonly string[];
  /** Default: all effects. */
  readonly effects?: readonly Effect[];
  readonly workspace?: string;
  readonly budgets?: Budgets;
  /** Over those of the runtime; those that hold for a whole runtime are not among them. */
  readonly limits?: Omit<LimitsInput, keyof typeof OF_THE_RUNTIME>;
  readonly profile?: ProfileName;
  /** The root's loop belongs to somebody else: it has a mailbox and tools, and no runs of ours (HDR). */
  readonly hostDriven?: boolean;
  /** When the last connection of the root's host is closed: works go on (default), or are interrupted after a grace time. */
  readonly onHostGone?: "keep" | "interrupt";
  readonly onLostRun?: "notify" | "retry";
  readonly pinPendingMail?: boolean;
  readonly maxOutputTokens?: number;
  readonly modeHint?: string;
  /** `codex`: mail to an idle root starts a run (B49). Of an existing tree: for this opening, over what it was made with. */
  readonly wakeOnAgentMessages?: boolean;
  /** `projected-only`: every run opens on the pinned context alone, nothing native is resumed (lineage C4.14). */
  readonly continuity?: Continuity;
}

/** Limits of the whole runtime: a tree has none of its own. */
const OF_THE_RUNTIME = {
  residents: true,
  runningTotal: true,
  leaseMs: true,
  leaseRenewMs: true,
  leaseGiveUpMs: true,
  pollMs: true,
} as const;

const name = z.string().min(1);
const profile = z.enum(["default", "codex"]);
const onLostRun = z.enum(["notify", "retry"]);

export const storeSchema = withMethods<Store>(
  "is no store; give what `await openSqliteStore(…)` or `createMemoryStore()` returns",
  "claim",
  "commit",
  "read",
);

/** What can be chosen for an agent, by a spawn or for all of them. */
export const choiceShape: Shape<AgentChoice> = {
  provider: name.nullable().optional(),
  model: name.nullable().optional(),
  effort: name.nullable().optional(),
  instructions: z.string().nullable().optional(),
  tools: z.array(name).nullable().optional(),
  effects: z.array(z.enum(EFFECTS)).nullable().optional(),
  workspace: name.nullable().optional(),
  budgets: budgetsSchema.optional(),
  maxOutputTokens: z.number().int().min(1).nullable().optional(),
  modeHint: z.string().nullable().optional(),
  onLostRun: onLostRun.optional(),
  pinPendingMail: z.boolean().optional(),
};

const treeSchema = optionsOf<TreeOptions & CallOptions>({
  id: z
    .string()
    .refine(isThreadId, "is not the id of a tree; it is its root's thread id, such as thread_…")
    .optional(),
  title: z.string().min(1).max(200).optional(),
  provider: name.optional(),
  model: name.optional(),
  effort: name.optional(),
  instructions: z.string().optional(),
  role: name.optional(),
  tools: z.array(name).optional(),
  effects: z.array(z.enum(EFFECTS)).optional(),
  workspace: name.optional(),
  budgets: budgetsSchema.optional(),
  limits: limitsSchema.omit(OF_THE_RUNTIME).partial().optional(),
  profile: profile.optional(),
  hostDriven: z.boolean().optional(),
  onHostGone: z.enum(["keep", "interrupt"]).optional(),
  onLostRun: onLostRun.optional(),
  pinPendingMail: z.boolean().optional(),
  maxOutputTokens: z.number().int().min(1).optional(),
  modeHint: z.string().optional(),
  wakeOnAgentMessages: z.boolean().optional(),
  continuity: z.enum(CONTINUITIES).optional(),
  signal: signalSchema.optional(),
});

/** What may be given when a tree is opened again: its id, and what holds for one opening. */
const OF_A_REOPENED_TREE: readonly (keyof TreeOptions)[] = ["id", "wakeOnAgentMessages", "onHostGone"];

/** @throws RejectedError `INVALID_ARGUMENT` that names every fault. */
export function checkTreeOptions(options: TreeOptions & CallOptions): void {
  const { signal: _signal, ...asked } = check("Runtime.openTree", treeSchema, options);
  if (options.id === undefined) return;
  const made = Object.keys(asked).filter((key) => !OF_A_REOPENED_TREE.includes(key as keyof TreeOptions));
  if (made.length === 0) return;
  throw new RejectedError(
    "INVALID_ARGUMENT",
    `a tree keeps what it was made with; beside its id, leave out ${made.join(", ")}.`,
    { argument: made[0]!, options: made },
  );
}

/**
 * What holds for one opening is not changed by asking for the tree again.
 * @throws RejectedError `INVALID_ARGUMENT` for another value than that of the opening.
 */
export function requireOpenedAs(
  options: TreeOptions,
  opened: Required<Pick<TreeOptions, "wakeOnAgentMessages" | "onHostGone">>,
): void {
  const other = (["wakeOnAgentMessages", "onHostGone"] as const).filter(
    (option) => options[option] !== undefined && options[option] !== opened[option],
  );
  if (other.length === 0) return;
  throw new RejectedError(
    "INVALID_ARGUMENT",
    `the tree is open here with another ${other.join(" and ")}; close it and open it anew, or leave that out.`,
    { argument: other[0]!, options: other },
  );
}

/**
 * What a new tree has where its options do not say otherwise.
 * @throws RejectedError `INVALID_ARGUMENT` for bounds of waits that contradict each other.
 */
export function treeDefaults(
  ofRuntime: RuntimeOptions,
  options: TreeOptions,
): { readonly limits: Limits; readonly profile: Profile } {
  const profile = PROFILES[options.profile ?? ofRuntime.profile ?? "default"];
  const limits = limitsSchema.parse({ running: profile.running, ...ofRuntime.limits, ...options.limits });
  requireWaitBounds(limits);
  return { limits, profile };
}

/** @throws RejectedError `INVALID_ARGUMENT` for a default wait outside of its own bounds (agents.md 29). */
function requireWaitBounds({ waitMinimumMs, waitDefaultMs, waitMaximumMs }: Limits): void {
  if (waitMinimumMs <= waitDefaultMs && waitDefaultMs <= waitMaximumMs) return;
  throw new RejectedError(
    "INVALID_ARGUMENT",
    `waitDefaultMs ${waitDefaultMs} lies outside of waitMinimumMs ${waitMinimumMs} and waitMaximumMs ${waitMaximumMs}.`,
    { waitMinimumMs, waitDefaultMs, waitMaximumMs },
  );
}

/** @throws RejectedError `INVALID_ARGUMENT` unless an owner renews in time, and gives up before another may claim (REC-6). */
export function requireLeaseBounds({ leaseRenewMs, leaseGiveUpMs, leaseMs }: Limits): void {
  if (leaseRenewMs < leaseGiveUpMs && leaseGiveUpMs < leaseMs) return;
  throw new RejectedError(
    "INVALID_ARGUMENT",
    `leaseRenewMs ${leaseRenewMs} is to be below leaseGiveUpMs ${leaseGiveUpMs}, and that below leaseMs ${leaseMs}.`,
    { leaseRenewMs, leaseGiveUpMs, leaseMs },
  );
}

/** A promise that nobody awaited, a list in place of names, a model in place of an adapter: each is told what to give. */
const runtimeSchema = optionsOf<RuntimeOptions>({
  store: storeSchema.optional(),
  providers: z
    .record(
      z.string(),
      withMethods<ProviderAdapter>(
        "is no adapter; make one with `createModelProvider` or `scripted`",
        "models",
        "openSession",
      ),
      "is no record; give adapters by name",
    )
    .optional(),
  tools: z
    .array(withMethods<OwnTool>("is no tool; make one with `defineTool`", "call"))
    .refine(
      (tools) => new Set(tools.map((tool) => tool.name)).size === tools.length,
      "holds two tools of one name; names are unique",
    )
    .optional(),
  roles: z
    .custom<RoleSet>(
      (value) => (value as Partial<RoleSet> | null)?.roles instanceof Map,
      "is no set of roles; give what `loadRoles` returns",
    )
    .optional(),
  limits: limitsSchema.partial().optional(),
  lineage: lineageLimitsSchema.partial().optional(),
  summariser: withMethods<Summariser>("is no summariser", "summarise").nullable().optional(),
  prices: z
    .record(
      z.string(),
      optionsOf<Prices[string]>({
        input: z.number().min(0),
        cachedInput: z.number().min(0),
        output: z.number().min(0),
      }),
    )
    .optional(),
  profile: profile.optional(),
  threadTools: threadToolsSchema.optional(),
  subagents: optionsOf<AgentChoice>(choiceShape).optional(),
  secrets: z.array(z.string()).optional(),
  workspaceCapture: z
    .union([
      z.literal("git"),
      withMethods<WorkspaceCapture>('is no capture; give "git" or `gitCapture(…)`', "available", "capture"),
    ])
    .optional(),
  worktrees: z.string().refine(isAbsolute, "is not absolute; give the full path of a folder").optional(),
  logger: withMethods<Logger>(
    "is no logger; give `stderrLogger(…)` or one of pino's shape",
    "debug",
    "info",
    "warn",
    "error",
  ).optional(),
  tracer: withMethods<Tracer>("is no tracer of OpenTelemetry", "startSpan").optional(),
  clock: clockSchema.optional(),
  random: withMethods<Random>("is no source of randomness", "bytes", "fraction").optional(),
  inspect: z
    .custom<Inspect>(
      (value) =>
        typeof value === "function" ||
        typeof (value as { readonly next?: unknown } | null)?.next === "function",
      "is no inspector; give a function, or an object with `next`",
    )
    .optional(),
  identity: optionsOf<ProcessIdentity>({
    host: z.string(),
    bootId: z.string(),
    pid: z.number().int(),
    startedAt: z.string(),
    pidNamespace: z.string().optional(),
  }).optional(),
  onTreeLost: functionOf<NonNullable<RuntimeOptions["onTreeLost"]>>("is no function").optional(),
  provenDead: functionOf<NonNullable<RuntimeOptions["provenDead"]>>("is no function").optional(),
});

export function checkRuntimeOptions(options: RuntimeOptions): void {
  check("createRuntime", runtimeSchema, options);
}
