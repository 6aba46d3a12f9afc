/**
 * The transitions of a run that are not its end: reserved, accepted, stepped, suspended, resumed (RUN-1, RUN-2). Each is
 * one plan over the store; the run loop asks for them through `run-journal`.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { InterruptedError } from "../protocol/errors.ts";
import type { RunId, ThreadId, WorkId } from "../protocol/ids.ts";
import { isSettled, type RunRecord } from "../protocol/run.ts";
import { type ItemBody, openCalls, type TranscriptItem } from "../protocol/transcript.ts";
import { NO_USAGE } from "../protocol/usage.ts";
import type { NextInput } from "../session/ports.ts";
import { isForLater } from "../mailbox/drain.ts";
import { headBytes } from "../platform/text.ts";
import { mergeStartOptions } from "../mailbox/start-options.ts";
import { executionPolicyHash } from "../policy/execution-policy.ts";
import { admitRate } from "../policy/rates.ts";
import { quarantine } from "./quarantine.ts";
import { spentScope } from "./spent-scope.ts";
import { hasToWait } from "./status.ts";
import { chosenProvider } from "./chosen-provider.ts";
import { bindingOf, delegatedFrom, projectPending } from "./thread-context.ts";
import { acceptStart } from "./start-accept.ts";
import type { RunStart } from "./start-run.ts";
import { takeMail } from "./take-mail.ts";
import { type Look, must, type Transaction } from "./transaction.ts";
import { endWork, workOf, worksAskedBy } from "./works.ts";
import { unreadOf } from "./unread.ts";
import { unlessCorrupt } from "../store/corrupt-row.ts";

/** Reserves a run for the trigger-turn mail that is pending; `elsewhere` when that wants another provider than `provider`. */
export function reserveRun(
  tx: Transaction,
  threadId: ThreadId,
  provider: string,
): RunRecord | "rate" | "elsewhere" | null {
  let agent = tx.agent(threadId);
  if (agent.state !== "open" || agent.currentRun !== null || agent.hostDriven) return null;
  if (spentScope(tx.tree().exhausted, agent.path) !== null) return null;
  const rate = admitRate(tx.tree().recentRuns, tx.now, tx.limits.runsPerMinute);
  if (rate.kind === "refused") return "rate";
  endOverservedWorks(tx, agent);
  // Before it is counted what starts the run: what cannot be read starts none, and what stands for it may (MBX-10).
  agent = quarantine(tx, agent);
  const triggers = [...unreadOf(tx.store, threadId)].filter((mail) => mail.trigger);
  if (triggers.length === 0) return null;
  const merged = mergeStartOptions(triggers);
  const chosen = chosenProvider(agent, merged);
  if (chosen.provider !== provider) return "elsewhere";
  agent = projectPending(tx, agent);
  const id = tx.id("run");
  const policy = {
    binding: bindingOf(tx, agent),
    delegatedFrom: delegatedFrom(tx, merged.parentRunId),
  };
  const run: RunRecord = {
    id,
    treeId: tx.treeId,
    threadId,
    ordinal: agent.runs + 1,
    status: "starting",
    reason: null,
    error: null,
    causes: merged.causes,
    woken: merged.causes.every((cause) => cause.workId === null),
    parentRunId: merged.parentRunId,
    rootRunId: merged.rootRunId ?? id,
    ...chosen,
    ...policy,
    policyHash: executionPolicyHash({
      agentPolicy: agent.config.policyHash,
      ...chosen,
      thread: policy.binding,
      delegatedFrom: policy.delegatedFrom,
    }),
    providerThreadId: null,
    nativeTurns: [],
    contextHandoffIds: [],
    pins: agent.thread?.pins ?? [],
    checkpoint: null,
    nextContextRevision: null,
    rolledBack: null,
    history: null,
    reservedSeq: triggers.at(-1)!.seq,
    serves: [],
    chain: 0,
    steps: 0,
    usage: NO_USAGE,
    firstItem: agent.items,
    waitedMs: 0,
    waitingSince: null,
    wrapUpOffered: false,
    text: "",
    reservedAt: tx.now,
    acceptedAt: null,
    completedAt: null,
  };
  tx.store.putRun(run);
  agent = tx.putAgent(agent, {
    currentRun: id,
    runs: run.ordinal,
    lastActiveAt: tx.now,
    ...(run.pins.length === 0 ? {} : { thread: { ...agent.thread!, pins: [] } }),
  });
  tx.putTree({ recentRuns: rate.times });
  tx.emit(
    "run.reserved",
    agent,
    { runId: id },
    { ordinal: run.ordinal, causes: run.causes.map((cause) => cause.mailId) },
  );
  return run;
}

