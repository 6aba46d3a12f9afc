/** The digest of an agent's effective policy: equal for equal configurations, whatever asked for them. */
import { canonicalJson } from "../platform/canonical-json.ts";
import { sha256 } from "../platform/digest.ts";
import type { AgentConfig } from "../protocol/agent.ts";

/** Everything that is in force; neither the hash itself nor what was asked for in vain. */
export function policyHash(config: Omit<AgentConfig, "policyHash">): string {
  const { adjustments: _, ...effective } = config;
  return sha256(canonicalJson({ ...effective, policyHash: undefined }));
}
