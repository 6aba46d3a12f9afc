/**
 * Which provider, model and effort an agent runs on. Per field: the explicit argument, else the runtime's default for
 * subagents, else the parent's current step; a role then overrides (agents.md 80).
 *
 * - M1 A choice is checked against the models its provider offers; a provider that lists none takes any name.
 * - M2 A model chosen without an effort brings its own default. A role's model keeps the effort resolved before.
 */
import type { Effect } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import { clip } from "../platform/check.ts";

/** What a model's catalogue entry says that concerns policy. */
export interface ModelFacts {
  readonly contextWindow: number | null;
  readonly maxOutputTokens: number | null;
  readonly efforts: readonly string[] | null;
  readonly defaultEffort: string | null;
  readonly collaborates: boolean;
}

/** A configured provider: its name, and what its adapter says of its models. */
export interface ProviderFacts {
  readonly name: string;
  readonly defaultModel: string | null;
  readonly models: Readonly<Record<string, ModelFacts>> | null;
  /** What an agent can do there in fact that was given these effects; null where the runtime itself enforces them. */
  readonly effectiveEffects: ((effects: readonly Effect[]) => readonly Effect[]) | null;
}

export interface ModelRequest {
  readonly provider?: string | null;
  readonly model?: string | null;
  readonly effort?: string | null;
}

export interface ModelChoice {
  readonly provider: string;
  readonly model: string | null;
  readonly effort: string | null;
  /** Null where the provider lists no models. */
  readonly facts: ModelFacts | null;
}

/**
 * The choice before any role.
 * @throws RejectedError `INVALID_ARGUMENT` that lists what is available.
 */
export function chooseModel(
  asked: ModelRequest,
  defaults: ModelRequest,
  parent: ModelRequest | null,
  providers: readonly ProviderFacts[],
): ModelChoice {
  const chosenProvider = asked.provider ?? defaults.provider ?? null;
  const current = providerNamed(chosenProvider ?? parent?.provider ?? null, providers);
  // The default for subagents was chosen for another provider than the one that is asked for.
  const elsewhere = asked.provider !== undefined && asked.provider !== null;
  const named = asked.model ?? (elsewhere ? null : (defaults.model ?? null));
  const effort = asked.effort ?? defaults.effort ?? null;
  if (named !== null) {
    const found = requireModel(named, current, providers);
    return checked(found, effort ?? found.facts?.defaultEffort ?? null);
  }
  const changed = parent === null || current.name !== parent.provider;
  const model = changed ? current.defaultModel : (parent.model ?? null);
  const found =
    model === null ? { provider: current.name, model, facts: null } : requireModel(model, current, providers);
  const inherited = changed ? (found.facts?.defaultEffort ?? null) : (parent.effort ?? null);
  return checked(found, effort ?? inherited);
}

/** The choice after a role: its model and effort beat what was chosen before. */
export function overrideModel(
  before: ModelChoice,
  role: ModelRequest,
  providers: readonly ProviderFacts[],
): ModelChoice {
  const { model } = role;
  const found =
    model === null || model === undefined
      ? before
      : requireModel(model, providerNamed(before.provider, providers), providers);
  return checked(found, role.effort ?? before.effort ?? found.facts?.defaultEffort ?? null);
}

/** Finds `model` at the current provider, or, written `provider/model`, at another. */
export function findModel(
  model: string,
  current: ProviderFacts,
  providers: readonly ProviderFacts[],
): Omit<ModelChoice, "effort"> | null {
  const own = factsOf(current, model);
  if (own !== undefined && own !== null) return { provider: current.name, model, facts: own };
  // The name of a provider before the stroke wins over a provider that takes any name, strokes included.
  const stroke = model.indexOf("/");
  const other = providers.find(({ name }) => stroke > 0 && name === model.slice(0, stroke));
  if (other !== undefined) {
    const rest = model.slice(stroke + 1);
    const facts = factsOf(other, rest);
    if (facts !== undefined && rest !== "") return { provider: other.name, model: rest, facts };
  }
  return own === null ? { provider: current.name, model, facts: null } : null;
}

function requireModel(
  model: string,
  current: ProviderFacts,
  providers: readonly ProviderFacts[],
): Omit<ModelChoice, "effort"> {
  const found = findModel(model, current, providers);
  if (found !== null) return found;
  const available = availableModels(current, providers);
  throw new RejectedError(
    "INVALID_ARGUMENT",
    `model \`${clip(model)}\` is not available; available models: ${available.join(", ") || "none"}.`,
    { argument: "model", value: clip(model), available },
  );
}

/** The current provider's models by name, those of the others with their provider in front. */
export function availableModels(
  current: ProviderFacts,
  providers: readonly ProviderFacts[],
): readonly string[] {
  return providers
    .toSorted((a, b) => Number(b.name === current.name) - Number(a.name === current.name))
    .flatMap(({ name, models }) => {
      const prefix = name === current.name ? "" : `${name}/`;
      return models === null
        ? [`${prefix}(any name)`]
        : Object.keys(models).map((model) => `${prefix}${model}`);
    });
}

/** @throws RejectedError `INVALID_ARGUMENT` for a name that is not configured, and for none at all. */
export function providerNamed(name: string | null, providers: readonly ProviderFacts[]): ProviderFacts {
  const found = providers.find((provider) => provider.name === name);
  if (found !== undefined) return found;
  const available = providers.map((provider) => provider.name);
  if (available.length === 0) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      "no provider is configured; give one: createRuntime({ providers: { … } }).",
      { argument: "provider", value: name, available },
    );
  }
  const listed = available.join(", ");
  throw new RejectedError(
    "INVALID_ARGUMENT",
    name === null
      ? `provider is missing; name one of: ${listed}.`
      : `provider \`${clip(name)}\` is not configured; configured providers: ${listed}.`,
    { argument: "provider", value: name === null ? null : clip(name), available },
  );
}

/** Undefined: not offered. Null: taken, nothing known. */
function factsOf(provider: ProviderFacts, model: string): ModelFacts | null | undefined {
  if (provider.models === null) return null;
  return Object.hasOwn(provider.models, model) ? provider.models[model] : undefined;
}

function checked(found: Omit<ModelChoice, "effort">, effort: string | null): ModelChoice {
  const efforts = found.facts?.efforts ?? null;
  if (effort !== null && efforts !== null && !efforts.includes(effort)) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `reasoning_effort \`${clip(effort)}\` is not supported by model \`${found.model}\`; supported: ` +
        `${efforts.join(", ") || "none, leave it out"}.`,
      { argument: "reasoning_effort", value: clip(effort), model: found.model, available: efforts },
    );
  }
  return { provider: found.provider, model: found.model, facts: found.facts, effort };
}
