/**
 * The end of a run: one commit with the works it served, their results, the mail it took, the wakes that were held for
 * it, and the events (design, "How a message travels").
 *
 * - E1 A served work waits (`awaiting_children`) only when the run ended `completed` (WRK-4).
 * - E2 Undelivered results turn into trigger-turn mail here and nowhere else (WAI-1), with the recipient's last outcome
 *   already written.
 * - E3 A run that was never accepted ends the works it was started for and dead-letters their requests (MBX-15, MBX-16);
 *   what the user asked for with them is kept as a draft, whoever has refused it (C4.9).
 */
import type { AgentRecord, LastOutcome } from "../protocol/agent.ts";
import type { RunId, WorkId } from "../protocol/ids.ts";
import type { MailRecord } from "../protocol/mail.ts";
import { isSettled, type RunReason, type RunRecord, type RunStatus } from "../protocol/run.ts";
import type { WorkEnding, WorkOutcome } from "../protocol/work.ts";
import { salvageOf } from "../lineage/salvage.ts";
import { headBytes } from "../platform/text.ts";
import { deliver } from "./delivery.ts";
import { keepUnsent } from "./drafts.ts";
import { deadLetter, markSettled, setTrigger } from "./mail-states.ts";
import { restThread } from "./native-thread.ts";
import { quarantine } from "./quarantine.ts";
import { closeRequests } from "./requests.ts";
import { turnResults } from "./results.ts";
import { markUnreported } from "./charge.ts";
import { itemsOfRun, shortRunText, wholeText, worksOfStart } from "./runs.ts";
import { projectRun } from "./thread-context.ts";
import { must, type Transaction } from "./transaction.ts";
import { breakCycles } from "./wait-cycle.ts";
import { abortWaits } from "./wait-ends.ts";
import { awaitingWorks, endWork, type Ending, type Quiet } from "./works.ts";
import { unreadOf } from "./unread.ts";

type PerWork = Pick<Ending, "ending"> & Partial<Pick<Ending, "value" | "error">>;

export interface Settlement {
  readonly status: Extract<RunStatus, "completed" | "failed" | "interrupted" | "cancelled">;
  readonly reason: RunReason;
  readonly text: string;
  readonly error?: RunRecord["error"];
  /** How one served work ends, where it differs from the rest (a schema, say). */
  readonly perWork?: ((work: WorkId) => PerWork | undefined) | undefined;
  /** Who is not woken by what this ends. */
  readonly quiet?: Quiet;
  /** Works that stay open although the run is lost (`onLostRun: retry`). */
  readonly keep?: ReadonlySet<WorkId>;
  /** A request was under way whose usage nobody reported. */
  readonly unreported?: boolean;
  /** The provider refused the request for good before it was accepted (MBX-15). */
  readonly refused?: boolean;
}

/** Settles a run from the store. A settled run stays as it is. */
export function settleRun(tx: Transaction, runId: RunId, settlement: Settlement): RunRecord {
  const found = must(tx.store.run(runId), "run", runId);
  if (isSettled(found)) return found;
  const run = settlement.unreported === true ? markUnreported(tx, found) : found;
  const { settled, thread } = writeSettled(tx, run, settlement);
  const outcome = lastOutcomeOf(tx, settled, settlement.text);
  restThread(tx, settled);
  abortWaits(tx, run.threadId, run.id);
  closeRequests(tx, run.threadId, run.id);
  let agent = tx.agent(run.threadId);
  agent = tx.putAgent(agent, {
    currentRun: null,
    thread,
    // A run that was voided before acceptance says nothing about the agent.
    lastOutcome: settlement.reason === "not_accepted" ? agent.lastOutcome : outcome,
    lastActiveAt: tx.now,
    refusals: settlement.refused === true ? agent.refusals + 1 : agent.refusals,
  });
  for (const mail of tx.store.mailOfRun(run.id, "delivered")) markSettled(tx, mail);
  tx.emit(
    "run.settled",
    agent,
    { runId },
    {
      status: settled.status,
      reason: settled.reason,
      steps: settled.steps,
      ...(settled.error === null ? {} : { error: settled.error }),
    },
  );
  if (run.acceptedAt === null && settlement.reason !== "not_accepted") endUnaccepted(tx, settled, settlement);
  const text = wholeText(tx, settled, settlement.text);
  const awaiting = endServed(tx, settled, { ...settlement, text });
  // A result that nobody can read wakes nobody; its notice does (MBX-10, WRK-4).
  if ((settlement.quiet ?? false) === false) turnResults(tx, quarantine(tx, tx.agent(run.threadId)));
  if (tx.profile.results === "per_run") sendRunResult(tx, tx.agent(run.threadId), settled, settlement);
  if (tx.store.mailbox(run.threadId).triggers > 0) tx.effects.wake.add(run.threadId);
  tx.effects.settled.push({ threadId: run.threadId, runId });
  // A wait that ended in this very commit has no run to go on with.
  tx.effects.resume.delete(run.threadId);
  for (const work of awaiting) breakCycles(tx, work);
  return settled;
}

function writeSettled(
  tx: Transaction,
  run: RunRecord,
  settlement: Settlement,
): { settled: RunRecord; thread: AgentRecord["thread"] } {
  const { status: outcome, reason } = settlement;
  const projected = projectRun(tx, tx.agent(run.threadId), run, { outcome, reason });
  const waited = run.waitingSince === null ? 0 : tx.now - run.waitingSince;
  const settled: RunRecord = {
    ...run,
    ...projected.run,
    status: settlement.status,
    reason: settlement.reason,
    error: settlement.error ?? null,
    text: shortRunText(settlement.text) || run.text,
    waitedMs: run.waitedMs + waited,
    waitingSince: null,
    completedAt: tx.now,
  };
  tx.store.putRun(settled);
  return { settled, thread: projected.thread };
}

