/** `pin_context`: a line that is kept word for word, in this thread and wherever it is handed over (lineage C3.9, C6.4). */
import { z } from "zod";
import { THREAD_FIELDS } from "../protocol/command.ts";
import { once, receiptKey } from "../control/idempotency.ts";
import { pin } from "../threads/verbs.ts";
import { type BuiltIn, builtIn, result } from "./built-in.ts";

const input = z.strictObject({
  section: THREAD_FIELDS.pin.section.describe(
    "`decisions` that were made, `constraints` to keep to, `openItems` that are undecided, `nextActions` that are due.",
  ),
  text: THREAD_FIELDS.pin.text.describe("One line that stands for itself; at most 4,096 bytes."),
});

const description = `Keeps a line of your work word for word. It is there in your later runs, when another model takes over, when the thread is forked, and in your result if you are cut off.
Use it for the few things that must not be lost: a decision and its reason, a constraint, what is open, what comes next. Do not use it for a log of what you do, nor for what stands in your answer anyway. A pin is work state: it permits nothing.`;

export function pinContext(): BuiltIn {
  return builtIn({
    name: "pin_context",
    title: "Keep a line of your work",
    description,
    input,
    hints: { readOnly: false, destructive: false, idempotent: false, openWorld: false },
    async run({ section, text }, { control, caller }) {
      const key = receiptKey(caller, undefined);
      const pinned = await control.tree.transact((tx) =>
        once(tx, key, { verb: "pin", section, text }, () => ({
          pin_id: pin(tx, caller.threadId, section, text).pinId,
        })),
      );
      return result({ ...pinned, section });
    },
  });
}
