/**
 * Waits of runs: opened, and collected into the output of the tool call that made them (WAI-3 to WAI-6).
 *
 * - J1 A wait is a stored row, not a promise: it costs nothing while it lasts and survives unload and crash.
 * - J2 It looks at what is already there before it begins (WAI-4).
 * - J3 Mail that it hands out is bound to that output: not drained as mail by this run, `delivered` with the acceptance
 *   of the request that holds the output, pending again when that never comes.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { MailId, RunId, ThreadId, WaitId, WorkId } from "../protocol/ids.ts";
import type { Json, JsonObject } from "../protocol/json.ts";
import type { WaitEnd, WaitRecord } from "../protocol/wait.ts";
import type { Salvage, WorkOutcome, WorkRecord } from "../protocol/work.ts";
import { redactJson } from "../platform/redact.ts";
import { byteLength, headBytes } from "../platform/text.ts";
import { storeContent } from "./delivery.ts";
import { salvageSteps } from "../lineage/salvage.ts";
import { figures } from "./figures.ts";
import { currentRun } from "./runs.ts";
import { showThreads, threadsHaveNews } from "./thread-glance.ts";
import { must, type Transaction } from "./transaction.ts";
import { findLoop } from "./wait-cycle.ts";
import { endForMail, settledWorks } from "./wait-ends.ts";
import { unreadOf } from "./unread.ts";

const SHORT_BYTES = 512;
const CURSOR_WORKS = 500;
/** Items looked through for what an agent last did. */
const LOOK_BACK = 8;

export interface WaitRequest {
  readonly callId: string;
  /** Works to wait for; empty waits for any mail. */
  readonly works: readonly WorkId[];
  readonly agents: readonly ThreadId[];
  readonly need: number;
  /** Roots of other trees; works and agents are none then. */
  readonly threads?: readonly ThreadId[];
  readonly timeoutMs: number;
  readonly clampedToMs: number | null;
  readonly cursor: string | null;
}

/**
 * Opens a wait of a run. When something already ends it, it is stored as ended and the run does not suspend for it.
 * @throws RejectedError `WAIT_CYCLE` naming the loop.
 */
export function openWait(tx: Transaction, runId: RunId, request: WaitRequest): WaitRecord {
  const run = currentRun(tx, runId);
  const agent = tx.agent(run.threadId);
  if (request.works.length > 0) {
    const loop = findLoop(tx.store, agent, request.works, request.need);
    if (loop !== null) throw waitCycle(loop.names);
  }
  const wait: WaitRecord = {
    id: tx.id("wait"),
    treeId: tx.treeId,
    threadId: agent.threadId,
    runId,
    callId: request.callId,
    step: run.steps,
    works: request.works,
    agents: request.agents,
    need: request.need,
    ...(request.threads === undefined ? {} : { threads: request.threads }),
    sinceSeq: run.acceptedAt === null ? 0 : seenSeq(tx, agent),
    startedAt: tx.now,
    deadlineAt: tx.now + request.timeoutMs,
    clampedToMs: request.clampedToMs,
    cursor: request.cursor,
    end: null,
    endedAt: null,
    loop: null,
  };
  const end = endAtOnce(tx, agent, wait, request.timeoutMs);
  const stored: WaitRecord = end === null ? wait : { ...wait, end, endedAt: tx.now };
  tx.store.putWait(stored);
  tx.emit(
    "wait.started",
    agent,
    { runId },
    { waitId: wait.id, works: [...wait.works], need: wait.need, end },
  );
  tx.effects.deadlines = true;
  tx.effects.threadWaits ||= wait.threads !== undefined;
  return stored;
}

export function waitCycle(loop: readonly string[]): RejectedError {
  return new RejectedError(
    "WAIT_CYCLE",
    `this wait could never end: ${loop.join(" → ")}. Answer or do something else first.`,
    {
      loop: [...loop],
    },
  );
}

/** Unread mail counts as new for a wait that starts now: only what this run has taken in was seen. */
function seenSeq(tx: Transaction, agent: AgentRecord): number {
  const first = tx.store.unread(agent.threadId, { limit: 1 })[0];
  return first === undefined ? tx.store.mailbox(agent.threadId).lastSeq : first.seq - 1;
}

