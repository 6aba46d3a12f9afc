/**
 * The provider `model`: agents on any language model of the AI SDK's specification v4. Here stand its settings and which
 * model a request gets; `run-step.ts` makes the requests. The SDK's packages are the user's; of theirs only types are
 * needed, and nothing at run time.
 *
 * - Models given by name are checked when the provider is made, models found by a function when first asked for.
 * - A session holds nothing between steps: its transcript is the runtime's (REC-5).
 */
import type { LanguageModelV4, SharedV4ProviderOptions } from "@ai-sdk/provider";
import { RejectedError } from "../../protocol/errors.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { OWN_LOOP_THREADS } from "../own-loop.ts";
import type { ModelInfo, OwnLoopAdapter } from "../port.ts";
import { runStep, type StepSettings } from "./run-step.ts";

/** A model and what is known of it. */
export interface ModelEntry extends Partial<ModelInfo> {
  readonly model: LanguageModelV4;
}

export interface ModelProviderOptions {
  /**
   * The models by the names that agents use, such as `{ "openai/gpt-5": openai("gpt-5") }`; with an entry, figures such as
   * `contextWindow` can be told. Or a function that finds the model for any name.
   */
  readonly models:
    | Readonly<Record<string, LanguageModelV4 | ModelEntry>>
    | ((name: string) => LanguageModelV4);
  /** The model of agents that name none; without it the first of the models given by name. */
  readonly defaultModel?: string;
  /** Silence after which a request is given up, 120,000 ms by default. */
  readonly stallMs?: number;
  /** Sent with every request, by vendor; see the documentation of its AI SDK package. */
  readonly providerOptions?: SharedV4ProviderOptions;
  readonly clock?: Clock;
}

const STALL_MS = 120_000;

/**
 * A provider for language models of the AI SDK.
 * @throws RejectedError `MODEL_UNSUPPORTED` when a model given by name is not of specification v4.
 */
export function createModelProvider(options: ModelProviderOptions): OwnLoopAdapter {
  const { models } = options;
  const named = typeof models === "function" ? null : entriesOf(models);
  const defaultModel = options.defaultModel ?? (named === null ? null : (Object.keys(named)[0] ?? null));
  const settings: StepSettings = {
    clock: options.clock ?? systemClock,
    stallMs: options.stallMs ?? STALL_MS,
    providerOptions: options.providerOptions ?? {},
  };
  const find = (name: string | null): LanguageModelV4 => {
    if (name === null) {
      throw new RejectedError("MODEL_UNSUPPORTED", "No model is named and there is no default; name one.");
    }
    if (typeof models === "function") return supported(name, models(name));
    if (named === null || !Object.hasOwn(named, name)) throw unknown(name, Object.keys(named ?? {}));
    return named[name]!.model;
  };
  if (named !== null && defaultModel !== null) find(defaultModel);
  return {
    driver: "model",
    loop: "ours",
    threads: OWN_LOOP_THREADS,
    capabilities: { exact: true, parksWaits: true, questions: false, approvals: false },
    defaultModel,
    models: () =>
      named && Object.fromEntries(Object.entries(named).map(([name, entry]) => [name, infoOf(entry)])),
    openSession: async ({ model }) => ({
      async *step(request, signal) {
        yield* runStep(find(request.model ?? model ?? defaultModel), request, signal, settings);
      },
      close: async () => {},
    }),
  };
}

function entriesOf(
  models: Readonly<Record<string, LanguageModelV4 | ModelEntry>>,
): Record<string, ModelEntry> {
  return Object.fromEntries(
    Object.entries(models).map(([name, given]) => {
      const entry: ModelEntry = isEntry(given) ? given : { model: given };
      return [name, { ...entry, model: supported(name, entry.model) }];
    }),
  );
}

function isEntry(given: LanguageModelV4 | ModelEntry): given is ModelEntry {
  return (
    typeof given === "object" && given !== null && "model" in given && !("specificationVersion" in given)
  );
}

function infoOf(entry: ModelEntry): ModelInfo {
  return {
    contextWindow: entry.contextWindow ?? null,
    maxOutputTokens: entry.maxOutputTokens ?? null,
    efforts: entry.efforts ?? null,
    defaultEffort: entry.defaultEffort ?? null,
    collaborates: entry.collaborates ?? true,
    modeHint: entry.modeHint ?? null,
  };
}

/** Callers in JavaScript, and older packages, hand in models of other specifications. */
function supported(name: string, model: LanguageModelV4): LanguageModelV4 {
  const version: unknown = (model as Partial<LanguageModelV4> | null | undefined)?.specificationVersion;
  if (version === "v4") return model;
  const found = typeof version === "string" ? `specification ${version}` : "no specification";
  throw new RejectedError(
    "MODEL_UNSUPPORTED",
    `The model "${name}" implements ${found} of the AI SDK, and only v4 is supported; update its package, for example to ` +
      "@ai-sdk/openai@4.",
    { model: name, specification: typeof version === "string" ? version : null },
  );
}

function unknown(name: string, known: readonly string[]): RejectedError {
  return new RejectedError(
    "MODEL_UNSUPPORTED",
    `The model "${name}" is not among those given to the provider; use one of: ${known.join(", ")}.`,
    { model: name, known },
  );
}