/** A work is served by so many runs at most, then it ends `turn_limit` (BUD-5). */
function endOverservedWorks(tx: Transaction, agent: AgentRecord): void {
  for (const work of tx.store.openWorksOf(agent.threadId)) {
    if (work.runsServed < tx.limits.runsPerWork) continue;
    endWork(tx, work.id, {
      ending: "turn_limit",
      text: "",
      error: { code: "LIMIT_REACHED", message: `served by ${work.runsServed} runs`, status: null },
    });
  }
}

export function currentRun(look: Look, runId: RunId): RunRecord {
  const run = must(look.store.run(runId), "run", runId);
  if (isSettled(run))
    throw new InterruptedError("RUN_INTERRUPTED", `run ${runId} is settled: ${run.status}.`);
  return run;
}

/** The run of a thread that no provider has accepted yet: what it begins with may be on its way (lineage C4.13). */
export function startingRun({ store }: Pick<Look, "store">, threadId: ThreadId): RunId | null {
  const current = store.agent(threadId)?.currentRun ?? null;
  return current !== null && store.run(current)?.acceptedAt === null ? current : null;
}

export type NewItem = ItemBody & { readonly runId: RunId | null; readonly step: number; readonly at: number };

export function appendItems(
  tx: Transaction,
  agent: AgentRecord,
  run: RunRecord | null,
  bodies: readonly ItemBody[],
): { agent: AgentRecord; items: readonly TranscriptItem[] } {
  if (bodies.length === 0) return { agent, items: [] };
  const items = tx.store.appendItems(
    agent.threadId,
    agent.items,
    bodies.map((body) => ({ ...body, runId: run?.id ?? null, step: run?.steps ?? 0, at: tx.now })),
  );
  tx.effects.items.push({ threadId: agent.threadId, items });
  return { agent: tx.putAgent(agent, { items: agent.items + items.length, lastActiveAt: tx.now }), items };
}

export interface Accepted {
  readonly agent: AgentRecord;
  readonly run: RunRecord;
  readonly items: readonly TranscriptItem[];
}

/**
 * The provider has accepted the request that contains this mail: it is `delivered`, its works are served, its transfers
 * consumed (MBX-7, lineage C4.13).
 */
export function acceptRequest(
  tx: Transaction,
  runId: RunId,
  input: NextInput,
  { wrapUp, start }: { readonly wrapUp: boolean; readonly start: RunStart | null },
): Accepted {
  let run = currentRun(tx, runId);
  const first = run.acceptedAt === null;
  const begun = first && start !== null ? acceptStart(tx, run, start) : null;
  const agent = begun?.agent ?? tx.agent(run.threadId);
  run = begun?.run ?? run;
  for (const mail of [...input.mail, ...input.stubs]) run = takeMail(tx, run, mail.id);
  for (const id of input.handed) run = takeMail(tx, run, id);
  run = {
    ...run,
    status: "running",
    acceptedAt: run.acceptedAt ?? tx.now,
    wrapUpOffered: run.wrapUpOffered || wrapUp,
  };
  tx.store.putRun(run);
  const appended = appendItems(tx, agent, run, input.bodies);
  const hint = input.modeHint ?? null;
  const reset = first && (appended.agent.refusals > 0 || hint !== null);
  const next = reset
    ? tx.putAgent(appended.agent, { refusals: 0, sentModeHint: hint ?? appended.agent.sentModeHint })
    : appended.agent;
  if (first) tx.emit("run.accepted", next, { runId }, { works: run.serves });
  return { agent: next, run, items: appended.items };
}

/** What a request had said before it was cut off. */
export function partialItems(run: RunRecord, text: string): ItemBody[] {
  if (text === "") return [];
  return [
    {
      kind: "assistant",
      phase: "partial",
      parts: [{ type: "text", text }],
      model: run.model,
      inherited: false,
    },
  ];
}

