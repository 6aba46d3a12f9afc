/** What a start has built, stored before it is sent: handoffs that are ready and the transfers that name them. */
import type { AgentRecord } from "../protocol/agent.ts";
import type { ProviderThreadId, RunId, TransferId } from "../protocol/ids.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { RunRecord, StartDecision } from "../protocol/run.ts";
import type { ItemBody } from "../protocol/transcript.ts";
import type { ContextSourcePoint, HandoffRecord, TransferRecord } from "../protocol/transfer.ts";
import type { BuiltHandoff } from "../lineage/handoff/input.ts";
import type { HandoffBase, StartBase, StartFacts } from "../lineage/start-plan.ts";
import { readyHandoff, supersedeHandoff, verifyHandoff } from "../lineage/handoff-record.ts";
import {
  handoffOf,
  providerHandoffTransfer,
  replaceHandoff,
  resolvePortable,
  wholePoint,
} from "../lineage/transfer.ts";
import { appendItems, currentRun } from "./runs.ts";
import type { Destination } from "./start-facts.ts";
import type { BuiltText } from "./start-build.ts";
import type { Planned, RunStart } from "./start-run.ts";
import type { Look, Transaction } from "./transaction.ts";
import { forkAnew, tellMoved } from "./transfer-moves.ts";

export function writeStart(
  tx: Transaction,
  id: RunId,
  to: Destination,
  planned: Planned,
  texts: readonly BuiltText[],
): RunStart {
  const { plan, facts, record } = planned;
  const run = currentRun(tx, id);
  const agent = tx.agent(run.threadId);
  const providerThread = record ?? newProviderThread(run, to, tx.id("pth"), tx.now);
  const first = inheritItems(tx, agent, texts);
  const written = texts.flatMap(({ transferId, built }) =>
    built === null
      ? []
      : [writeHandoff(tx, { agent, run, to, providerThread, facts, base: plan.base }, transferId, built)],
  );
  const starting = decisionOf(
    planned,
    texts,
    written.map(({ transferId }) => transferId),
  );
  const handoffs = written.map((handoff) => handoff.id);
  tx.store.putRun({
    ...run,
    firstItem: first ?? run.firstItem,
    providerThreadId: providerThread.id,
    contextHandoffIds: handoffs,
    starting,
  });
  return { ...starting, providerThread, bodies: bodiesOf(tx, run, written), handoffs };
}

/** What a thread begins with is put there by the first attempt that comes so far. Where its run begins then. */
function inheritItems(tx: Transaction, agent: AgentRecord, texts: readonly BuiltText[]): number | null {
  const fresh = texts.filter(
    ({ transferId }) => transferId !== null && tx.store.transfer(transferId)?.status === "pending",
  );
  const bodies = fresh.flatMap(({ inherits }) => inherits);
  return bodies.length === 0 ? null : appendItems(tx, agent, null, bodies).agent.items;
}

/** What is decided of the transfers that a plan names; `written` are those whose texts were. */
export function decisionOf(
  { plan, facts, resolvedNatively }: Planned,
  texts: readonly BuiltText[],
  written: readonly TransferId[],
): StartDecision {
  const base = transferOf(plan.base);
  const resolved = base !== null && resolvedNatively ? [base] : [];
  const carried = new Set(texts.flatMap(({ transferId, built }) => (built === null ? [] : [transferId])));
  const named = [resolvedNatively ? null : base, ...texts.map(({ transferId }) => transferId)];
  return {
    transfers: [...resolved, ...written],
    empty: [...new Set(named.filter((one) => one !== null && !carried.has(one)))] as TransferId[],
    obsolete: plan.obsolete,
    cleanContext: facts.target.cleanContext,
  };
}

function transferOf(base: StartBase): TransferId | null {
  return base.kind === "unsupported" ? null : base.transferId;
}

/** It is stored when it has accepted something. */
export function newProviderThread(
  run: Pick<RunRecord, "treeId" | "threadId" | "provider" | "model">,
  { instanceId, driver }: Pick<Destination, "instanceId" | "driver">,
  id: ProviderThreadId,
  at: number,
): ProviderThreadRecord {
  return {
    id,
    treeId: run.treeId,
    provider: run.provider,
    instanceId,
    driver,
    appThreadId: run.threadId,
    ownerNodeId: null,
    nativeThreadRef: null,
    nativeHeadRef: null,
    model: run.model,
    status: "not_loaded",
    continuity: "ok",
    nativeRunOrdinals: [],
    handoffIds: [],
    forkedFrom: null,
    createdAt: at,
    updatedAt: at,
  };
}

