/**
 * The effective configuration of an agent (SPN-7), resolved once at its spawn. Model and effort come first, then the
 * role, then effects, tools and workspace under the live policy (agents.md 17, 80, 81).
 *
 * - C1 An explicit argument that widens is refused; what a role or a default asks for beyond the ceiling is cut off and
 *   stands in `adjustments` (POL-1, POL-2).
 * - C2 The result holds every value, so that nothing is looked up again later.
 */
import { isAbsolute, relative, resolve, sep } from "node:path";
import { type AgentConfig, type AgentWorktree, type Effect, EFFECTS, effectsOf } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { Budgets } from "../protocol/limits.ts";
import { type Prices, requirePrice } from "./budget.ts";
import {
  chooseModel,
  findModel,
  type ModelChoice,
  type ModelRequest,
  overrideModel,
  type ProviderFacts,
  providerNamed,
} from "./choose-model.ts";
import { clip, narrow, type ToolDeclaration, toolsWithin, within } from "./effects.ts";
import { policyHash } from "./policy-hash.ts";
import type { Role } from "./role-file.ts";
import { chooseRole, type RoleSet } from "./roles.ts";

/** Names of no model: a provider that takes any name would be asked for them in vain. */
const CLAUDE_ALIASES: ReadonlySet<string> = new Set(["sonnet", "opus", "haiku"]);

type Adjustment = AgentConfig["adjustments"][number];

/** What can be chosen for an agent; what is left out comes from the next source. */
export interface AgentChoice extends ModelRequest {
  readonly instructions?: string | null;
  /** Names of own tools. */
  readonly tools?: readonly string[] | null;
  readonly effects?: readonly Effect[] | null;
  readonly workspace?: string | null;
  readonly budgets?: Budgets;
  readonly maxOutputTokens?: number | null;
  readonly modeHint?: string | null;
  readonly onLostRun?: AgentConfig["onLostRun"];
  readonly pinPendingMail?: boolean;
}

/** The parent as it runs now: its configuration, with the model and effort of its current step. */
export type ParentStep = Pick<
  AgentConfig,
  | "provider"
  | "model"
  | "effort"
  | "tools"
  | "effects"
  | "workspace"
  | "maxOutputTokens"
  | "modeHint"
  | "onLostRun"
  | "pinPendingMail"
>;

export interface ResolveInput {
  /** Explicit arguments of the spawn. */
  readonly asked: AgentChoice & { readonly role?: string | null };
  /** The runtime's defaults: for subagents, or for the root. */
  readonly defaults: AgentChoice;
  /** Null for a root. */
  readonly parent: ParentStep | null;
  readonly providers: readonly ProviderFacts[];
  readonly roles: RoleSet;
  /** The own tools of the runtime, in their order. */
  readonly tools: readonly ToolDeclaration[];
  /** What is in force while it spawns: the effects of each ancestor and of the runtime, the workspace of the parent. */
  readonly policy: { readonly effects: readonly (readonly Effect[])[]; readonly workspace: string | null };
  readonly prices: Prices;
  /** Budgets that somebody set on agents above. */
  readonly budgetsAbove: readonly Budgets[];
  /** Made for this agent; its folder is its workspace, whatever its parent's is. */
  readonly worktree?: { readonly folder: string; readonly worktree: AgentWorktree } | undefined;
  /** The profile's trait of the same name. */
  readonly rolesCarryAuthority: boolean;
}

/**
 * @throws RejectedError `INVALID_ARGUMENT`, `AUTHORITY_ESCALATION_DENIED`, or `POLICY_UNMET` for a provider that cannot hold the
 * agent to its effects; the first fault in the order above.
 */
