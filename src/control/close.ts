/** Closing a subtree, leaves first (INT-7): admission stops, works end `cancelled`, unread mail is dead-lettered. */
import { RejectedError } from "../protocol/errors.ts";
import type { AgentPath } from "../protocol/agent-path.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import type { RunId, ThreadId } from "../protocol/ids.ts";
import { deadLetter } from "./mail-states.ts";
import { type PartialText, stopRun, subtree } from "./interrupt.ts";
import { quarantine } from "./quarantine.ts";
import type { Transaction } from "./transaction.ts";
import { supersedeTransfer } from "./transfer-moves.ts";
import { abortWaitsOf } from "./wait-ends.ts";
import { endWork, resultDelivered, workOf } from "./works.ts";
import { unreadOf } from "./unread.ts";

/** Closes the agents and answers them, leaves first. Closed ones are left out. */
export function close(tx: Transaction, target: AgentRecord, partial: PartialText): AgentRecord[] {
  const agents = subtree(tx, target);
  for (const agent of agents) tx.closing.add(agent.threadId);
  abortWaitsOf(tx, agents);
  return agents.map((agent) => closeOne(tx, target.path, agent, partial(agent.threadId)));
}

/** What it ends wakes nobody at or below `top`; results owed outside wake as they say. */
function closeOne(tx: Transaction, top: AgentPath, target: AgentRecord, partial: string): AgentRecord {
  const agent = tx.agent(target.threadId);
  const run = agent.currentRun === null ? undefined : tx.store.run(agent.currentRun);
  if (run !== undefined) stopRun(tx, agent, run, "closed", partial, top);
  for (const work of tx.store.openWorksOf(agent.threadId)) {
    endWork(tx, work.id, { ending: "cancelled", text: work.servedBy === null ? "" : partial, quiet: top });
  }
  return shut(tx, agent.threadId, run?.id ?? null);
}

/** The rest, once its run and its works have ended: what nobody will read any more, and the state. */
export function shut(tx: Transaction, threadId: ThreadId, runId: RunId | null): AgentRecord {
  const agent = quarantine(tx, tx.agent(threadId));
  for (const mail of unreadOf(tx.store, threadId)) {
    // Passed on already, and there is nobody left: it stays in the tree's inbox.
    if (agent.parent === null && mail.redirectedFrom !== null) {
      if (!tx.inboxed.has(mail.id)) tx.putTree({ inbox: tx.tree().inbox + 1 });
      continue;
    }
    deadLetter(tx, mail, "closed");
    // Nobody is owed it any more: the agent's works, which alone could wait for it, have ended.
    const result = workOf(tx, mail.resultOf);
    if (result !== undefined) resultDelivered(tx, result);
  }
  // No run of it begins any more that could be told any of this. What a fork inherits is what a fork of it begins with, too.
  for (const { id, type } of tx.store.pendingTransfersTo(threadId))
    if (type !== "fork" && type !== "subagent_result") supersedeTransfer(tx, id);
  const closed = tx.putAgent(tx.agent(threadId), { state: "closed" });
  tx.emit("agent.closed", closed, { runId });
  tx.effects.closed.push(threadId);
  tx.effects.wake.delete(threadId);
  tx.effects.resume.delete(threadId);
  return closed;
}

/**
 * The polite close (lineage C3.7): only when nothing is going on. Idempotent.
 * @throws RejectedError `THREAD_BUSY` while a run, an open work or trigger-turn mail is there.
 */
export function closePolitely(tx: Transaction, target: AgentRecord, partial: PartialText): AgentRecord[] {
  for (const agent of subtree(tx, target)) {
    const triggers = tx.store.mailbox(agent.threadId).triggers;
    const open = tx.store.openWorksOf(agent.threadId).length;
    if (agent.currentRun === null && triggers === 0 && open === 0) continue;
    throw new RejectedError(
      "THREAD_BUSY",
      `agent ${agent.path} is busy; wait until it is idle, interrupt it, or close its agent, which cancels its work.`,
      {
        path: agent.path,
        run: agent.currentRun,
        executionId: agent.currentRun,
        openWorks: open,
        triggers,
      },
    );
  }
  return close(tx, target, partial);
}
