/** `report_result`: an agent settles one of the works its run serves, by itself (WRK-2). */
import { RejectedError } from "../protocol/errors.ts";
import type { WorkId } from "../protocol/ids.ts";
import { isWorkId } from "../protocol/ids.ts";
import type { Caller } from "../protocol/tool.ts";
import type { WorkRecord } from "../protocol/work.ts";
import { actingAs } from "./caller.ts";
import type { Verdicts } from "./schema-checks.ts";
import type { Transaction } from "./transaction.ts";
import { endWork } from "./works.ts";

export interface Report {
  readonly workId: string;
  readonly text: string;
  readonly status: "completed" | "failed";
}

/** @throws RejectedError for a work that the caller's run does not serve, or a text that misses the work's schema. */
export function reportResult(
  tx: Transaction,
  caller: Caller,
  report: Report,
  verdicts: Verdicts,
): WorkRecord {
  const acting = actingAs(tx, caller);
  const work = isWorkId(report.workId) ? tx.store.work(report.workId as WorkId) : undefined;
  if (work === undefined || acting.run === null || !acting.run.serves.includes(work.id)) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `your run does not serve the work ${report.workId}; report one that it serves.`,
      {
        argument: "work_id",
        serves: [...(acting.run?.serves ?? [])],
      },
    );
  }
  if (work.state === "ended") {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `the work ${work.id} has ended already (${work.outcome?.ending}).`,
      {
        argument: "work_id",
        ending: work.outcome?.ending ?? null,
      },
    );
  }
  const checked = report.status === "failed" ? undefined : verdicts.get(work.id);
  if (checked?.ok === false) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `the result does not satisfy the work's JSON Schema: ${checked.fault}.`,
      {
        argument: "result",
      },
    );
  }
  return endWork(tx, work.id, {
    ending: report.status === "failed" ? "failed" : report.text.trim() === "" ? "empty_result" : "completed",
    text: report.text,
    value: checked?.ok === true ? checked.value : null,
    error:
      report.status === "failed"
        ? { code: "INVALID_ARGUMENT", message: "reported as failed by the agent", status: null }
        : null,
    runId: acting.run.id,
    reported: true,
  });
}
