/** Waits for threads of other trees as they begin: of a run, stored; of a host-driven root, within its call (XTR-4). */
import type { RunId, ThreadId, WaitId } from "../protocol/ids.ts";
import type { JsonObject } from "../protocol/json.ts";
import { delay } from "../platform/clock.ts";
import type { StoreView } from "../store/port.ts";
import { showThreads, threadsHaveNews } from "./thread-glance.ts";
import type { Tree } from "./tree.ts";
import { openWait } from "./waits.ts";

export interface ThreadWait {
  readonly threads: readonly ThreadId[];
  readonly timeoutMs: number;
  readonly cursor: string | null;
}

/** The call's output comes from the run loop when the wait has ended. */
export function waitForThreads(
  tree: Tree,
  { runId, callId }: { readonly runId: RunId; readonly callId: string },
  wait: ThreadWait,
): Promise<WaitId> {
  return tree.transact(
    (tx) => openWait(tx, runId, { ...wait, callId, works: [], agents: [], need: 0, clampedToMs: null }).id,
  );
}

/** How the threads stand now. */
export function showNow(tree: Tree, reader: ThreadId, wait: ThreadWait): Promise<JsonObject> {
  return tree.read((view) => shown(view, tree, reader, wait, "snapshot"));
}

export async function hostThreadWait(
  tree: Tree,
  reader: ThreadId,
  wait: ThreadWait,
  { signal, longestWaitMs }: { readonly signal: AbortSignal; readonly longestWaitMs: number | null },
): Promise<JsonObject> {
  const { clock } = tree.shared;
  const until = clock.monotonic() + Math.min(wait.timeoutMs, longestWaitMs ?? wait.timeoutMs);
  const cutShort = longestWaitMs !== null && longestWaitMs < wait.timeoutMs;
  for (;;) {
    tree.requireOwned();
    const left = until - clock.monotonic();
    const output = await tree.read((view) => {
      if (threadsHaveNews(view, wait)) return shown(view, tree, reader, wait, "settled");
      return left > 0 ? null : shown(view, tree, reader, wait, cutShort ? "cut_short" : "timed_out");
    });
    if (output !== null) return output;
    await delay(clock, Math.min(left, tree.limits.pollMs), signal);
  }
}

function shown(
  view: StoreView,
  { redact }: Tree,
  reader: ThreadId,
  { threads, cursor }: ThreadWait,
  endedBy: string,
): JsonObject {
  const to = { reader: view.agent(reader)!, redact };
  return {
    ended_by: endedBy,
    timed_out: endedBy === "timed_out",
    ...showThreads(view, threads, cursor, to),
  };
}
