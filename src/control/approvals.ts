/**
 * Approval of a tool call of ours before it is done (XTR-4): a stored request like those that providers make, so that it
 * survives unload and restart. The call waits; once it is answered it is made again, and finds its answer.
 */
import { readDecision } from "../protocol/decision.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { RequestId } from "../protocol/ids.ts";
import type { Caller } from "../protocol/tool.ts";
import { openCalls } from "../protocol/transcript.ts";
import { receiptKey } from "./idempotency.ts";
import { currentRun, itemsOfRun } from "./runs.ts";
import { openRequest } from "./steps.ts";
import { must, type Transaction } from "./transaction.ts";

/** A call that waits for its approval. */
export interface ToApprove {
  readonly tool: string;
  /** What it would do, for whoever is asked. */
  readonly text: string;
  /** Its arguments, as JSON text. */
  readonly input: string;
}

/**
 * The request that the call waits for; null when it was approved.
 * @throws RejectedError `AUTHORITY_ESCALATION_DENIED` when it was not, `INVALID_ARGUMENT` for a caller that cannot wait.
 */
export function approvalOf(
  tx: Transaction,
  caller: Extract<Caller, { readonly kind: "agent" }>,
  { tool, text, input }: ToApprove,
): RequestId | null {
  if (caller.runId === null || caller.callId === null) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `${tool} wants an approval, and there is no run here that could wait for one; let an agent of the tree do it.`,
      { tool },
    );
  }
  const key = `${receiptKey(caller, undefined)}:approval`;
  const known = tx.store.receipt(tx.treeId, key)?.answer as RequestId | undefined;
  if (known === undefined) return ask(tx, caller.runId, caller.callId, key, { tool, text, input });
  const request = must(tx.store.request(known), "request", known);
  if (request.status === "pending") return request.id;
  const answer = request.answer ?? request.status;
  if (request.status === "resolved" && readDecision(answer).verdict === "approved") return null;
  throw new RejectedError(
    "AUTHORITY_ESCALATION_DENIED",
    `${tool} was not approved (${answer}); do without it.`,
    { tool, request: request.id },
  );
}

function ask(
  tx: Transaction,
  runId: `run_${string}`,
  callId: string,
  key: string,
  asked: ToApprove,
): RequestId {
  const requestId = tx.id("req");
  const text = tx.context.redact(asked.text);
  const run = currentRun(tx, runId);
  const within = openCalls(itemsOfRun(tx, run)).some((call) => call.callId === callId);
  openRequest(tx, tx.agent(run.threadId), run, {
    callId,
    requestId,
    kind: "approval",
    text,
    about: { tool: asked.tool, input: tx.context.redact(asked.input) },
    ...(within ? {} : { outside: true }),
  });
  const receipt = { treeId: tx.treeId, key, argumentsDigest: "", answer: requestId };
  tx.store.putReceipt({ ...receipt, createdAt: tx.now });
  return requestId;
}
