/**
 * Workspace checkpoints of runs that were rolled back for good (lineage C1.18, C9.3): a run has begun since, so that nothing brings
 * them back. Their references are removed, in the thread's place among what is done in its workspace; what their runs have changed
 * stays told.
 *
 * - P1 One that was written back, or begun to be, stays: what stood there before is kept with it.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import type { RunId, ThreadId } from "../protocol/ids.ts";
import { without } from "../protocol/ordinals.ts";
import { undoableRollback } from "../lineage/rollback-target.ts";
import type { Missing } from "../platform/workspace/port.ts";
import type { StoreView } from "../store/port.ts";
import type { Transaction } from "./transaction.ts";
import type { Tree } from "./tree.ts";

interface Stale {
  readonly runId: RunId;
  readonly ref: string;
}

/** `remove` keeps to its time: the thread's next run waits for this. */
export async function pruneStale(
  tree: Tree,
  threadId: ThreadId,
  remove: (folder: string, ref: string) => Promise<{ readonly status: "ready" } | Missing>,
): Promise<void> {
  const { folder, stale } = await tree.read((view) => staleOf(view, view.agent(threadId)!));
  if (folder === null) return;
  for (const { runId, ref } of stale) {
    const gone = await remove(folder, ref);
    if (gone.status === "ready") await tree.transact((tx) => noteGone(tx, runId));
    else {
      tree.shared.logger.warn({ threadId, ref, reason: gone.reason }, "a checkpoint was not removed");
      // Neither will the others be, for now; the next run has another look.
      return;
    }
  }
}

function staleOf(view: StoreView, agent: AgentRecord): { folder: string | null; stale: readonly Stale[] } {
  const { threadId, thread, runs } = agent;
  const stale: Stale[] = [];
  const undoable = thread === null ? null : undoableRollback(thread, runs);
  for (const [from, to] of without(thread?.rolledBack ?? [], undoable?.runs ?? [])) {
    for (let ordinal = from; ordinal <= to; ordinal += 1) {
      const run = view.runAt(threadId, ordinal);
      const workspace = run?.checkpoint?.workspace;
      if (workspace?.status !== "ready" || workspace.gone === true || workspace.written === true) continue;
      stale.push({ runId: run!.id, ref: workspace.ref });
    }
  }
  return { folder: agent.config.workspace, stale };
}

function noteGone(tx: Transaction, id: RunId): void {
  const run = tx.store.run(id);
  if (run?.checkpoint?.workspace.status !== "ready") return;
  const workspace = { ...run.checkpoint.workspace, gone: true };
  tx.store.putRun({ ...run, checkpoint: { ...run.checkpoint, workspace } });
}
