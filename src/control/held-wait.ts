/**
 * Waits of a call that comes from outside of the run it belongs to, by the agent's token: the run loop does not know the call
 * and gives it no output, so the call is held as long as its transport bears, and brings the output itself (WAI-7).
 *
 * - H1 The wait is stored like any other: loops are found, and it ends with its run (WAI-8).
 * - H2 Results that it hands out are `delivered` in the commit that makes the output. One whose answer is lost gets them again
 *   by a wait without the cursor.
 * - H3 While it lasts the run has neither permit nor slot, and it answers only when the permit is back (WAI-5, EXE-4).
 */
import type { AgentRecord } from "../protocol/agent.ts";
import type { RequestId, RunId, WaitId } from "../protocol/ids.ts";
import type { JsonObject } from "../protocol/json.ts";
import { isSettled } from "../protocol/run.ts";
import { OUTSIDE_CALL } from "../protocol/wait.ts";
import { activeRun, haveBack, isLent, lend, type LentPermit, type RunOf } from "./lent-permit.ts";
import { currentRun } from "./runs.ts";
import { takeMail } from "./take-mail.ts";
import { must, type Transaction } from "./transaction.ts";
import { retry } from "./store-retry.ts";
import type { ThreadWait } from "./thread-wait.ts";
import type { Tree } from "./tree.ts";
import { endWait } from "./wait-ends.ts";
import { waitsOf } from "./watchers.ts";
import { judgeTimeout, resolveWait, type WaitInput } from "./wait-request.ts";
import { type Collected, collectWait, openWait, type WaitRequest } from "./waits.ts";

export interface Hold {
  readonly signal: AbortSignal;
  /** At most so long is the call held. */
  readonly longestMs: number;
}

type Output = Pick<Collected, "output" | "isError">;
type Asked = (tx: Transaction, agent: AgentRecord) => Omit<WaitRequest, "callId">;

/** @throws the signal's reason; the wait is over then, and nothing else (WAI-6). */
export function heldWait(tree: Tree, runId: RunId, input: WaitInput, hold: Hold): Promise<Output> {
  const timed = judgeTimeout(tree.limits, input.timeoutMs);
  return held(tree, runId, hold, (tx, agent) => ({
    ...resolveWait(tx.store, tx.treeId, agent, input),
    ...timed,
    cursor: input.cursor ?? null,
  }));
}

/** Of a run, for threads of other trees (XTR-4). @throws as `heldWait`. */
export function heldThreadWait(tree: Tree, runId: RunId, wait: ThreadWait, hold: Hold): Promise<Output> {
  return held(tree, runId, hold, () => ({ ...wait, works: [], agents: [], need: 0, clampedToMs: null }));
}

async function held(tree: Tree, runId: RunId, hold: Hold, asked: Asked): Promise<Output> {
  const { signal, longestMs } = hold;
  const left = countdown(tree, longestMs);
  let lent: LentPermit | null = null;
  const { id, run, cutShort } = await tree.transact(
    (tx) => {
      const { threadId } = currentRun(tx, runId);
      const request = asked(tx, tx.agent(threadId));
      const timeoutMs = Math.min(request.timeoutMs, longestMs);
      const { id, end } = openWait(tx, runId, { ...request, timeoutMs, callId: OUTSIDE_CALL });
      if (end === null) markLent(tx, runId, true);
      return { id, end, run: { id: runId, threadId }, cutShort: timeoutMs < request.timeoutMs };
    },
    (opened) => {
      if (opened.end === null) lent = lend(tree, opened.run, "permit and slot");
    },
  );
  try {
    await whileLent(tree, run, lent, left, signal, async () => {
      await tree.watchers.until(() => isEnded(tree, id), signal, [waitsOf(run.threadId)]);
    });
    signal.throwIfAborted();
    return await tree.transact(collected);
  } catch (error) {
    // Whatever was in the way: nobody waits any more, and the run says so no longer.
    await over(tree, run, id);
    throw error;
  }

  function collected(tx: Transaction): Output {
    const wait = must(tx.store.wait(id), "wait", id);
    const { output, isError, mailIds } = collectWait(tx, wait);
    let now = currentRun(tx, runId);
    for (const mailId of mailIds) now = takeMail(tx, now, mailId);
    tx.store.putRun({ ...now, permitLent: isLent(tree, run) });
    const told = wait.threads !== undefined || tx.profile.richWait;
    if (!cutShort || wait.end !== "timed_out" || !told) return { output, isError };
    return { output: { ...(output as JsonObject), ended_by: "cut_short", timed_out: false }, isError };
  }
}

