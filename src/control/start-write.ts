/** What a start has built, stored before it is sent: handoffs that are ready and the transfers that name them. */
import type { AgentRecord } from "../protocol/agent.ts";
import type { ProviderThreadId, RunId, TransferId } from "../protocol/ids.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { ThreadFacts } from "../protocol/thread.ts";
import type { ItemBody } from "../protocol/transcript.ts";
import type { ContextSourcePoint, HandoffRecord, TransferRecord } from "../protocol/transfer.ts";
import type { BuiltHandoff } from "../lineage/handoff/input.ts";
import type { HandoffBase, StartBase, StartFacts, StartPlan } from "../lineage/start-plan.ts";
import {
  handoffOf,
  providerHandoffTransfer,
  readyHandoff,
  replaceHandoff,
  resolvePortable,
  supersede,
  supersedeHandoff,
  wholePoint,
} from "../lineage/transfer.ts";
import { currentRun } from "./runs.ts";
import type { Destination } from "./start-facts.ts";
import type { Planned, RunStart } from "./start-run.ts";
import type { Look, Transaction } from "./transaction.ts";

type Thread = AgentRecord & { readonly thread: ThreadFacts };

export function writeStart(tx: Transaction, id: RunId, to: Destination, planned: Planned): RunStart {
  const run = currentRun(tx, id);
  const agent = tx.agent(run.threadId) as Thread;
  const { plan, texts } = planned;
  for (const obsolete of plan.obsolete) supersedeTransfer(tx, obsolete, null);
  const providerThread = providerThreadOf(tx, run, to, plan.base, tx.id("pth"));
  const written = texts.map(({ transferId, built }) =>
    writeHandoff(tx, agent, run, to, providerThread, planned, transferId, built),
  );
  const carriedNothing = transferOf(plan.base);
  const transfers = written.map(({ transferId }) => transferId);
  if (carriedNothing !== null && !transfers.includes(carriedNothing)) transfers.push(carriedNothing);
  tx.store.putRun({
    ...run,
    providerThreadId: providerThread.id,
    contextHandoffIds: written.map((handoff) => handoff.id),
  });
  const bodies: ItemBody[] = written.map(handoffBody);
  if (planned.snapshot !== null)
    bodies.unshift({ kind: "context", topic: "snapshot", text: planned.snapshot });
  return { providerThread, bodies, handoffs: written.map((handoff) => handoff.id), transfers };
}

export function transferOf(base: StartBase): TransferId | null {
  return base.kind === "unsupported" ? null : base.transferId;
}

/** The one to go on with, or a new one; it is stored when it has accepted something. */
export function providerThreadOf(
  look: Look,
  run: RunRecord,
  to: Destination,
  base: StartBase,
  fresh: ProviderThreadId,
): ProviderThreadRecord {
  const id = base.kind === "none" || base.kind === "handoff" ? base.providerThreadId : null;
  const known = id === null ? undefined : look.store.providerThread(id);
  return known ?? { ...emptyThread(look, run, fresh), instanceId: to.instanceId, driver: to.driver };
}

export function emptyThread(look: Look, run: RunRecord, id: ProviderThreadId): ProviderThreadRecord {
  return {
    id,
    treeId: run.treeId,
    provider: run.provider,
    instanceId: run.provider,
    driver: run.provider,
    appThreadId: run.threadId,
    ownerNodeId: null,
    nativeThreadRef: null,
    nativeHeadRef: null,
    turns: [],
    model: run.model,
    status: "not_loaded",
    continuity: "ok",
    nativeRunOrdinals: [],
    handoffIds: [],
    forkedFrom: null,
    createdAt: look.now,
    updatedAt: look.now,
  };
}

