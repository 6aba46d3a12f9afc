/**
 * Permit and slot of a run while a call from outside waits in it (WAI-5). The run is driven meanwhile and is not suspended: its
 * provider stands in that call. What was lent is had back before the call answers (EXE-4).
 *
 * - L1 The slot counts again at once, even over the limit (RES-2); the permit comes back through the queue, ahead of all new.
 * - L2 Where the transport would give up before, or the caller has, the permit is overdrawn: nothing is granted until that is
 *   repaid, and the next that is given back repays it. At most one a run, since a run has one permit.
 */
import type { RunRecord } from "../protocol/run.ts";
import { apply, cancel, type Grant, lendSlot, poolOf, reclaimSlot } from "./dispatch.ts";
import type { ActiveRun, Tree } from "./tree.ts";

export type RunOf = Pick<RunRecord, "id" | "threadId">;

/** In the block of the commit that stores the wait. An approval keeps the slot. */
export function lend(tree: Tree, { id, threadId }: RunOf, what: "permit" | "permit and slot"): void {
  const active = tree.runs.get(threadId);
  if (active?.runId !== id) return;
  active.grant?.giveBack();
  if (what === "permit and slot") lendSlot(tree, threadId);
}

/**
 * Resolves when the run has its permit again, after at most so long, or needs none any more: it is over, or waits itself.
 * @throws the signal's reason; the run goes on, and so the permit is overdrawn.
 */
export async function haveBack(
  tree: Tree,
  run: RunOf,
  longestMs: number,
  signal: AbortSignal,
): Promise<void> {
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
function lacking(tree: Tree, { id, threadId }: RunOf): ActiveRun | null {
  const active = tree.runs.get(threadId);
  if (active?.runId !== id || active.candidate.root || active.grant?.permit !== null) return null;
  return tree.sessions.get(threadId)?.lifecycle.state === "running" ? active : null;
}

function takeBack(tree: Tree, run: RunOf, grant: Grant): void {
  const active = tree.runs.get(run.threadId);
  if (active !== undefined && lacking(tree, run) === active) active.grant = grant;
  else {
    grant[Symbol.dispose]();
    // It has come to a wait of its own meanwhile, and a return from that found this one in the queue.
    const waits = tree.sessions.get(run.threadId)?.lifecycle.state === "waiting";
    if (active?.runId === run.id && waits) tree.reactions.resume(tree, active.candidate);
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
