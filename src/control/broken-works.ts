/**
 * Works whose stored row cannot be read (REC-1). Who asked whom stands in columns, how far it came in the log of the tree:
 * one that has ended stays as it ended, an open one ends `failed`, with one result to whoever asked.
 *
 * - X1 The stand-in counts under its parents as its row did (WRK-4): what it holds is known before anything is ended.
 */
import type { AgentPath } from "../protocol/agent-path.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import type { RuntimeEvent } from "../protocol/events.ts";
import type { MailId, RunId, ThreadId, WorkId } from "../protocol/ids.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { MailRecord } from "../protocol/mail.ts";
import type { RunRecord } from "../protocol/run.ts";
import { addUsage, NO_USAGE } from "../protocol/usage.ts";
import type { ReplyTo, Requester, WorkEnding, WorkOutcome, WorkRecord } from "../protocol/work.ts";
import { headBytes } from "../platform/text.ts";
import { unlessCorrupt } from "../store/corrupt-row.ts";
import type { BrokenRow } from "../store/port.ts";
import { type Log, type StandIn, unreadableRecord } from "./stand-in.ts";
import { wholeText } from "./runs.ts";
import { must, type Transaction } from "./transaction.ts";
import { endWork } from "./works.ts";

const ERROR = unreadableRecord("work");

export function workStandIn(
  tx: Transaction,
  executor: AgentRecord,
  id: WorkId,
  { open, work: columns }: Extract<BrokenRow, { table: "works" }>,
  log: Log,
): StandIn {
  const { requester, parents, begunAt } = columns;
  const told = toldBy(log(id));
  const request = told.requestMailId === null ? undefined : tx.store.mail(told.requestMailId);
  const result = told.resultMailId === null ? undefined : tx.store.mail(told.resultMailId);
  const asker = requesterOf(tx, requester, told);
  const record: WorkRecord = {
    id,
    treeId: tx.treeId,
    requester: asker,
    executor: executor.threadId,
    executorPath: executor.path,
    parents,
    detached: told.detached,
    holds: told.detached ? [] : parents.filter((parent) => !told.detachedFrom.has(parent)),
    originRunId: told.originRunId,
    rootRunId: request?.start?.rootRunId ?? null,
    replyTo: replyToOf(tx, asker, told),
    wake: tx.profile.defaultWake,
    objective: headBytes(request?.content.text ?? "", tx.limits.artifactHeadBytes),
    outputSchema: null,
    acceptance: null,
    artifacts: result?.content.artifact ? [result.content.artifact.id] : [],
    requestMailId: told.requestMailId ?? "msg_unreadable",
    retryMailId: null,
    resultMailId: told.resultMailId,
    resultPending: !open && isPending(tx, told, result),
    resultTransferId: null,
    chain: 1,
    state: open ? told.state : "ended",
    servedBy: open ? told.servedBy : null,
    openUnder: 0,
    runsServed: told.servedRuns.length,
    servedRuns: told.servedRuns,
    lostRuns: told.lostRuns,
    voids: 0,
    schemaRepairs: 0,
    usage: NO_USAGE,
    text: "",
    outcome: null,
    trace: null,
    createdAt: told.createdAt ?? request?.createdAt ?? tx.now,
    begunAt: begunAt ?? told.begunAt,
  };
  tx.store.putWork(record);
  return {
    complete() {
      const runs = told.servedRuns.map((run) => must(tx.store.run(run), "run", run));
      const origin = told.originRunId === null ? undefined : tx.store.run(told.originRunId);
      const usage = runs.reduce((sum, run) => addUsage(sum, run.usage), NO_USAGE);
      const holds = letGoByParents(tx, record);
      tx.store.putWork({
        ...record,
        holds,
        chain: 1 + (origin?.chain ?? 0),
        usage,
        openUnder: open ? heldUnder(tx, id) : 0,
        resultTransferId: unlessCorrupt(
          () => tx.store.transferOfWork(id, "subagent_result")?.id ?? null,
          null,
        ),
        outcome: open ? null : outcomeOf(tx, told, result, runs, usage),
      });
    },
    end() {
      if (open) endWork(tx, id, { ending: "failed", text: "", error: ERROR, runId: told.servedBy });
    },
  };
}

/** How far a work came, as the events say that were stored with each of its changes. */
interface Told {
  readonly requester: string | null;
  /** Where the result goes when it does not go to whoever asked. */
  readonly replyTo: AgentPath | null;
  readonly detached: boolean;
  readonly detachedFrom: ReadonlySet<string>;
  readonly originRunId: RunId | null;
  readonly requestMailId: MailId | null;
  readonly resultMailId: MailId | null;
  /** Nobody lives who could take the result: it is in the tree's inbox. */
  readonly inboxed: boolean;
  readonly state: WorkRecord["state"];
  readonly servedBy: RunId | null;
  readonly servedRuns: readonly RunId[];
  readonly lostRuns: number;
  readonly createdAt: number | null;
  readonly begunAt: number | null;
  readonly ended: RuntimeEvent | null;
  readonly lastAt: number | null;
}

