/** `followup_task`: another task for an agent that exists (agents.md 22, 24, 26, 27). */
import { z } from "zod";
import type { JsonObject } from "../protocol/json.ts";
import type { Profile } from "../protocol/profile.ts";
import { activeSpanReference } from "../platform/telemetry.ts";
import { currentStatus, idempotencyKey, message, resultFields, shownStatus, target } from "./asking.ts";
import { type BuiltIn, builtIn, result } from "./built-in.ts";

const referenceInput = z.strictObject({ target, message });
const fullInput = referenceInput.extend({
  model: z.string().optional().describe("Another model for the run that this starts."),
  reasoning_effort: z.string().optional().describe("Another reasoning effort for the run that this starts."),
  ...resultFields,
  idempotency_key: idempotencyKey,
});

const description = `Gives an agent that exists another task. It keeps all it knows. An idle agent starts at once; a running one takes the task in before its next step, and answers both together.
Use it to go on with an agent: a correction, a next part, a question about its result. Do not use it for a mere notice (send a message), nor for a task that needs none of what that agent knows (spawn a new one). The root agent takes no follow-ups.
It returns when the task is accepted. The result comes to you as a message by itself; never ask for it in a loop.`;

export function followupTask(profile: Profile): BuiltIn {
  return builtIn({
    name: "followup_task",
    title: "Give an agent another task",
    description,
    input: fullInput,
    taken: profile.richOutputs ? fullInput : referenceInput,
    hints: { readOnly: false, destructive: false, idempotent: false, openWorld: false },
    async run(input, { control, caller, signal }) {
      const receipt = await control.followUp(
        caller,
        {
          target: input.target,
          message: input.message,
          model: input.model,
          effort: input.reasoning_effort,
          wake: input.wake,
          detached: input.detached,
          replyTo: input.reply_to,
          outputSchema: input.output_schema as JsonObject | undefined,
          acceptance: input.acceptance,
          trace: activeSpanReference(),
        },
        { commandId: input.idempotency_key, signal },
      );
      if (!profile.richOutputs) return result("");
      return result({
        work_id: receipt.workId,
        agent: receipt.path,
        recipient_status: shownStatus(await currentStatus(control, receipt.path)),
      });
    },
  });
}
