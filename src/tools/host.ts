/**
 * The tool host of the run loop (`protocol/tool.ts`): the tools an agent has, and the execution of its calls.
 *
 * - H1 A refusal is a result with `isError`, never a failed run (BUD-3). After an abort the signal's reason is thrown and
 *   nothing is returned: whoever aborted has settled the run. Without one nothing is thrown: an error that says
 *   "interrupted" comes from another tree or store that a tool has used, and nobody has stopped this run.
 * - H2 What an agent may call is decided again at the call; a model may name a tool that it does not have (POL-1).
 */
import type { AgentRecord } from "../protocol/agent.ts";
import type { ThreadId, TreeId } from "../protocol/ids.ts";
import type { ToolContext, ToolHost, ToolInvocation, ToolOutcome, ToolSpec } from "../protocol/tool.ts";
import type { Logger } from "../platform/logger.ts";
import type { Redact } from "../platform/redact.ts";
import type { AgentControl } from "../control/agent-control.ts";
import { parseObject } from "./arguments.ts";
import type { BuiltIn } from "./built-in.ts";
import { agentBuiltIns, type BuiltIns, builtInsFor } from "./built-ins.ts";
import type { OwnTool } from "./define-tool.ts";
import { callOwnTool, deniedEffects, effectsOf, requireEffects } from "./own-tool.ts";
import { errorOutput, unknownTool } from "./refusal.ts";

/** Room for the fields beside the message, and for its escapes. */
const ARGUMENT_OVERHEAD = 2;

export interface ToolHostParts {
  /** The own tools of the runtime, in their order. */
  readonly tools: readonly OwnTool[];
  readonly control: (tree: TreeId) => AgentControl;
  readonly redact: Redact;
  readonly logger: Logger;
}

export function createToolHost(parts: ToolHostParts): ToolHost {
  const own = new Map(parts.tools.map((tool) => [tool.name, tool]));
  const made = new WeakMap<AgentControl, BuiltIns>();

  const builtInsOf = (agent: AgentRecord): readonly BuiltIn[] => {
    const control = parts.control(agent.treeId);
    let all = made.get(control);
    if (all === undefined) {
      const { profile, limits, shared } = control.tree;
      made.set(control, (all = agentBuiltIns(profile, limits, shared.betweenTrees.policy.allow)));
    }
    return builtInsFor(agent.config, all);
  };

  const ownOf = (agent: AgentRecord): readonly OwnTool[] =>
    agent.config.tools.flatMap((name) => {
      const tool = own.get(name);
      return tool === undefined || deniedEffects(tool, agent).length > 0 ? [] : [tool];
    });

  async function perform(call: ToolInvocation, context: ToolContext): Promise<ToolOutcome> {
    const { agent, runId, step, signal } = context;
    const control = parts.control(agent.treeId);
    const builtIn = builtInsOf(agent).find((tool) => tool.name === call.name);
    const tool = builtIn === undefined ? requireOwn(call.name, agent) : undefined;
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

  function requireOwn(name: string, agent: AgentRecord): OwnTool {
    const tool = own.get(name);
    if (tool !== undefined) requireEffects(tool, agent);
    if (tool !== undefined && agent.config.tools.includes(name)) return tool;
    const available = [...builtInsOf(agent), ...ownOf(agent)].map((one) => one.name);
    throw unknownTool(name, available);
  }

  return {
    specs: (agent): readonly ToolSpec[] => [
      ...builtInsOf(agent).map(({ name, description, parameters }) => ({
        name,
        description,
        parameters,
        effects: [],
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
