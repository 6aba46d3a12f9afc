/** Which of the runtime's tools an agent has, in their stable order. */
import type { AgentConfig } from "../protocol/agent.ts";
import type { Limits } from "../protocol/limits.ts";
import type { Profile } from "../protocol/profile.ts";
import type { BetweenTrees } from "../control/between-trees.ts";
import type { BuiltIn } from "./built-in.ts";
import { createThread } from "./create-thread.ts";
import { followupTask } from "./followup-task.ts";
import { forkThreadTool } from "./fork-thread.ts";
import { interruptAgent } from "./interrupt-agent.ts";
import { listAgents } from "./list-agents.ts";
import { mergeBackTool } from "./merge-back.ts";
import { pinContext } from "./pin-context.ts";
import { readArtifact } from "./read-artifact.ts";
import { readThread } from "./read-thread.ts";
import { reportResult } from "./report-result.ts";
import { sendMessage } from "./send-message.ts";
import { sendMessageToThread } from "./send-message-to-thread.ts";
import { spawnAgent } from "./spawn-agent.ts";
import { waitAgent } from "./wait-agent.ts";
import { waitThreads } from "./wait-threads.ts";

export interface BuiltIns {
  /** The six; a leaf has none of them. */
  readonly collaboration: readonly BuiltIn[];
  /** A leaf has none of them either. */
  readonly context: readonly BuiltIn[];
  /** Those between trees, as far as the runtime allows them; a leaf has none. */
  readonly threads: readonly BuiltIn[];
  readonly results: readonly BuiltIn[];
}

/** Those of one agent, in their order. */
export function builtInsFor({ leaf }: AgentConfig, all: BuiltIns): readonly BuiltIn[] {
  return leaf ? all.results : [...all.collaboration, ...all.context, ...all.threads, ...all.results];
}

/** Tools of an agent that runs here. */
export function agentBuiltIns(profile: Profile, limits: Limits, allow: Allowed = "none"): BuiltIns {
  return {
    collaboration: six(profile, limits, false),
    context: profile.richOutputs ? [pinContext()] : [],
    threads: threadTools(profile, allow),
    results: profile.richOutputs ? [reportResult(), readArtifact()] : [],
  };
}

/** Tools of a host-driven root, which has no run and so no work to report on. */
export function hostBuiltIns(profile: Profile, limits: Limits, allow: Allowed = "none"): readonly BuiltIn[] {
  const results = profile.richOutputs ? [readArtifact()] : [];
  return [...six(profile, limits, true), ...threadTools(profile, allow), ...results];
}

type Allowed = BetweenTrees["policy"]["allow"];

/** The reference has them in another program than its agents. */
function threadTools(profile: Profile, allow: Allowed): readonly BuiltIn[] {
  if (!profile.richOutputs || allow === "none") return [];
  if (allow === "read") return [readThread(), waitThreads()];
  return [
    createThread(),
    sendMessageToThread(),
    readThread(),
    waitThreads(),
    forkThreadTool(),
    mergeBackTool(),
  ];
}

function six(profile: Profile, limits: Limits, hostDriven: boolean): readonly BuiltIn[] {
  return [
    spawnAgent(profile),
    sendMessage(profile),
    followupTask(profile),
    waitAgent(profile, limits, hostDriven),
    interruptAgent(profile),
    listAgents(profile),
  ];
}
