/** Records of threads and transfers for tests of stores, as dull as those in `store-records.ts`. */
import type { ThreadId, TransferId, TreeId } from "../protocol/ids.ts";
import type { ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { CompactionRecord, SnapshotRecord } from "../protocol/snapshot.ts";
import type { ForkDraft, HistoryEntry, ThreadFacts } from "../protocol/thread.ts";
import type { HandoffRecord, TransferRecord } from "../protocol/transfer.ts";
import { sampleId } from "./store-records.ts";

/** Of a root; with `lineage` of a fork or a subagent. */
export function sampleThreadFacts(threadId: ThreadId, given: Partial<ThreadFacts> = {}): ThreadFacts {
  return {
    agentId: "/root",
    title: null,
    lineage: { parentThreadId: null, relationshipToParent: null, rootThreadId: threadId },
    forkedFrom: null,
    forkPolicy: null,
    continuity: "resume-native",
    activeProviderThreadId: null,
    selection: null,
    currentContext: null,
    pins: [],
    rolledBack: [],
    lastRollback: null,
    voided: [],
    messages: 0,
    compactions: 0,
    ...given,
  };
}

export function sampleProviderThread(
  treeId: TreeId,
  appThreadId: ThreadId,
  name: string | number,
  given: Partial<ProviderThreadRecord> = {},
): ProviderThreadRecord {
  return {
    id: sampleId("pth", name),
    treeId,
    provider: "scripted",
    instanceId: "scripted",
    driver: "scripted",
    appThreadId,
    ownerNodeId: null,
    nativeThreadRef: null,
    nativeHeadRef: null,
    model: null,
    status: "not_loaded",
    continuity: "ok",
    nativeRunOrdinals: [],
    handoffIds: [],
    forkedFrom: null,
    createdAt: 1,
    updatedAt: 1,
    ...given,
  };
}

export function sampleSnapshot(
  threadId: ThreadId,
  revision: number,
  given: Partial<SnapshotRecord> = {},
): SnapshotRecord {
  return {
    version: 1,
    threadId,
    revision,
    objective: `objective ${revision}`,
    decisions: [],
    constraints: [],
    openItems: [],
    nextActions: [],
    outcomes: [],
    degraded: false,
    createdAt: 1,
    digest: `digest ${revision}`,
    ...given,
  };
}

export function sampleCompaction(
  threadId: ThreadId,
  number: number,
  given: Partial<CompactionRecord> = {},
): CompactionRecord {
  return {
    version: 1,
    id: `compaction-${number}`,
    threadId,
    fromRevision: number - 1,
    toRevision: number,
    droppedCount: 0,
    fromMessageSequence: 0,
    toMessageSequence: 0,
    inputDigest: "",
    outputContextRevision: number,
    outputContextDigest: `digest ${number}`,
    strategy: "deterministic",
    droppedLines: [],
    createdAt: 1,
    ...given,
  };
}

export function sampleHistoryEntry(
  threadId: ThreadId,
  sequence: number,
  given: Partial<HistoryEntry> = {},
): HistoryEntry {
  const executionId = sampleId("run", 1);
  return {
    version: 1,
    id: `${executionId}:${sequence}`,
    threadId,
    executionId,
    nativeId: String(sequence),
    sequence,
    createdAt: 1,
    body: { kind: "assistant", text: `text ${sequence}` },
    digest: `digest ${sequence}`,
    ...given,
  };
}

export function sampleDraft(threadId: ThreadId, given: Partial<ForkDraft> = {}): ForkDraft {
  return { threadId, text: "draft", sourceMessageId: null, createdAt: 1, clearedAt: null, ...given };
}

export function sampleTransfer(
  treeId: TreeId,
  target: ThreadId,
  name: string | number,
  given: Partial<TransferRecord> = {},
): TransferRecord {
  return {
    id: sampleId("xfr", name),
    treeId,
    type: "subagent_result",
    workId: null,
    sourceThreadId: treeId,
    targetThreadId: target,
    sourcePoint: {
      threadId: treeId,
      runId: null,
      checkpointId: null,
      ordinal: 0,
      items: 0,
      turnItemId: null,
      providerThreadRef: null,
      providerTurnRef: null,
      cut: "exclusive",
    },
    basePoint: null,
    sourceProvider: null,
    targetProvider: null,
    targetRunId: null,
    status: "pending",
    resolution: null,
    requestedStrategy: "portable_context",
    note: "completed",
    sourceOutcome: null,
    staleness: [],
    intent: null,
    staleBase: false,
    supersededBy: null,
    error: null,
    createdBy: "agent",
    createdAt: 1,
    updatedAt: 1,
    consumedAt: null,
    digest: "",
    ...given,
  };
}

export function sampleHandoff(
  treeId: TreeId,
  threadId: ThreadId,
  name: string | number,
  given: Partial<HandoffRecord> = {},
): HandoffRecord {
  const transferId: TransferId = sampleId("xfr", name);
  return {
    id: sampleId("hnd", name),
    transferId,
    treeId,
    sourceThreadId: treeId,
    threadId,
    targetRunId: null,
    kind: "portable_context",
    strategy: "full_thread_summary",
    fromProviderThreadIds: [],
    toProviderThreadId: null,
    coveredRuns: [],
    coveredRunOrdinals: null,
    coveredRanges: [],
    status: "ready",
    summaryText: `text ${name}`,
    payload: { sections: [], items: 0, omittedItemIds: [], checkpointRef: null, snapshotRef: null },
    budget: { limit: 0, used: 0, unit: "bytes" },
    bytes: 6,
    createdByProvider: null,
    supersededBy: null,
    deliveredAt: null,
    digest: "",
    createdAt: 1,
    updatedAt: 1,
    ...given,
  };
}