/** The transcript of a run; empty where it cannot be read, so that the run still comes to its end (REC-1). */
export function itemsOfRun(tx: Transaction, run: RunRecord): readonly TranscriptItem[] {
  const { items } = tx.agent(run.threadId);
  return unlessCorrupt(() => tx.store.items(run.threadId, run.firstItem, items - run.firstItem), []);
}

/** A request of an accepted run is out, or about to be: nobody will say what it has used once the run is cut off. */
export function requestUnderWay(tx: Transaction, run: RunRecord): boolean {
  if (run.acceptedAt === null) return false;
  // A turn of a provider's own loop goes on while a call of ours is open.
  if (tx.context.loop(run.provider) === "theirs") return true;
  return run.status === "running" && openCalls(itemsOfRun(tx, run)).length === 0;
}

export function textOf(body: Extract<ItemBody, { kind: "assistant" }>): string {
  return body.parts
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("");
}

/** Of what an agent has said at last, in the record of its run, which is written with each of its changes. */
const RUN_TEXT_BYTES = 64 * 1024;

export function shortRunText(text: string): string {
  return headBytes(text, RUN_TEXT_BYTES);
}

/** What the record of a run holds the head of: as it was given, or in the transcript. */
export function wholeText(tx: Transaction, run: RunRecord, given: string): string {
  const text = given || run.text;
  // No text of so few characters was cut off.
  if (text !== run.text || text.length < RUN_TEXT_BYTES / 4) return text;
  const said = itemsOfRun(tx, run).flatMap((item) => (item.kind === "assistant" ? [textOf(item)] : []));
  return said.findLast((one) => one.startsWith(text)) ?? text;
}

/** Only waits or questions are open: the run gives its permit back. False when they have all ended meanwhile. */
export function suspendRun(tx: Transaction, runId: RunId): RunRecord | null {
  const run = currentRun(tx, runId);
  if (!hasToWait(tx.store, run.threadId)) return null;
  const next: RunRecord = { ...run, status: "waiting", waitingSince: tx.now };
  tx.store.putRun(next);
  tx.emit("run.waiting", tx.agent(run.threadId), { runId });
  return next;
}

/** The run gives its permit back without a wait of its own, until the runtime resumes it. */
export function holdRun(tx: Transaction, runId: RunId): RunRecord {
  const next: RunRecord = { ...currentRun(tx, runId), status: "waiting", waitingSince: tx.now };
  tx.store.putRun(next);
  tx.emit("run.waiting", tx.agent(next.threadId), { runId }, { on: "budget" });
  return next;
}

/** The run goes on after its waits; the time in them does not count for its wall clock (RUN-3). */
export function resumeRun(tx: Transaction, runId: RunId): RunRecord {
  const run = currentRun(tx, runId);
  if (run.status !== "waiting") return run;
  const next: RunRecord = {
    ...run,
    status: run.acceptedAt === null ? "starting" : "running",
    waitingSince: null,
    // It comes with its permit, whatever had lent that before.
    ...(run.permitLent === true ? { permitLent: false } : {}),
    waitedMs: run.waitedMs + (tx.now - (run.waitingSince ?? tx.now)),
  };
  tx.store.putRun(next);
  tx.emit("run.resumed", tx.agent(run.threadId), { runId });
  return next;
}

/**
 * Works for which a run was started: those its mail asks for, and the awaiting ones whose results woke it or had joined its
 * request (MBX-15). `seq` is the newest mail that it took in or was reserved for.
 */
export function worksOfStart(tx: Transaction, run: RunRecord, seq: number): readonly WorkId[] {
  const works = new Set<WorkId>();
  for (const mail of unreadOf(tx.store, run.threadId)) {
    if (mail.seq > seq) break;
    if (isForLater(mail, run.reservedSeq)) continue;
    for (const asked of worksAskedBy(tx, mail)) works.add(asked);
    for (const holder of workOf(tx, mail.resultOf)?.holds ?? []) {
      const work = must(tx.store.work(holder), "work", holder);
      if (work.executor === run.threadId && work.state === "awaiting_children") works.add(holder);
    }
  }
  return [...works];
}
