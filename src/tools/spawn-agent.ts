/** `spawn_agent`: a new agent below the caller, with its first task (agents.md 11-20, SPN). */
import { z } from "zod";
import { RejectedError } from "../protocol/errors.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { Budgets } from "../protocol/limits.ts";
import type { Profile } from "../protocol/profile.ts";
import { activeSpanReference } from "../platform/telemetry.ts";
import { effects, idempotencyKey, message, resultFields } from "./asking.ts";
import { type BuiltIn, builtIn, result } from "./built-in.ts";

const amount = z.number().int().min(0).nullable().optional();
const budgets = z
  .strictObject({
    tokens: amount,
    money: z.number().min(0).nullable().optional().describe("USD"),
    wall_clock_ms: amount,
    depth: amount,
    direct_children: amount,
    agents: amount,
    running: amount,
    spawns_per_minute: amount,
  })
  .optional()
  .describe("Budgets of the agent and everything below it; null is unlimited within what you have.");

const referenceInput = z.strictObject({
  task_name: z
    .string()
    .describe(
      "Name of the task, which becomes the last part of the agent's path: lowercase letters, digits, underscores.",
    ),
  message,
  fork_turns: z
    .string()
    .optional()
    .describe(
      "How much of your history the agent starts with: `all` (default), `none`, or a number of latest runs as text, such as `3`.",
    ),
  model: z
    .string()
    .optional()
    .describe("Another model than yours. Leave it out unless you were asked for one."),
  reasoning_effort: z.string().optional().describe("Another reasoning effort than yours."),
  agent_type: z.string().optional().describe("Role of the agent, by its name."),
});

const fullInput = referenceInput.extend({
  ...resultFields,
  provider: z
    .string()
    .optional()
    .describe(
      "Another provider than yours, by its name; without `model` it runs on that provider's default model. Leave it out unless you were asked for one.",
    ),
  isolation: z
    .literal("worktree")
    .optional()
    .describe(
      "`worktree`: the agent works in a git worktree of its own, at the last commit of your workspace; what you have not committed is not in it. What it leaves there stays when it is closed. Leave it out to share your workspace.",
    ),
  effects,
  budgets,
  idempotency_key: idempotencyKey,
});

const reference = `Starts a new agent below you and gives it a task. It works beside you, in its own context.
Use it for a task that stands for itself and can go on while you do something else. Do not use it for a single step that you can do yourself, nor for the next thing that your own work waits on.
It returns once the agent exists, not when it is done: \`task_name\` in the answer is the agent's path, to be used as a target from then on. Its result comes to you as a message by itself; never ask for it in a loop. A path stays taken for ever: to give the same agent more work, follow up.
Tasks that run at the same time must not write the same files.`;

const full = `${reference}
If it cannot run at once it waits in a queue and starts by itself. The result wakes you even after you have given your answer. With \`work_id\` you can wait for this one task.`;

export function spawnAgent(profile: Profile): BuiltIn {
  return builtIn({
    name: "spawn_agent",
    title: "Start an agent",
    description: profile.richOutputs ? full : reference,
    input: fullInput,
    taken: profile.richOutputs ? fullInput : referenceInput,
    hints: { readOnly: false, destructive: false, idempotent: false, openWorld: false },
    before: refuseForkContext,
    async run(input, { control, caller, signal }) {
      const spawned = await control.spawn(
        caller,
        {
          taskName: input.task_name,
          message: input.message,
          forkTurns: input.fork_turns,
          asked: {
            provider: input.provider ?? null,
            model: input.model ?? null,
            effort: input.reasoning_effort ?? null,
            role: input.agent_type ?? null,
            effects: input.effects ?? null,
            ...(input.budgets === undefined ? {} : { budgets: toBudgets(input.budgets) }),
          },
          wake: input.wake,
          detached: input.detached,
          replyTo: input.reply_to,
          outputSchema: input.output_schema as JsonObject | undefined,
          acceptance: input.acceptance,
          isolation: input.isolation,
          trace: activeSpanReference(),
        },
        { commandId: input.idempotency_key, signal },
      );
      if (!profile.richOutputs) return result({ task_name: spawned.path });
      return result({
        task_name: spawned.path,
        work_id: spawned.workId,
        thread_id: spawned.threadId,
        note: "It works by itself; its result comes as a message. Go on, or wait for the work.",
      });
    },
  });
}

/** The name that older callers know (agents.md 11). */
function refuseForkContext(input: unknown): void {
  if (typeof input !== "object" || input === null || !Object.hasOwn(input, "fork_context")) return;
  throw new RejectedError(
    "INVALID_ARGUMENT",
    "`fork_context` is not taken any more; use `fork_turns` (`none`, `all` or a number as text).",
    {
      argument: "fork_context",
    },
  );
}

function toBudgets(asked: NonNullable<z.output<typeof budgets>>): Budgets {
  const {
    wall_clock_ms: wallClockMs,
    spawns_per_minute: spawnsPerMinute,
    direct_children: directChildren,
    ...same
  } = asked;
  return {
    ...same,
    ...(wallClockMs === undefined ? {} : { wallClockMs }),
    ...(spawnsPerMinute === undefined ? {} : { spawnsPerMinute }),
    ...(directChildren === undefined ? {} : { directChildren }),
  };
}
