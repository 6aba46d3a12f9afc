/** Targets of tools and commands: a path, absolute or below the caller, or a thread id of this tree (agents.md 5-7). */
import { resolveReference, type AgentPath } from "../protocol/agent-path.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import { isThreadId, type TreeId } from "../protocol/ids.ts";
import type { StoreView } from "../store/port.ts";

/** @throws RejectedError `INVALID_ARGUMENT` for a reference out of grammar, `AGENT_NOT_FOUND` for an unknown one. */
export function resolveTarget(
  view: StoreView,
  tree: TreeId,
  from: AgentPath,
  reference: string,
  argument = "target",
): AgentRecord {
  if (isThreadId(reference)) {
    const agent = view.agent(reference);
    if (agent !== undefined && agent.treeId === tree) return agent;
    throw new RejectedError(
      "AGENT_NOT_FOUND",
      `no agent with the id ${reference} is in this tree; list the agents of this tree.`,
      {
        [argument]: reference,
      },
    );
  }
  const path = resolveReference(from, reference, argument);
  const agent = view.agentAt(tree, path);
  if (agent !== undefined) return agent;
  throw new RejectedError("AGENT_NOT_FOUND", `no agent is at ${path}; list the agents of this tree.`, {
    [argument]: path,
  });
}
