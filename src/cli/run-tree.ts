/**
 * What the command line can run: the scripted model of the demo, two providers to practise threads on, models of the AI SDK
 * by `<vendor>/<name>`, coding agents that are programs of their own, and what a module of the user's adds (`--config`). Whether a tree can run here is said before
 * anything is stored.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { ROOT_PATH } from "../protocol/agent-path.ts";
import { isThreadId, type TreeId } from "../protocol/ids.ts";
import type { ThreadToolsPolicy } from "../protocol/thread-tools.ts";
import { loadRoles } from "../policy/roles.ts";
import { loadModel } from "../providers/model/load-model.ts";
import { createModelProvider } from "../providers/model/model-provider.ts";
import type { ProviderAdapter } from "../providers/port.ts";
import type { CommandOptions } from "../runtime/command-tree.ts";
import { createRuntime } from "../runtime/create-runtime.ts";
import { checkRuntimeOptions, type RuntimeOptions } from "../runtime/options.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { TreeReader } from "../runtime/tree-reader.ts";
import type { Store } from "../store/port.ts";
import type { OwnTool } from "../tools/define-tool.ts";
import { allPages } from "./all-pages.ts";
import { AGENT_PROGRAMS, agentProviders, isAcp, isAgentProgram, requireProgram } from "./agent-programs.ts";
import { type Config, loadConfig } from "./config.ts";
import { DEMO_MODEL, DEMO_RESIDENTS, demoRoles, ROOT_INSTRUCTIONS } from "./demo/job.ts";
import { demoProvider } from "./demo/provider.ts";
import { demoTools } from "./demo/tools.ts";
import { badUse, CommandError, EXIT } from "./failure.ts";
import { storeTroubleLogger } from "./store-trouble.ts";
import { PRACTICE, practiceProvider } from "./practice.ts";

/** A response of the scripted model, in milliseconds, so that one can follow. */
export const DEFAULT_PACE_MS = 500;

const SCRIPTED = "scripted";
export const MODEL = "model";
const KEYS = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_COMPATIBLE_API_KEY"];

/** What somebody wants a run of the root to go to; null is what its record says. */
export interface ProviderChoice {
  readonly provider: string;
  readonly model: string | null;
}

/** What a command wants of its runtime, where the user's module does not say otherwise. */
export interface RuntimeChoice {
  readonly pace: number;
  readonly demo: boolean;
  readonly model?: string | undefined;
  readonly threadTools?: ThreadToolsPolicy;
}

/** Reads and checks the user's module, where one is named. @throws CommandError, RejectedError `INVALID_ARGUMENT`. */
export async function hostOf(options: {
  readonly config?: string;
  readonly provider?: string;
}): Promise<Host> {
  const config = await loadConfig(options.config, [SCRIPTED, MODEL, ...PRACTICE, ...AGENT_PROGRAMS]);
  checkRuntimeOptions(config);
  const host = new Host(config);
  if (options.provider !== undefined) host.name(options.provider);
  return host;
}

export class Host {
  readonly #config: Config;
  /** Programs that are named by their commands, and are providers of its runtimes. */
  readonly #acp = new Set<string>();

  constructor(config: Config = { providers: {} }) {
    this.#config = config;
  }

  /** A provider that is asked for, or that an agent runs on: before the runtime is made. */
  name(provider: string): void {
    if (isAcp(provider)) this.#acp.add(provider);
  }

  /** What the agents of a thread's tree run on. */
  async learn(store: Store, thread: string): Promise<void> {
    const agent = isThreadId(thread) ? await store.read((view) => view.agent(thread)) : undefined;
    if (agent === undefined) return;
    for await (const { config, thread: facts } of agentsOf(store, agent.treeId)) {
      this.name(config.provider);
      if (facts?.selection) this.name(facts.selection.provider);
    }
  }

  /** What the user's module says of the tools that agents have. */
  get settings(): Pick<RuntimeOptions, "limits" | "profile" | "threadTools"> {
    const { limits, profile, threadTools } = this.#config;
    return {
      ...(limits === undefined ? {} : { limits }),
      ...(profile === undefined ? {} : { profile }),
      ...(threadTools === undefined ? {} : { threadTools }),
    };
  }

  /** A runtime with what the user's module names, and with the demo's own tools and roles for a tree of the demo alone. */
  runtime(store: Store, { pace, demo, model, threadTools }: RuntimeChoice): Promise<Runtime> {
    const models = createModelProvider({
      models: (name) => loadModel(name, process.env),
      ...(model === undefined ? {} : { defaultModel: model }),
    });
    const { providers, secrets: _, ...rest } = this.#config;
    return createRuntime({
      logger: storeTroubleLogger((line) => process.stderr.write(`coppice: ${line}\n`)),
      ...(demo ? { roles: loadRoles(demoRoles, demoTools), limits: { residents: DEMO_RESIDENTS } } : {}),
      ...(threadTools === undefined ? {} : { threadTools }),
      ...rest,
      store,
      providers: {
        [SCRIPTED]: demoProvider(pace),
        [MODEL]: models,
        ...Object.fromEntries(PRACTICE.map((name) => [name, practiceProvider(name, pace)])),
        ...agentProviders(this.#acp),
        ...providers,
      },
      tools: this.#tools(demo),
      secrets: this.secrets,
    });
  }

  /** A tool of the user's takes the place of the demo's of its name. */
  #tools(demo: boolean): readonly OwnTool[] {
    const { tools = [] } = this.#config;
    if (!demo) return tools;
    return [...demoTools.filter(({ name }) => !tools.some((own) => own.name === name)), ...tools];
  }