function writeHandoff(
  tx: Transaction,
  agent: Thread,
  run: RunRecord,
  to: Destination,
  providerThread: ProviderThreadRecord,
  { facts, plan }: Planned,
  transferId: TransferId | null,
  built: BuiltHandoff,
): HandoffRecord {
  const known = transferId === null ? undefined : tx.store.transfer(transferId);
  const transfer = known ?? newSwitch(tx, agent, to, facts, plan);
  const before = handoffOf(transfer);
  const handoff: HandoffRecord = {
    ...readyHandoff({
      id: tx.id("hnd"),
      transfer,
      text: built.text,
      coveredRanges: built.coveredRanges,
      redact: tx.context.redact,
      at: tx.now,
      about: {
        ...built.about,
        fromProviderThreadIds: facts.providerThreads
          .map(({ id }) => id)
          .filter((id) => id !== providerThread.id),
        toProviderThreadId: providerThread.id,
      },
    }),
    targetRunId: run.id,
  };
  tx.store.putHandoff(handoff);
  if (before !== null) {
    const old = tx.store.handoff(before);
    if (old?.status === "ready") tx.store.putHandoff(supersedeHandoff(old, tx.now, handoff.id));
  }
  const resolved =
    transfer.status === "resolved_portable"
      ? replaceHandoff(transfer, handoff, tx.now)
      : resolvePortable(transfer, handoff, tx.now);
  tx.store.putTransfer({ ...resolved, targetProvider: to.provider });
  tellMoved(tx, agent, resolved, run.id);
  return handoff;
}

/** C4.12: within the thread, from the last run that the target knows to the last that there is. */
function newSwitch(
  tx: Transaction,
  agent: Thread,
  to: Destination,
  facts: StartFacts,
  { base }: StartPlan,
): TransferRecord {
  const { baseOrdinal, sourceOrdinal } = base as HandoffBase;
  const active = agent.thread.activeProviderThreadId;
  const transfer = providerHandoffTransfer({
    id: tx.id("xfr"),
    treeId: tx.treeId,
    source: agent.threadId,
    sourcePoint: runPoint(tx, agent, sourceOrdinal),
    basePoint: baseOrdinal === null || baseOrdinal === 0 ? null : runPoint(tx, agent, baseOrdinal),
    sourceProvider:
      active === null ? null : (tx.store.providerThread(active)?.provider ?? agent.config.provider),
    targetProvider: to.provider,
    staleness:
      (base as HandoffBase).into === "new"
        ? (base as { staleness: TransferRecord["staleness"] }).staleness
        : [],
    createdBy: facts.failedResume.length > 0 ? "system" : agent.createdBy,
    at: tx.now,
  });
  tx.emit(
    "transfer.created",
    agent,
    {},
    { transferId: transfer.id, type: transfer.type, target: agent.path },
  );
  return transfer;
}

function runPoint(look: Look, agent: AgentRecord, ordinal: number): ContextSourcePoint {
  const run = look.store.runAt(agent.threadId, ordinal);
  const next = look.store.runAt(agent.threadId, ordinal + 1);
  return wholePoint(agent.threadId, {
    ordinal,
    runId: run?.id ?? null,
    items: next?.firstItem ?? agent.items,
  });
}

function supersedeTransfer(tx: Transaction, id: TransferId, by: TransferId | null): void {
  const transfer = tx.store.transfer(id)!;
  const before = handoffOf(transfer);
  const handoff = before === null ? undefined : tx.store.handoff(before);
  if (handoff?.status === "ready") tx.store.putHandoff(supersedeHandoff(handoff, tx.now));
  const moved = supersede(transfer, tx.now, by);
  tx.store.putTransfer(moved);
  tellMoved(tx, tx.agent(moved.targetThreadId), moved, null);
}

export function tellMoved(
  tx: Transaction,
  target: AgentRecord,
  { id, status }: TransferRecord,
  runId: RunId | null,
): void {
  tx.emit("transfer.moved", target, { runId }, { transferId: id, status });
}

export function handoffBody({ id, summaryText }: HandoffRecord): ItemBody {
  return { kind: "context", topic: "handoff", text: summaryText, handoffId: id };
}
