/**
 * What one run is allowed, as bytes with a digest (lineage C1.4, C11.10): the agent's policy, what the run asks for, and the
 * context that it opened on. The bindings are taken as they are given and never looked up (C17.4).
 */
import { canonicalJson } from "../platform/canonical-json.ts";
import { sha256 } from "../platform/digest.ts";
import type { ThreadBinding } from "../protocol/binding.ts";

export interface ExecutionPolicy {
  /** Digest of the agent's effective configuration. */
  readonly agentPolicy: string;
  readonly provider: string;
  readonly model: string | null;
  readonly effort: string | null;
  readonly thread: ThreadBinding | null;
  readonly delegatedFrom: ThreadBinding | null;
}

export function executionPolicyHash(policy: ExecutionPolicy): string {
  return sha256(canonicalJson(policy));
}
