/** `report_result`: ends one of the works that a run serves, by itself (WRK-2). */
import { z } from "zod";
import { RejectedError } from "../protocol/errors.ts";
import { type BuiltIn, type BuiltInCall, builtIn, result } from "./built-in.ts";

const input = z.strictObject({
  work_id: z
    .string()
    .optional()
    .describe("The `Work id` in the message that asked for it. May be left out when you have one task only."),
  result: z
    .union(
      [z.string(), z.record(z.string(), z.unknown()), z.array(z.unknown())],
      "must be text, a JSON object or a list",
    )
    .describe("The whole result: text, or JSON where the task asked for JSON."),
  status: z.enum(["completed", "failed"]).optional().describe("Default `completed`."),
});

const description = `Ends one of the tasks you are working on, with its own result, before your answer.
Use it when you work on several tasks at once and one is done, or has failed, while others go on. Do not use it for your only task: your answer is its result. A task can be ended once.`;

export function reportResult(): BuiltIn {
  return builtIn({
    name: "report_result",
    title: "Report the result of a task",
    description,
    input,
    hints: { readOnly: false, destructive: false, idempotent: false, openWorld: false },
    async run(asked, call) {
      const report = {
        workId: asked.work_id ?? (await onlyWork(call)),
        text: typeof asked.result === "string" ? asked.result : JSON.stringify(asked.result),
        status: asked.status ?? "completed",
      };
      const work = await call.control.reportResult(call.caller, report, { signal: call.signal });
      return result({ work_id: work.id, state: work.outcome?.ending ?? work.state });
    },
  });
}

/** The one open work that the caller's run serves. */
async function onlyWork({ control, caller }: BuiltInCall): Promise<string> {
  const open = await control.read((view) => {
    const run = caller.runId === null ? undefined : view.run(caller.runId);
    return (run?.serves ?? []).filter((id) => view.work(id)?.state !== "ended");
  });
  const [only, ...others] = open;
  if (only !== undefined && others.length === 0) return only;
  throw new RejectedError(
    "INVALID_ARGUMENT",
    `you have ${open.length} open tasks; say with work_id which one this is the result of.`,
    { argument: "work_id", serves: open.slice(0, 16) },
  );
}
