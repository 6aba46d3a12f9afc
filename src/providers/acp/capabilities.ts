/** What agents that speak ACP can do: of their kind, and of one that has said so at its start. */
import type { ThreadCapabilities } from "../../protocol/provider-capabilities.ts";
import { ACP_VERSION, type AcpInitialized } from "./wire.ts";

/** What the protocol leaves to an agent. */
export interface AcpAbilities {
  /** How it takes up a conversation again; null when it cannot. */
  readonly resumes: "session/resume" | "session/load" | null;
  /** It connects to servers of tools over HTTP; else it starts them. */
  readonly http: boolean;
}

export function abilitiesOf({ agentCapabilities }: AcpInitialized): AcpAbilities {
  const { loadSession, mcpCapabilities, sessionCapabilities } = agentCapabilities;
  const resume = sessionCapabilities?.["resume"] ?? null;
  return {
    // Taking it up says less than loading it, which tells all of it again.
    resumes: resume !== null ? "session/resume" : loadSession ? "session/load" : null,
    http: mcpCapabilities.http,
  };
}

/** Without a way to take it up again the name of a conversation is good for as long as its agent runs. */
export function capabilitiesOf({ resumes }: Pick<AcpAbilities, "resumes">): ThreadCapabilities {
  return {
    threads: {
      // The stable protocol has no fork, and none that it plans takes a point.
      fork: "none",
      forkIdleOnly: false,
      rollback: "none",
      rollbackReturnsSnapshot: false,
      read: "none",
      forkFromChild: false,
    },
    identity: { thread: resumes === null ? "weak" : "strong", turn: "none", item: "weak", request: "weak" },
    turns: { steer: false, interrupt: true, queue: false, acceptedEvent: false, terminalQuality: "strong" },
    sessions: { multipleThreads: false, modelSwitch: true, singleWriter: false },
    context: {
      channels: ["synthetic_user"],
      delta: true,
      full: true,
      canSummarise: false,
      maxRecommendedChars: null,
    },
    subagents: { native: false, childIds: false, lifecycle: false },
    history: { bridge: false, pinnedVersion: `acp ${ACP_VERSION}` },
    requests: { userQuestions: false, approvals: true, surviveRestart: false },
  };
}
