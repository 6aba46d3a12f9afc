/** `send_message_to_thread`: a message to the root of another tree (XTR-1, XTR-2). */
import { z } from "zod";
import { idempotencyKey } from "./asking.ts";
import { type BuiltIn, builtIn, result } from "./built-in.ts";
import { approval, quoted, threadCall, threadId } from "./thread-call.ts";

const input = z.strictObject({
  thread_id: threadId,
  message: z.string().describe("The text. Say who you are and what you want back, and where to send it."),
  idempotency_key: idempotencyKey,
});

const description = `Sends a message to another thread. An idle one starts to work on it, a running one reads it before its next step, and one that cannot be interrupted finds it when it is done.
Use it to ask or tell a thread that is not of your tree. Do not use it for agents of your own tree; they have tools of their own. It is your word, not the user's, and it names your thread.
Success means that it was accepted, nothing more. No answer comes by itself: ask for one to be sent to your thread, or wait for the thread and read it.`;

export function sendMessageToThread(): BuiltIn {
  return builtIn({
    name: "send_message_to_thread",
    title: "Send a message to a thread",
    description,
    input,
    hints: { readOnly: false, destructive: false, idempotent: false, openWorld: true },
    async run(given, call) {
      const { thread_id: id, message, idempotency_key: key } = given;
      const waiting = await approval(call, {
        tool: "send_message_to_thread",
        arguments: given,
        words: () => `send to ${id}: ${quoted(message)}`,
      });
      if (waiting !== null) return waiting;
      const { verbs, from } = threadCall(call, key);
      const sent = await verbs.send(from, id, message);
      return result({ thread_id: id, message_id: sent.id, seq: sent.seq, accepted: true });
    },
  });
}