  /** What nobody else is to read: the vendors' keys, and what the user's module names. */
  get secrets(): readonly string[] {
    return [...KEYS.flatMap((name) => process.env[name] ?? []), ...(this.#config.secrets ?? [])];
  }

  /** For a command on a tree that nobody runs: what a runtime here would know. */
  get known(): Pick<CommandOptions, "secrets" | "lineage"> {
    const { lineage } = this.#config;
    return { secrets: this.secrets, ...(lineage === undefined ? {} : { lineage }) };
  }

  /**
   * Checks a choice before anything is stored; null when none was made.
   * @throws CommandError `PROVIDER_UNAVAILABLE` or `INVALID_ARGUMENT`; RejectedError for a model that cannot be loaded.
   */
  async choice(options: {
    readonly provider?: string;
    readonly model?: string;
  }): Promise<ProviderChoice | null> {
    const { model = null } = options;
    const provider = options.provider ?? (model === null ? undefined : MODEL);
    if (provider === undefined) return null;
    if (this.#own(provider) !== undefined) return { provider, model };
    if (isAgentProgram(provider)) {
      await requireProgram(provider);
      return { provider, model };
    }
    const practises = PRACTICE.some((name) => name === provider);
    if (!practises && provider !== MODEL) {
      throw new CommandError(
        EXIT.badUse,
        "PROVIDER_UNAVAILABLE",
        `${noProvider(provider)} ${this.#choices()}`,
      );
    }
    if (practises && model !== null) throw badUse(`${provider} is no model of a vendor; leave out --model.`);
    if (practises) return { provider, model };
    if (model === null) throw badUse("--provider model needs to know which; give --model openai/gpt-5, say.");
    loadModel(model, process.env);
    return { provider, model };
  }

  #own(name: string): ProviderAdapter | undefined {
    const { providers } = this.#config;
    return Object.hasOwn(providers, name) ? providers[name] : undefined;
  }

  #choices(): string {
    const own = Object.keys(this.#config.providers);
    const yours = own.length === 0 ? "one of your own from --config" : `${own.join(", ")} of your --config`;
    return `Choose ${PRACTICE.join(" or ")}, which need no key, ${AGENT_PROGRAMS.join(", ")} or acp:<command>, which are programs of their own, ${yours}, or: --provider ${MODEL} --model openai/gpt-5`;
  }

  /**
   * @param root where the root is to run, if not where its record says.
   * @throws CommandError for an agent whose provider or tools only the program has that made the tree.
   */
  async requireRunnable(store: Store, tree: TreeReader, root: ProviderChoice | null = null): Promise<void> {
    const tools = this.#tools(await isDemo(store, tree.id));
    for await (const agent of agentsOf(store, tree.id))
      this.#requireKnown(agent, agent.path === ROOT_PATH ? root : null, tools);
  }

  #requireKnown(
    { path, config, thread }: AgentRecord,
    asked: ProviderChoice | null,
    tools: readonly OwnTool[],
  ): void {
    const elsewhere = "run the tree from the program that made it, or name your module by --config";
    const { provider, model } = asked ?? thread?.selection ?? config;
    this.name(provider);
    const known =
      this.#own(provider) !== undefined ||
      isAgentProgram(provider) ||
      (provider === SCRIPTED ? model === DEMO_MODEL : PRACTICE.some((name) => name === provider));
    if (!known && provider !== MODEL) {
      throw badUse(
        `${path} runs on the provider \`${provider}\`, which the command line has not; ${elsewhere}.`,
      );
    }
    const missing = config.tools.filter((name) => !tools.some((tool) => tool.name === name));
    if (missing.length > 0) {
      throw badUse(`${path} has tools that the command line has not: ${missing.join(", ")}; ${elsewhere}.`);
    }
    // Fails here with what is to be installed or set, not later in the tree.
    if (provider === MODEL && model !== null) loadModel(model, process.env);
  }
}

async function* agentsOf(store: Store, treeId: TreeId): AsyncGenerator<AgentRecord> {
  const pages = allPages((after) =>
    store.read((view) => view.agents(treeId, ROOT_PATH, { limit: 500, after })),
  );
  for await (const { rows } of pages) yield* rows;
}

/** A provider that the command line has without a module of the user's. */
export function isOfCommandLine(provider: string): boolean {
  return [SCRIPTED, MODEL, ...PRACTICE].includes(provider) || isAgentProgram(provider);
}

/** Whether an agent stands in a tree that the demo has made, or that was forked from one. */
export function isDemo(store: Store, thread: string): Promise<boolean> {
  return store.read((view) => {
    const agent = isThreadId(thread) ? view.agent(thread) : undefined;
    const root = agent === undefined ? undefined : view.agent(agent.treeId);
    return root?.config.instructions === ROOT_INSTRUCTIONS;
  });
}

function noProvider(name: string): string {
  return name === SCRIPTED
    ? `\`${SCRIPTED}\` plays the demo and nothing else.`
    : `the command line has no provider \`${name}\`.`;
}
