/**
 * What memory has to know of a plan once it is durable, read back inside the plan: mailboxes of those that have mail, and who
 * wants to run with all that its admission needs.
 */
import type { AgentRecord, TreeRecord } from "../protocol/agent.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { Mailbox } from "../protocol/mail.ts";
import { lineOf } from "./family.ts";
import { spentScope } from "./spent-scope.ts";
import type { Transaction } from "./transaction.ts";
import type { Candidate } from "./tree.ts";

/** What a plan has changed, read back inside it. */
export interface MemoryChange {
  readonly mailboxes: readonly (readonly [ThreadId, Mailbox])[];
  readonly wake: readonly Candidate[];
  readonly resume: readonly Candidate[];
  /** Agents whose last pending work has ended before it had a run, or that are in a scope whose budget is spent. */
  readonly unqueued: readonly ThreadId[];
  readonly bounds: Pick<TreeRecord, "limits" | "exhausted"> | null;
}

export function memoryChange(tx: Transaction): MemoryChange {
  const { effects } = tx;
  const isSpent = ({ path }: AgentRecord): boolean => spentScope(tx.tree().exhausted, path) !== null;
  return {
    mailboxes: [...effects.mail].map((id) => [id, tx.store.mailbox(id)] as const),
    // Nobody is woken where nothing may start; whoever raises the budget wakes them.
    wake: [...effects.wake].flatMap((id) => (isSpent(tx.agent(id)) ? [] : (candidate(tx, id) ?? []))),
    resume: [...effects.resume].flatMap((id) => candidate(tx, id) ?? []),
    unqueued: [...effects.worksEnded.values()].flatMap((executor) => {
      const agent = tx.agent(executor);
      const starts = tx.store.mailbox(executor).triggers > 0 && !isSpent(agent);
      return agent.currentRun === null && !starts ? [executor] : [];
    }),
    bounds: tx.boundsChanged ? tx.tree() : null,
  };
}

function candidate(tx: Transaction, threadId: ThreadId): Candidate | null {
  const agent = tx.agent(threadId);
  if (agent.state !== "open" || agent.hostDriven) return null;
  const runningScopes = runningScopesAt(tx, agent.parent);
  return { threadId, path: agent.path, root: agent.parent === null, runningScopes };
}

/** Subtree budgets on running children that an agent and those above it carry, nearest first. */
export function runningScopesAt(tx: Transaction, from: ThreadId | null): Candidate["runningScopes"] {
  const scopes: Candidate["runningScopes"][number][] = [];
  if (from === null) return scopes;
  for (const agent of lineOf(tx.store, tx.agent(from))) {
    const limit = agent.config.budgets.running;
    if (typeof limit === "number") scopes.push({ path: agent.path, limit });
  }
  return scopes;
}
