/** The record of a tree that has no agents yet. */
import type { TreeRecord } from "../protocol/agent.ts";

export function newTreeRecord(
  facts: Pick<
    TreeRecord,
    "treeId" | "title" | "profile" | "limits" | "createdAt" | "billedTo" | "wakeOnAgentMessages"
  >,
): TreeRecord {
  return {
    ...facts,
    revision: 1,
    agents: 0,
    recentSpawns: [],
    recentRuns: [],
    exhausted: [],
    inbox: 0,
  };
}
