/**
 * Stored rows of runs, waits, questions and commands that cannot be read (REC-1). The store keeps each aside as it is,
 * a record that says only what is still known stands in for it, and what followed from it is brought to an end: so one
 * broken row costs a run at most, never its tree.
 *
 * - B1 A row is looked for by nobody: whoever needs it fails with `STORE_CORRUPT`, it is mended, and he is asked again.
 * - B2 All stand-ins are put before anything else is read, because one broken row may need what another one told.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { CommandId, RequestId, RunId, ThreadId, WaitId } from "../protocol/ids.ts";
import type { Json } from "../protocol/json.ts";
import { isSettled, type RunRecord } from "../protocol/run.ts";
import type { RunOutcome } from "../protocol/thread.ts";
import { holdsOrdinal } from "../protocol/ordinals.ts";
import { openCalls, type TranscriptItem } from "../protocol/transcript.ts";
import { addUsage, NO_USAGE, type Usage } from "../protocol/usage.ts";
import { EMPTY_CONTEXT } from "../lineage/snapshot.ts";
import type { BrokenRow, MendableTable } from "../store/port.ts";
import { allOf } from "./family.ts";
import { loseRun, voidRun } from "./recovery.ts";
import { shortRunText, textOf } from "./runs.ts";
import { must, type Transaction } from "./transaction.ts";
import { bindingOf } from "./thread-context.ts";
import { resumeWhenFree } from "./wait-ends.ts";
import { isCorrupt } from "../store/corrupt-row.ts";

/** Names a row of which `mend` may know what to put in its place. */
export interface RowName {
  readonly table: MendableTable;
  readonly id: string;
}

const MENDABLE: readonly MendableTable[] = ["runs", "waits", "requests", "commands"];

const ERROR = {
  code: "STORE_CORRUPT",
  message: "the stored record of the run cannot be read; what it did is in the transcript of its agent",
  status: null,
};

/** The row behind a failure, where it is one that can be replaced. */
export function brokenRow(error: unknown): RowName | null {
  if (!isCorrupt(error)) return null;
  const { table, id } = error.details;
  if (typeof id !== "string" || !isMendable(table)) return null;
  return { table, id };
}

function isMendable(table: Json | undefined): table is MendableTable {
  return MENDABLE.some((one) => one === table);
}

/** @throws `failure` where one of the rows is not this tree's, or where too little is known of it. */
export function mend(tx: Transaction, rows: readonly RowName[], failure: unknown): void {
  const mendings = rows.map((name) => standIn(tx, name));
  if (mendings.includes(null)) throw failure;
  for (const mending of mendings) mending!.complete();
  for (const mending of mendings) mending!.end();
}

/** What is left to do once all stand-ins are stored: fill in what other rows tell, then let follow what follows. */
interface Mending {
  complete(): void;
  end(): void;
}

const NOTHING: Mending = { complete: () => undefined, end: () => undefined };

function standIn(tx: Transaction, { table, id }: RowName): Mending | null {
  const row = tx.store.setAside(table, id);
  // It can be read by now: somebody else has mended it.
  if (row === undefined) return NOTHING;
  const agent = tx.store.agent(row.threadId);
  if (agent?.treeId !== tx.treeId) return null;
  tx.emit("record.set_aside", agent, {}, { table, id, open: row.open });
  switch (table) {
    case "runs":
      return runStandIn(tx, agent, id as RunId, row);
    case "waits":
      return waitStandIn(tx, id as WaitId, row);
    case "requests":
      return requestStandIn(tx, agent, id as RequestId, row);
    case "commands":
      return commandStandIn(tx, id as CommandId);
  }
}

function itemsOf(tx: Transaction, { threadId, items }: AgentRecord): readonly TranscriptItem[] {
  return tx.store.items(threadId, 0, items);
}