function endAtOnce(tx: Transaction, agent: AgentRecord, wait: WaitRecord, timeoutMs: number): WaitEnd | null {
  const ends = [...unreadOf(tx.store, agent.threadId, wait.sinceSeq)]
    .filter((mail) => mail.boundRunId !== wait.runId)
    .map((mail) => endForMail(wait, mail));
  if (ends.includes("new_input")) return "new_input";
  if (wait.works.length > 0 && settledWorks(tx, wait) >= wait.need) return "settled";
  if (threadsHaveNews(tx.store, wait)) return "settled";
  const activity = ends.find((end) => end !== null);
  if (activity !== undefined) return activity;
  return timeoutMs <= 0 ? "timed_out" : null;
}

export interface Collected {
  readonly waitId: WaitId;
  readonly callId: string;
  readonly tool: string;
  readonly output: Json;
  readonly isError: boolean;
  readonly mailIds: readonly MailId[];
  readonly elapsedMs: number;
}

/** Ended waits of a run as tool outputs. Binds the results that they hand out. */
export function collectWaits(
  tx: Transaction,
  runId: RunId,
  step: number,
  callIds: ReadonlySet<string>,
): Collected[] {
  const collected: Collected[] = [];
  for (const wait of tx.store.waitsOfRun(runId)) {
    if (wait.end === null || wait.step !== step || !callIds.has(wait.callId)) continue;
    collected.push(collectWait(tx, wait));
  }
  return collected;
}

/** The output of one that has ended. */
export function collectWait(tx: Transaction, wait: WaitRecord): Collected {
  if (wait.threads !== undefined) return collectThreads(tx, wait, wait.threads);
  return tx.profile.richWait && wait.works.length > 0 ? collectJoin(tx, wait) : collectSummary(tx, wait);
}

/** The reference's three summaries, in our words (agents.md 31). */
function collectSummary(tx: Transaction, wait: WaitRecord): Collected {
  const clamped = wait.clampedToMs === null ? "" : ` The time-out was raised to ${wait.clampedToMs} ms.`;
  const timedOut = wait.end === "timed_out";
  const words =
    wait.end === "new_input"
      ? "The wait was interrupted by new input."
      : timedOut
        ? "The wait ran out of time."
        : wait.end === "aborted"
          ? "The wait was broken off: its stored record cannot be read. Look at what has come, or wait again."
          : "There was activity.";
  const still = timedOut && tx.profile.richWait ? stillRunning(tx, wait) : null;
  return {
    waitId: wait.id,
    callId: wait.callId,
    tool: "wait_agent",
    output: {
      message: `${words}${clamped}`,
      timed_out: timedOut,
      ...(still === null ? {} : { still_running: still }),
    },
    isError: false,
    mailIds: [],
    elapsedMs: (wait.endedAt ?? tx.now) - wait.startedAt,
  };
}

/** Threads as they are now; what was told before is not told again. */
function collectThreads(tx: Transaction, wait: WaitRecord, threads: readonly ThreadId[]): Collected {
  const reader = tx.agent(wait.threadId);
  return {
    waitId: wait.id,
    callId: wait.callId,
    tool: "wait_threads",
    output: {
      ended_by: wait.end,
      timed_out: wait.end === "timed_out",
      ...showThreads(tx.store, threads, wait.cursor, { reader, redact: tx.context.redact }),
    },
    isError: false,
    mailIds: [],
    elapsedMs: (wait.endedAt ?? tx.now) - wait.startedAt,
  };
}

/** States, bounded results and a cursor; one event is reported once. */
function collectJoin(tx: Transaction, wait: WaitRecord): Collected {
  const known = new Set<string>(decodeCursor(wait.cursor));
  const mailIds: MailId[] = [];
  const results: Json[] = [];
  const open: Json[] = [];
  let bytes = 0;
  for (const id of wait.works) {
    const work = must(tx.store.work(id), "work", id);
    if (work.state !== "ended") {
      open.push(openLine(tx, work));
    } else if (!known.has(id)) {
      known.add(id);
      // One budget for all: what comes after it is told by its head and its reference (MBX-9).
      const bound = bytes < tx.limits.mailInlineBytes ? tx.limits.resultReservationBytes : SHORT_BYTES;
      const line = readableBy(tx, wait.threadId, work, resultLine(tx, work, bound));
      bytes += byteLength(JSON.stringify(line));
      results.push(line);
      const mailId = bindResult(tx, work, wait);
      if (mailId !== null) mailIds.push(mailId);
    }
  }
  const error = wait.end === "cycle" ? waitCycle(wait.loop ?? []) : null;
  return {
    waitId: wait.id,
    callId: wait.callId,
    tool: "wait_agent",
    output:
      error === null
        ? {
            ended_by: wait.end,
            timed_out: wait.end === "timed_out",
            ...(wait.clampedToMs === null ? {} : { timeout_raised_to_ms: wait.clampedToMs }),
            results,
            open,
            cursor: encodeCursor([...known]),
          }
        : { error: error.forModel(), code: error.code },
    isError: error !== null,
    mailIds,
    elapsedMs: (wait.endedAt ?? tx.now) - wait.startedAt,
  };
}

