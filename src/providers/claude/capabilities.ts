/** What Claude Code can do under its Agent SDK, as it was seen to (0.3.332). */
import type { ThreadCapabilities } from "../../protocol/provider-capabilities.ts";

export const CLAUDE_CAPABILITIES: ThreadCapabilities = {
  threads: {
    fork: "item",
    forkIdleOnly: false,
    rollback: "boundary",
    rollbackReturnsSnapshot: true,
    read: "paged",
    forkFromChild: false,
  },
  identity: { thread: "strong", turn: "strong", item: "strong", request: "strong" },
  turns: { steer: true, interrupt: true, queue: false, acceptedEvent: true, terminalQuality: "strong" },
  sessions: { multipleThreads: false, modelSwitch: true, singleWriter: false },
  context: {
    channels: ["synthetic_user"],
    delta: true,
    full: true,
    canSummarise: false,
    maxRecommendedChars: null,
  },
  subagents: { native: false, childIds: false, lifecycle: false },
  history: { bridge: true, pinnedVersion: "0.3" },
  requests: { userQuestions: true, approvals: true, surviveRestart: false },
};
