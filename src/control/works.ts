/**
 * The work ledger: who asked whom for what, what waits for it, and how it ends.
 *
 * - W1 A work ends exactly once; a second ending finds it ended and changes nothing (WRK-3).
 * - W2 `openUnder` of a work counts the works it holds that are open, or ended with their result not yet delivered
 *   (WRK-4). It changes only here.
 * - W3 An ending writes one result: transfer and mail to `replyTo`, or event and receipt alone when no agent asked (WRK-5).
 */
import type { AgentPath } from "../protocol/agent-path.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { RunId, WorkId } from "../protocol/ids.ts";
import type { MailRecord } from "../protocol/mail.ts";
import type { Json, JsonObject } from "../protocol/json.ts";
import type { RunRecord } from "../protocol/run.ts";
import { addUsage, NO_USAGE, type Usage } from "../protocol/usage.ts";
import type { ReplyTo, Requester, Wake, WorkEnding, WorkOutcome, WorkRecord } from "../protocol/work.ts";
import { completedActivity } from "./activity.ts";
import { deadLetter } from "./mail-states.ts";
import { reserveReply } from "./delivery.ts";
import { sendResult } from "./results.ts";
import { must, type Transaction } from "./transaction.ts";
import { endWaitsOnWork } from "./wait-ends.ts";

export interface WorkRequest {
  readonly requester: Requester;
  readonly executor: AgentRecord;
  /** The run that asks, when an agent asks from a run. */
  readonly origin: RunRecord | null;
  readonly replyTo: ReplyTo;
  readonly objective: string;
  readonly wake?: Wake | undefined;
  readonly detached?: boolean | undefined;
  readonly outputSchema?: JsonObject | null | undefined;
  readonly acceptance?: string | null | undefined;
  readonly trace?: string | null | undefined;
}

/**
 * Makes a queued work and reserves room for its result. The caller delivers the request mail with `workId`.
 * @throws RejectedError `CAUSAL_LIMIT`, `MAILBOX_FULL`.
 */
export function createWork(
  tx: Transaction,
  request: WorkRequest,
  requestMailId: WorkRecord["requestMailId"],
): WorkRecord {
  // A work that was reported on has ended, and is not served any more (WRK-4).
  const parents = (request.origin?.serves ?? []).filter(
    (id) => must(tx.store.work(id), "work", id).state !== "ended",
  );
  const chain = 1 + (request.origin?.chain ?? 0);
  if (chain > tx.limits.causalChain) {
    throw new RejectedError(
      "CAUSAL_LIMIT",
      `the chain of requests behind this one has ${chain - 1} works and at most ${tx.limits.causalChain} are allowed; answer instead of asking further.`,
      { limit: "causalChain", value: tx.limits.causalChain, use: chain - 1, frees: "Answer instead." },
    );
  }
  const redirected =
    request.replyTo !== null &&
    !(request.requester.kind === "agent" && request.requester.threadId === request.replyTo.threadId);
  const detached = request.detached === true || redirected || !tx.profile.worksAwaitChildren;
  if (request.replyTo !== null && tx.profile.results === "per_work") {
    reserveReply(tx, tx.agent(request.replyTo.threadId));
  }
  const holds = detached ? [] : parents;
  const work: WorkRecord = {
    id: tx.id("wrk"),
    treeId: tx.treeId,
    requester: request.requester,
    executor: request.executor.threadId,
    executorPath: request.executor.path,
    parents,
    detached,
    holds,
    originRunId: request.origin?.id ?? null,
    rootRunId: request.origin?.rootRunId ?? null,
    replyTo: request.replyTo,
    wake: request.wake ?? tx.profile.defaultWake,
    objective: request.objective,
    outputSchema: request.outputSchema ?? null,
    acceptance: request.acceptance ?? null,
    artifacts: [],
    requestMailId,
    retryMailId: null,
    resultMailId: null,
    resultPending: false,
    resultTransferId: null,
    chain,
    state: "queued",
    servedBy: null,
    openUnder: 0,
    runsServed: 0,
    servedRuns: [],
    lostRuns: 0,
    voids: 0,
    schemaRepairs: 0,
    text: "",
    usage: NO_USAGE,
    outcome: null,
    trace: request.trace ?? null,
    createdAt: tx.now,
    begunAt: null,
  };
  tx.store.putWork(work);
  for (const id of holds) addOpenUnder(tx, id, 1);
  tx.emit(
    "work.queued",
    request.executor,
    { workId: work.id, runId: work.originRunId },
    {
      requester: request.requester.kind === "agent" ? request.requester.path : request.requester.name,
      detached,
      ...(redirected ? { replyTo: request.replyTo!.path } : {}),
    },
  );
  return work;
}

function addOpenUnder(tx: Transaction, id: WorkId, by: number): void {
  const parent = must(tx.store.work(id), "work", id);
  tx.store.putWork({ ...parent, openUnder: parent.openUnder + by });
}

export type Quiet = boolean | AgentPath;

export interface Ending {
  readonly ending: WorkEnding;
  readonly text: string;
  readonly value?: Json | undefined;
  readonly error?: WorkOutcome["error"] | undefined;
  readonly shared?: boolean;
  readonly salvage?: WorkOutcome["salvage"];
  readonly runId?: RunId | null;
  /** Ended by `report_result`: it does not wait, its open children go on, detached (WRK-4). */
  readonly reported?: boolean;
  /** Results of this ending wake nobody (a close), or nobody at or below a path (a spent budget). */
  readonly quiet?: Quiet;
}

