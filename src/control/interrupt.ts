/**
 * Interrupts (INT-1 to INT-8). The run is settled from the store in one commit, so an interrupt is acknowledged at once;
 * the provider's turn is aborted beside it and has the grace time to end.
 */
import { depthOf } from "../protocol/agent-path.ts";
import type { AgentRecord, AgentStatus } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { RunId, ThreadId } from "../protocol/ids.ts";
import type { ItemBody } from "../protocol/transcript.ts";
import { openCalls } from "../protocol/transcript.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { MailRecord } from "../protocol/mail.ts";
import type { Caller } from "../protocol/tool.ts";
import { itemOf } from "./compose.ts";
import { deadLetter, setTrigger } from "./mail-states.ts";
import { appendItems, itemsOfRun, partialItems, requestUnderWay } from "./runs.ts";
import { settleRun } from "./settle.ts";
import { statusOf } from "./status.ts";
import type { Transaction } from "./transaction.ts";
import { abortWaitsOf } from "./wait-ends.ts";
import { awaitingWorks, endWork, type Quiet, worksAskedBy } from "./works.ts";
import { unreadOf } from "./unread.ts";
import { agentsUnder } from "./family.ts";

/** How far an interrupt reaches. */
export interface InterruptInput {
  /** Does nothing to a later run (INT-2). */
  readonly runId?: RunId | undefined;
  readonly cascade?: "none" | "subtree" | undefined;
  /** `cancel` ends the works of trigger-turn mail that no run has taken, too. */
  readonly pending?: "keep" | "cancel" | undefined;
}

/** An agent that an interrupt has stopped: before and after. */
export interface Touched {
  readonly path: AgentRecord["path"];
  readonly threadId: ThreadId;
  readonly previous: AgentStatus;
  readonly status: AgentStatus;
  readonly runId: RunId | null;
}

/** Text that requests under way had produced, by agent; it is kept with the interrupted run. */
export type PartialText = (threadId: ThreadId) => string;

export function interrupt(
  tx: Transaction,
  target: AgentRecord,
  input: InterruptInput,
  partial: PartialText,
): Touched[] {
  if (input.runId !== undefined && tx.agent(target.threadId).currentRun !== input.runId) return [];
  const agents = input.cascade === "subtree" ? subtree(tx, target) : [target];
  const before = agents.map((agent) => ({ agent, previous: statusOf(tx.store, agent, tx.context) }));
  abortWaitsOf(tx, agents);
  const touched = before.filter(({ agent }) => interruptOne(tx, agent, input, partial(agent.threadId)));
  return touched.map(({ agent, previous }) => ({
    path: agent.path,
    threadId: agent.threadId,
    previous,
    status: statusOf(tx.store, tx.agent(agent.threadId), tx.context),
    runId: agent.currentRun,
  }));
}

/** The agent and all below it, leaves first. */
export function subtree(tx: Transaction, top: AgentRecord): AgentRecord[] {
  return [...agentsUnder(tx.store, tx.treeId, top.path)].sort((a, b) => depthOf(b.path) - depthOf(a.path));
}

/** True when there was something to interrupt. */
function interruptOne(tx: Transaction, target: AgentRecord, input: InterruptInput, partial: string): boolean {
  const agent = tx.agent(target.threadId);
  if (agent.state !== "open") return false;
  const run = agent.currentRun === null ? undefined : tx.store.run(agent.currentRun);
  const queued = run === undefined && tx.store.mailbox(agent.threadId).triggers > 0;
  const awaiting = awaitingWorks(tx, agent);
  if (run === undefined && !queued && awaiting.length === 0) return false;
  if (run === undefined) {
    if (tx.profile.interruptQueuesTriggers) keepRequests(tx, agent, null);
    endQueued(tx, agent, queued);
    for (const work of awaiting) endWork(tx, work.id, { ending: "interrupted", text: "" });
    tx.putAgent(tx.agent(agent.threadId), {
      lastOutcome: { runId: null, status: "interrupted", reason: "interrupted", text: "", at: tx.now },
    });
  } else {
    stopRun(tx, agent, run, "interrupted", partial);
  }
  if (tx.profile.interruptQueuesTriggers) queueTriggers(tx, agent);
  if (input.pending === "cancel") cancelPending(tx, agent);
  tx.emit("agent.interrupted", agent, { runId: run?.id ?? null });
  return true;
}

/** A run that was only queued ends with its requests (INT-8, MBX-16). */
function endQueued(tx: Transaction, agent: AgentRecord, queued: boolean): void {
  if (!queued) return;
  for (const mail of unreadOf(tx.store, agent.threadId)) {
    if (!mail.trigger) continue;
    const asked = worksAskedBy(tx, mail);
    for (const id of asked) endWork(tx, id, { ending: "interrupted", text: "" });
    if (mail.workId === null) setTrigger(tx, mail, false);
  }
}

