/** `create_thread`: new roots of trees of their own, each with its first input (XTR-1, lineage C1.2, C18.14). */
import { z } from "zod";
import type { AgentConfig } from "../protocol/agent.ts";
import { MOST_NEW_THREADS } from "../protocol/thread-tools.ts";
import { effects, idempotencyKey } from "./asking.ts";
import { type BuiltIn, builtIn, result } from "./built-in.ts";
import { approval, quoted, threadCall } from "./thread-call.ts";

const one = z.strictObject({
  message: z
    .string()
    .describe("The text that the thread starts with. It sees nothing else of your thoughts."),
  title: z.string().optional().describe("A name that people find it by; at most 200 characters."),
  model: z.string().optional().describe("Another model than yours."),
  reasoning_effort: z.string().optional().describe("Another reasoning effort than yours."),
  agent_type: z.string().optional().describe("Role of the thread's agent, by its name."),
  workspace: z
    .string()
    .optional()
    .describe("A folder inside your workspace, by its full path; default: yours."),
  effects,
});

type Asked = z.output<typeof one>;

const input = z.strictObject({
  threads: z
    .array(one)
    .min(1)
    .max(MOST_NEW_THREADS)
    .describe("One entry for each thread; all are made, or none."),
  idempotency_key: idempotencyKey,
});

const description = `Starts independent threads, each the root of a tree of its own. They stay when you are done, and people can go on with them.
Use it for work that is not a part of yours: another topic, something that is to live on by itself. Do not use it to share out your own task; spawn agents for that, whose results come back to you. Nothing comes back from a thread by itself: wait for it, read it, or ask it to send you a message.
They may do at most what you may, and what they use counts in the budgets of your tree. It returns when they are accepted, not when they are done.`;

export function createThread(): BuiltIn {
  return builtIn({
    name: "create_thread",
    title: "Start independent threads",
    description,
    input,
    hints: { readOnly: false, destructive: false, idempotent: false, openWorld: true },
    async run(given, call) {
      const { threads, idempotency_key: key } = given;
      const waiting = await approval(call, {
        tool: "create_thread",
        arguments: given,
        words: (caller) => words(threads, caller),
      });
      if (waiting !== null) return waiting;
      const { verbs, from } = threadCall(call, key);
      const made = await verbs.create(
        from,
        threads.map(({ message, title, ...asked }) => ({
          message,
          title,
          asked: {
            model: asked.model ?? null,
            effort: asked.reasoning_effort ?? null,
            role: asked.agent_type ?? null,
            workspace: asked.workspace ?? null,
            effects: asked.effects ?? null,
          },
        })),
      );
      return result({ threads: made.threads.map((id) => ({ thread_id: id })) });
    },
  });
}

/** Of each thread all that is approved with it: what is left out is the caller's. */
function words(threads: readonly Asked[], caller: AgentConfig): string {
  const each = threads.map((asked) => wordsOf(asked, caller));
  return each.length === 1
    ? `start a thread: ${each[0]}`
    : `start ${each.length} threads: ${each.map((text, at) => `(${at + 1}) ${text}`).join("; ")}`;
}

function wordsOf(asked: Asked, caller: AgentConfig): string {
  const { title, message, model, reasoning_effort: effort, agent_type: role } = asked;
  const own = caller.model === null ? caller.provider : `${caller.provider}/${caller.model}`;
  const workspace = asked.workspace ?? caller.workspace;
  const may = asked.effects ?? caller.effects;
  return [
    `${title === undefined ? "" : `${quoted(title)}: `}${quoted(message)}`,
    `on ${model ?? own}`,
    ...(effort === undefined ? [] : [`effort ${effort}`]),
    ...(role === undefined ? [] : [`as ${role}`]),
    ...(workspace === null ? [] : [`in ${workspace}`]),
    may.length === 0 ? "without effects" : `may ${may.join(", ")}`,
  ].join(", ");
}
