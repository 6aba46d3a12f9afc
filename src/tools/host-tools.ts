/**
 * Tools for callers outside of our own loop: the host of a host-driven root (HDR), and agents that call by their token. Every
 * binding in `bindings/` renders them, and none defines anything of its own.
 *
 * - R1 The caller is the agent these were made for, whatever the arguments say (SEC-1).
 * - R2 Refusals are results. Only an abort throws, and it ends that call alone (WAI-6).
 * - R3 A result that does not carry mail itself ends with a notice of what is unread (HDR-2).
 */
import { z } from "zod";
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { RequestId, ThreadId } from "../protocol/ids.ts";
import type { Json, JsonObject } from "../protocol/json.ts";
import type { ToolHints } from "../protocol/tool.ts";
import type { AgentControl } from "../control/agent-control.ts";
import { heldApproval } from "../control/held-wait.ts";
import { check, optionsOf, signalSchema, withMethods } from "../platform/check.ts";
import { parseObject } from "./arguments.ts";
import type { AgentCaller, BuiltIn } from "./built-in.ts";
import { agentBuiltIns, builtInsFor, hostBuiltIns } from "./built-ins.ts";
import { errorOutput, refusalOutput, unknownTool } from "./refusal.ts";

/** What a call answers: a refusal is a result, too. */
export interface HostToolResult {
  readonly output: Json;
  readonly isError: boolean;
}

/** A tool of the runtime for a loop of somebody else's; every binding renders it. */
export interface HostTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: JsonObject;
  readonly hints: ToolHints;
  /**
   * `input`: the arguments, as an object or as the text that a model wrote.
   * @throws the signal's reason; RejectedError `INVALID_ARGUMENT` for wrong `options`. What is wrong with `input` is a result.
   */
  readonly call: (input: unknown, options?: HostCallOptions) => Promise<HostToolResult>;
}

/** What comes with one call. */
export interface HostCallOptions {
  /** Ends this call alone. */
  readonly signal?: AbortSignal | undefined;
  /**
   * The id that the model's vendor gave the call, unique among the calls of a host or of one step of a run: made again with it,
   * the call has no second effect (SPN-6). A transport without such ids gives none.
   */
  readonly callId?: string | undefined;
}

/** The tools of a host, for every binding. Disposing of them leaves the place of the host to another. */
export interface HostTools extends ReadonlyArray<HostTool>, Disposable {}

/** What the transport of the calls is like. */
export interface HostToolOptions {
  /** The transport gives up on long calls: one wait lasts at most `transportWaitMs` and is taken up again (WAI-7). */
  readonly shortTransport?: boolean;
}

export const hostToolOptionsSchema = optionsOf<HostToolOptions>({ shortTransport: z.boolean().optional() });
export const callOptionsSchema = optionsOf<HostCallOptions>({
  signal: signalSchema.optional(),
  callId: z.string().optional(),
});
export const toolsSchema = z.array(
  withMethods<HostTool>("is no tool; give what `tree.root.tools()` or `connection.tools()` returns", "call"),
);

/** The tools of one host-driven root, in their stable order. `authorise` is asked before every call. */
export function hostTools(
  control: AgentControl,
  root: ThreadId,
  options: HostToolOptions & { readonly authorise?: () => void } = {},
): readonly HostTool[] {
  const { profile, limits, shared } = control.tree;
  const { allow } = shared.betweenTrees.policy;
  return bind(control, hostBuiltIns(profile, limits, allow), {
    ...options,
    caller: async (callId) => {
      options.authorise?.();
      return { kind: "agent", threadId: root, runId: null, step: 0, callId };
    },
    notice: true,
  });
}

/**
 * The tools of an agent that calls from outside of our own loop, by its token: what it asks for is its current run's.
 * `authorise` is asked before every call.
 */
