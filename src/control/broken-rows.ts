/**
 * Stored rows that cannot be read, of agents, works, runs, waits, questions and commands (REC-1). The store keeps each aside
 * as it is, a record that says only what is still known stands in for it, and what followed from it is brought to an end: so
 * one broken row costs an agent at most, never its tree.
 *
 * - B1 A row is looked for by nobody: whoever needs it fails with `STORE_CORRUPT`, it is mended, and he is asked again.
 * - B2 All stand-ins are put before anything else is read, because one broken row may need what another one told. They are
 *   put and ended in the order of `MENDABLE`: what stands behind reads what stands before.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { CommandId, RequestId, RunId, ThreadId, WaitId, WorkId } from "../protocol/ids.ts";
import type { Json } from "../protocol/json.ts";
import { isSettled } from "../protocol/run.ts";
import { openCalls } from "../protocol/transcript.ts";
import { isCorrupt } from "../store/corrupt-row.ts";
import type { BrokenRow, MendableTable } from "../store/port.ts";
import { agentStandIn } from "./broken-agents.ts";
import { runStandIn } from "./broken-runs.ts";
import { workStandIn } from "./broken-works.ts";
import { itemsOf, type Log, logOf, type StandIn, NOTHING, tellAside } from "./stand-in.ts";
import type { Transaction } from "./transaction.ts";
import { resumeWhenFree } from "./wait-ends.ts";

/** Names a row of which `mend` may know what to put in its place. */
export interface RowName {
  readonly table: MendableTable;
  readonly id: string;
}

const MENDABLE: readonly MendableTable[] = ["agents", "works", "runs", "waits", "requests", "commands"];

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

/** @throws `failure` where one of the rows is not this tree's, or is its root: nothing is known that could stand for that. */
export function mend(tx: Transaction, rows: readonly RowName[], failure: unknown): void {
  const log = logOf(tx, new Set(rows.map(({ id }) => id)));
  const ordered = MENDABLE.flatMap((table) => rows.filter((row) => row.table === table));
  const standIns = ordered.map((name) => standIn(tx, name, log));
  if (standIns.includes(null)) throw failure;
  for (const one of standIns.toSorted(byDepth)) one!.complete();
  for (const one of standIns) one!.end();
}

/** Agents from the top, then all else as it stands. */
function byDepth(a: StandIn | null, b: StandIn | null): number {
  return (a?.depth ?? Number.MAX_VALUE) - (b?.depth ?? Number.MAX_VALUE);
}

function standIn(tx: Transaction, { table, id }: RowName, log: Log): StandIn | null {
  const row = tx.store.setAside(table, id);
  // It can be read by now: somebody else has mended it.
  if (row === undefined) return NOTHING;
  if (row.table === "agents") return agentStandIn(tx, id as ThreadId, row.agent, log);
  const agent = tx.store.agent(row.threadId);
  if (agent?.treeId !== tx.treeId) return null;
  tellAside(tx, agent, table, id, row.open);
  switch (row.table) {
    case "works":
      return workStandIn(tx, agent, id as WorkId, row, log);
    case "runs":
      return runStandIn(tx, agent, id as RunId, row.open);
    case "waits":
      return waitStandIn(tx, id as WaitId, row);
    case "requests":
      return requestStandIn(tx, agent, { id: id as RequestId, open: row.open }, log);
    case "commands":
      return commandStandIn(tx, id as CommandId);
  }
}

function waitStandIn(
  tx: Transaction,
  id: WaitId,
  { threadId, runId, open }: Extract<BrokenRow, { table: "waits" }>,
): StandIn {
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
      tx.effects.answered.add(threadId);
      resumeWhenFree(tx, threadId, runId);
    },
  };
}

function requestStandIn(
  tx: Transaction,
  agent: AgentRecord,
  { id, open }: { readonly id: RequestId; readonly open: boolean },
  log: Log,
): StandIn | null {
  const { threadId } = agent;
  const asked = itemsOf(tx, agent).flatMap((item) =>
    item.kind !== "assistant"
      ? []
      : item.parts.flatMap((part) =>
          part.type === "request" && part.requestId === id ? [{ part, item }] : [],
        ),
  )[0];
  // An approval of a call of ours has no part in the transcript: only the log tells of it.
  const opened = asked === undefined ? log(id).find(({ type }) => type === "request.opened") : undefined;
  const runId =
    asked?.item.runId ?? opened?.runId ?? agent.currentRun ?? tx.store.runAt(threadId, agent.runs)?.id;
  if (runId === undefined) return null;
  tx.store.putRequest({
    id,
    treeId: tx.treeId,
    threadId,
    runId,
    callId: asked?.part.callId ?? "",
    kind: asked?.part.kind ?? "approval",
    text: asked?.part.text ?? "",
    status: "cancelled",
    answer: "(cancelled: the stored question cannot be read; ask it again where it still matters)",
    createdAt: asked?.item.at ?? opened?.at ?? tx.now,
    answeredAt: tx.now,
  });
  return {
    complete: () => undefined,
    end() {
      if (!open) return;
      const now = tx.agent(threadId);
      tx.putAgent(now, { openRequests: Math.max(0, now.openRequests - 1) });
      tx.emit("request.closed", now, { runId }, { requestId: id, status: "cancelled" });
      tx.effects.answered.add(threadId);
      resumeWhenFree(tx, threadId, runId);
    },
  };
}

/** What was asked is not known any more; whoever waits for the answer is told so. */
function commandStandIn(tx: Transaction, id: CommandId): StandIn {
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
