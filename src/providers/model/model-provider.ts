/**
 * The provider `model`: agents on any language model of the AI SDK's specification v4. Here stand its settings and which
 * model a request gets; `run-step.ts` makes the requests. The SDK's packages are the user's; of theirs only types are
 * needed, and nothing at run time.
 *
 * - Models given by name are checked when the provider is made, models found by a function when first asked for.
 * - A session holds nothing between steps: its transcript is the runtime's (REC-5).
 */
import type { LanguageModelV4, SharedV4ProviderOptions } from "@ai-sdk/provider";
import { z } from "zod";
import { RejectedError } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { check, clockSchema, optionsOf } from "../../platform/check.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { modelShape } from "../model-shape.ts";
import { OWN_LOOP_THREADS } from "../own-loop.ts";
import type { ModelInfo, OwnLoopAdapter } from "../port.ts";
import type { LanguageModel } from "./language-model.ts";
import { runStep, type StepSettings } from "./run-step.ts";

/** A model and what is known of it. */
export interface ModelEntry extends Partial<ModelInfo> {
  readonly model: LanguageModel;
}

/** What `createModelProvider` takes. */
export interface ModelProviderOptions {
  /**
   * The models by the names that agents use, such as `{ "openai/gpt-5": openai("gpt-5") }`; with an entry, figures such as
   * `contextWindow` can be told. Or a function that finds the model for any name.
   */
  readonly models: Readonly<Record<string, LanguageModel | ModelEntry>> | ((name: string) => LanguageModel);
  /** The model of agents that name none; without it the first of the models given by name. */
  readonly defaultModel?: string;
  /** Silence after which a request is given up, 120,000 ms by default. */
  readonly stallMs?: number;
  /** Sent with every request, by vendor; see the documentation of its AI SDK package. */
  readonly providerOptions?: Readonly<Record<string, JsonObject>>;
  readonly clock?: Clock;
}

const STALL_MS = 120_000;

/**
 * A provider for language models of the AI SDK.
 * @throws RejectedError `MODEL_UNSUPPORTED` when a model given by name is not of specification v4.
 */
export function createModelProvider(options: ModelProviderOptions): OwnLoopAdapter {
  check("createModelProvider", optionsSchema, options);
  const { models } = options;
  const named = typeof models === "function" ? null : entriesOf(models);
  const defaultModel = options.defaultModel ?? (named === null ? null : (Object.keys(named)[0] ?? null));
  const settings: StepSettings = {
    clock: options.clock ?? systemClock,
    stallMs: options.stallMs ?? STALL_MS,
    providerOptions: (options.providerOptions ?? {}) as SharedV4ProviderOptions,
  };
  const find = (name: string | null): LanguageModelV4 => {
    if (name === null) {
      throw new RejectedError("MODEL_UNSUPPORTED", "No model is named and there is no default; name one.");
    }
    if (typeof models === "function") return supported(name, models(name));
    if (named === null || !Object.hasOwn(named, name)) throw unknown(name, Object.keys(named ?? {}));
    return named[name]!.model as LanguageModelV4;
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

/** Which specification a model has is looked at when it is known by name (`supported`). */
const modelSchema = z.custom<LanguageModel>();
const optionsSchema = optionsOf<ModelProviderOptions>({
  models: z.union(
    [
      z.record(z.string(), modelSchema),
      z.custom<(name: string) => LanguageModel>((value) => typeof value === "function"),
    ],
    'is neither models by name, such as { "gpt-5": openai("gpt-5") }, nor a function that finds a model for a name',
  ),
  defaultModel: z.string().min(1).optional(),
  stallMs: z.number().int().min(1).optional(),
  providerOptions: z
    .custom<Readonly<Record<string, JsonObject>>>(
      (value) => typeof value === "object" && value !== null,
      "is no record of options by vendor",
    )
    .optional(),
  clock: clockSchema.optional(),
});
const entrySchema = optionsOf<ModelEntry>({ ...modelShape, model: modelSchema });

function entriesOf(models: Readonly<Record<string, LanguageModel | ModelEntry>>): Record<string, ModelEntry> {
  return Object.fromEntries(
    Object.entries(models).map(([name, given]) => {
      const entry: ModelEntry = isEntry(given) ? given : { model: given };
      check(`createModelProvider for models.${name}`, entrySchema, entry);
      return [name, { ...entry, model: supported(name, entry.model) }];
    }),
  );
}

function isEntry(given: LanguageModel | ModelEntry): given is ModelEntry {
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
function supported(name: string, model: LanguageModel): LanguageModelV4 {
  const version: unknown = (model as Partial<LanguageModel> | null | undefined)?.specificationVersion;
  if (version === "v4") return streaming(name, model as LanguageModelV4);
  const found = typeof version === "string" ? `specification ${version}` : "no specification";
  throw new RejectedError(
    "MODEL_UNSUPPORTED",
    `The model "${name}" implements ${found} of the AI SDK, and only v4 is supported; update its package, for example to ` +
      "@ai-sdk/openai@4.",
    { model: name, specification: typeof version === "string" ? version : null },
  );
}

/** One of the user's own may answer whole and not stream. */
function streaming(name: string, model: LanguageModelV4): LanguageModelV4 {
  if (typeof (model as Partial<LanguageModelV4>).doStream === "function") return model;
  throw new RejectedError(
    "MODEL_UNSUPPORTED",
    `The model "${name}" has no \`doStream\`, which is what is called of it, never \`doGenerate\`; give it one that streams its answer.`,
    { model: name, missing: "doStream" },
  );
}

function unknown(name: string, known: readonly string[]): RejectedError {
  return new RejectedError(
    "MODEL_UNSUPPORTED",
    `The model "${name}" is not among those given to the provider; use one of: ${known.join(", ")}.`,
    { model: name, known },
  );
}