function runStandIn(tx: Transaction, agent: AgentRecord, id: RunId, { open, threadId }: BrokenRow): Mending {
  const own = itemsOf(tx, agent).filter((item) => item.runId === id);
  const said = own.flatMap((item) => (item.kind === "assistant" && item.phase !== "partial" ? [item] : []));
  const works = tx.store.openWorksOf(threadId).filter((work) => work.servedBy === id);
  const accepted = !open || own.length > 0 || works.length > 0;
  const last = agent.lastOutcome?.runId === id ? agent.lastOutcome : null;
  const run: RunRecord = {
    id,
    treeId: tx.treeId,
    threadId,
    ordinal: agent.runs,
    status: open ? (accepted ? "running" : "starting") : (last?.status ?? "failed"),
    reason: open ? null : (last?.reason ?? "failed"),
    error: open ? null : ERROR,
    causes: works.map((work) => ({ mailId: work.requestMailId, workId: work.id })),
    woken: false,
    parentRunId: null,
    rootRunId: id,
    provider: agent.config.provider,
    model: agent.config.model,
    effort: agent.config.effort,
    policyHash: agent.config.policyHash,
    binding: bindingOf(tx, agent),
    delegatedFrom: null,
    providerThreadId: null,
    nativeTurns: [],
    contextHandoffIds: [],
    pins: [],
    checkpoint: null,
    nextContextRevision: null,
    history: null,
    rolledBack: null,
    reservedSeq: tx.store.mailbox(threadId).lastSeq,
    serves: works.map((work) => work.id),
    chain: Math.max(0, ...works.map((work) => work.chain)),
    steps: said.length,
    usage: NO_USAGE,
    firstItem: own[0]?.index ?? agent.items,
    waitedMs: 0,
    waitingSince: null,
    wrapUpOffered: false,
    text: shortRunText(said.map((item) => textOf(item)).findLast((text) => text !== "") ?? ""),
    reservedAt: own[0]?.at ?? agent.lastActiveAt,
    acceptedAt: accepted ? (own[0]?.at ?? agent.lastActiveAt) : null,
    completedAt: open ? null : (last?.at ?? own.at(-1)?.at ?? agent.lastActiveAt),
  };
  tx.store.putRun(run);
  return {
    complete() {
      const others = [...allOf((page) => tx.store.runsOf(threadId, page))];
      const ordinal = 1 + others.findIndex((other) => other.id === id);
      // What the agent has used and no other run of it says.
      const usage = others.reduce((rest, other) => without(rest, other.usage), agent.usage);
      tx.store.putRun({ ...run, ordinal, usage, ...threadPart(tx, agent, run, ordinal) });
    },
    end: () => (open ? endRun(tx, id) : undefined),
  };
}

/** What the thread and its providers' conversations still tell of the run; a run of no thread has none of it. */
function threadPart(
  tx: Transaction,
  { threadId, thread }: AgentRecord,
  run: RunRecord,
  ordinal: number,
): Partial<RunRecord> {
  if (thread === null || run.binding === null) return {};
  const went = tx.store
    .providerThreadsOf(threadId)
    .find(({ nativeRunOrdinals }) => holdsOrdinal(nativeRunOrdinals, ordinal));
  const providerThreadId = went?.id ?? null;
  if (!isSettled(run)) {
    // A conversation that counts it has taken it, even where nothing of it was told yet.
    const taken = went !== undefined && run.acceptedAt === null;
    return { providerThreadId, ...(taken ? { status: "running", acceptedAt: run.reservedAt } : {}) };
  }
  const acceptedAt = holdsOrdinal(thread.voided, ordinal) ? null : (run.acceptedAt ?? run.reservedAt);
  const gone = holdsOrdinal(thread.rolledBack, ordinal)
    ? {
        status: "rolled_back" as const,
        rolledBack: { at: thread.lastRollback?.at ?? tx.now, from: run.status as RunOutcome },
      }
    : {};
  const left = revisionLeft(tx, threadId, ordinal);
  if (left === null) return { providerThreadId, acceptedAt, ...gone };
  const before =
    left === 1 ? EMPTY_CONTEXT : must(tx.store.snapshot(threadId, left - 1), "snapshot", threadId);
  const inherits = left === 1 ? (thread.forkedFrom?.context ?? null) : null;
  return {
    providerThreadId,
    acceptedAt,
    ...gone,
    binding: {
      id: threadId,
      contextRevision: left - 1,
      contextDigest: before.digest,
      ...(inherits === null ? {} : { inherited: inherits }),
    },
    nextContextRevision: left,
  };
}

/** Each settled run has left one revision, in their order; those that supersede others were left by rollbacks. */
function revisionLeft(tx: Transaction, threadId: ThreadId, ordinal: number): number | null {
  let left = 0;
  for (let revision = 1; ; revision += 1) {
    const snapshot = tx.store.snapshot(threadId, revision);
    if (snapshot === undefined) return null;
    if (snapshot.supersedesRevisions === undefined) left += 1;
    if (left === ordinal) return revision;
  }
}

