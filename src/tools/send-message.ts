/** `send_message`: queue-only mail (agents.md 22, 23, 26; MBX-3). */
import { z } from "zod";
import type { Profile } from "../protocol/profile.ts";
import { currentStatus, idempotencyKey, message, shownStatus, target } from "./asking.ts";
import { type BuiltIn, builtIn, result } from "./built-in.ts";

const referenceInput = z.strictObject({ target, message });
const fullInput = referenceInput.extend({ idempotency_key: idempotencyKey });

const description = `Leaves a message in the mailbox of an agent of this tree. It starts nothing: a running agent reads it before its next step, an idle one when something else starts it.
Use it for what another agent should know: a finding, a change of course, an answer. Do not use it to ask for work; an idle agent would not begin. That is what a follow-up is for. Reports to whoever asked you go by themselves with your answer.`;

export function sendMessage(profile: Profile): BuiltIn {
  return builtIn({
    name: "send_message",
    title: "Leave a message",
    description,
    input: fullInput,
    taken: profile.richOutputs ? fullInput : referenceInput,
    hints: { readOnly: false, destructive: false, idempotent: false, openWorld: false },
    async run(input, { control, caller, signal }) {
      const receipt = await control.send(caller, input.target, input.message, {
        commandId: input.idempotency_key,
        signal,
      });
      if (!profile.richOutputs) return result("");
      const status = await currentStatus(control, receipt.recipient);
      return result({
        message_id: receipt.id,
        recipient: receipt.recipient,
        seq: receipt.seq,
        state: receipt.state,
        recipient_status: shownStatus(status),
        ...(status?.kind === "idle"
          ? {
              warning:
                "The agent is idle: the message rests until something starts it. Follow up if it is to act.",
            }
          : {}),
      });
    },
  });
}
