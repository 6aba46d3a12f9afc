/**
 * Permit and slot of a run while a call from outside waits in it (WAI-5). The run is driven meanwhile and is not suspended: its
 * provider stands in that call. What was lent is had back before the call answers (EXE-4).
 *
 * - L1 The slot counts again at once, even over the limit (RES-2); the permit comes back through the queue, ahead of all new.
 * - L2 Where the transport would give up before, or the caller has, the permit is overdrawn: nothing is granted until that is
 *   repaid, and the next that is given back repays it. At most one a run, since a run has one permit.
 * - L3 Calls may wait beside one another. Each has the permit back before it answers; while others wait, it is lent on after.
 */
import type { ThreadId } from "../protocol/ids.ts";
import type { RunRecord } from "../protocol/run.ts";
import { apply, cancel, type Grant, lendSlot, poolOf, reclaimSlot } from "./dispatch.ts";
import type { ActiveRun } from "./active-run.ts";
import type { Tree } from "./tree.ts";

export type RunOf = Pick<RunRecord, "id" | "threadId">;

/** What memory knows of the run; null when it does not go on here. */
export function activeRun(tree: Tree, { id, threadId }: RunOf): ActiveRun | null {
  const active = tree.runs.get(threadId);
  return active?.runId === id ? active : null;
}

/** One of the calls that wait in a run, from when it lends until it wants to answer. */
export interface LentPermit {
  readonly lends: "permit" | "permit and slot";
}

/** In the block of the commit that stores the wait. An approval keeps the slot. Null for a run that is not here. */
export function lend(tree: Tree, run: RunOf, lends: LentPermit["lends"]): LentPermit | null {
  const active = activeRun(tree, run);
  if (active === null) return null;
  const hold: LentPermit = { lends };
  active.holds.add(hold);
  giveUp(tree, run.threadId, active, hold);
  return hold;
}

/** Whether calls wait in it still, for which its permit is lent on. */
export function isLent(tree: Tree, run: RunOf): boolean {
  return (activeRun(tree, run)?.holds.size ?? 0) > 0;
}

function giveUp(tree: Tree, threadId: ThreadId, active: ActiveRun, { lends }: LentPermit): void {
  active.grant?.giveBack();
  if (lends === "permit and slot") lendSlot(tree, threadId);
}

/**
 * Resolves when the run has its permit again, after at most so long, or needs none any more: it is over, or waits itself.
 * @throws the signal's reason; the run goes on, and so the permit is overdrawn.
 */
export async function haveBack(
  tree: Tree,
  run: RunOf,
  hold: LentPermit | null,
  longestMs: number,
  signal: AbortSignal,
): Promise<void> {
  const active = activeRun(tree, run);
  if (active === null || hold === null) return reclaimSlot(tree, run.threadId);
  active.holds.delete(hold);
  active.returning += 1;
  try {
    await permitBack(tree, run, longestMs, signal);
  } finally {
    active.returning -= 1;
    lendOn(tree, run, active);
  }
}

/** What answers has been told; what waits beside it lends the permit on, and nobody who is waited for starves (L3). */
function lendOn(tree: Tree, run: RunOf, active: ActiveRun): void {
  if (active.returning > 0 || tree.runs.get(run.threadId) !== active) return;
  for (const hold of active.holds) giveUp(tree, run.threadId, active, hold);
}

async function permitBack(tree: Tree, run: RunOf, longestMs: number, signal: AbortSignal): Promise<void> {
  reclaimSlot(tree, run.threadId);
  const active = lacking(tree, run);
  if (active === null) return;
  apply(tree, active.candidate, "return", (grant) => takeBack(tree, run, grant));
  const timer = tree.shared.clock.setTimer(Math.max(0, longestMs), () => overdraw(tree, run), {
    keepAlive: true,
  });
  try {
    await tree.watchers.until(async () => (lacking(tree, run) === null ? true : undefined), signal);
  } catch (error) {
    if (signal.aborted) overdraw(tree, run);
    throw error;
  } finally {
    timer.cancel();
  }
}

/** The run, where it is driven and has no permit. Roots take none. */
function lacking(tree: Tree, run: RunOf): ActiveRun | null {
  const active = activeRun(tree, run);
  if (active === null || active.candidate.root || active.grant?.permit !== null) return null;
  const state = tree.sessions.get(run.threadId)?.lifecycle.state;
  // One whose provider has not accepted it yet may call, too.
  return state === "running" || state === "reserved" ? active : null;
}

function takeBack(tree: Tree, run: RunOf, grant: Grant): void {
  const lacks = lacking(tree, run);
  if (lacks !== null) lacks.grant = grant;
  else {
    grant[Symbol.dispose]();
    // It has come to a wait of its own meanwhile, and a return from that found this one in the queue.
    const waits = tree.sessions.get(run.threadId)?.lifecycle.state === "waiting";
    const active = activeRun(tree, run);
    if (active !== null && waits) tree.reactions.resume(tree, active.candidate);
  }
  tree.watchers.changed();
}

function overdraw(tree: Tree, run: RunOf): void {
  const active = lacking(tree, run);
  const grant = active?.grant ?? null;
  if (active === null || grant === null) return;
  cancel(tree, run.threadId);
  grant.permit = poolOf(tree, active.candidate.runningScopes).overdraw();
  tree.watchers.changed();
}
