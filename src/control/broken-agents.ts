/**
 * Agents whose stored row cannot be read (REC-1). What it may do, was told and had to keep within stood in that row alone, so
 * it cannot go on: the stand-in keeps the path, the descent and what was used, and is closed in order. Its run is lost, its
 * works end with one result each, and all below it goes on under it.
 *
 * - Y1 Nothing gets wider: the ceiling of those below it is what its parent may do, within what each of them has anyway.
 * - Y2 A root has nobody above whom results could go to, and is what the user would go on with: it is not mended.
 */
import { depthOf } from "../protocol/agent-path.ts";
import type { AgentConfig, AgentRecord } from "../protocol/agent.ts";
import type { RunId, ThreadId } from "../protocol/ids.ts";
import { addOrdinal, NO_ORDINALS, type OrdinalRange } from "../protocol/ordinals.ts";
import { isSettled, type RunRecord } from "../protocol/run.ts";
import type { ContextReference, ThreadFacts } from "../protocol/thread.ts";
import { policyHash } from "../policy/policy-hash.ts";
import { isUnreadable } from "../store/corrupt-row.ts";
import type { BrokenAgent } from "../store/port.ts";
import { shut } from "./close.ts";
import { allOf } from "./family.ts";
import { type Log, type StandIn, tellAside, unreadableRecord } from "./stand-in.ts";
import { newAgent } from "./new-agent.ts";
import { loseRun, voidRun } from "./recovery.ts";
import { lastOutcomeOf } from "./settle.ts";
import { must, type Transaction } from "./transaction.ts";
import { endWork } from "./works.ts";

const ERROR = unreadableRecord("agent");

export function agentStandIn(
  tx: Transaction,
  threadId: ThreadId,
  columns: BrokenAgent,
  log: Log,
): StandIn | null {
  const { treeId, path, parent, state, workspace, lineage, usage } = columns;
  if (treeId !== tx.treeId || parent === null) return null;
  tellAside(tx, { path, threadId }, "agents", threadId, state === "open");
  const spawned = log(threadId)[0];
  const createdAt = spawned?.at ?? 0;
  const bornInRun = spawned?.runId ?? null;
  const { thread, ...fresh } = newAgent({
    threadId,
    treeId,
    path,
    parent,
    depth: depthOf(path),
    config: UNKNOWN_CONFIG,
    tokenDigest: tx.context.mintTokenDigest(threadId),
    createdAt,
    createdBy: bornInRun === null ? "user" : "agent",
    bornInRun,
    thread: {
      lineage: {
        parentThreadId: parent,
        relationshipToParent: "subagent",
        rootThreadId: lineage ?? treeId,
      },
    },
  });
  const record: AgentRecord = {
    ...fresh,
    state,
    thread: lineage === null ? null : thread,
    // Beyond whatever it had: each of its writes stood in a commit that told something.
    revision: tx.store.lastEvent(treeId),
    items: countItems(tx, threadId),
    usage,
  };
  tx.store.putAgent(record);
  tx.effects.agents.add(threadId);
  return {
    depth: record.depth,
    complete() {
      const runs = [...allOf((page) => tx.store.runsOf(threadId, page))];
      const last = runs.findLast((run) => isSettled(run) && run.reason !== "not_accepted");
      const told = (name: string): string | null =>
        (spawned?.data[name] as string | null | undefined) ?? null;
      const above = tx.agent(parent).config;
      tx.putAgent(record, {
        config: configOf(above, {
          provider: told("provider") ?? runs.at(-1)?.provider ?? above.provider,
          model: told("model"),
          role: told("role"),
          workspace,
        }),
        thread: record.thread === null ? null : { ...record.thread, ...threadOf(tx, threadId, runs) },
        currentRun: runs.find((run) => !isSettled(run))?.id ?? null,
        runs: runs.length,
        children: countChildren(tx, threadId),
        openRequests: tx.store.openRequestsOf(threadId).length,
        lastOutcome: last === undefined ? null : { ...lastOutcomeOf(tx, last, last.text), at: endOf(last) },
        lastActiveAt: Math.max(createdAt, ...runs.map(endOf)),
      });
    },
    end() {
      if (state === "open") endAgent(tx, threadId);
    },
  };
}