export function resolveConfig(input: ResolveInput): AgentConfig {
  const { asked, defaults, parent } = input;
  const adjustments: Adjustment[] = [];
  const before = chooseModel(asked, defaults, parent, input.providers);
  const role = chooseRole(asked.role, input.roles);
  const choice = role === null ? before : applyRole(before, role, input, adjustments);
  const effects = resolveEffects(role, input, adjustments);
  requireEnforced(choice.provider, effects, effectiveAt(choice.provider, effects, input.providers));
  const tools = resolveTools(role, effects, input, adjustments);
  const workspace = resolveWorkspace(input);
  const budgets = asked.budgets ?? defaults.budgets ?? {};
  requirePrice([budgets, ...input.budgetsAbove], input.prices, choice.provider, choice.model);
  const sameModel = parent?.provider === choice.provider && parent.model === choice.model;
  const config: Omit<AgentConfig, "policyHash"> = {
    provider: choice.provider,
    model: choice.model,
    effort: choice.effort,
    role: role?.name ?? null,
    instructions: joinInstructions(asked.instructions ?? defaults.instructions, role?.instructions),
    tools,
    leaf: role?.leaf === true || choice.facts?.collaborates === false,
    ...(role?.leaf === true && { leafByRole: true }),
    effects,
    workspace: input.worktree?.folder ?? workspace,
    worktree: input.worktree?.worktree ?? null,
    budgets,
    maxOutputTokens:
      asked.maxOutputTokens ??
      defaults.maxOutputTokens ??
      (sameModel ? parent.maxOutputTokens : null) ??
      choice.facts?.maxOutputTokens ??
      null,
    contextWindow: choice.facts?.contextWindow ?? null,
    modeHint: asked.modeHint ?? defaults.modeHint ?? parent?.modeHint ?? null,
    onLostRun: asked.onLostRun ?? defaults.onLostRun ?? parent?.onLostRun ?? "notify",
    pinPendingMail: asked.pinPendingMail ?? defaults.pinPendingMail ?? parent?.pinPendingMail ?? false,
    adjustments,
  };
  return { ...config, policyHash: policyHash(config) };
}

/**
 * The same agent on another provider or model: what the model decides is taken from it, everything else stays (lineage C10).
 * @throws RejectedError `INVALID_ARGUMENT` for a provider or model that is not there, `POLICY_UNMET` for one that cannot hold
 * the agent to its effects.
 */
export function rebindConfig(
  config: AgentConfig,
  to: Pick<AgentConfig, "provider" | "model" | "effort">,
  providers: readonly ProviderFacts[],
): AgentConfig {
  const { provider, model, effort, facts } = chooseModel(to, {}, config, providers);
  requireEnforced(provider, config.effects, effectiveAt(provider, config.effects, providers));
  const { policyHash: _, ...kept } = config;
  const bound = {
    ...kept,
    provider,
    model,
    effort,
    leaf: config.leafByRole === true || facts?.collaborates === false,
    contextWindow: facts?.contextWindow ?? null,
    maxOutputTokens:
      provider === config.provider && model === config.model
        ? config.maxOutputTokens
        : (facts?.maxOutputTokens ?? null),
  };
  return { ...bound, policyHash: policyHash(bound) };
}

/**
 * What a stored agent may do now: its own policy within its ancestors' present one (RES-8). It only loses.
 */
export function withinCeiling(
  config: AgentConfig,
  ceilings: readonly (readonly Effect[])[],
  tools: readonly ToolDeclaration[],
): Pick<AgentConfig, "effects" | "tools"> {
  const effects = narrow(config.effects, ...ceilings);
  const allowed = toolsWithin(tools, effects);
  return { effects, tools: config.tools.filter((name) => allowed.includes(name)) };
}

function applyRole(
  before: ModelChoice,
  role: Role,
  input: ResolveInput,
  adjustments: Adjustment[],
): ModelChoice {
  const ignore = (field: string, asked: string): void =>
    void adjustments.push({ field, asked, effect: "ignored" });
  for (const { field, asked } of role.ignored) ignore(field, asked);
  if (!input.rolesCarryAuthority) for (const { field, asked } of role.authority) ignore(field, asked);
  let { model, effort } = role;
  if (model !== null && !mayMoveTo(model, before, input)) {
    ignore("model", model);
    model = null;
    // An effort that was chosen for that model goes with it where the other one has none of that name.
    const efforts = before.facts?.efforts ?? null;
    if (effort !== null && efforts !== null && !efforts.includes(effort)) {
      ignore("effort", effort);
      effort = null;
    }
  }
  return overrideModel(before, { model, effort }, input.providers);
}

/** Files written for other programs name models that are not here; that harms no role (decision 0014). */
function mayMoveTo(model: string, before: ModelChoice, input: ResolveInput): boolean {
  const found = findModel(model, providerNamed(before.provider, input.providers), input.providers);
  if (found === null || (found.facts === null && CLAUDE_ALIASES.has(model))) return false;
  return input.rolesCarryAuthority || found.provider === before.provider;
}

