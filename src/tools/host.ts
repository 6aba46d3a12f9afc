/**
 * The tool host of the run loop (`protocol/tool.ts`): the tools an agent has, and the execution of its calls.
 *
 * - H1 A refusal is a result with `isError`, never a failed run (BUD-3). After an abort the signal's reason is thrown and
 *   nothing is returned: whoever aborted has settled the run. Without one nothing is thrown: an error that says
 *   "interrupted" comes from another tree or store that a tool has used, and nobody has stopped this run.
 * - H2 What an agent may call is decided again at the call; a model may name a tool that it does not have (POL-1).
 */
import { type AgentRecord, effectsOf } from "../protocol/agent.ts";
import type { ThreadId, TreeId } from "../protocol/ids.ts";
import type { Limits } from "../protocol/limits.ts";
import type { Profile } from "../protocol/profile.ts";
import type {
  ToolContext,
  ToolHost,
  ToolInvocation,
  ToolOutcome,
  ToolSetting,
  ToolSpec,
} from "../protocol/tool.ts";
import type { Logger } from "../platform/logger.ts";
import type { Redact } from "../platform/redact.ts";
import type { AgentControl } from "../control/agent-control.ts";
import type { BetweenTrees } from "../control/between-trees.ts";
import { parseObject } from "./arguments.ts";
import type { BuiltIn } from "./built-in.ts";
import { agentBuiltIns, type BuiltIns, builtInsFor } from "./built-ins.ts";
import type { OwnTool } from "./define-tool.ts";
import { callOwnTool, deniedEffects, requireEffects } from "./own-tool.ts";
import { errorOutput, unknownTool } from "./refusal.ts";

/** Room for the fields beside the message, and for its escapes. */
const ARGUMENT_OVERHEAD = 2;

export interface ToolHostParts {
  /** The own tools of the runtime, in their order. */
  readonly tools: readonly OwnTool[];
  readonly control: (tree: TreeId) => AgentControl;
  /** Tools between trees. */
  readonly allow: BetweenTrees["policy"]["allow"];
  readonly redact: Redact;
  readonly logger: Logger;
}

export function createToolHost(parts: ToolHostParts): ToolHost {
  const own = new Map(parts.tools.map((tool) => [tool.name, tool]));
  /** By their limits, of which each tree has its own. */
  const made = new WeakMap<Limits, { readonly profile: Profile; readonly all: BuiltIns }>();

  const builtInsOf = (agent: AgentRecord, { profile, limits }: ToolSetting): readonly BuiltIn[] => {
    let found = made.get(limits);
    if (found?.profile !== profile)
      made.set(limits, (found = { profile, all: agentBuiltIns(profile, limits, parts.allow) }));
    return builtInsFor(agent.config, found.all);
  };

  const ownOf = (agent: AgentRecord): readonly OwnTool[] =>
    agent.config.tools.flatMap((name) => {
      const tool = own.get(name);
      return tool === undefined || deniedEffects(tool, agent).length > 0 ? [] : [tool];
    });

  async function perform(call: ToolInvocation, context: ToolContext): Promise<ToolOutcome> {
    const { agent, runId, step, signal } = context;
    const control = parts.control(agent.treeId);
    const builtIns = builtInsOf(agent, control.tree);
    const builtIn = builtIns.find((tool) => tool.name === call.name);
    const tool = builtIn === undefined ? requireOwn(call.name, agent, builtIns) : undefined;
    const input = parseObject(call.name, call.input, control.tree.limits.messageBytes * ARGUMENT_OVERHEAD);
    if (tool !== undefined) return callOwnTool(tool, call, input, context, control, parts.redact);
    const caller = {
      kind: "agent",
      threadId: agent.threadId as ThreadId,
      runId,
      step,
      callId: call.callId,
    } as const;
    return builtIn!.call(input, { control, caller, signal, longestWaitMs: null });
  }

  function requireOwn(name: string, agent: AgentRecord, builtIns: readonly BuiltIn[]): OwnTool {
    const tool = own.get(name);
    if (tool !== undefined) requireEffects(tool, agent);
    if (tool !== undefined && agent.config.tools.includes(name)) return tool;
    const available = [...builtIns, ...ownOf(agent)].map((one) => one.name);
    throw unknownTool(name, available);
  }

  return {
    specs: (agent, tree): readonly ToolSpec[] => [
      ...builtInsOf(agent, tree).map(({ name, title, description, parameters, hints }) => ({
        name,
        title,
        description,
        parameters,
        effects: [],
        hints,
      })),
      ...ownOf(agent).map((tool) => ({
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters,
        effects: effectsOf(tool),
      })),
    ],
    async execute(call, context) {
      context.signal.throwIfAborted();
      try {
        const outcome = await perform(call, context);
        context.signal.throwIfAborted();
        return outcome;
      } catch (error) {
        context.signal.throwIfAborted();
        return { kind: "result", output: errorOutput(call.name, error, parts.logger), isError: true };
      }
    },
  };
}
