/**
 * Recovery: what becomes of runs that nobody drives, whoever finds them: the owner that claims a tree (REC-1), one that looks
 * again after a commit of unknown outcome, one that lets go of an agent. A second recovery finds nothing left to do.
 */
import type { TreeRecord } from "../protocol/agent.ts";
import type { MailRecord } from "../protocol/mail.ts";
import { isSettled, type RunRecord } from "../protocol/run.ts";
import { openCalls } from "../protocol/transcript.ts";
import type { RunId, ThreadId, WorkId } from "../protocol/ids.ts";
import { type Look, must, type Transaction } from "./transaction.ts";
import { requestOf } from "./collect.ts";
import { deliver } from "./delivery.ts";
import { keepUnsent, unsentOf } from "./drafts.ts";
import { closeOpenCalls } from "./interrupt.ts";
import { doubtLost } from "./native-thread.ts";
import { appendItems, itemsOfRun, requestUnderWay, worksOfStart } from "./runs.ts";
import { settleRun } from "./settle.ts";
import { endDueWaits, endWait, resumeWhenFree, settledWorks } from "./wait-ends.ts";
import { endWork } from "./works.ts";

/** A work voided or lost so often ends `runtime_lost`. */
const ATTEMPTS = 3;

/** One commit; a crash in it changes nothing. */
export function recover(tx: Transaction): void {
  tx.emit("tree.claimed", null);
  shiftWaits(tx);
  recoverUndriven(tx, () => false);
  if (tx.tree().leftInOrder === true) tx.putTree({ leftInOrder: false });
}

/** The wall clock was set back since they began: a deadline by it lies further off than anybody was promised (WAI-6). */
function shiftWaits(tx: Transaction): void {
  for (const { threadId } of tx.store.openRuns(tx.treeId)) {
    for (const wait of tx.store.openWaitsOf(threadId)) {
      const { startedAt, deadlineAt } = wait;
      if (startedAt <= tx.now) continue;
      tx.store.putWait({ ...wait, startedAt: tx.now, deadlineAt: tx.now + (deadlineAt - startedAt) });
    }
  }
}

/** What a work is counted for a run of it that was not settled: nothing where its owner has only stopped. */
function attempts({ leftInOrder }: TreeRecord): 0 | 1 {
  return leftInOrder === true ? 0 : 1;
}

/** All of the tree that is not `inHand`. */
export function recoverUndriven(tx: Transaction, inHand: (run: RunRecord) => boolean): void {
  for (const run of tx.store.openRuns(tx.treeId)) if (!inHand(run)) recoverRun(tx, run.id);
  endDueWaits(tx);
  tx.effects.threadWaits = true;
  for (const id of tx.store.triggered(tx.treeId)) wakeIfDue(tx, id);
}

/**
 * All of a tree that nobody owns, for a look at it and not to go on with it. A reservation younger than `ttlMs` is left: who
 * has made it may be about to be heard of (lineage C14.2). What comes of it waits for the next owner.
 */
export function recoverUnowned(tx: Transaction, ttlMs: number): void {
  for (const run of tx.store.openRuns(tx.treeId)) {
    if (!isLeft(tx, run, ttlMs)) continue;
    if (run.acceptedAt === null) voidRun(tx, run, "interrupted");
    else recoverRun(tx, run.id);
  }
}

/** Nobody will settle it unless somebody else does. A wait that is stored lives on without an owner. */
export function isLeft(look: Look, run: RunRecord, ttlMs: number): boolean {
  if (isSettled(run)) return false;
  if (run.acceptedAt === null) return look.now - run.reservedAt >= ttlMs;
  return run.status !== "waiting" || !look.context.parksWaits(run.provider);
}

/** One agent that nobody has in hand. */
export function recoverAgent(tx: Transaction, threadId: ThreadId): void {
  const { currentRun } = tx.agent(threadId);
  if (currentRun !== null) recoverRun(tx, currentRun);
  wakeIfDue(tx, threadId);
}

/** Trigger-turn mail and no run: it has one to begin. */
export function wakeIfDue(tx: Transaction, threadId: ThreadId): void {
  const agent = tx.agent(threadId);
  if (agent.state !== "open" || agent.currentRun !== null) return;
  if (tx.store.mailbox(threadId).triggers > 0) tx.effects.wake.add(threadId);
}

function recoverRun(tx: Transaction, runId: RunId): void {
  const run = must(tx.store.run(runId), "run", runId);
  if (isSettled(run)) return;
  // In a wait, with its session here: that lives as long as the session does, parked or not.
  if (run.status === "waiting" && tx.context.loaded(run.threadId)) recheck(tx, run);
  else if (run.acceptedAt === null) {
    doubtLost(tx, run);
    voidRun(tx, run);
  } else if (survives(tx, run)) recheck(tx, inWait(tx, run));
  else loseRun(tx, run);
}

