/**
 * `admission: reject`: permit and slot are reserved before a spawn or follow-up is stored, and released on any failure
 * (SPN-2, EXE-2). What is reserved waits for the commit's wake, which begins the run with it.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { PermitPool } from "../execution/permits.ts";
import { Grant, mayStart, poolOf } from "./dispatch.ts";
import { runningScopesAt } from "./memory-change.ts";
import type { Transaction } from "./transaction.ts";
import type { Candidate, Tree } from "./tree.ts";

/** What is to be admitted, and the budgets on running children at its parent and above. */
export interface Admission {
  readonly threadId: ThreadId;
  readonly scopes: Candidate["runningScopes"];
}

export function admissionOf(tx: Transaction, threadId: ThreadId, parent: ThreadId | null): Admission {
  return { threadId, scopes: runningScopesAt(tx, parent) };
}

/** Joining a run, or one that is about to begin, takes no permit (EXE-1). */
export function joins(tx: Transaction, agent: AgentRecord): boolean {
  return agent.parent === null || agent.currentRun !== null || tx.store.mailbox(agent.threadId).triggers > 0;
}

/**
 * Commits with permit and slot in hand; the wake of that commit begins the run with them.
 * @throws RejectedError `AGENT_LIMIT_REACHED` when no permit or no slot can be had now.
 */
export async function commitAdmitted<T>(
  tree: Tree,
  admission: Admission,
  pump: () => void,
  plan: (tx: Transaction) => { readonly value: T; readonly threadId: ThreadId },
): Promise<T> {
  const grant = await admitNow(tree, admission, pump);
  let used = false;
  try {
    const done = await tree.transact(plan, (value) => {
      tree.granted.set(value.threadId, grant);
      used = true;
    });
    return done.value;
  } finally {
    if (!used) grant[Symbol.dispose]();
    // A wake that never came (the receipt was an old one) leaves nothing behind.
    for (const [id, left] of tree.granted) {
      if (left !== grant) continue;
      tree.granted.delete(id);
      grant[Symbol.dispose]();
    }
  }
}

async function admitNow(tree: Tree, { threadId, scopes }: Admission, pump: () => void): Promise<Grant> {
  const pool = poolOf(tree, scopes);
  // Nobody is overtaken who could go.
  if (tree.lane.some((id) => mayStart(tree, id)) || !pool.available) throw limitReached(tree, pool);
  const slot = await reserveSlot(tree, threadId);
  if (slot === null) throw limitReached(tree, pool);
  // It may have waited for an unload, and nobody holds a permit while waiting for a slot.
  const permit = pool.take();
  if (permit !== null) return new Grant(slot, permit, pump);
  slot[Symbol.dispose]();
  throw limitReached(tree, pool);
}

/** Unloads the least recently used when that makes room; null when nobody may go. */
async function reserveSlot(tree: Tree, threadId: ThreadId) {
  return tree.watchers
    .until(async () => {
      const slot = tree.residency.reserve(threadId);
      if (slot !== null) return { slot };
      return tree.residency.makeRoom(1) > 0 ? undefined : { slot: null };
    })
    .then(({ slot }) => slot);
}

function limitReached(tree: Tree, pool: PermitPool): RejectedError {
  const { limit, inUse } = pool.limit !== null && pool.inUse >= pool.limit ? pool : tree.permits;
  return new RejectedError(
    "AGENT_LIMIT_REACHED",
    `${inUse} agents run and at most ${limit} may; wait for one of them, then ask again.`,
    { limit: "running", value: limit, use: inUse, resident: tree.residency.count },
  );
}
