/** The record of an agent that was just made: everything that begins empty stands here once. */
import type { AgentRecord } from "../protocol/agent.ts";
import type { ThreadFacts } from "../protocol/thread.ts";
import { NO_USAGE } from "../protocol/usage.ts";

export function newAgent(
  given: Pick<
    AgentRecord,
    "threadId" | "treeId" | "path" | "parent" | "depth" | "config" | "tokenDigest" | "createdAt" | "createdBy"
  > &
    Partial<Pick<AgentRecord, "hostDriven" | "bornInRun">> & {
      readonly thread: Partial<ThreadFacts> & Pick<ThreadFacts, "lineage">;
    },
): AgentRecord {
  const { thread, ...rest } = given;
  return {
    state: "open",
    revision: 1,
    thread: {
      agentId: given.path,
      title: null,
      forkedFrom: null,
      forkPolicy: null,
      continuity: "resume-native",
      activeProviderThreadId: null,
      selection: null,
      currentContext: null,
      pins: [],
      rolledBack: [],
      lastRollback: null,
      voided: [],
      messages: 0,
      compactions: 0,
      ...thread,
    },
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
    ...rest,
  };
}
