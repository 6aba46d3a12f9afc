/** Outputs of the calls that waited: ended waits and answered questions, as transcript items. */
import type { RunId } from "../protocol/ids.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { ItemBody } from "../protocol/transcript.ts";
import type { RuntimeRequestRecord } from "../protocol/wait.ts";
import type { Call } from "../session/ports.ts";
import { type Accepted, appendItems, currentRun } from "./runs.ts";
import type { Look, Transaction } from "./transaction.ts";
import { collectWaits } from "./waits.ts";

export interface CollectedCalls extends Accepted {
  /** Calls that still wait. */
  readonly waiting: ReadonlySet<string>;
}

/** Those of the calls that wait; null when one of them has an output by now, which is to be collected. */
export function allWaiting(look: Look, runId: RunId, calls: readonly Call[]): ReadonlySet<string> | null {
  const run = currentRun(look, runId);
  const callIds = new Set(calls.map((call) => call.callId));
  const waiting = new Set<string>();
  for (const wait of look.store.waitsOfRun(runId)) {
    if (wait.step !== run.steps || !callIds.has(wait.callId)) continue;
    if (wait.end !== null) return null;
    waiting.add(wait.callId);
  }
  for (const call of calls) {
    const request = requestOf(look, runId, call);
    if (request === undefined) continue;
    if (request.status !== "pending") return null;
    waiting.add(request.callId);
  }
  return addApprovals(look, run, callIds, waiting);
}

/** One that another run has asked is not this call's, whatever its id. */
export function requestOf({ store }: Look, runId: RunId, call: Call): RuntimeRequestRecord | undefined {
  const request = call.type === "request" ? store.request(call.requestId) : undefined;
  return request?.runId === runId ? request : undefined;
}

/** Calls of tools of ours that wait for an approval have no output by it: they are made again. */
function addApprovals(
  look: Look,
  run: RunRecord,
  callIds: ReadonlySet<string>,
  waiting: Set<string>,
): ReadonlySet<string> {
  for (const { runId, callId } of look.store.openRequestsOf(run.threadId))
    if (runId === run.id && callIds.has(callId)) waiting.add(callId);
  return waiting;
}

export function collectCalls(tx: Transaction, runId: RunId, calls: readonly Call[]): CollectedCalls {
  const run = currentRun(tx, runId);
  const callIds = new Set(calls.map((call) => call.callId));
  const agent = tx.agent(run.threadId);
  const bodies: ItemBody[] = collectWaits(tx, runId, run.steps, callIds).map((collected) => ({
    kind: "tool_result",
    callId: collected.callId,
    name: collected.tool,
    output: collected.output,
    isError: collected.isError,
    mailIds: collected.mailIds,
    waitId: collected.waitId,
    elapsedMs: collected.elapsedMs,
  }));
  const waiting = new Set<string>();
  for (const wait of tx.store.openWaitsOf(run.threadId))
    if (callIds.has(wait.callId)) waiting.add(wait.callId);
  for (const call of calls) {
    const request = requestOf(tx, runId, call);
    if (request === undefined) continue;
    if (request.status === "pending") {
      waiting.add(request.callId);
      continue;
    }
    bodies.push({
      kind: "tool_result",
      callId: request.callId,
      name: request.kind,
      output: request.answer ?? `(${request.status})`,
      isError: request.status !== "resolved",
      mailIds: [],
      waitId: null,
      elapsedMs: (request.answeredAt ?? tx.now) - request.createdAt,
    });
  }
  addApprovals(tx, run, callIds, waiting);
  return { ...appendItems(tx, agent, run, bodies), run, waiting };
}
