/**
 * Records for tests of stores: whole and valid, with figures that are easy to tell apart. What a test is about it
 * gives itself; everything else is as dull as it can be.
 */
import type { AgentPath } from "../protocol/agent-path.ts";
import type { AgentRecord, TreeRecord } from "../protocol/agent.ts";
import type { CommandRecord } from "../protocol/command.ts";
import type { IdPrefix, ThreadId, TreeId } from "../protocol/ids.ts";
import { DEFAULT_LIMITS } from "../protocol/limits.ts";
import type { MailDraft } from "../protocol/mail.ts";
import type { RunRecord } from "../protocol/run.ts";
import { NO_USAGE } from "../protocol/usage.ts";
import type { RuntimeRequestRecord, WaitRecord } from "../protocol/wait.ts";
import type { WorkRecord } from "../protocol/work.ts";
import type { ProcessIdentity } from "../protocol/process-identity.ts";

/** An id that says what it stands for: `sampleId("msg", 7)`. */
export function sampleId<P extends IdPrefix>(prefix: P, name: string | number): `${P}_${string}` {
  return `${prefix}_${String(name).padStart(21, "0")}`;
}

export function sampleOwner(pid: number): ProcessIdentity {
  return { host: "host", bootId: "boot", pid, startedAt: String(pid) };
}

export function sampleTree(treeId: TreeId, given: Partial<TreeRecord> = {}): TreeRecord {
  return {
    treeId,
    title: null,
    profile: "default",
    limits: DEFAULT_LIMITS,
    createdAt: 1,
    revision: 1,
    agents: 0,
    recentSpawns: [],
    recentRuns: [],
    exhausted: [],
    inbox: 0,
    ...given,
  };
}

export function sampleAgent(
  treeId: TreeId,
  threadId: ThreadId,
  path: AgentPath,
  given: Partial<AgentRecord> = {},
): AgentRecord {
  return {
    threadId,
    treeId,
    path,
    parent: null,
    depth: 0,
    state: "open",
    revision: 1,
    config: {
      provider: "scripted",
      model: null,
      effort: null,
      role: null,
      instructions: null,
      tools: [],
      leaf: false,
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
    },
    thread: null,
    hostDriven: false,
    tokenDigest: `digest of ${threadId}`,
    createdAt: 1,
    createdBy: "agent",
    bornInRun: null,
    currentRun: null,
    runs: 0,
    items: 0,
    children: 0,
    lastOutcome: null,
    lastActiveAt: 1,
    openRequests: 0,
    refusals: 0,
    loadFailures: 0,
    usage: NO_USAGE,
    sentModeHint: null,
    ...given,
  };
}

export function sampleMail(
  treeId: TreeId,
  recipient: ThreadId,
  name: string | number,
  given: Partial<MailDraft> & { readonly text?: string } = {},
): MailDraft {
  const { text = `text ${name}`, ...rest } = given;
  return {
    id: sampleId("msg", name),
    treeId,
    recipient,
    recipientPath: "/root",
    author: { kind: "user", name: "library" },
    kind: "message",
    authority: "agent",
    trigger: false,
    steer: false,
    nextRun: false,
    workId: null,
    resultOf: null,
    content: { text, bytes: text.length, artifact: null },
    start: null,
    redirectedFrom: null,
    key: null,
    createdAt: 1,
    ...rest,
  };
}

export function sampleWork(
  treeId: TreeId,
  executor: ThreadId,
  name: string | number,
  given: Partial<WorkRecord> = {},
): WorkRecord {
  return {
    id: sampleId("wrk", name),
    treeId,
    requester: { kind: "user", name: "library" },
    executor,
    executorPath: "/root",
    parents: [],
    detached: false,
    originRunId: null,
    rootRunId: null,
    replyTo: null,
    wake: "settled_only",
    objective: "do it",
    outputSchema: null,
    acceptance: null,
    artifacts: [],
    requestMailId: sampleId("msg", name),
    resultMailId: null,
    resultPending: false,
    resultTransferId: null,
    chain: 1,
    state: "queued",
    servedBy: null,
    openUnder: 0,
    runsServed: 0,
    servedRuns: [],
    lostRuns: 0,
    voids: 0,
    holds: [],
    retryMailId: null,
    schemaRepairs: 0,
    text: "",
    usage: NO_USAGE,
    outcome: null,
    trace: null,
    createdAt: 1,
    begunAt: null,
    ...given,
  };
}

export function sampleRun(
  treeId: TreeId,
  threadId: ThreadId,
  name: string | number,
  given: Partial<RunRecord> = {},
): RunRecord {
  const id = sampleId("run", name);
  return {
    id,
    treeId,
    threadId,
    ordinal: 1,
    status: "queued",
    reason: null,
    error: null,
    causes: [],
    woken: false,
    parentRunId: null,
    rootRunId: id,
    provider: "scripted",
    model: null,
    effort: null,
    policyHash: "",
    binding: null,
    delegatedFrom: null,
    providerThreadId: null,
    nativeTurns: [],
    contextHandoffIds: [],
    pins: [],
    checkpoint: null,
    nextContextRevision: null,
    rolledBack: null,
    history: null,
    chain: 1,
    reservedSeq: 0,
    serves: [],
    steps: 0,
    usage: NO_USAGE,
    firstItem: 0,
    waitedMs: 0,
    waitingSince: null,
    wrapUpOffered: false,
    text: "",
    reservedAt: 1,
    acceptedAt: null,
    completedAt: null,
    ...given,
  };
}

export function sampleWait(
  treeId: TreeId,
  threadId: ThreadId,
  name: string | number,
  given: Partial<WaitRecord> = {},
): WaitRecord {
  return {
    id: sampleId("wait", name),
    treeId,
    threadId,
    runId: sampleId("run", name),
    callId: "call",
    step: 0,
    works: [],
    agents: [],
    need: 1,
    sinceSeq: 0,
    startedAt: 1,
    deadlineAt: 100,
    clampedToMs: null,
    cursor: null,
    end: null,
    endedAt: null,
    loop: null,
    ...given,
  };
}

export function sampleRequest(
  treeId: TreeId,
  threadId: ThreadId,
  name: string | number,
  given: Partial<RuntimeRequestRecord> = {},
): RuntimeRequestRecord {
  return {
    id: sampleId("req", name),
    treeId,
    threadId,
    runId: sampleId("run", name),
    callId: "call",
    kind: "question",
    text: "which?",
    status: "pending",
    answer: null,
    createdAt: 1,
    answeredAt: null,
    ...given,
  };
}

export function sampleCommand(
  treeId: TreeId,
  name: string | number,
  given: Partial<CommandRecord> = {},
): CommandRecord {
  return {
    id: sampleId("cmd", name),
    treeId,
    verb: "interrupt",
    arguments: {},
    state: "pending",
    answer: null,
    createdAt: 1,
    doneAt: null,
    ...given,
  };
}
