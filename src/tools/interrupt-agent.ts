/** `interrupt_agent`: cuts off what an agent is doing (agents.md 37-40, INT-1, INT-8). */
import { z } from "zod";
import { isRunId } from "../protocol/ids.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { Json } from "../protocol/json.ts";
import type { Profile } from "../protocol/profile.ts";
import type { Touched } from "../control/interrupt.ts";
import { idempotencyKey, shownStatus, target } from "./asking.ts";
import { type BuiltIn, builtIn, result } from "./built-in.ts";

const SHOWN_AGENTS = 50;

const referenceInput = z.strictObject({ target });
const fullInput = referenceInput.extend({
  cascade: z
    .enum(["none", "subtree"])
    .optional()
    .describe("`subtree`: the agents below it as well. Default `none`: they go on."),
  pending: z
    .enum(["keep", "cancel"])
    .optional()
    .describe(
      "`cancel`: tasks it has not begun end as well. Default `keep`: the next of them starts at once.",
    ),
  run_id: z.string().optional().describe("Only this run; nothing is done when it is over."),
  idempotency_key: idempotencyKey,
});

const description = `Cuts off what an agent is doing now. It stays in the tree with all it knows and can be given another task.
Use it when its work is wrong, useless by now, or the user wants it stopped. Do not use it to hurry an agent, to ask how far it is, or to tidy up when it is done. Programs that it has started may still run, and what it wrote stays.`;

export function interruptAgent(profile: Profile): BuiltIn {
  const receipt = profile.interruptOutput === "receipt";
  return builtIn({
    name: "interrupt_agent",
    title: "Interrupt an agent",
    description,
    input: fullInput,
    taken: receipt ? fullInput : referenceInput,
    hints: { readOnly: false, destructive: true, idempotent: true, openWorld: false },
    async run(input, { control, caller, signal }) {
      const runId = input.run_id;
      if (runId !== undefined && !isRunId(runId)) {
        throw new RejectedError(
          "INVALID_ARGUMENT",
          "run_id is no id of a run; use one that a tool returned, or leave it out.",
          {
            argument: "run_id",
          },
        );
      }
      const options = { commandId: input.idempotency_key, signal };
      if (!receipt)
        return result({ previous_status: await control.interruptForStatus(caller, input.target, options) });
      const touched = await control.interrupt(
        caller,
        input.target,
        { runId, cascade: input.cascade, pending: input.pending },
        options,
      );
      return result(shownReceipt(touched));
    },
  });
}

function shownReceipt(touched: readonly Touched[]): Json {
  const more = touched.length - SHOWN_AGENTS;
  return {
    touched: touched.slice(0, SHOWN_AGENTS).map((one) => ({
      agent: one.path,
      thread_id: one.threadId,
      run_id: one.runId,
      previous_status: shownStatus(one.previous),
      status: shownStatus(one.status),
    })),
    ...(more > 0 ? { more } : {}),
    ...(touched.length === 0 ? { note: "There was nothing to interrupt." } : {}),
  };
}
