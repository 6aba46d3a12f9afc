/**
 * Running a tree from the command line: which providers its agents need, the lease, and running until nothing is left to do.
 * The command line knows two: the scripted model of the demo, and models of the AI SDK by `<vendor>/<name>`.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { loadRoles } from "../policy/roles.ts";
import { loadModel } from "../providers/model/load-model.ts";
import { createModelProvider } from "../providers/model/model-provider.ts";
import { createRuntime, type Runtime } from "../runtime/create-runtime.ts";
import type { TreeReader } from "../runtime/tree-reader.ts";
import type { Store } from "../store/port.ts";
import { DEMO_MODEL, DEMO_RESIDENTS, demoRoles } from "./demo/job.ts";
import { demoProvider } from "./demo/provider.ts";
import { demoTools } from "./demo/tools.ts";
import { badUse } from "./failure.ts";

/** A response of the scripted model, in milliseconds, so that one can follow. */
export const DEFAULT_PACE_MS = 500;

const SCRIPTED = "scripted";
export const MODEL = "model";
const KEYS = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_COMPATIBLE_API_KEY"];

/** A runtime with all that the command line can run. */
export function demoRuntime(store: Store, pace: number, model: string | null): Promise<Runtime> {
  const models = createModelProvider({
    models: (name) => loadModel(name, process.env),
    ...(model === null ? {} : { defaultModel: model }),
  });
  return createRuntime({
    store,
    providers: { [SCRIPTED]: demoProvider(pace), [MODEL]: models },
    tools: demoTools,
    roles: loadRoles(demoRoles, demoTools),
    limits: { residents: DEMO_RESIDENTS },
    secrets: KEYS.flatMap((name) => process.env[name] ?? []),
  });
}

/** @throws CommandError for an agent whose provider or tools only the program has that made the tree. */
export async function requireRunnable(store: Store, tree: TreeReader): Promise<void> {
  for (let after: string | null = null; ;) {
    const page = await store.read((view) => view.agents(tree.id, "/root", { limit: 500, after }));
    for (const agent of page.rows) requireKnown(agent);
    after = page.next;
    if (after === null) return;
  }
}

function requireKnown({ path, config }: AgentRecord): void {
  const elsewhere = "run the tree from the program that made it";
  if (config.provider === SCRIPTED ? config.model !== DEMO_MODEL : config.provider !== MODEL) {
    throw badUse(
      `${path} runs on the provider \`${config.provider}\`, which the command line has not; ${elsewhere}.`,
    );
  }
  const missing = config.tools.filter((name) => !demoTools.some((tool) => tool.name === name));
  if (missing.length > 0) {
    throw badUse(`${path} has tools that the command line has not: ${missing.join(", ")}; ${elsewhere}.`);
  }
  // Fails here with what is to be installed or set, not later in the tree.
  if (config.provider === MODEL && config.model !== null) loadModel(config.model, process.env);
}
