/** The record of an agent that was just made: everything that begins empty stands here once. */
import type { AgentRecord } from "../protocol/agent.ts";
import { NO_USAGE } from "../protocol/usage.ts";

export function newAgent(
  given: Pick<
    AgentRecord,
    "threadId" | "treeId" | "path" | "parent" | "depth" | "config" | "tokenDigest" | "createdAt" | "createdBy"
  > &
    Partial<Pick<AgentRecord, "thread" | "hostDriven" | "bornInRun">>,
): AgentRecord {
  return {
    state: "open",
    revision: 1,
    thread: null,
    hostDriven: false,
    bornInRun: null,
    currentRun: null,
    runs: 0,
    items: 0,
    children: 0,
    lastOutcome: null,
    lastActiveAt: given.createdAt,
    openRequests: 0,
    refusals: 0,
    loadFailures: 0,
    usage: NO_USAGE,
    sentModeHint: null,
    ...given,
  };
}
