/** What conversations can do whose loop is ours: their transcript is, so all but a fork of the provider's own. */
import type { ThreadCapabilities } from "../protocol/provider-capabilities.ts";

export const OWN_LOOP_THREADS: ThreadCapabilities = {
  threads: {
    fork: "none",
    forkIdleOnly: false,
    rollback: "boundary",
    rollbackReturnsSnapshot: false,
    read: "none",
    forkFromChild: false,
  },
  identity: { thread: "strong", turn: "strong", item: "strong", request: "strong" },
  turns: { steer: true, interrupt: true, queue: false, acceptedEvent: true, terminalQuality: "strong" },
  sessions: { multipleThreads: false, modelSwitch: true, singleWriter: false },
  context: {
    channels: ["system", "synthetic_user"],
    delta: true,
    full: true,
    canSummarise: false,
    maxRecommendedChars: null,
  },
  subagents: { native: false, childIds: false, lifecycle: false },
  history: { bridge: false, pinnedVersion: null },
  requests: { userQuestions: true, approvals: true, surviveRestart: true },
};
