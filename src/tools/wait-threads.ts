/**
 * `wait_threads`: rest until one of some threads has come to rest (XTR-4). A run's wait is stored, as every wait of a run is;
 * a host-driven root waits in the call. It consumes no mail.
 */
import { z } from "zod";
import { THREAD_WAIT_MS, THREAD_WAIT_TARGETS } from "../protocol/wait.ts";
import { heldThreadWait } from "../control/held-wait.ts";
import { hostThreadWait, showNow, waitForThreads } from "../control/thread-wait.ts";
import { type BuiltIn, builtIn, result } from "./built-in.ts";
import { threadCall, threadId } from "./thread-call.ts";

const DEFAULT_MS = 60_000;

const input = z.strictObject({
  thread_ids: z
    .array(threadId)
    .min(1)
    .max(THREAD_WAIT_TARGETS)
    .describe(`At most ${THREAD_WAIT_TARGETS} threads.`),
  timeout_ms: z
    .number()
    .int()
    .min(0)
    .max(THREAD_WAIT_MS)
    .optional()
    .describe(
      `How long at most, in milliseconds: default ${DEFAULT_MS}, at most ${THREAD_WAIT_MS}; 0 only looks.`,
    ),
  cursor: z
    .string()
    .max(4096)
    .optional()
    .describe("The `cursor` of your last wait, so that nothing is told twice."),
});

const description = `Rests until one of the threads is idle, closed, or asks somebody something, and says how each of them stands. While it lasts, nothing of you runs and nothing is spent.
Use it after you have sent something to a thread, or have made one, and need what comes of it. Do not use it for agents of your own tree. With the \`cursor\` of the wait before, only what has changed since ends it and is told again. New input to you ends it early. Running out of time is no fault and stops nobody.`;

export function waitThreads(): BuiltIn {
  return builtIn({
    name: "wait_threads",
    title: "Wait for threads",
    description,
    input,
    hints: { readOnly: true, destructive: false, idempotent: true, openWorld: true },
    async run(asked, call) {
      const { verbs, from } = threadCall(call);
      const { caller, control, signal, longestWaitMs } = call;
      const found = await verbs.targets(from, [...new Set(asked.thread_ids)]);
      const wait = {
        threads: found.map((agent) => agent.threadId),
        timeoutMs: asked.timeout_ms ?? DEFAULT_MS,
        cursor: asked.cursor ?? null,
      };
      if (wait.timeoutMs === 0) return result(await showNow(control.tree, caller.threadId, wait));
      const { runId, callId } = caller;
      if (runId === null)
        return result(await hostThreadWait(control.tree, caller.threadId, wait, { signal, longestWaitMs }));
      if (longestWaitMs !== null) {
        const held = await heldThreadWait(control.tree, runId, wait, { signal, longestMs: longestWaitMs });
        return { kind: "result", ...held };
      }
      return { kind: "waiting", on: await waitForThreads(control.tree, { runId, callId: callId! }, wait) };
    },
  });
}
