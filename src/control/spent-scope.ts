/** Scopes of a tree whose budget is spent: nothing new starts there until it is raised, and mail for it waits (BUD-2). */
import { type AgentPath, parentPath } from "../protocol/agent-path.ts";
import type { TreeRecord } from "../protocol/agent.ts";

type Exhausted = TreeRecord["exhausted"];

/** The nearest one that a path is in. */
export function spentScope(exhausted: Exhausted, path: AgentPath): Exhausted[number] | null {
  if (exhausted.length === 0) return null;
  for (let at: AgentPath | null = path; at !== null; at = parentPath(at)) {
    const found = exhausted.find((scope) => scope.path === at);
    if (found !== undefined) return found;
  }
  return null;
}
