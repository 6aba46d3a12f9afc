/** Effective configurations: what policy needs to know, gathered from the runtime's options (SPN-7). */
import type { ConfigRequest } from "../control/transaction.ts";
import type { AgentConfig, Effect } from "../protocol/agent.ts";
import { EFFECTS } from "../protocol/agent.ts";
import type { Profile } from "../protocol/profile.ts";
import type { Prices } from "../policy/budget.ts";
import type { ProviderFacts } from "../policy/choose-model.ts";
import { type AgentChoice, resolveConfig } from "../policy/resolve-config.ts";
import type { RoleSet } from "../policy/roles.ts";
import type { ProviderAdapter } from "../providers/port.ts";
import type { OwnTool } from "../tools/define-tool.ts";
import type { TreeOptions } from "./options.ts";

export interface ConfigSources {
  readonly providers: Readonly<Record<string, ProviderAdapter>>;
  readonly tools: readonly OwnTool[];
  readonly roles: RoleSet;
  readonly subagents: AgentChoice;
  readonly prices: Prices;
}

export function configResolver(sources: ConfigSources) {
  return (request: ConfigRequest, profile: Profile): AgentConfig =>
    resolveConfig({
      asked: request.asked,
      worktree: request.worktree,
      defaults: sources.subagents,
      parent: request.parent,
      providers: providerFacts(sources.providers),
      roles: sources.roles,
      tools: sources.tools,
      policy: { effects: request.above.map((config) => config.effects), workspace: request.parent.workspace },
      prices: sources.prices,
      budgetsAbove: request.above.map((config) => config.budgets),
      rolesCarryAuthority: profile.rolesCarryAuthority,
    });
}

/** The root's own: there is nobody above it but the runtime. */
export function rootConfig(sources: ConfigSources, options: TreeOptions, profile: Profile): AgentConfig {
  const names = Object.keys(sources.providers);
  const effects: readonly Effect[] = options.effects ?? EFFECTS;
  return resolveConfig({
    asked: {
      provider: options.provider ?? names[0] ?? null,
      model: options.model ?? null,
      effort: options.effort ?? null,
      role: options.role ?? null,
      instructions: options.instructions ?? null,
      tools: options.tools ?? null,
      workspace: options.workspace ?? null,
      budgets: options.budgets ?? {},
      maxOutputTokens: options.maxOutputTokens ?? null,
      modeHint: options.modeHint ?? null,
      onLostRun: options.onLostRun ?? "notify",
      pinPendingMail: options.pinPendingMail ?? false,
    },
    defaults: {},
    parent: null,
    providers: providerFacts(sources.providers),
    roles: sources.roles,
    tools: sources.tools,
    policy: { effects: [effects], workspace: null },
    prices: sources.prices,
    budgetsAbove: [],
    rolesCarryAuthority: profile.rolesCarryAuthority,
  });
}

export function providerFacts(providers: Readonly<Record<string, ProviderAdapter>>): ProviderFacts[] {
  return Object.entries(providers).map(([name, adapter]) => ({
    name,
    defaultModel: adapter.defaultModel,
    models: adapter.models(),
    effectiveEffects: adapter.loop === "theirs" ? (effects) => adapter.effectiveEffects(effects) : null,
  }));
}