function toldBy(events: readonly RuntimeEvent[]): Told {
  const last = (type: RuntimeEvent["type"]): RuntimeEvent | undefined =>
    events.findLast((event) => event.type === type);
  const queued = last("work.queued");
  const started = events.filter(({ type }) => type === "work.started");
  const turn = events.findLast(({ type }) => Object.hasOwn(STATES, type));
  const state = STATES[turn?.type ?? "work.queued"] ?? "queued";
  const letters = events.filter(({ type }) => type === "mail.accepted");
  const isRequest = ({ data }: RuntimeEvent): boolean =>
    data["kind"] === "new_task" || data["kind"] === "user";
  const mailId = (event: RuntimeEvent | undefined): MailId | null =>
    (event?.data["mailId"] as MailId | undefined) ?? null;
  const redirected = last("mail.redirected");
  return {
    requester: textIn(queued?.data, "requester"),
    replyTo: textIn(queued?.data, "replyTo") as AgentPath | null,
    detached: queued?.data["detached"] === true,
    detachedFrom: new Set(
      events.flatMap(({ type, data }) => (type === "work.detached" ? [textIn(data, "from") ?? ""] : [])),
    ),
    originRunId: queued?.runId ?? null,
    requestMailId: mailId(letters.find(isRequest)),
    resultMailId: mailId(letters.findLast((letter) => !isRequest(letter)) ?? redirected),
    inboxed: redirected?.data["to"] === "inbox",
    state,
    servedBy: state === "running" ? (started.at(-1)?.runId ?? null) : null,
    servedRuns: started.map(({ runId }) => runId!),
    lostRuns: numberIn(last("run.retrying")?.data, "lostRuns") ?? 0,
    createdAt: queued?.at ?? null,
    begunAt: started[0]?.at ?? null,
    ended: last("work.ended") ?? null,
    lastAt: events.at(-1)?.at ?? null,
  };
}

const STATES: Readonly<Partial<Record<RuntimeEvent["type"], WorkRecord["state"]>>> = {
  "work.queued": "queued",
  "work.started": "running",
  "work.awaiting": "awaiting_children",
  "run.retrying": "queued",
};

function textIn(data: JsonObject | undefined, key: string): string | null {
  const value = data?.[key];
  return typeof value === "string" ? value : null;
}

function numberIn(data: JsonObject | undefined, key: string): number | null {
  const value = data?.[key];
  return typeof value === "number" ? value : null;
}

function requesterOf(tx: Transaction, threadId: ThreadId | null, { requester }: Told): Requester {
  if (threadId !== null)
    return { kind: "agent", threadId, path: must(tx.store.agent(threadId), "agent", threadId).path };
  return { kind: "user", name: requester === "cli" || requester === "library" ? requester : "user" };
}

function replyToOf(tx: Transaction, requester: Requester, { replyTo }: Told): ReplyTo {
  const other = replyTo === null ? undefined : tx.store.agentAt(tx.treeId, replyTo);
  if (other !== undefined) return { kind: "agent", threadId: other.threadId, path: other.path };
  return requester.kind === "agent" ? requester : null;
}

/** On its way to an agent, or lost on it without a notice that says so. */
function isPending(
  tx: Transaction,
  { resultMailId, inboxed }: Told,
  result: MailRecord | undefined,
): boolean {
  if (resultMailId === null || inboxed) return false;
  return result === undefined || result.state === "accepted";
}

/** A parent that has ended since could not let go of what it could not read. */
function letGoByParents(tx: Transaction, { holds }: WorkRecord): readonly WorkId[] {
  return holds.filter((id) => {
    const parent = must(tx.store.work(id), "work", id);
    if (parent.state !== "ended") return true;
    if (parent.openUnder > 0) tx.store.putWork({ ...parent, openUnder: parent.openUnder - 1 });
    return false;
  });
}

function heldUnder(tx: Transaction, id: WorkId): number {
  return tx.store
    .worksUnder(id)
    .filter((work) => work.holds.includes(id) && (work.state !== "ended" || work.resultPending)).length;
}

function outcomeOf(
  tx: Transaction,
  { ended, lastAt }: Told,
  result: MailRecord | undefined,
  runs: readonly RunRecord[],
  usage: WorkRecord["usage"],
): WorkOutcome {
  const ending = (textIn(ended?.data, "ending") as WorkEnding | null) ?? "failed";
  const run = runs.find(({ id }) => id === ended?.runId);
  const said = run === undefined ? "" : wholeText(tx, run, "");
  const sent = ending === "completed" ? result : undefined;
  return {
    ending,
    text: sent?.content.text ?? said,
    artifactId: result?.content.artifact?.id ?? null,
    value: null,
    error: ended === null ? ERROR : ((ended.data["error"] as WorkOutcome["error"] | undefined) ?? null),
    shared: ended?.data["shared"] === true,
    salvage: null,
    usage: { own: usage, subtree: { ...usage, complete: false } },
    runId: ended?.runId ?? null,
    endedAt: ended?.at ?? lastAt ?? tx.now,
  };
}
