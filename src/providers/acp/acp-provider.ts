/** Any agent that speaks the Agent Client Protocol as a provider: a program with a loop, tools and conversations of its own (lineage 3). */
import { z } from "zod";
import { check, optionsOf, withMethods } from "../../platform/check.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { systemRandom } from "../../platform/ids.ts";
import { type Effect, EFFECTS } from "../../protocol/agent.ts";
import { McpBridge } from "../mcp-bridge/endpoint.ts";
import type { ModelInfo, NativeAdapter, NativeSessionInput } from "../port.ts";
import { capabilitiesOf } from "./capabilities.ts";
import { type AcpModes, policyOf } from "./policy.ts";
import { AcpSession } from "./session.ts";
import { DRIVER } from "./translate.ts";

/** Options of `createAcpProvider`; all but the command may be left out. */
export interface AcpOptions {
  /** The program, found by the PATH unless it is a path. */
  readonly command: string;
  /** What it is told to do, such as `["--acp"]`. */
  readonly args?: readonly string[];
  /** Its environment, in place of this process's. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The mode of the program in which agents with all effects work; as the program has it unless given. */
  readonly mode?: string;
  /**
   * Modes in which the program keeps effects from its agents, each with all that an agent can do in it, MCP servers, plugins and
   * hooks of its settings included. Agents of less than all effects work in the one that gives them most of theirs and nothing
   * more, and are refused where there is none (POL-2).
   */
  readonly modes?: AcpModes;
  /** Models by name; any name is taken unless given. */
  readonly models?: Readonly<Record<string, ModelInfo>>;
  /** The model of agents that name none; the program's own default unless given. */
  readonly defaultModel?: string;
  /** Adapters that share it may resume each other's threads (C4.3). */
  readonly instanceId?: string;
  /** Milliseconds for an answer of the program, turns aside; a minute unless given. */
  readonly deadlineMs?: number;
  readonly clock?: Clock;
}

const SCHEMA = optionsOf<AcpOptions>({
  command: z.string().min(1),
  args: z.array(z.string()).optional(),
  env: z.record(z.string(), z.string().optional()).optional(),
  mode: z.string().min(1).optional(),
  modes: z.record(z.string(), z.array(z.enum(EFFECTS))).optional(),
  models: z.custom<AcpOptions["models"]>().optional(),
  defaultModel: z.string().min(1).optional(),
  instanceId: z.string().min(1).optional(),
  deadlineMs: z.number().int().min(1).optional(),
  clock: withMethods<Clock>("is no clock", "now", "setTimer", "defer").optional(),
});

const DEADLINE_MS = 60_000;
const GRACE_MS = 2_000;

/**
 * Any program that speaks ACP, one process an agent. It gets our tools over MCP, asks for approvals in the inbox, and takes its
 * conversations up again where it can; it forks and rolls back nothing. Without `modes` an agent needs all effects (POL-2).
 * @throws RejectedError `INVALID_ARGUMENT`.
 */
export function createAcpProvider(options: AcpOptions): NativeAdapter {
  check("createAcpProvider", SCHEMA, options);
  const { command, args = [], env = process.env, mode = null, modes = {}, models = null } = options;
  const { clock = systemClock, deadlineMs = DEADLINE_MS } = options;
  const bridge = new McpBridge({ clock, random: systemRandom, driver: DRIVER });
  const policy = (effects: readonly Effect[]) => policyOf(effects, mode, modes);
  return {
    loop: "theirs",
    driver: DRIVER,
    ...(options.instanceId === undefined ? {} : { instanceId: options.instanceId }),
    defaultModel: options.defaultModel ?? null,
    models: () => models,
    capabilities: async () => capabilitiesOf({ resumes: "session/resume" }),
    effectiveEffects: (effects) => policy(effects).effects,
    classifySelectionChange: () => "apply_next_turn",
    async openSession(input: NativeSessionInput) {
      const cwd = input.workspace ?? process.cwd();
      return AcpSession.open({
        agent: { command, args, env, cwd, clock, deadlineMs, graceMs: GRACE_MS },
        input,
        seated: input.tools.length === 0 ? null : await bridge.sit(input.tools, input.transportWaitMs),
        policyOf: policy,
      });
    },
  };
}