/** Reserved and never accepted: its mail is still there and starts one new run. */
export function voidRun(
  tx: Transaction,
  run: RunRecord,
  status: "cancelled" | "interrupted" = "cancelled",
): void {
  const works = worksOfStart(tx, run, run.reservedSeq);
  settleRun(tx, run.id, { status, reason: "not_accepted", text: "" });
  const unsent: MailRecord[] = [];
  for (const id of works) {
    const work = must(tx.store.work(id), "work", id);
    if (work.state === "ended") continue;
    const voids = work.voids + attempts(tx.tree());
    tx.store.putWork({ ...work, voids });
    if (voids < ATTEMPTS) continue;
    unsent.push(...unsentOf(tx, work));
    endLost(tx, id, run);
  }
  keepUnsent(tx, run.threadId, unsent);
}

/**
 * Its only open calls are waits that are stored, or questions: it is not lost. That is so before it has said that it waits,
 * and after it was told to go on, as long as no output of them was stored.
 */
function survives(tx: Transaction, run: RunRecord): boolean {
  if (!tx.context.parksWaits(run.provider)) return false;
  if (run.status === "waiting") return true;
  const open = openCalls(itemsOfRun(tx, run));
  const waits = tx.store.waitsOfRun(run.id).filter((wait) => wait.step === run.steps);
  const asked = tx.store.openRequestsOf(run.threadId).filter((request) => request.runId === run.id);
  const stored = new Set([...waits, ...asked].map(({ callId }) => callId));
  return (
    open.length > 0 &&
    open.every((call) => stored.has(call.callId) || requestOf(tx, run.id, call) !== undefined)
  );
}

function inWait(tx: Transaction, run: RunRecord): RunRecord {
  if (run.status === "waiting") return run;
  const next: RunRecord = { ...run, status: "waiting", waitingSince: tx.now };
  tx.store.putRun(next);
  tx.emit("run.waiting", tx.agent(run.threadId), { runId: run.id });
  return next;
}

/** What the waits wait for may have happened before the crash, and ended them; then the run only has to go on. */
function recheck(tx: Transaction, run: RunRecord): void {
  // A question that cannot be read shows here, and not when the last wait beside it ends.
  tx.store.openRequestsOf(run.threadId);
  for (const wait of tx.store.openWaitsOf(run.threadId)) {
    if (wait.works.length > 0 && settledWorks(tx, wait) >= wait.need) endWait(tx, wait, "settled");
  }
  resumeWhenFree(tx, run.threadId, run.id);
}

/** Why a run is lost; the error is told with its works. */
export interface Loss {
  readonly because: string;
  readonly error?: NonNullable<RunRecord["error"]>;
}

const STOPPED: Loss = { because: "the runtime was stopped" };

/** Accepted and not settled: its stored steps stay, an open call is closed with "outcome unknown" (RUN-2). */
export function loseRun(tx: Transaction, run: RunRecord, loss: Loss = STOPPED): void {
  const agent = tx.agent(run.threadId);
  const unreported = requestUnderWay(tx, run);
  appendItems(tx, agent, run, closeOpenCalls(tx, run, `outcome unknown: ${loss.because}`));
  const retried = agent.config.onLostRun === "retry" ? retryable(tx, run) : [];
  settleRun(tx, run.id, {
    status: "interrupted",
    reason: "runtime_lost",
    text: run.text,
    ...(loss.error === undefined ? {} : { error: loss.error }),
    keep: new Set(retried),
    unreported,
  });
  if (retried.length > 0) retryNotice(tx, run, retried, loss);
}

function retryable(tx: Transaction, run: RunRecord): WorkId[] {
  return run.serves.filter((id) => {
    const work = must(tx.store.work(id), "work", id);
    return work.state !== "ended" && work.lostRuns + attempts(tx.tree()) < ATTEMPTS;
  });
}

/** The works stay open and get, in this commit, one trigger-turn notice that serves them all. */
function retryNotice(tx: Transaction, run: RunRecord, works: readonly WorkId[], loss: Loss): void {
  const counted = attempts(tx.tree());
  for (const id of works) {
    const work = must(tx.store.work(id), "work", id);
    const lostRuns = work.lostRuns + counted;
    tx.store.putWork({ ...work, state: "queued", servedBy: null, lostRuns });
    tx.emit(
      "run.retrying",
      tx.agent(run.threadId),
      { runId: run.id, workId: id },
      { lostRuns, of: ATTEMPTS, stopped: counted === 0 },
    );
  }
  const agent = tx.agent(run.threadId);
  const notice = deliver(tx, agent, {
    author: { kind: "runtime" },
    kind: "notice",
    authority: "runtime",
    trigger: true,
    text: `The previous run was lost: ${loss.because}. Its steps up to then are above; what it had begun beyond them may or may not have happened. Go on with the task.`,
    overLimit: true,
  });
  for (const id of works) {
    const work = must(tx.store.work(id), "work", id);
    tx.store.putWork({ ...work, retryMailId: notice.id });
  }
}

function endLost(tx: Transaction, id: WorkId, run: RunRecord): void {
  endWork(tx, id, {
    ending: "runtime_lost",
    text: "",
    error: {
      code: "FENCED",
      message: `the runtime was lost ${ATTEMPTS} times before the request was accepted`,
      status: null,
    },
    runId: run.id,
  });
}
