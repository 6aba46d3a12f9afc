/** Codex as a provider: a real agent with a loop, tools and conversations of its own, over `codex app-server` (lineage 3). */
import { type Clock, systemClock } from "../../platform/clock.ts";
import { EFFECTS } from "../../protocol/agent.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { HeldServers } from "../held-servers.ts";
import { withNativeAgents } from "../native-agents.ts";
import type { ModelInfo, NativeAdapter, NativeSessionInput } from "../port.ts";
import { CODEX_CAPABILITIES } from "./capabilities.ts";
import { type CodexApprovals, effectiveEffects } from "./policy.ts";
import { CodexServer } from "./server.ts";
import { CodexSession } from "./session.ts";
import { DRIVER } from "./translate.ts";

/** Options of `createCodexProvider`; all may be left out. */
export interface CodexOptions {
  /** The program; `codex`, found by the PATH, unless given. */
  readonly command?: string;
  /** Arguments before those of the adapter. */
  readonly args?: readonly string[];
  /** Its environment, in place of this process's; CODEX_HOME says where it keeps its settings and conversations. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Settings for each thread, as in its `config.toml`, by dotted names. */
  readonly config?: JsonObject;
  /** Models by name; any name is taken unless given. */
  readonly models?: Readonly<Record<string, ModelInfo>>;
  /** The model of agents that name none; Codex's own default unless given. */
  readonly defaultModel?: string;
  /** Which of its own calls ask for an approval, where an agent has all effects; `on-request` unless given. */
  readonly approvals?: CodexApprovals;
  /**
   * True when nothing but Codex's own tools stands in its settings: no MCP servers, plugins or hooks, over which its sandbox has no
   * power. Only then can an agent be held to less than all effects; else such agents are refused (POL-2).
   */
  readonly isolated?: boolean;
  /**
   * Codex's own agents, beside those of the tree; false unless given, or as `agents.enabled` in `config` says. They are shown
   * below the run and end with it. What narrows an agent cannot be enforced then, so agents need all effects (POL-2).
   */
  readonly nativeAgents?: boolean;
  /** Adapters that share it may resume each other's threads (C4.3). */
  readonly instanceId?: string;
  /** Milliseconds for an answer of the program, turns and forks aside; a minute unless given. */
  readonly deadlineMs?: number;
  readonly clock?: Clock;
}

const DEADLINE_MS = 60_000;
const GRACE_MS = 2_000;
/** Without them its own tools for agents would stand beside ours, in the models that have them by themselves. */
const WITHOUT_AGENTS: JsonObject = { "agents.enabled": false };
const WITH_AGENTS: JsonObject = { "agents.enabled": true, "features.multi_agent_v2": true };

/**
 * Codex, one process a tree. With `isolated`, an agent needs `read`; `execute` gives it commands, and `write` and `network` lift
 * their sandbox. Without it an agent needs all effects (POL-2).
 */
export function createCodexProvider(options: CodexOptions = {}): NativeAdapter {
  const program = {
    command: options.command ?? "codex",
    args: options.args ?? [],
    env: options.env ?? process.env,
    clock: options.clock ?? systemClock,
    deadlineMs: options.deadlineMs ?? DEADLINE_MS,
    graceMs: GRACE_MS,
  };
  const servers = new HeldServers((start) => CodexServer.start(program, start));
  const models = options.models ?? null;
  const settings = options.config ?? {};
  const nativeAgents = options.nativeAgents ?? settings["agents.enabled"] === true;
  const capabilities = withNativeAgents(CODEX_CAPABILITIES, nativeAgents);
  const config = { ...settings, ...(nativeAgents ? WITH_AGENTS : WITHOUT_AGENTS) };
  const narrows = options.isolated === true && !nativeAgents;
  return {
    loop: "theirs",
    driver: DRIVER,
    aliases: ["openai", "gpt"],
    ...(options.instanceId === undefined ? {} : { instanceId: options.instanceId }),
    defaultModel: options.defaultModel ?? null,
    models: () => models,
    capabilities: async () => capabilities,
    effectiveEffects: (effects) => (narrows ? effectiveEffects(effects) : EFFECTS),
    classifySelectionChange: () => "apply_next_turn",
    async openSession(input: NativeSessionInput) {
      const { server, release } = await servers.hold(input.treeId, input.startProcess);
      const { approvals = "on-request" } = options;
      return new CodexSession({ server, release, input, capabilities, approvals, config });
    },
  };
}
