/** Whether a run belongs to the thread that it is named with (lineage C17.5); nothing is mended to make it fit. */
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { RunId } from "../protocol/ids.ts";
import type { RunRecord } from "../protocol/run.ts";
import { EMPTY_CONTEXT } from "../lineage/snapshot.ts";
import type { StoreView } from "../store/port.ts";

/** @throws RejectedError `SOURCE_POINT_NOT_FOUND`, `THREAD_EXECUTION_BINDING_MISMATCH`. */
export function requireRunOf(view: StoreView, agent: AgentRecord, id: string): RunRecord {
  const run = view.run(id as RunId);
  if (run === undefined) {
    throw new RejectedError(
      "SOURCE_POINT_NOT_FOUND",
      `no run ${id.slice(0, 80)} is in this store; list the runs of ${agent.threadId}.`,
      { threadId: agent.threadId, run: id.slice(0, 80) },
    );
  }
  requireBound(view, agent, run);
  return run;
}

/** @throws RejectedError `THREAD_EXECUTION_BINDING_MISMATCH`. */
export function requireBound(view: StoreView, { threadId }: AgentRecord, run: RunRecord): void {
  if (run.threadId !== threadId) throw mismatch(threadId, run, `is a run of ${run.threadId}`);
  if (run.binding === null) return;
  const { id, contextRevision, contextDigest } = run.binding;
  if (id !== threadId) throw mismatch(threadId, run, `was opened for ${id}`);
  const opened = contextRevision === 0 ? EMPTY_CONTEXT : view.snapshot(threadId, contextRevision);
  if (opened?.digest !== contextDigest)
    throw mismatch(threadId, run, `was opened on another context than revision ${contextRevision}`);
}

function mismatch(threadId: string, run: RunRecord, why: string): RejectedError {
  return new RejectedError(
    "THREAD_EXECUTION_BINDING_MISMATCH",
    `${run.id} ${why}, and is no run of ${threadId}; nothing was changed. Name a run that the thread has.`,
    { threadId, runId: run.id, boundTo: run.binding?.id ?? null },
  );
}