/** Ends a work, once. Returns the ended record; an ended work is returned as it is. */
export function endWork(tx: Transaction, id: WorkId, ending: Ending): WorkRecord {
  const work = must(tx.store.work(id), "work", id);
  if (work.state === "ended") return work;
  const executor = tx.agent(work.executor);
  letGoOfChildren(tx, work, ending);
  if (work.replyTo !== null && tx.profile.results === "per_work") {
    tx.store.reserveMailbox(work.replyTo.threadId, -1, -tx.limits.resultReservationBytes);
  }
  const outcome: WorkOutcome = {
    ending: ending.ending,
    text: ending.text || work.text,
    artifactId: null,
    value: ending.value ?? null,
    error: ending.error ?? null,
    shared: ending.shared ?? false,
    salvage: ending.salvage ?? null,
    usage: { own: work.usage, subtree: subtreeUsage(tx, work) },
    runId: ending.runId ?? null,
    endedAt: tx.now,
  };
  const unsent = { ...must(tx.store.work(id), "work", id), state: "ended", servedBy: null, outcome } as const;
  // Written once more when its result is sent, which is where a long text becomes an artifact.
  tx.store.putWork({ ...unsent, text: "", outcome: { ...outcome, text: "", value: null } });
  const request = tx.store.mail(work.requestMailId);
  if (request?.state === "accepted") deadLetter(tx, request, "work_ended");
  const ended = sendResult(tx, unsent, ending.quiet ?? false);
  tx.store.putWork(ended);
  // Nothing is owed to an agent: who holds this work need not wait for a delivery.
  if (!ended.resultPending) releaseHolds(tx, ended);
  tx.emit(
    "work.ended",
    executor,
    { workId: id, runId: outcome.runId },
    {
      ending: ending.ending,
      ...(outcome.error === null ? {} : { error: outcome.error }),
      shared: outcome.shared,
      tokens: outcome.usage.subtree.inputTokens + outcome.usage.subtree.outputTokens,
      cost: outcome.usage.subtree.cost,
    },
  );
  completedActivity(tx, ended);
  tx.effects.worksEnded.set(id, work.executor);
  endWaitsOnWork(tx, id);
  return ended;
}

/** The result, or the notice that stands for it, was delivered: parents need not wait for it any more. */
export function resultDelivered(tx: Transaction, work: WorkRecord): WorkRecord {
  if (!work.resultPending) return work;
  const next = { ...work, resultPending: false };
  tx.store.putWork(next);
  releaseHolds(tx, next);
  return next;
}

function releaseHolds(tx: Transaction, work: WorkRecord): void {
  for (const id of work.holds) addOpenUnder(tx, id, -1);
}

/** A work that ends otherwise than `completed`, or by report, lets go of what is under it (WRK-4). */
function letGoOfChildren(tx: Transaction, work: WorkRecord, ending: Ending): void {
  if (work.openUnder === 0) return;
  for (const child of tx.store.worksUnder(work.id)) {
    if (!child.holds.includes(work.id)) continue;
    if (child.state === "ended" && !child.resultPending) continue;
    tx.store.putWork({ ...child, holds: child.holds.filter((id) => id !== work.id) });
    addOpenUnder(tx, work.id, -1);
    if (child.state !== "ended") {
      tx.emit(
        "work.detached",
        tx.agent(child.executor),
        { workId: child.id },
        { from: work.id, ending: ending.ending },
      );
    }
  }
}

/** Usage of the runs that served a work, or a work that is or was held under it; each run once (BUD-4). */
function subtreeUsage(tx: Transaction, top: WorkRecord): Usage {
  const works = new Map<WorkId, WorkRecord>([[top.id, top]]);
  for (const work of works.values()) {
    for (const child of tx.store.worksUnder(work.id)) if (!child.detached) works.set(child.id, child);
  }
  const runs = new Set([...works.values()].flatMap((work) => work.servedRuns));
  let total = NO_USAGE;
  for (const id of runs) total = addUsage(total, must(tx.store.run(id), "run", id).usage);
  const open = [...works.values()].some((work) => work.id !== top.id && work.state !== "ended");
  return open ? { ...total, complete: false } : total;
}

/** The run takes a work on: its request, or a result under it, has been accepted by the provider. */
export function serveWork(tx: Transaction, run: RunRecord, id: WorkId): RunRecord {
  const work = must(tx.store.work(id), "work", id);
  if (work.state === "ended" || run.serves.includes(id)) return run;
  tx.store.putWork({
    ...work,
    state: "running",
    servedBy: run.id,
    runsServed: work.runsServed + 1,
    servedRuns: [...work.servedRuns, run.id],
    begunAt: work.begunAt ?? tx.now,
  });
  tx.emit("work.started", tx.agent(work.executor), { workId: id, runId: run.id });
  return { ...run, serves: [...run.serves, id] };
}

/** Open works of an executor that wait for others. */
export function awaitingWorks(tx: Transaction, agent: AgentRecord): WorkRecord[] {
  return tx.store.openWorksOf(agent.threadId).filter((work) => work.state === "awaiting_children");
}

/** Mail is written by anybody who can open the store: what names no work of this tree is a plain message (MBX-10). */
export function workOf(tx: Transaction, id: WorkId | null): WorkRecord | undefined {
  const work = id === null ? undefined : tx.store.work(id);
  return work?.treeId === tx.treeId ? work : undefined;
}

/** The works that a message asks for: its own, or those that a retry notice stands for. */
export function worksAskedBy(tx: Transaction, mail: MailRecord): readonly WorkId[] {
  if (mail.workId !== null) return workOf(tx, mail.workId) === undefined ? [] : [mail.workId];
  if (mail.kind !== "notice") return [];
  return tx.store
    .openWorksOf(mail.recipient)
    .filter((work) => work.retryMailId === mail.id)
    .map((work) => work.id);
}