function bindResult(tx: Transaction, work: WorkRecord, wait: WaitRecord): MailId | null {
  const mail = work.resultMailId === null ? undefined : tx.store.mail(work.resultMailId);
  if (mail === undefined || mail.state !== "accepted" || mail.recipient !== wait.threadId) return null;
  tx.store.putMail({ ...mail, boundRunId: wait.runId });
  return mail.id;
}

/** Without secrets where it comes from another provider's agent (SEC-3). */
function readableBy(tx: Transaction, reader: ThreadId, work: WorkRecord, line: Json): Json {
  const [from, to] = [work.executor, reader].map((id) => tx.agent(id).config.provider);
  return from === to ? line : redactJson(line, tx.context.redact);
}

/** Bounded; what is left out of a text can be read by its reference (MBX-9). */
function resultLine(tx: Transaction, work: WorkRecord, bound: number): Json {
  const outcome = withArtifact(tx, work, bound);
  return {
    work_id: work.id,
    agent: work.executorPath,
    state: outcome.ending,
    text: headBytes(outcome.text, bound),
    ...(outcome.artifactId === null ? {} : { artifact: outcome.artifactId }),
    ...(byteLength(JSON.stringify(outcome.value)) > bound || outcome.value === null
      ? {}
      : { value: outcome.value }),
    ...(outcome.error === null
      ? {}
      : { error: headBytes(`${outcome.error.code}: ${outcome.error.message}`, bound) }),
    ...(outcome.shared ? { shared_run: true } : {}),
    ...(outcome.salvage === null ? {} : salvageFields(outcome.salvage)),
    usage: figures(outcome.usage),
  };
}

function salvageFields({ lastSteps, pins = [], files = [] }: Salvage): JsonObject {
  return {
    last_steps: [...lastSteps],
    ...(pins.length === 0 ? {} : { pins: [...pins] }),
    ...(files.length === 0 ? {} : { files_changed: [...files] }),
  };
}

function withArtifact(tx: Transaction, work: WorkRecord, bound: number): WorkOutcome {
  const outcome = work.outcome!;
  if (outcome.artifactId !== null) return outcome;
  const { artifact } = storeContent(tx, outcome.text, tx.agent(work.executor).config.provider, bound);
  if (artifact === null) return outcome;
  const kept = { ...outcome, artifactId: artifact.id };
  tx.store.putWork({ ...work, artifacts: [...work.artifacts, artifact.id], outcome: kept });
  return kept;
}

function openLine(tx: Transaction, work: WorkRecord): Json {
  const agent = tx.agent(work.executor);
  const newest = tx.store.items(agent.threadId, Math.max(0, agent.items - LOOK_BACK), LOOK_BACK);
  const lastStep = salvageSteps(newest, tx.context.redact).at(-1);
  return {
    work_id: work.id,
    agent: work.executorPath,
    state: work.state,
    last_active_ms_ago: tx.now - agent.lastActiveAt,
    ...(lastStep === undefined ? {} : { last_step: lastStep }),
  };
}

/** What a wait that ran out of time can still say (WAI-6). */
function stillRunning(tx: Transaction, wait: WaitRecord): Json[] {
  return tx.store
    .openWorksAskedBy(wait.threadId)
    .slice(0, 8)
    .map((work) => openLine(tx, work));
}

/** The newest of those that were told; so many fit what `wait_agent` takes. */
function encodeCursor(works: readonly string[]): string {
  return works.slice(-CURSOR_WORKS).join(",");
}

function decodeCursor(cursor: string | null): readonly string[] {
  return cursor === null || cursor === "" ? [] : cursor.split(",");
}
