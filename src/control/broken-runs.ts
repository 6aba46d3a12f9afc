/** Runs whose stored row cannot be read (REC-1): what is still known of one, and its end. */
import type { AgentRecord } from "../protocol/agent.ts";
import type { RunId, ThreadId } from "../protocol/ids.ts";
import { holdsOrdinal } from "../protocol/ordinals.ts";
import { isSettled, type RunRecord } from "../protocol/run.ts";
import type { RunOutcome } from "../protocol/thread.ts";
import { addUsage, NO_USAGE, type Usage } from "../protocol/usage.ts";
import { EMPTY_CONTEXT } from "../lineage/snapshot.ts";
import { allOf } from "./family.ts";
import { itemsOf, type StandIn, unreadableRecord } from "./stand-in.ts";
import { loseRun, voidRun } from "./recovery.ts";
import { shortRunText, textOf } from "./runs.ts";
import { bindingOf } from "./thread-context.ts";
import { must, type Transaction } from "./transaction.ts";

const ERROR = unreadableRecord("run");

export function runStandIn(tx: Transaction, agent: AgentRecord, id: RunId, open: boolean): StandIn {
  const { threadId } = agent;
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
