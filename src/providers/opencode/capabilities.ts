/** What OpenCode's server can do, as it was seen to (1.18). */
import type { ThreadCapabilities } from "../../protocol/provider-capabilities.ts";

export const OPENCODE_CAPABILITIES: ThreadCapabilities = {
  threads: {
    fork: "turn",
    forkIdleOnly: false,
    rollback: "boundary",
    rollbackReturnsSnapshot: true,
    read: "full",
    forkFromChild: true,
  },
  identity: { thread: "strong", turn: "strong", item: "strong", request: "strong" },
  // A second prompt would join the turn under way, and nothing would tell which of them was answered.
  turns: { steer: false, interrupt: true, queue: false, acceptedEvent: true, terminalQuality: "strong" },
  sessions: { multipleThreads: true, modelSwitch: true, singleWriter: false },
  context: {
    channels: ["synthetic_user"],
    delta: true,
    full: true,
    canSummarise: false,
    maxRecommendedChars: null,
  },
  subagents: { native: false, childIds: false, lifecycle: false },
  history: { bridge: true, pinnedVersion: "1.18" },
  requests: { userQuestions: true, approvals: true, surviveRestart: false },
};