function resolveEffects(
  role: Role | null,
  input: ResolveInput,
  adjustments: Adjustment[],
): readonly Effect[] {
  const { asked, defaults, parent, policy } = input;
  const ceiling = narrow(...policy.effects, parent?.effects ?? EFFECTS);
  const clipTo = (limit: readonly Effect[], wanted: readonly Effect[]): readonly Effect[] => {
    const { granted, denied } = clip(wanted, limit);
    if (denied.length > 0)
      adjustments.push({ field: "effects", asked: wanted.join(", "), effect: "clipped" });
    return granted;
  };
  let effects = ceiling;
  if (asked.effects !== null && asked.effects !== undefined) {
    if (!within(asked.effects, ceiling))
      throw escalation("effects", asked.effects.join(", "), ceiling.join(", "));
    effects = narrow(asked.effects);
  } else if (defaults.effects !== null && defaults.effects !== undefined)
    effects = clipTo(ceiling, defaults.effects);
  if (role === null || role.effects === null || !input.rolesCarryAuthority) return effects;
  return clipTo(effects, role.effects);
}

function resolveTools(
  role: Role | null,
  effects: readonly Effect[],
  input: ResolveInput,
  adjustments: Adjustment[],
): readonly string[] {
  const { asked, defaults, parent, tools } = input;
  const allowed = toolsWithin(tools, effects);
  if (asked.tools !== null && asked.tools !== undefined) requireTools(asked.tools, effects, tools);
  const chosen = asked.tools ?? defaults.tools ?? parent?.tools ?? tools.map(({ name }) => name);
  const own = allowed.filter((name) => chosen.includes(name));
  if (role === null) return own;
  const { tools: wanted, denied } = role;
  if (wanted === null) return own.filter((name) => !denied.includes(name));
  // An explicit list stands for itself; without one a role may name any tool within the effects (POL-1).
  const granted = asked.tools === null || asked.tools === undefined ? allowed : own;
  if (wanted.some((name) => !granted.includes(name))) {
    adjustments.push({ field: "tools", asked: wanted.join(", "), effect: "clipped" });
  }
  return granted.filter((name) => wanted.includes(name) && !denied.includes(name));
}

function requireTools(
  names: readonly string[],
  effects: readonly Effect[],
  tools: readonly ToolDeclaration[],
): void {
  for (const name of names) {
    const tool = tools.find((one) => one.name === name);
    if (tool === undefined) {
      const available = tools.map((one) => one.name);
      throw new RejectedError(
        "INVALID_ARGUMENT",
        `tool \`${name}\` is unknown; available tools: ${available.join(", ") || "none"}.`,
        { argument: "tools", value: name, available },
      );
    }
    if (!within(effectsOf(tool), effects)) {
      throw escalation("tools", `${name} (${effectsOf(tool).join(", ")})`, effects.join(", "));
    }
  }
}

function resolveWorkspace({ asked, defaults, parent, policy }: ResolveInput): string | null {
  const ceiling = policy.workspace ?? parent?.workspace ?? null;
  const wanted = asked.workspace ?? null;
  if (wanted === null) return ceiling ?? defaults.workspace ?? null;
  if (!isAbsolute(wanted)) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `workspace \`${wanted}\` is not absolute; give a full path.`,
      {
        argument: "workspace",
        value: wanted,
      },
    );
  }
  const path = resolve(wanted);
  if (ceiling !== null && !contains(ceiling, path)) throw escalation("workspace", path, ceiling);
  return path;
}

/** By the names alone: whoever opens the folder has to look where its links lead. */
function contains(folder: string, path: string): boolean {
  const step = relative(folder, path);
  return step === "" || (step !== ".." && !step.startsWith(`..${sep}`) && !isAbsolute(step));
}

function effectiveAt(
  provider: string,
  effects: readonly Effect[],
  providers: readonly ProviderFacts[],
): readonly Effect[] {
  return providerNamed(provider, providers).effectiveEffects?.(effects) ?? effects;
}

/** What narrows is enforced by the provider, or there is no such agent (POL-2). */
export function requireEnforced(
  provider: string,
  effects: readonly Effect[],
  effective: readonly Effect[],
): void {
  const { denied } = clip(effective, effects);
  if (denied.length === 0) return;
  throw new RejectedError(
    "POLICY_UNMET",
    `\`${provider}\` cannot keep ${denied.join(" and ")} from an agent with the effects ${effects.join(", ") || "none"}; ` +
      `choose another provider, or allow ${denied.join(", ")} as well.`,
    { provider, effects: [...effects], unmet: [...denied] },
  );
}

function escalation(field: string, asked: string, ceiling: string): RejectedError {
  return new RejectedError(
    "AUTHORITY_ESCALATION_DENIED",
    `${field} \`${asked}\` is wider than what the caller has itself (${ceiling || "nothing"}); ask for less.`,
    { argument: field, asked, ceiling },
  );
}

function joinInstructions(base: string | null | undefined, ofRole: string | null | undefined): string | null {
  const parts = [base, ofRole].filter((part) => part !== null && part !== undefined && part !== "");
  return parts.length === 0 ? null : parts.join("\n\n");
}