interface Writing {
  readonly agent: AgentRecord;
  readonly run: RunRecord;
  readonly to: Destination;
  readonly providerThread: ProviderThreadRecord;
  readonly facts: StartFacts;
  readonly base: StartBase;
}

function writeHandoff(
  tx: Transaction,
  writing: Writing,
  transferId: TransferId | null,
  built: BuiltHandoff,
): HandoffRecord {
  const { run, to, providerThread, facts } = writing;
  const known = transferId === null ? undefined : tx.store.transfer(transferId);
  const transfer =
    known === undefined
      ? newSwitch(tx, writing)
      : known.status === "resolved_native"
        ? forkAnew(tx, known)
        : known;
  const handoff = builtHandoff(tx, transfer, built, {
    fromProviderThreadIds: facts.providerThreads.map(({ id }) => id).filter((id) => id !== providerThread.id),
    toProviderThreadId: providerThread.id,
    targetRunId: run.id,
  });
  return replaceText(tx, { ...transfer, targetProvider: to.provider }, handoff);
}

/** A text that was built, as the handoff of its transfer. */
export function builtHandoff(
  tx: Transaction,
  transfer: TransferRecord,
  { text, coveredRanges, about }: BuiltHandoff,
  {
    fromProviderThreadIds,
    toProviderThreadId,
    targetRunId,
  }: Pick<HandoffRecord, "fromProviderThreadIds" | "toProviderThreadId" | "targetRunId">,
): HandoffRecord {
  const ready = readyHandoff({
    id: tx.id("hnd"),
    transfer,
    text,
    coveredRanges,
    redact: tx.context.redact,
    at: tx.now,
    about: { ...about, fromProviderThreadIds, toProviderThreadId },
  });
  return { ...ready, targetRunId };
}

/** A transfer's text, or another one in place of it; what was there keeps its words. */
export function replaceText(
  tx: Transaction,
  transfer: TransferRecord,
  handoff: HandoffRecord,
): HandoffRecord {
  tx.store.putHandoff(handoff);
  const before = handoffOf(transfer);
  const old = before === null ? undefined : tx.store.handoff(before);
  if (old?.status === "ready") tx.store.putHandoff(supersedeHandoff(old, tx.now, handoff.id));
  const resolved =
    transfer.status === "resolved_portable"
      ? replaceHandoff(transfer, handoff, tx.now)
      : resolvePortable(transfer, handoff, tx.now);
  tx.store.putTransfer(resolved);
  tellMoved(tx, tx.agent(transfer.targetThreadId), resolved, handoff.targetRunId);
  return handoff;
}

/** Within the thread, from the last run that the target knows to the last that there is (C4.12). */
function newSwitch(tx: Transaction, { agent, to, facts, base }: Writing): TransferRecord {
  const handoff = base as HandoffBase;
  const active = agent.thread?.activeProviderThreadId ?? null;
  const from = active === null ? undefined : tx.store.providerThread(active);
  const transfer = providerHandoffTransfer({
    id: tx.id("xfr"),
    treeId: tx.treeId,
    source: agent.threadId,
    sourcePoint: runPoint(tx, agent, handoff.sourceOrdinal),
    basePoint: handoff.baseOrdinal ? runPoint(tx, agent, handoff.baseOrdinal) : null,
    sourceProvider: from?.provider ?? null,
    targetProvider: to.provider,
    staleness: handoff.into === "new" ? handoff.staleness : [],
    createdBy: facts.failedResume.length > 0 ? "system" : "user",
    at: tx.now,
  });
  const { id, type } = transfer;
  tx.emit("transfer.created", agent, {}, { transferId: id, type, target: agent.path });
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

/** What is told as text: what a child of our own loop inherits stands in its transcript. */
export function bodiesOf(
  { store, context }: Look,
  { provider }: Pick<RunRecord, "provider">,
  handoffs: readonly HandoffRecord[],
): readonly ItemBody[] {
  const ours = context.loop(provider) === "ours";
  const asItems = ({ transferId }: HandoffRecord): boolean =>
    ours && store.transfer(transferId)?.type === "subagent_spawn";
  return handoffs.filter((handoff) => !asItems(handoff)).map(handoffBody);
}

function handoffBody(handoff: HandoffRecord): ItemBody {
  const { id, summaryText } = verifyHandoff(handoff);
  return { kind: "context", topic: "handoff", text: summaryText, handoffId: id };
}
