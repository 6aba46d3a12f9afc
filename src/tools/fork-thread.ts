/** `fork_thread`: a new root that begins where a thread stood (lineage C5, C1.2). */
import { z } from "zod";
import { idempotencyKey } from "./asking.ts";
import { type BuiltIn, builtIn, result } from "./built-in.ts";
import { approval, quoted, threadCall } from "./thread-call.ts";

const input = z.strictObject({
  thread_id: z.string().optional().describe("Id of the thread to fork; default: your own."),
  run_id: z
    .string()
    .optional()
    .describe("The run after which to fork; default: the latest that was completed."),
  title: z
    .string()
    .optional()
    .describe("A name that people find it by; default: the thread's, with a number."),
  strategy: z
    .enum(["auto", "native", "replay"])
    .optional()
    .describe("How it gets what lies before: `auto` (default), the provider's own fork, or as text."),
  message: z
    .string()
    .optional()
    .describe("What it is to start with; without it, it rests until somebody writes to it."),
  idempotency_key: idempotencyKey,
});

const description = `Makes a new thread that knows all that a thread knew at a point, and goes on by itself from there. The thread that is forked stays as it is.
Use it to try something else from the same beginning, without losing or disturbing what is there. Do not use it to share out a task; spawned agents can get your history too. What the fork finds comes back by \`merge_back\`, by a message, or by reading it.
It may do at most what you may, and what it uses counts in the budgets of your tree.`;

export function forkThreadTool(): BuiltIn {
  return builtIn({
    name: "fork_thread",
    title: "Fork a thread",
    description,
    input,
    hints: { readOnly: false, destructive: false, idempotent: false, openWorld: true },
    async run(asked, call) {
      const waiting = await approval(call, {
        tool: "fork_thread",
        arguments: asked,
        words: () => words(asked),
      });
      if (waiting !== null) return waiting;
      const { verbs, from } = threadCall(call, asked.idempotency_key);
      const { thread_id: source, run_id: run, title, strategy, message } = asked;
      return result(await verbs.fork(from, { source, run, title, strategy, message }));
    },
  });
}

function words({ thread_id: thread, run_id: run, title, strategy, message }: z.output<typeof input>): string {
  return [
    `fork ${thread ?? "this thread"}${run === undefined ? "" : ` after ${run}`}`,
    ...(title === undefined ? [] : [`as ${quoted(title)}`]),
    ...(strategy === undefined ? [] : [`strategy ${strategy}`]),
    message === undefined ? "to rest until somebody writes to it" : `to start with ${quoted(message)}`,
  ].join(", ");
}
