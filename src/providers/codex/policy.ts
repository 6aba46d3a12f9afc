/**
 * What an agent may do to the world, in the words of Codex (POL-2). Its own tools always read; with `execute` they run commands,
 * and its sandbox keeps writing and the network from these.
 *
 * - C1 Nothing is asked for that would lead out of the sandbox, unless all effects are given: a yes would widen the policy.
 */
import { type Effect, EFFECTS } from "../../protocol/agent.ts";
import type { JsonObject } from "../../protocol/json.ts";

interface CodexPolicy {
  readonly sandbox: "read-only" | "workspace-write" | "danger-full-access";
  readonly approvalPolicy: CodexApprovals;
  /** Settings of a thread without commands. */
  readonly config: JsonObject;
}

/** Which calls ask first where all effects are given. */
export type CodexApprovals = "never" | "on-request" | "untrusted";

export function effectiveEffects(effects: readonly Effect[]): readonly Effect[] {
  return effects.includes("execute")
    ? EFFECTS.filter((one) => one === "read" || effects.includes(one))
    : ["read"];
}

export function policyOf(effects: readonly Effect[], approvals: CodexApprovals): CodexPolicy {
  const has = new Set(effectiveEffects(effects));
  if (!has.has("execute")) return { sandbox: "read-only", approvalPolicy: "never", config: WITHOUT_COMMANDS };
  if (has.has("write") && has.has("network"))
    return { sandbox: "danger-full-access", approvalPolicy: approvals, config: {} };
  return { sandbox: has.has("write") ? "workspace-write" : "read-only", approvalPolicy: "never", config: {} };
}

const WITHOUT_COMMANDS: JsonObject = {
  "features.shell_tool": false,
  "features.unified_exec": false,
  "features.goals": false,
  web_search: "disabled",
};

/** The same for one turn, with the network, of which the names of sandboxes say nothing. */
export function turnPolicy(effects: readonly Effect[], approvals: CodexApprovals): JsonObject {
  const { sandbox, approvalPolicy } = policyOf(effects, approvals);
  const networkAccess = effectiveEffects(effects).includes("network");
  const sandboxPolicy: JsonObject =
    sandbox === "danger-full-access"
      ? { type: "dangerFullAccess" }
      : sandbox === "read-only"
        ? { type: "readOnly", networkAccess }
        : {
            type: "workspaceWrite",
            writableRoots: [],
            networkAccess,
            excludeTmpdirEnvVar: false,
            excludeSlashTmp: false,
          };
  return { sandboxPolicy, approvalPolicy };
}
