/**
 * What an agent may do to the world, as the tools of Claude Code that it is given (POL-2). What is not named here is not
 * there: its own subagents unless they were turned on, workflows and schedules, and whatever a newer version adds.
 *
 * - C1 A command can do whatever the user can: `execute` is given with all other effects, or not at all.
 * - C2 An approval never widens what an agent may do: a tool that it may not use is not there to be asked for.
 */
import { type Effect, EFFECTS } from "../../protocol/agent.ts";

/** Whether calls that Claude Code would ask its user about are asked about. */
export type ClaudeApprovals = "never" | "on-request";

export const QUESTION_TOOL = "AskUserQuestion";

/** Each with all the effects that it takes. */
const TOOLS: readonly (readonly [name: string, takes: readonly Effect[]])[] = [
  [QUESTION_TOOL, []],
  ["Read", ["read"]],
  ["Glob", ["read"]],
  ["Grep", ["read"]],
  ["Write", ["write"]],
  ["Edit", ["read", "write"]],
  ["NotebookEdit", ["read", "write"]],
  ["WebFetch", ["network"]],
  ["WebSearch", ["network"]],
  ["Bash", ["execute"]],
];

/** Its own agents stand beside ours only where the host has turned them on; its newest name for them is offered then. */
const AGENTS: readonly string[] = ["Agent", "Task"];

/** Named also where they are not offered, as they can be called by name. */
export function withoutTools(nativeAgents: boolean): readonly string[] {
  return [...(nativeAgents ? [] : AGENTS), "Workflow"];
}

/** `narrows`: there are no agents of its own, of which nothing is kept. */
export function effectiveEffects(effects: readonly Effect[], narrows = true): readonly Effect[] {
  return effects.includes("execute") || !narrows ? EFFECTS : EFFECTS.filter((one) => effects.includes(one));
}

export function toolsOf(effects: readonly Effect[], nativeAgents = false): readonly string[] {
  const has = effectiveEffects(effects);
  const tools = TOOLS.filter(([, takes]) => takes.every((one) => has.includes(one))).map(([name]) => name);
  return nativeAgents ? [...tools, ...AGENTS.slice(0, 1)] : tools;
}
