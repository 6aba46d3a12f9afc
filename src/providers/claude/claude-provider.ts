/** Claude Code as a provider: a real agent with a loop, tools and conversations of its own, under its Agent SDK (lineage 3). */
import { type Clock, systemClock } from "../../platform/clock.ts";
import { withNativeAgents } from "../native-agents.ts";
import type { ModelInfo, NativeAdapter, NativeSessionInput } from "../port.ts";
import { CLAUDE_CAPABILITIES } from "./capabilities.ts";
import { type ClaudeApprovals, effectiveEffects } from "./policy.ts";
import { type ClaudeSdk, loadClaudeSdk } from "./sdk.ts";
import { ClaudeSession } from "./session.ts";
import { environmentOf } from "./settings.ts";
import { ClaudeTranscripts } from "./transcripts.ts";
import { DRIVER } from "./translate.ts";

/** Options of `createClaudeProvider`; all may be left out. */
export interface ClaudeOptions {
  /**
   * The module `@anthropic-ai/claude-agent-sdk`, 0.3. Unless given, it is looked for in the folder in which the process was started,
   * and beside Coppice.
   */
  readonly sdk?: ClaudeSdk;
  /** The program, where it is not the one that came with the SDK. */
  readonly pathToExecutable?: string;
  /**
   * Its environment, in place of this process's; CLAUDE_CONFIG_DIR says where it keeps its conversations, and
   * CLAUDE_CODE_MAX_RETRIES how often it tries again by itself, for minutes unless set.
   */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Models by name; any name is taken unless given. */
  readonly models?: Readonly<Record<string, ModelInfo>>;
  /** The model of agents that name none; Claude's own default unless given. */
  readonly defaultModel?: string;
  /**
   * `on-request`, unless given: what Claude Code would ask its user about waits for an approval. `never`: what an agent's effects
   * allow is done without asking.
   */
  readonly approvals?: ClaudeApprovals;
  /**
   * Claude Code's own agents, beside those of the tree; false unless given. They are shown below the run, and run while their call does.
   * What narrows an agent is not enforced on them, so agents need all effects then (POL-2).
   */
  readonly nativeAgents?: boolean;
  /** Adapters that share it may resume each other's threads (C4.3). */
  readonly instanceId?: string;
  /** Milliseconds for the program to be ready in; a minute unless given. */
  readonly deadlineMs?: number;
  readonly clock?: Clock;
}

const DEADLINE_MS = 60_000;
const GRACE_MS = 2_000;

/**
 * Claude Code, one process a session in which turns are asked for. An agent gets those of its tools that its effects allow;
 * `execute`, which nothing narrows, takes all effects (POL-2).
 */
export function createClaudeProvider(options: ClaudeOptions = {}): NativeAdapter {
  const env = environmentOf(options.env ?? process.env);
  const transcripts = new ClaudeTranscripts(env);
  const models = options.models ?? null;
  const nativeAgents = options.nativeAgents ?? false;
  const capabilities = withNativeAgents(CLAUDE_CAPABILITIES, nativeAgents);
  let loaded: ClaudeSdk | null = options.sdk ?? null;
  return {
    loop: "theirs",
    driver: DRIVER,
    aliases: ["anthropic", "claude-code"],
    ...(options.instanceId === undefined ? {} : { instanceId: options.instanceId }),
    defaultModel: options.defaultModel ?? null,
    models: () => models,
    capabilities: async () => capabilities,
    effectiveEffects: (effects) => effectiveEffects(effects, !nativeAgents),
    classifySelectionChange: () => "apply_next_turn",
    async openSession(input: NativeSessionInput) {
      loaded ??= loadClaudeSdk();
      return new ClaudeSession({
        program: {
          sdk: loaded,
          env,
          executable: options.pathToExecutable ?? null,
          startProcess: input.startProcess,
          clock: options.clock ?? systemClock,
          deadlineMs: options.deadlineMs ?? DEADLINE_MS,
          graceMs: GRACE_MS,
        },
        transcripts,
        input,
        approvals: options.approvals ?? "on-request",
        nativeAgents,
      });
    },
  };
}
