/** What Codex app-server can do, as it was seen to (0.171). */
import type { ThreadCapabilities } from "../../protocol/provider-capabilities.ts";

export const CODEX_CAPABILITIES: ThreadCapabilities = {
  threads: {
    fork: "turn",
    forkIdleOnly: false,
    rollback: "boundary",
    rollbackReturnsSnapshot: true,
    read: "paged",
    forkFromChild: true,
  },
  identity: { thread: "strong", turn: "strong", item: "strong", request: "strong" },
  turns: { steer: true, interrupt: true, queue: false, acceptedEvent: true, terminalQuality: "strong" },
  sessions: { multipleThreads: true, modelSwitch: true, singleWriter: true },
  context: {
    channels: ["developer", "synthetic_user"],
    delta: true,
    full: true,
    canSummarise: false,
    maxRecommendedChars: null,
  },
  subagents: { native: false, childIds: false, lifecycle: false },
  history: { bridge: true, pinnedVersion: "0.171" },
  requests: { userQuestions: true, approvals: true, surviveRestart: false },
};
