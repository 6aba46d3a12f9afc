/** Questions and approvals of an agent (WAI-2, INT-6): answered once, cancelled with their run. */
import { RejectedError } from "../protocol/errors.ts";
import type { RequestId, RunId, ThreadId } from "../protocol/ids.ts";
import type { RuntimeRequestRecord, RuntimeRequestStatus } from "../protocol/wait.ts";
import type { Transaction } from "./transaction.ts";
import { resumeWhenFree } from "./wait-ends.ts";

/** @throws RejectedError `REQUEST_NOT_RESUMABLE` when it is not pending any more. */
export function answerRequest(tx: Transaction, id: RequestId, answer: string): RuntimeRequestRecord {
  const request = tx.store.request(id);
  if (request === undefined || request.treeId !== tx.treeId || request.status !== "pending") {
    const status = request?.status ?? "unknown";
    throw new RejectedError("REQUEST_NOT_RESUMABLE", `request ${id} is ${status}; nothing was answered.`, {
      id,
      status,
    });
  }
  const next = closeRequest(tx, request, "resolved", answer);
  resumeWhenFree(tx, request.threadId, request.runId);
  return next;
}

/** Its asker does not wait for it any more; null for one that is answered, or is not there. */
export function expireRequest(tx: Transaction, id: RequestId): RuntimeRequestRecord | null {
  const request = tx.store.request(id);
  return request?.status === "pending" ? closeRequest(tx, request, "expired", null) : null;
}

/** Pending ones of a run become cancelled. */
export function closeRequests(tx: Transaction, threadId: ThreadId, runId: RunId): void {
  for (const request of tx.store.openRequestsOf(threadId)) {
    if (request.runId === runId) closeRequest(tx, request, "cancelled", null);
  }
}

function closeRequest(
  tx: Transaction,
  request: RuntimeRequestRecord,
  status: RuntimeRequestStatus,
  answer: string | null,
): RuntimeRequestRecord {
  const next = { ...request, status, answer, answeredAt: tx.now };
  tx.store.putRequest(next);
  tx.effects.answered.add(request.threadId);
  const agent = tx.agent(request.threadId);
  tx.putAgent(agent, { openRequests: agent.openRequests - 1 });
  tx.emit("request.closed", agent, { runId: request.runId }, { requestId: request.id, status });
  return next;
}