/** Said where the run says it, so that the works that it served keep what is left of it. */
function endAgent(tx: Transaction, threadId: ThreadId): void {
  const runId = tx.agent(threadId).currentRun;
  tx.closing.add(threadId);
  if (runId !== null) loseItsRun(tx, threadId, runId);
  for (const work of tx.store.openWorksOf(threadId))
    endWork(tx, work.id, { ending: "failed", text: "", error: ERROR, runId: work.servedBy });
  shut(tx, threadId, runId);
}

function loseItsRun(tx: Transaction, threadId: ThreadId, runId: RunId): void {
  const run = must(tx.store.run(runId), "run", runId);
  if (run.acceptedAt === null) voidRun(tx, run);
  else loseRun(tx, run, { because: "the stored record of its agent cannot be read", error: ERROR });
  tx.effects.stop.push({ threadId, runId, why: "runtime_lost" });
}

function endOf({ completedAt, acceptedAt, reservedAt }: RunRecord): number {
  return completedAt ?? acceptedAt ?? reservedAt;
}

const UNKNOWN_CONFIG: AgentConfig = {
  provider: "unknown",
  model: null,
  effort: null,
  role: null,
  instructions: null,
  tools: [],
  leaf: true,
  effects: [],
  workspace: null,
  worktree: null,
  budgets: {},
  maxOutputTokens: null,
  contextWindow: null,
  modeHint: null,
  onLostRun: "notify",
  pinPendingMail: false,
  policyHash: "",
  adjustments: [],
};

function configOf(
  { effects }: AgentConfig,
  known: Pick<AgentConfig, "provider" | "model" | "role" | "workspace">,
): AgentConfig {
  const config = { ...UNKNOWN_CONFIG, effects, ...known };
  return { ...config, policyHash: policyHash(config) };
}

/** What the runs and the snapshots say of the thread. */
function threadOf(tx: Transaction, threadId: ThreadId, runs: readonly RunRecord[]): Partial<ThreadFacts> {
  const ordinals = (of: (run: RunRecord) => boolean): readonly OrdinalRange[] =>
    runs.filter(of).reduce((ranges, { ordinal }) => addOrdinal(ranges, ordinal), NO_ORDINALS);
  const taken = runs.findLast(({ providerThreadId }) => providerThreadId !== null);
  return {
    activeProviderThreadId: taken?.providerThreadId ?? null,
    currentContext: newestContext(tx, threadId),
    rolledBack: ordinals(({ rolledBack }) => rolledBack !== null),
    voided: ordinals((run) => isSettled(run) && run.acceptedAt === null),
    messages: [...allOf((page) => tx.store.history(threadId, page))].length,
    compactions: [...allOf((page) => tx.store.compactions(threadId, page))].length,
  };
}

function newestContext(tx: Transaction, threadId: ThreadId): ContextReference | null {
  let newest: ContextReference | null = null;
  for (let revision = 1; ; revision += 1) {
    const snapshot = tx.store.snapshot(threadId, revision);
    if (snapshot === undefined) return newest;
    newest = { revision, digest: snapshot.digest };
  }
}

/** Those that cannot be read themselves, too. */
function countChildren(tx: Transaction, threadId: ThreadId): number {
  let count = 0;
  const pages = allOf((page) => {
    const found = tx.store.childrenOf(threadId, { ...page, closed: true });
    count += found.unreadable?.length ?? 0;
    return found;
  });
  for (const _ of pages) count += 1;
  return count;
}

/** Items stand without a gap, so that the first that is not there is found by halves; they need not be readable. */
function countItems(tx: Transaction, threadId: ThreadId): number {
  const isThere = (index: number): boolean => {
    let found = false;
    return isUnreadable(() => (found = tx.store.items(threadId, index, 1).length > 0)) || found;
  };
  let above = 1;
  while (isThere(above - 1)) above *= 2;
  let low = above >> 1;
  while (low < above - 1) {
    const middle = (low + above) >> 1;
    if (isThere(middle - 1)) low = middle;
    else above = middle;
  }
  return low;
}