/** How a run ends that is cut off from outside. */
const STOPS = {
  interrupted: { status: "interrupted" },
  closed: { status: "cancelled" },
  budget_exhausted: { status: "failed" },
  time_limit: {
    status: "failed",
    error: { code: "LIMIT_REACHED", message: "the time allowed for a run is used up", status: null },
  },
} as const;

/**
 * Closes the transcript of a run that is cut off and settles it: what was said is kept, an open call is closed, a marker
 * says that the cut was on purpose (agents.md 39).
 */
export function stopRun(
  tx: Transaction,
  agent: AgentRecord,
  run: RunRecord,
  why: keyof typeof STOPS,
  partial: string,
  quiet: Quiet = false,
  error?: NonNullable<RunRecord["error"]>,
): void {
  const unreported = requestUnderWay(tx, run);
  if (run.acceptedAt !== null) appendItems(tx, agent, run, closingItems(tx, agent, run, partial, why));
  else if (why === "interrupted" && tx.profile.interruptQueuesTriggers) keepRequests(tx, agent, run);
  settleRun(tx, run.id, {
    ...STOPS[why],
    ...(error === undefined ? {} : { error }),
    reason: why,
    text: partial || run.text,
    quiet,
    unreported,
  });
  tx.effects.stop.push({ threadId: agent.threadId, runId: run.id, why });
}

function closingItems(
  tx: Transaction,
  agent: AgentRecord,
  run: RunRecord,
  partial: string,
  why: string,
): ItemBody[] {
  const bodies: ItemBody[] = [];
  bodies.push(...partialItems(run, partial));
  bodies.push(...cutOpenCalls(tx, run, `aborted: ${why} by the user or another agent`));
  if (why === "interrupted") bodies.push(INTERRUPTED);
  return bodies;
}

const INTERRUPTED: ItemBody = {
  kind: "context",
  topic: "interrupted",
  text: "The previous run was interrupted on purpose. Commands it had started may still be running or may have done part of their work; check before you repeat them.",
};

/** Requests that end before a provider has accepted them are still told to the next run, before the marker (MBX-16). */
function keepRequests(tx: Transaction, agent: AgentRecord, run: RunRecord | null): void {
  const asked = (mail: MailRecord): boolean =>
    mail.trigger && (run === null || mail.seq <= run.reservedSeq) && worksAskedBy(tx, mail).length > 0;
  const requests = [...unreadOf(tx.store, agent.threadId)].filter(asked);
  if (requests.length === 0) return;
  // A notice that asks for works again is no request itself: it stays in the mailbox, and is told from there.
  const told = requests.filter((mail) => mail.workId !== null);
  appendItems(tx, agent, run, [...told.map((mail) => itemOf(tx, mail)), INTERRUPTED]);
}

/** Results for tool calls that are cut off now and got none, so that no call is left dangling. */
export function cutOpenCalls(tx: Transaction, run: RunRecord, text: string): ItemBody[] {
  const since = itemsOfRun(tx, run).findLast((item) => item.kind === "assistant")?.at ?? tx.now;
  const elapsedMs = tx.now - since;
  return closeOpenCalls(tx, run, `${text} after ${elapsedMs} ms`, elapsedMs);
}

/** The same for calls that ended nobody knows when, with their process: no time is told. */
export function closeOpenCalls(tx: Transaction, run: RunRecord, text: string, elapsedMs = 0): ItemBody[] {
  return openCalls(itemsOfRun(tx, run)).map((call) => ({
    kind: "tool_result",
    callId: call.callId,
    name: call.type === "tool_call" ? call.name : call.kind,
    output: text,
    isError: true,
    mailIds: [],
    waitId: null,
    elapsedMs,
  }));
}

/** The interrupt's commit turns pending trigger mail queue-only (agents.md 38). */
function queueTriggers(tx: Transaction, agent: AgentRecord): void {
  for (const mail of unreadOf(tx.store, agent.threadId)) {
    setTrigger(tx, mail, false);
  }
  tx.effects.wake.delete(agent.threadId);
}

function cancelPending(tx: Transaction, agent: AgentRecord): void {
  for (const mail of unreadOf(tx.store, agent.threadId)) {
    for (const id of worksAskedBy(tx, mail)) endWork(tx, id, { ending: "cancelled", text: "" });
    if (mail.workId === null && mail.kind === "notice") deadLetter(tx, mail, "work_ended");
  }
}

/** The reference interrupts neither the root nor oneself (agents.md 37). */
export function refuseTarget(tx: Transaction, caller: Caller, agent: AgentRecord): void {
  if (tx.profile.interruptOutput !== "previous_status" || caller.kind !== "agent") return;
  const self = agent.threadId === caller.threadId;
  if (agent.parent !== null && !self) return;
  throw new RejectedError(
    "INVALID_ARGUMENT",
    self ? "an agent cannot interrupt itself." : "the root agent cannot be interrupted by an agent.",
    {
      argument: "target",
      value: agent.path,
    },
  );
}