function without(all: Usage, part: Usage): Usage {
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens, cost } = part;
  return addUsage(all, {
    inputTokens: -inputTokens,
    cachedInputTokens: -cachedInputTokens,
    outputTokens: -outputTokens,
    reasoningTokens: -reasoningTokens,
    cost: cost === null ? null : -cost,
    complete: true,
  });
}

/** Never accepted, it is void and its mail starts another; else it is lost, whatever it was doing. */
function endRun(tx: Transaction, id: RunId): void {
  const run = must(tx.store.run(id), "run", id);
  if (isSettled(run)) return;
  if (tx.agent(run.threadId).currentRun !== id) {
    tx.store.putRun({ ...run, status: "failed", reason: "failed", error: ERROR, completedAt: tx.now });
    return;
  }
  if (run.acceptedAt === null) voidRun(tx, run);
  else loseRun(tx, run, { because: "its stored record cannot be read", error: ERROR });
  tx.effects.stop.push({ threadId: run.threadId, runId: id, why: "runtime_lost" });
}

function waitStandIn(tx: Transaction, id: WaitId, { threadId, runId: told, open }: BrokenRow): Mending {
  const runId = told!;
  const put = (callId: string, step: number): void =>
    tx.store.putWait({
      id,
      treeId: tx.treeId,
      threadId,
      runId,
      callId,
      step,
      works: [],
      agents: [],
      need: 1,
      sinceSeq: 0,
      startedAt: tx.now,
      deadlineAt: tx.now,
      clampedToMs: null,
      cursor: null,
      end: "aborted",
      endedAt: tx.now,
      loop: null,
    });
  put("", -1);
  return {
    complete() {
      const run = tx.store.run(runId);
      if (run === undefined || isSettled(run)) return;
      const { items } = tx.agent(threadId);
      const others = tx.store.waitsOfRun(runId).filter((wait) => wait.step === run.steps);
      // The call that it was opened for is the one that waits and has no other wait.
      const call = openCalls(tx.store.items(threadId, run.firstItem, items - run.firstItem)).find(
        (one) =>
          one.type === "tool_call" &&
          one.name === "wait_agent" &&
          others.every(({ callId }) => callId !== one.callId),
      );
      if (call !== undefined) put(call.callId, run.steps);
    },
    end() {
      if (!open) return;
      tx.emit("wait.ended", tx.agent(threadId), { runId }, { waitId: id, end: "aborted" });
      tx.effects.deadlines = true;
      resumeWhenFree(tx, threadId, runId);
    },
  };
}

function requestStandIn(
  tx: Transaction,
  agent: AgentRecord,
  id: RequestId,
  { open }: BrokenRow,
): Mending | null {
  const { threadId } = agent;
  const asked = itemsOf(tx, agent).flatMap((item) =>
    item.kind !== "assistant"
      ? []
      : item.parts.flatMap((part) =>
          part.type === "request" && part.requestId === id ? [{ part, item }] : [],
        ),
  )[0];
  const runId = asked?.item.runId ?? agent.currentRun;
  // It was stored in one commit with the part of the transcript that asks it.
  if (asked === undefined || runId === null) return null;
  tx.store.putRequest({
    id,
    treeId: tx.treeId,
    threadId,
    runId,
    callId: asked.part.callId,
    kind: asked.part.kind,
    text: asked.part.text,
    status: "cancelled",
    answer: "(cancelled: the stored question cannot be read; ask it again where it still matters)",
    createdAt: asked.item.at,
    answeredAt: tx.now,
  });
  return {
    complete: () => undefined,
    end() {
      if (!open) return;
      const now = tx.agent(threadId);
      tx.putAgent(now, { openRequests: Math.max(0, now.openRequests - 1) });
      tx.emit("request.closed", now, { runId }, { requestId: id, status: "cancelled" });
      resumeWhenFree(tx, threadId, runId);
    },
  };
}

/** What was asked is not known any more; whoever waits for the answer is told so. */
function commandStandIn(tx: Transaction, id: CommandId): Mending {
  const refusal = new RejectedError(
    "STORE_CORRUPT",
    `the stored command ${id} cannot be read, and was not carried out; look at the tree, and send it again.`,
    { table: "commands", id },
  );
  tx.store.putCommand({
    id,
    treeId: tx.treeId,
    verb: null,
    arguments: {},
    state: "refused",
    answer: { ...refusal.toJSON() },
    createdAt: tx.now,
    doneAt: tx.now,
  });
  return NOTHING;
}
