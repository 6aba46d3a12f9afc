/** What memory does after a commit (`tree-reactions.ts`), each in the commit's synchronous block. */
import type { RunId, ThreadId } from "../protocol/ids.ts";
import { admitRate } from "../policy/rates.ts";
import type { Session } from "../session/session.ts";
import { captureAfter } from "./captures.ts";
import { closeInTime } from "./close-session.ts";
import { apply, cancel, mayStart, reclaimSlot } from "./dispatch.ts";
import { begin, goOn, stop } from "./drive.ts";
import { letGo } from "./let-go.ts";
import { forget } from "./load.ts";
import { reconcile, staleSessions } from "./reconcile.ts";
import { retry, STORE_RETRY_MS } from "./store-retry.ts";
import type { Tree } from "./tree.ts";
import type { Reactions } from "./tree-reactions.ts";
import { watchThreads } from "./thread-watch.ts";
import { endDueWaits } from "./wait-ends.ts";
import { endWorktreeOf } from "./worktrees.ts";

export function createReactions(pump: () => void): Reactions {
  const wake: Reactions["wake"] = (tree, candidate) => {
    const { threadId } = candidate;
    const granted = tree.granted.get(threadId);
    tree.granted.delete(threadId);
    if (granted !== undefined && mayStart(tree, threadId)) return begin(tree, candidate, granted);
    granted?.[Symbol.dispose]();
    apply(tree, candidate, "new", (grant) => begin(tree, candidate, grant));
  };
  return {
    wake,
    resume(tree, candidate) {
      reclaimSlot(tree, candidate.threadId);
      // What it waits for as a new run, its mail, is this run's by now.
      if (tree.lane.isWaiting(candidate.threadId, "new")) cancel(tree, candidate.threadId);
      apply(tree, candidate, "return", (grant) => goOn(tree, candidate, grant));
    },
    stop,
    settled,
    closed,
    deadlines: armDeadline,
    threadWaits: watchThreads,
    drained(tree) {
      tree.residency.shrink();
      pump();
      tree.watchers.changed();
    },
    doubtful,
    rateReached: (tree) => holdForRate(tree, pump),
  };
}

/** A run is over: its permit is given back, its session is idle, or draining when it was cut off. */
function settled(tree: Tree, threadId: ThreadId, runId: RunId): void {
  cancelReturn(tree, threadId);
  reclaimSlot(tree, threadId);
  const session = tree.sessions.get(threadId);
  const active = tree.runs.get(threadId);
  if (active?.runId === runId) tree.runs.delete(threadId);
  tree.held.drop(threadId);
  if (session?.run?.id === runId) {
    session.run = null;
    session.agent = { ...session.agent, openRequests: 0 };
    if (session.lifecycle.can("SETTLE")) session.lifecycle.send("SETTLE");
  }
  // Before the grant is given back: with it the agent's next run could be admitted.
  captureAfter(tree, threadId, runId);
  if (active?.runId === runId) active.grant?.[Symbol.dispose]();
  if (session?.provider.loop === "theirs" && session.agent.parent === null) tree.shared.mirror(threadId);
}

/** A return that waits for its permit has nothing to return to any more. */
function cancelReturn(tree: Tree, threadId: ThreadId): void {
  const state = tree.sessions.get(threadId)?.lifecycle.state;
  if (state === undefined || state === "waiting" || tree.lane.isWaiting(threadId, "return"))
    cancel(tree, threadId);
}

function closed(tree: Tree, threadId: ThreadId): void {
  cancel(tree, threadId);
  const session = tree.sessions.get(threadId);
  if (session === undefined) return endWorktreeOf(tree, threadId);
  const grant = tree.runs.get(threadId)?.grant;
  if (session.lifecycle.can("CLOSE")) session.lifecycle.send("CLOSE");
  forget(tree, threadId);
  grant?.[Symbol.dispose]();
  tree.residency.release(threadId);
  tree.track(closeInTime(tree, session).then(() => endWorktreeOf(tree, threadId)));
}

/** One timer a tree, for the earliest deadline of its open waits. */
function armDeadline(tree: Tree): void {
  void tree
    .read((view) => view.nextDeadline(tree.treeId))
    .then((at) => {
      if (tree.state !== "owned" || tree.deadline?.at === at) return;
      tree.deadline?.timer.cancel();
      tree.deadline = null;
      if (at === null) return;
      const timer = tree.shared.clock.setTimer(
        Math.max(0, at - tree.shared.clock.now()),
        () => {
          tree.deadline = null;
          endDue(tree, at);
        },
        { keepAlive: true },
      );
      tree.deadline = { at, timer };
    })
    .catch((error: unknown) => retry(tree, error, () => armDeadline(tree)));
}

function endDue(tree: Tree, at: number): void {
  if (tree.state !== "owned") return;
  tree
    .transact((tx) => endDueWaits(tx, at))
    .catch((error: unknown) => retry(tree, error, () => endDue(tree, at)));
}

/** Looks once, after a while, however many commits have failed; a look that fails is one more of them. */
function doubtful(tree: Tree): void {
  if (tree.state !== "owned") return;
  tree.doubt ??= tree.shared.clock.setTimer(
    STORE_RETRY_MS,
    () => {
      tree.doubt = null;
      if (tree.state !== "owned") return;
      holdAgainstStore(tree).catch((error: unknown) => {
        tree.shared.logger.warn(
          { treeId: tree.treeId, err: error },
          "memory could not be held against the store",
        );
      });
    },
    { keepAlive: true },
  );
}

async function holdAgainstStore(tree: Tree): Promise<void> {
  let stale: readonly Session[] = [];
  await tree.transact(
    (tx) => reconcile(tx, tree),
    (items) => (stale = staleSessions(tree, items)),
  );
  tree.watchers.lookAgain();
  if (stale.length === 0) return;
  // Who was about to run in one of them is woken by another look.
  for (const { agent } of stale) await letGo(tree, agent.threadId, "its transcript went on without it");
  doubtful(tree);
}

/** Over the runs a minute, wakes and committed works stay queued until the minute allows (BUD-5). */
function holdForRate(tree: Tree, pump: () => void): void {
  if (tree.rateHeld) return;
  tree.rateHeld = true;
  const goOn = (): void => {
    tree.rateHeld = false;
    pump();
  };
  void tree
    .read((view) => admitRate(view.tree(tree.treeId)!.recentRuns, view.now(), tree.limits.runsPerMinute))
    .then((decision) => (decision.kind === "admitted" ? 0 : (decision.retryAfterMs ?? 60_000)))
    .catch((error: unknown) => {
      tree.shared.logger.warn({ treeId: tree.treeId, err: error }, "the rate of runs could not be read");
      return STORE_RETRY_MS;
    })
    .then((wait) => {
      if (tree.state === "owned")
        tree.rateTimer = tree.shared.clock.setTimer(wait, goOn, { keepAlive: true });
    });
}
