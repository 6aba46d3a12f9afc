/** `report_result`: ends one of the works that a run serves, by itself (WRK-2). */
import { z } from "zod";
import { type BuiltIn, builtIn, result } from "./built-in.ts";

const input = z.strictObject({
  work_id: z.string().describe("The `Work id` in the message that asked for it."),
  result: z.string().describe("The whole result; as JSON text where the task asked for JSON."),
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
    hints: { readOnly: false, destructive: false, idempotent: false },
    async run(asked, { control, caller }) {
      const report = {
        workId: asked.work_id,
        text: asked.result,
        status: asked.status ?? "completed",
      } as const;
      const work = await control.reportResult(caller, report);
      return result({ work_id: work.id, state: work.outcome?.ending ?? work.state });
    },
  });
}