/** Until a request is answered, or the time is over. Its run lends its permit meanwhile, and not its slot. */
export async function heldApproval(tree: Tree, id: RequestId, { signal, longestMs }: Hold): Promise<void> {
  const left = countdown(tree, longestMs);
  const { runId, threadId } = await tree.read((view) => must(view.request(id), "request", id));
  const run = { id: runId, threadId };
  const isPending = (): Promise<boolean> => tree.read((view) => view.request(id)?.status === "pending");
  let lent: LentPermit | null = null;
  const waits = await tree.transact(
    (tx) => {
      if (tx.store.request(id)?.status !== "pending") return false;
      markLent(tx, runId, true);
      return true;
    },
    (pending) => {
      if (pending) lent = lend(tree, run, "permit");
    },
  );
  if (!waits) return;
  try {
    await whileLent(tree, run, lent, left, signal, () => answered());
  } finally {
    await over(tree, run, null);
  }

  async function answered(): Promise<void> {
    const timeout = new AbortController();
    const timer = tree.shared.clock.setTimer(left(), () => timeout.abort(), { keepAlive: true });
    try {
      await tree.watchers.until(
        async () => ((await isPending()) ? undefined : true),
        AbortSignal.any([signal, timeout.signal]),
        [waitsOf(threadId)],
      );
    } catch (error) {
      if (!timeout.signal.aborted || signal.aborted) throw error;
    } finally {
      timer.cancel();
    }
  }
}

/** The store says it, too, for whoever looks at the tree from another process. */
function markLent(tx: Transaction, runId: RunId, permitLent: boolean): void {
  const run = must(tx.store.run(runId), "run", runId);
  if (!isSettled(run)) tx.store.putRun({ ...run, permitLent });
}

/** However it ends, the run goes on, and with its permit; whoever has gone does not wait for that. */
async function whileLent(
  tree: Tree,
  run: RunOf,
  lent: LentPermit | null,
  left: () => number,
  signal: AbortSignal,
  wait: () => Promise<void>,
): Promise<void> {
  const waited = async (): Promise<void> => {
    try {
      await wait();
    } finally {
      await haveBack(tree, run, lent, left(), signal);
    }
  };
  const clock = activeRun(tree, run)?.clock ?? null;
  // Nor does it count for the run's wall clock (RUN-3).
  await (clock === null ? waited() : clock.stoppedDuring(waited));
}

/** What is left of the time that a transport bears. */
function countdown({ shared: { clock } }: Tree, ms: number): () => number {
  const until = clock.monotonic() + ms;
  return () => until - clock.monotonic();
}

function isEnded(tree: Tree, id: WaitId): Promise<true | undefined> {
  return tree.read((view) => ((view.wait(id)?.end ?? null) === null ? undefined : true));
}

/** A call waits no longer: its run says so, and its wait ends, where it is not over. It is done again until the store does it. */
async function over(tree: Tree, run: RunOf, id: WaitId | null): Promise<void> {
  try {
    await tree.transact((tx) => {
      markLent(tx, run.id, isLent(tree, run));
      const wait = id === null ? null : must(tx.store.wait(id), "wait", id);
      if (wait?.end === null) endWait(tx, wait, "aborted");
    });
  } catch (error) {
    retry(tree, error, () => void over(tree, run, id));
  }
}
