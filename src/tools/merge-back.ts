/** `merge_back`: what a fork has found is told to the thread that it was forked from (lineage C7). */
import { z } from "zod";
import { idempotencyKey } from "./asking.ts";
import { type BuiltIn, builtIn, result } from "./built-in.ts";
import { approval, threadCall } from "./thread-call.ts";

const input = z.strictObject({
  fork_thread_id: z
    .string()
    .optional()
    .describe(
      "A fork of your thread, or one that you have made; default: your own thread, where that is a fork.",
    ),
  idempotency_key: idempotencyKey,
});

const description = `Brings what a fork has decided, changed and found into the thread that it was forked from: as a text, before that thread's next run. The fork stays.
Use it when a fork is done and its thread is to go on from what it found. Do not use it to say a single thing (send a message), nor for threads that are no forks. Only what the fork has completed goes along; a later one replaces one that is still pending.`;

export function mergeBackTool(): BuiltIn {
  return builtIn({
    name: "merge_back",
    title: "Bring a fork back",
    description,
    input,
    hints: { readOnly: false, destructive: false, idempotent: false, openWorld: true },
    async run(given, call) {
      const { fork_thread_id: fork, idempotency_key: key } = given;
      const { verbs, from } = threadCall(call, key);
      if (!(await verbs.mergesIntoOwn(from, fork))) {
        const waiting = await approval(call, {
          tool: "merge_back",
          arguments: given,
          words: () => `bring ${fork ?? "this thread"} back into the thread that it was forked from`,
        });
        if (waiting !== null) return waiting;
      }
      const { transferId, into } = await verbs.mergeBack(from, fork);
      return result({
        transfer_id: transferId,
        into,
        note: "Its text is built and told when that thread's next run starts.",
      });
    },
  });
}