/** What a run that has just ended leaves as its agent's last outcome. */
export function lastOutcomeOf(tx: Transaction, run: RunRecord, text: string): LastOutcome {
  const shown = run.error === null ? text : `${run.error.code}: ${run.error.message}`;
  const limit = tx.profile.boundedResults ? tx.limits.artifactHeadBytes : Number.MAX_SAFE_INTEGER;
  return {
    runId: run.id,
    status: run.status as LastOutcome["status"],
    reason: run.reason,
    text: headBytes(shown, limit),
    at: tx.now,
  };
}

/** Ends or suspends the works of a run; answers those that now await. */
function endServed(tx: Transaction, run: RunRecord, settlement: Settlement): WorkId[] {
  const awaiting: WorkId[] = [];
  const ending = endingOf(settlement);
  const shared = run.serves.length > 1;
  const salvage = whatIsLeft(tx, run);
  // The ones that are interrupted with a run are also those that only wait for others (INT-8).
  const alsoAwaiting = run.status === "interrupted" && run.reason === "interrupted";
  const ids = alsoAwaiting
    ? [...new Set([...run.serves, ...awaitingWorks(tx, tx.agent(run.threadId)).map((work) => work.id)])]
    : run.serves;
  for (const id of ids) {
    const work = must(tx.store.work(id), "work", id);
    if (work.state === "ended" || settlement.keep?.has(id) === true) continue;
    const own = settlement.perWork?.(id);
    if (run.status === "completed" && own === undefined && work.openUnder > 0) {
      tx.store.putWork({ ...work, state: "awaiting_children", servedBy: null, text: settlement.text });
      tx.emit(
        "work.awaiting",
        tx.agent(work.executor),
        { workId: id, runId: run.id },
        { openUnder: work.openUnder },
      );
      awaiting.push(id);
      continue;
    }
    const served = run.serves.includes(id) ? { text: settlement.text, shared, salvage } : { text: "" };
    endWork(tx, id, {
      ending,
      error: settlement.error ?? null,
      runId: run.id,
      quiet: settlement.quiet ?? false,
      ...served,
      ...own,
    });
  }
  return awaiting;
}

/** What can be said of the run where its text does not say it (WRK-7). */
function whatIsLeft(tx: Transaction, run: RunRecord): WorkOutcome["salvage"] {
  if (!tx.profile.salvage || run.acceptedAt === null) return null;
  if (run.text !== "" && run.status === "completed") return null;
  const agent = tx.agent(run.threadId);
  const { context } = tx;
  return salvageOf(run, itemsOfRun(tx, run), {
    effects: new Map(context.toolEffects(agent).map(({ name, effects }) => [name, effects] as const)),
    workspace: agent.config.workspace,
    redact: context.redact,
  });
}

/** Words of WRK-10, from run to work. */
function endingOf(settlement: Settlement): WorkEnding {
  switch (settlement.reason) {
    case "not_accepted":
    case "closed":
      return "cancelled";
    default:
      return settlement.reason;
  }
}

function endUnaccepted(tx: Transaction, run: RunRecord, settlement: Settlement): void {
  const failed = settlement.status === "failed" && settlement.reason === "provider_error";
  // Mail that had joined the request before it was refused counts like that for which the run was reserved.
  const seq = Math.max(run.reservedSeq, tx.context.drainedSeq(run.threadId));
  const unsent: MailRecord[] = [];
  for (const id of worksOfStart(tx, run, seq)) {
    const work = tx.store.work(id);
    if (work === undefined || work.state === "ended") continue;
    const request = tx.store.mail(work.requestMailId);
    if (request?.state === "accepted" && settlement.status === "failed") unsent.push(request);
    if (failed && request?.state === "accepted") deadLetter(tx, request, "not_delivered");
    endWork(tx, id, {
      ending: endingOf(settlement),
      text: "",
      error: settlement.error ?? null,
      runId: run.id,
      quiet: settlement.quiet ?? false,
    });
  }
  keepUnsent(tx, run.threadId, unsent);
  // What was drained into the request is accepted again, as queue-only mail.
  for (const mail of unreadOf(tx.store, run.threadId)) {
    if (mail.seq <= seq && mail.workId === null) setTrigger(tx, mail, false);
  }
}

/** One final answer per settled run, to the path parent; none for interrupted ones (WRK-5, `codex`). */
function sendRunResult(tx: Transaction, agent: AgentRecord, run: RunRecord, settlement: Settlement): void {
  if (agent.parent === null || run.status === "interrupted" || run.reason === "not_accepted") return;
  const parent = tx.agent(agent.parent);
  if (parent.state !== "open") return;
  deliver(tx, parent, {
    author: { kind: "agent", threadId: agent.threadId, path: agent.path },
    kind: "final_answer",
    authority: "agent",
    trigger: false,
    text: runText(run, settlement),
    overLimit: true,
  });
}

/** A run's result by its status: what was not completed never reads as an answer (agents.md 54). */
function runText(run: RunRecord, { reason, error, text }: Settlement): string {
  if (run.status === "completed") return text;
  if (run.status === "cancelled") return "The agent was closed before it had answered.";
  const failed = error ?? null;
  const fault = failed === null ? `${reason}: the run was ended.` : `${failed.code}: ${failed.message}`;
  const hint = "The agent is still there and can be given another task.";
  const words = failed === null && text !== "" ? [`Its last words:\n${text}`] : [];
  return [headBytes(fault, ERROR_BYTES), hint, ...words].join("\n");
}

/** About 900 tokens (agents.md 54). */
const ERROR_BYTES = 3600;
