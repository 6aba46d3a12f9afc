/** Records of threads, provider threads, handoffs and transfers for tests of pure decisions. */
import type { NamedThread } from "../../../src/lineage/native-turns.ts";
import type { StartFacts } from "../../../src/lineage/start-plan.ts";
import type { RunFacts, ThreadReader } from "../../../src/lineage/thread-reader.ts";
import { DEFAULT_LINEAGE_LIMITS } from "../../../src/protocol/lineage-limits.ts";
import { NO_ORDINALS } from "../../../src/protocol/ordinals.ts";
import type { ThreadCapabilities } from "../../../src/protocol/provider-capabilities.ts";
import type { NativeRef, ProviderThreadRecord } from "../../../src/protocol/provider-thread.ts";
import type { ItemBody, TranscriptItem } from "../../../src/protocol/transcript.ts";
import type { ContextSourcePoint, HandoffRecord, TransferRecord } from "../../../src/protocol/transfer.ts";

export const THREAD = "thread_t";

export function nativeRef(nativeId: string, strength: NativeRef["strength"] = "strong"): NativeRef {
  return { driver: "near", nativeId, strength };
}

type Groups = { readonly [K in keyof ThreadCapabilities]?: Partial<ThreadCapabilities[K]> };

export function capabilities(groups: Groups = {}): ThreadCapabilities {
  return {
    threads: {
      fork: "turn",
      forkIdleOnly: false,
      rollback: "boundary",
      rollbackReturnsSnapshot: false,
      read: "none",
      forkFromChild: false,
      ...groups.threads,
    },
    identity: { thread: "strong", turn: "strong", item: "strong", request: "strong", ...groups.identity },
    turns: {
      steer: true,
      interrupt: true,
      queue: false,
      acceptedEvent: true,
      terminalQuality: "strong",
      ...groups.turns,
    },
    sessions: { multipleThreads: true, modelSwitch: true, singleWriter: false, ...groups.sessions },
    context: {
      channels: ["system", "synthetic_user"],
      delta: true,
      full: true,
      canSummarise: false,
      maxRecommendedChars: null,
      ...groups.context,
    },
    subagents: { native: false, childIds: false, lifecycle: false, ...groups.subagents },
    history: { bridge: false, pinnedVersion: null, ...groups.history },
    requests: { userQuestions: false, approvals: false, surviveRestart: false, ...groups.requests },
  };
}

export const MUTE = capabilities({ context: { channels: [], delta: false, full: false } });

export function providerThread(
  id: string,
  nativeRunOrdinals: ProviderThreadRecord["nativeRunOrdinals"],
  more: Partial<NamedThread> = {},
): NamedThread {
  const ordinals = nativeRunOrdinals.flatMap(([from, to]) =>
    Array.from({ length: to - from + 1 }, (_, at) => from + at),
  );
  return {
    id: `pth_${id}`,
    treeId: THREAD,
    provider: "near",
    instanceId: "near-1",
    driver: "near",
    appThreadId: THREAD,
    ownerNodeId: null,
    nativeThreadRef: nativeRef(`native-${id}`),
    nativeHeadRef: null,
    turns: ordinals.map((ordinal) => ({ ordinal, ref: nativeRef(`turn-${ordinal}`) })),
    model: "m",
    status: "idle",
    continuity: "ok",
    nativeRunOrdinals,
    handoffIds: [],
    forkedFrom: null,
    createdAt: 1,
    updatedAt: 1,
    ...more,
  };
}

/** On the other provider of the tests. */
export function farThread(
  id: string,
  nativeRunOrdinals: NamedThread["nativeRunOrdinals"],
  more: Partial<NamedThread> = {},
): NamedThread {
  const far = { provider: "far", instanceId: "far-1", driver: "far" } as const;
  return providerThread(id, nativeRunOrdinals, { ...far, ...more });
}

/** Delivered, of this thread, unless told otherwise. */
export function handoff(
  id: string,
  coveredRuns: HandoffRecord["coveredRuns"],
  more: Partial<HandoffRecord> = {},
): HandoffRecord {
  return {
    id: `hnd_${id}`,
    transferId: "xfr_1",
    treeId: THREAD,
    sourceThreadId: THREAD,
    threadId: THREAD,
    targetRunId: null,
    kind: "delta_context",
    strategy: "delta_since_target_last_seen",
    fromProviderThreadIds: [],
    toProviderThreadId: null,
    coveredRuns,
    coveredRunOrdinals: null,
    coveredRanges: [],
    status: "ready",
    summaryText: "text",
    payload: { sections: [], items: 0, omittedItemIds: [], checkpointRef: null, snapshotRef: null },
    budget: { limit: 0, used: 0, unit: "bytes" },
    bytes: 4,
    createdByProvider: null,
    supersededBy: null,
    deliveredAt: 5,
    digest: "",
    createdAt: 1,
    updatedAt: 1,
    ...more,
  };
}

export function point(more: Partial<ContextSourcePoint> = {}): ContextSourcePoint {
  return {
    threadId: THREAD,
    runId: null,
    checkpointId: null,
    ordinal: 0,
    items: 0,
    turnItemId: null,
    providerThreadRef: null,
    providerTurnRef: null,
    cut: "inclusive",
    ...more,
  };
}