export function agentTools(
  control: AgentControl,
  agent: AgentRecord,
  options: HostToolOptions & { readonly authorise: () => Promise<unknown> },
): readonly HostTool[] {
  const { profile, limits, shared } = control.tree;
  const { allow } = shared.betweenTrees.policy;
  const inRun = builtInsFor(agent.config, agentBuiltIns(profile, limits, allow));
  return bind(control, agent.hostDriven ? hostBuiltIns(profile, limits, allow) : inRun, {
    ...options,
    notice: agent.hostDriven,
    caller: async (callId) => {
      await options.authorise();
      return control.read((view) => {
        const { currentRun } = view.agent(agent.threadId)!;
        const step = currentRun === null ? 0 : (view.run(currentRun)?.steps ?? 0);
        return { kind: "agent", threadId: agent.threadId, runId: currentRun, step, callId } as const;
      });
    },
  });
}

interface Binding extends HostToolOptions {
  readonly caller: (callId: string | null) => Promise<AgentCaller>;
  /** Results end with a notice of unread mail, which nothing else would tell. */
  readonly notice: boolean;
}

function bind(control: AgentControl, tools: readonly BuiltIn[], binding: Binding): readonly HostTool[] {
  return tools.map((tool) => ({
    name: tool.name,
    title: tool.title,
    description: tool.description,
    parameters: tool.parameters,
    hints: tool.hints,
    async call(input, options = {}) {
      check("HostTool.call", callOptionsSchema, options);
      return callFor(control, binding, tool, input, options);
    },
  }));
}

/** A call by the name that a model used. A name that is none of the tools' is a refusal. */
export function callByName(
  tools: readonly HostTool[],
  name: string,
  input: unknown,
  options: HostCallOptions = {},
): Promise<HostToolResult> {
  const tool = tools.find((one) => one.name === name);
  if (tool !== undefined) return tool.call(input, options);
  const available = tools.map((one) => one.name);
  const error = unknownTool(name, available);
  return Promise.resolve({ output: refusalOutput(error), isError: true });
}

/** A result as text, for transports that carry nothing else. */
export function asText(output: Json): string {
  return typeof output === "string" ? output : JSON.stringify(output);
}

async function callFor(
  control: AgentControl,
  binding: Binding,
  tool: BuiltIn,
  input: unknown,
  { signal = new AbortController().signal, callId }: HostCallOptions,
): Promise<HostToolResult> {
  signal.throwIfAborted();
  const { limits } = control.tree;
  let answer: HostToolResult;
  let caller: AgentCaller | null = null;
  try {
    caller = await binding.caller(callId === undefined || callId === "" ? null : callId);
    const parsed = typeof input === "string" ? parseObject(tool.name, input, limits.messageBytes * 2) : input;
    // Nobody but this call brings the output to a run that has made it from outside.
    const held = binding.shortTransport === true || caller.runId !== null;
    const longestWaitMs = held ? limits.transportWaitMs : null;
    const made = { control, caller, signal, longestWaitMs };
    let outcome = await tool.call(parsed, made);
    if (outcome.kind === "waiting") {
      // The only thing that such a call can wait for: with the answer it is made again.
      const asked = outcome.on as RequestId;
      await heldApproval(control.tree, asked, { signal, longestMs: limits.transportWaitMs });
      outcome = await tool.call(parsed, made);
    }
    if (outcome.kind === "waiting")
      throw new RejectedError(
        "SUBAGENT_PARENT_NOT_ACTIVE",
        "nobody has answered the approval yet; do something else and try again.",
      );
    answer = { output: outcome.output, isError: outcome.isError };
  } catch (error) {
    signal.throwIfAborted();
    answer = { output: errorOutput(tool.name, error, control.tree.shared.logger), isError: true };
  }
  if (caller === null || !binding.notice || (tool.carriesMail && !answer.isError)) return answer;
  // What was done is done: a notice that cannot be read must not turn it into a failure.
  const notice = await control.hostNotice(caller.threadId).catch(() => null);
  return notice === null ? answer : { ...answer, output: withNotice(answer.output, notice) };
}

function withNotice(output: Json, notice: string): Json {
  if (typeof output === "string") return output === "" ? notice : `${output}\n${notice}`;
  return { ...(output as JsonObject), unread: notice };
}
