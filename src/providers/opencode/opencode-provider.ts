/** OpenCode as a provider: a real agent with a loop, tools and conversations of its own, over `opencode serve` (lineage 3). */
import { z } from "zod";
import { check, optionsOf, withMethods } from "../../platform/check.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { systemRandom } from "../../platform/ids.ts";
import { RejectedError } from "../../protocol/errors.ts";
import { HeldServers } from "../held-servers.ts";
import { McpBridge } from "../mcp-bridge/endpoint.ts";
import { withNativeAgents } from "../native-agents.ts";
import type { ModelInfo, NativeAdapter, NativeSessionInput } from "../port.ts";
import { originOf } from "./address.ts";
import { OPENCODE_CAPABILITIES } from "./capabilities.ts";
import { isolatedEnvironment } from "./isolation.ts";
import { effectiveEffects, type OpenCodeApprovals } from "./policy.ts";
import { OpenCodeServer } from "./server.ts";
import { OpenCodeSession } from "./session.ts";
import { DRIVER } from "./translate.ts";

/** Options of `createOpenCodeProvider`; all may be left out. */
export interface OpenCodeOptions {
  /** The program; `opencode`, found by the PATH, unless given. */
  readonly command?: string;
  /** Arguments before those of the adapter. */
  readonly args?: readonly string[];
  /** Its environment, in place of this process's. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /**
   * Where a server listens that somebody else runs, such as `http://127.0.0.1:4096`: on this machine, an origin alone. It is used
   * then, and none is started or ended: `command`, `args`, `env` and `isolated` are refused beside it. Conversations on it are bound to this
   * address.
   */
  readonly url?: string;
  /** Of that server, where it wants one. */
  readonly password?: string;
  /** Models by name; any name is taken unless given. Names are `provider/model`. */
  readonly models?: Readonly<Record<string, ModelInfo>>;
  /** The model of agents that name none; the one of OpenCode's settings unless given. */
  readonly defaultModel?: string;
  /** Which of its own calls ask for an approval, where an agent has all effects; `on-request`, as its settings say, unless given. */
  readonly approvals?: OpenCodeApprovals;
  /**
   * Starts it without what acts by itself in its user's settings: plugins, formatters, language servers, and settings of the project.
   * Only then can an agent be held to less than all effects; else such agents are refused (POL-2). Goes with no `url`.
   */
  readonly isolated?: boolean;
  /**
   * OpenCode's own agents (`task`), beside those of the tree; false unless given. They are shown below the run and end with it.
   * What narrows an agent is not enforced on them, so agents need all effects then (POL-2).
   */
  readonly nativeAgents?: boolean;
  /** Adapters that share it may resume each other's threads (C4.3). */
  readonly instanceId?: string;
  /**
   * Milliseconds for an answer of the program, turns and forks aside; a minute unless given. Nothing is waited for longer than five
   * minutes for its answer to begin, forks included.
   */
  readonly deadlineMs?: number;
  readonly clock?: Clock;
}

const SCHEMA = optionsOf<OpenCodeOptions>({
  command: z.string().min(1).optional(),
  args: z.array(z.string()).optional(),
  env: z.record(z.string(), z.string().optional()).optional(),
  url: z.string().optional(),
  password: z.string().min(1).optional(),
  models: z.custom<OpenCodeOptions["models"]>().optional(),
  defaultModel: z.string().min(1).optional(),
  approvals: z.enum(["never", "on-request", "untrusted"]).optional(),
  isolated: z.boolean().optional(),
  nativeAgents: z.boolean().optional(),
  instanceId: z.string().min(1).optional(),
  deadlineMs: z.number().int().min(1).optional(),
  clock: withMethods<Clock>("is no clock", "now", "setTimer", "defer").optional(),
});

const DEADLINE_MS = 60_000;

/**
 * OpenCode, one server a tree. With `isolated` an agent has the tools that its effects name; `execute` takes all effects, and
 * without `isolated` every agent does (POL-2).
 * @throws RejectedError `INVALID_ARGUMENT`; `EXTERNAL_SERVER_URL_INVALID` for a `url` that is not an origin on this machine.
 */
export function createOpenCodeProvider(options: OpenCodeOptions = {}): NativeAdapter {
  check("createOpenCodeProvider", SCHEMA, options);
  const { clock = systemClock, deadlineMs = DEADLINE_MS, env = process.env, isolated = false } = options;
  const url = options.url === undefined ? null : originOf(options.url);
  if (url !== null)
    refuseOptions(options, OF_OURS, "how a server of ours is started, and goes with no `url`");
  else refuseOptions(options, ["password"], "that of a server at `url`");
  const program = {
    command: options.command ?? "opencode",
    args: options.args ?? [],
    env: isolated ? isolatedEnvironment(env) : env,
    random: systemRandom,
    clock,
    deadlineMs,
  };
  const servers = new HeldServers((start) =>
    url === null
      ? OpenCodeServer.start(program, start)
      : OpenCodeServer.connect({ url, password: options.password ?? null }, program),
  );
  const bridge = new McpBridge({ clock, random: systemRandom, driver: DRIVER });
  const models = options.models ?? null;
  const nativeAgents = options.nativeAgents ?? false;
  const capabilities = withNativeAgents(OPENCODE_CAPABILITIES, nativeAgents);
  return {
    loop: "theirs",
    driver: DRIVER,
    ...(options.instanceId === undefined ? {} : { instanceId: options.instanceId }),
    defaultModel: options.defaultModel ?? null,
    models: () => models,
    capabilities: async () => capabilities,
    effectiveEffects: (effects) => effectiveEffects(effects, isolated && !nativeAgents),
    classifySelectionChange: () => "apply_next_turn",
    async openSession(input: NativeSessionInput) {
      const { approvals = "on-request" } = options;
      const held = await servers.hold(input.treeId, input.startProcess);
      try {
        const seated = input.tools.length === 0 ? null : await bridge.sit(input.tools, input.transportWaitMs);
        const directory = input.workspace ?? process.cwd();
        return new OpenCodeSession({
          held,
          input,
          directory,
          seated,
          approvals,
          capabilities,
          clock,
          deadlineMs,
          random: systemRandom,
        });
      } catch (error) {
        await held.release();
        throw error;
      }
    },
  };
}

const OF_OURS = ["command", "args", "env", "isolated"] as const;

function refuseOptions(
  options: OpenCodeOptions,
  names: readonly (keyof OpenCodeOptions)[],
  why: string,
): void {
  // That it is not isolated is what one at `url` is.
  const option = names.find((name) => options[name] !== undefined && options[name] !== false);
  if (option === undefined) return;
  throw new RejectedError(
    "INVALID_ARGUMENT",
    `the arguments of createOpenCodeProvider are wrong: \`${option}\` is ${why}.`,
    { option },
  );
}