/** Pending into this thread. */
export function transfer(
  type: TransferRecord["type"],
  id: string,
  more: Partial<TransferRecord> = {},
): TransferRecord {
  return {
    id: `xfr_${id}`,
    treeId: THREAD,
    type,
    workId: null,
    sourceThreadId: type === "provider_handoff" ? THREAD : "thread_source",
    targetThreadId: THREAD,
    sourcePoint: point({ ordinal: 3, items: 9 }),
    basePoint: null,
    sourceProvider: null,
    targetProvider: null,
    targetRunId: null,
    status: "pending",
    resolution: null,
    requestedStrategy: type === "fork" ? "auto" : "portable_context",
    note: "",
    sourceOutcome: null,
    staleness: [],
    intent: null,
    staleBase: false,
    supersededBy: null,
    error: null,
    createdBy: "user",
    createdAt: 1,
    updatedAt: 1,
    consumedAt: null,
    digest: "",
    ...more,
  };
}

export type StartChanges = Omit<Partial<StartFacts>, "target"> & {
  readonly target?: Partial<StartFacts["target"]>;
};

/** A first run on the near provider, unless told otherwise. */
export function startFacts({ target, ...changes }: StartChanges = {}): StartFacts {
  return {
    threadId: THREAD,
    continuity: "resume-native",
    ordinal: 1,
    rolledBack: NO_ORDINALS,
    voided: NO_ORDINALS,
    providerThreads: [],
    handoffs: [],
    pending: [],
    fork: null,
    failedResume: [],
    limits: DEFAULT_LINEAGE_LIMITS,
    ...changes,
    target: {
      provider: "near",
      instanceId: "near-1",
      driver: "near",
      model: "m",
      capabilities: capabilities(),
      cleanContext: false,
      contextFull: false,
      change: "apply_next_turn",
      deltaFits: null,
      ...target,
    },
  };
}

type TestRun = Partial<Omit<RunFacts, "id" | "firstItem">> & { readonly items?: readonly ItemBody[] };

export const CHECKPOINT: NonNullable<RunFacts["checkpoint"]> = {
  id: "ckp_1",
  pins: [],
  digest: "",
  workspace: { status: "none" },
};

export const said = (text: string): ItemBody => ({
  kind: "user",
  text,
  mailId: `msg_${text}`,
  workId: null,
  inherited: false,
});
export const note = (text: string): ItemBody => ({ kind: "context", topic: "role", text });
export const answer = (text: string, ...calls: readonly string[]): ItemBody => ({
  kind: "assistant",
  phase: calls.length === 0 ? "answer" : "tools",
  parts: [
    { type: "text", text },
    ...calls.map((callId) => ({ type: "tool_call" as const, callId, name: "look", input: "{}" })),
  ],
  model: null,
  inherited: false,
});
export const returned = (callId: string): ItemBody => ({
  kind: "tool_result",
  callId,
  name: "look",
  output: "there",
  isError: false,
  mailIds: [],
  waitId: null,
  elapsedMs: 0,
});

/** A thread whose runs have a question and an answer each, unless told otherwise; counts what is read of it. */
export function thread(
  runs: readonly TestRun[],
  more: Partial<Pick<ThreadReader, "rolledBack" | "voided" | "inherits" | "threadId">> & {
    readonly before?: readonly ItemBody[];
    readonly providerThreads?: readonly ProviderThreadRecord[];
  } = {},
): ThreadReader & { readonly reads: { items: number; runs: number } } {
  const { before = [], providerThreads = [], ...facts } = more;
  const threadId = more.threadId ?? THREAD;
  const items: TranscriptItem[] = [];
  const put = (body: ItemBody, runId: RunFacts["id"] | null) =>
    items.push({ ...body, index: items.length, runId, step: 1, at: 0 });
  for (const body of before) put(body, null);
  const records = runs.map(({ items: bodies, ...run }, at): RunFacts => {
    const ordinal = at + 1;
    const firstItem = items.length;
    for (const body of bodies ?? [said(`q${ordinal}`), answer(`a${ordinal}`)]) put(body, `run_${ordinal}`);
    return {
      id: `run_${ordinal}`,
      threadId,
      ordinal,
      status: "completed",
      checkpoint: { ...CHECKPOINT, id: `ckp_${ordinal}` },
      providerThreadId: null,
      nativeTurns: (run.providerThreadId ?? null) === null ? [] : [nativeRef(`turn-${ordinal}`)],
      completedAt: 10 + ordinal,
      nextContextRevision: ordinal,
      ...run,
      firstItem,
    };
  });
  const reads = { items: 0, runs: 0 };
  const counted = <T>(value: T): T => {
    reads.runs += 1;
    return value;
  };
  return {
    threadId,
    rolledBack: [],
    voided: [],
    inherits: false,
    ...facts,
    runs: records.length,
    items: items.length,
    reads,
    run: (id) => counted(records.find((run) => run.id === id)),
    runAt: (ordinal) => counted(records[ordinal - 1]),
    runOfCheckpoint: (id) => counted(records.find(({ checkpoint }) => checkpoint?.id === id)),
    item: (index) => {
      reads.items += 1;
      return items[index];
    },
    providerThread: (id) => providerThreads.find((record) => record.id === id),
  };
}
