/**
 * Waits of a call that comes from outside of the run it belongs to, by the agent's token: the run loop does not know the call
 * and gives it no output, so the call is held as long as its transport bears, and brings the output itself (WAI-7).
 *
 * - H1 The wait is stored like any other: loops are found, and it ends with its run (WAI-8).
 * - H2 Results that it hands out are `delivered` in the commit that makes the output. One whose answer is lost gets them again
 *   by a wait without the cursor.
 */
import type { RequestId, RunId, WaitId } from "../protocol/ids.ts";
import type { JsonObject } from "../protocol/json.ts";
import { currentRun } from "./runs.ts";
import { takeMail } from "./take-mail.ts";
import { must } from "./transaction.ts";
import type { Tree } from "./tree.ts";
import { endWait } from "./wait-ends.ts";
import { judgeTimeout, resolveWait, type WaitInput } from "./wait-request.ts";
import { type Collected, collectWait, openWait } from "./waits.ts";

export interface Hold {
  readonly signal: AbortSignal;
  /** At most so long is the call held. */
  readonly longestMs: number;
}

/** No call of a transcript: the run loop looks for none of this name. */
const OUTSIDE = "outside";

/** @throws the signal's reason; the wait is over then, and nothing else (WAI-6). */
export async function heldWait(
  tree: Tree,
  runId: RunId,
  input: WaitInput,
  { signal, longestMs }: Hold,
): Promise<Pick<Collected, "output" | "isError">> {
  const { timeoutMs, clampedToMs } = judgeTimeout(tree.limits, input.timeoutMs);
  const cutShort = longestMs < timeoutMs;
  const id = await tree.transact((tx) => {
    const agent = tx.agent(currentRun(tx, runId).threadId);
    const targets = resolveWait(tx.store, tx.treeId, agent, input);
    const timed = { timeoutMs: Math.min(timeoutMs, longestMs), clampedToMs };
    return openWait(tx, runId, { ...targets, ...timed, callId: OUTSIDE, cursor: input.cursor ?? null }).id;
  });
  try {
    await tree.watchers.until(() => isEnded(tree, id), signal);
  } finally {
    if (signal.aborted) await abandon(tree, id);
  }
  signal.throwIfAborted();
  return tree.transact((tx) => {
    const wait = must(tx.store.wait(id), "wait", id);
    const { output, isError, mailIds } = collectWait(tx, wait);
    let run = currentRun(tx, runId);
    for (const mailId of mailIds) run = takeMail(tx, run, mailId);
    tx.store.putRun(run);
    if (!cutShort || wait.end !== "timed_out" || !tx.profile.richWait) return { output, isError };
    return { output: { ...(output as JsonObject), ended_by: "cut_short", timed_out: false }, isError };
  });
}

/** Until a request is answered, or the time is over. */
export async function heldApproval(tree: Tree, id: RequestId, hold: Hold): Promise<void> {
  const timeout = new AbortController();
  const timer = tree.shared.clock.setTimer(hold.longestMs, () => timeout.abort(), { keepAlive: true });
  try {
    await tree.watchers.until(
      () => tree.read((view) => (view.request(id)?.status === "pending" ? undefined : true)),
      AbortSignal.any([hold.signal, timeout.signal]),
    );
  } catch (error) {
    if (!timeout.signal.aborted || hold.signal.aborted) throw error;
  } finally {
    timer.cancel();
  }
}

function isEnded(tree: Tree, id: WaitId): Promise<true | undefined> {
  return tree.read((view) => ((view.wait(id)?.end ?? null) === null ? undefined : true));
}

async function abandon(tree: Tree, id: WaitId): Promise<void> {
  await tree.transact((tx) => {
    const wait = must(tx.store.wait(id), "wait", id);
    if (wait.end === null) endWait(tx, wait, "aborted");
  });
}
