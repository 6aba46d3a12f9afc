/**
 * Status as the reference's tools show it (agents.md 37, 41, 42): whoever is not loaded is not found. A parked agent is in
 * the midst of a run and counts as loaded; so does the root.
 */
import type { AgentRecord, CodexStatus } from "../protocol/agent.ts";
import type { AgentControl } from "../control/agent-control.ts";
import { resolveTarget } from "../control/resolve-target.ts";
import { codexStatus } from "../control/status.ts";
import type { AgentCaller } from "./built-in.ts";

export function countsAsLoaded(control: AgentControl, agent: AgentRecord): boolean {
  return agent.parent === null || agent.currentRun !== null || control.loaded(agent.threadId);
}

/** @throws RejectedError for a target that cannot be resolved. */
export function referenceStatusOf(
  control: AgentControl,
  caller: AgentCaller,
  target: string,
): Promise<CodexStatus> {
  return control.read((view) => {
    const agent = resolveTarget(view, control.tree.treeId, view.agent(caller.threadId)!.path, target);
    return countsAsLoaded(control, agent) ? codexStatus(view, agent) : "not_found";
  });
}
