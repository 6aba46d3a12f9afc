/** Which of the runtime's tools an agent has, in their stable order. */
import type { AgentConfig } from "../protocol/agent.ts";
import type { Limits } from "../protocol/limits.ts";
import type { Profile } from "../protocol/profile.ts";
import type { BuiltIn } from "./built-in.ts";
import { followupTask } from "./followup-task.ts";
import { interruptAgent } from "./interrupt-agent.ts";
import { listAgents } from "./list-agents.ts";
import { pinContext } from "./pin-context.ts";
import { readArtifact } from "./read-artifact.ts";
import { reportResult } from "./report-result.ts";
import { sendMessage } from "./send-message.ts";
import { spawnAgent } from "./spawn-agent.ts";
import { waitAgent } from "./wait-agent.ts";

export interface BuiltIns {
  /** The six; a leaf has none of them. */
  readonly collaboration: readonly BuiltIn[];
  /** A leaf has none of them either. */
  readonly context: readonly BuiltIn[];
  readonly results: readonly BuiltIn[];
}

/** Those of one agent, in their order. */
export function builtInsFor({ leaf }: AgentConfig, all: BuiltIns): readonly BuiltIn[] {
  return leaf ? all.results : [...all.collaboration, ...all.context, ...all.results];
}

/** Tools of an agent that runs here. */
export function agentBuiltIns(profile: Profile, limits: Limits): BuiltIns {
  return {
    collaboration: six(profile, limits, false),
    context: profile.richOutputs ? [pinContext()] : [],
    results: profile.richOutputs ? [reportResult(), readArtifact()] : [],
  };
}

/** Tools of a host-driven root, which has no run and so no work to report on. */
export function hostBuiltIns(profile: Profile, limits: Limits): readonly BuiltIn[] {
  return [...six(profile, limits, true), ...(profile.richOutputs ? [readArtifact()] : [])];
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
