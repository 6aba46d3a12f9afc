/**
 * Checkpoints of workspaces (lineage C1.18): taken after a run has settled, outside of its commit, and noted at the run in
 * a small commit of its own.
 *
 * - K1 A checkpoint never changes how a run has ended. What could not be captured is `missing`, with its reason; where
 *   nothing can be captured at all (no git, no repository) the checkpoint is of the context alone and says so.
 * - K2 An archived thread keeps none, also where it was archived while one was taken.
 * - K3 The note is taken while the lease is held, so also while the tree is being given back.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { describeError } from "../protocol/errors.ts";
import type { RunId, ThreadId } from "../protocol/ids.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { CheckpointRecord } from "../protocol/snapshot.ts";
import { delay } from "../platform/clock.ts";
import type { Missing, Within } from "../platform/workspace/port.ts";
import type { StoreTx, StoreView } from "../store/port.ts";
import { pruneStale } from "./stale-checkpoints.ts";
import type { PlanContext } from "./transaction.ts";
import type { Tree } from "./tree.ts";

type State = CheckpointRecord["workspace"];

/** What is known of the workspace at the settle of a run. */
export function workspaceAtSettle(context: PlanContext, agent: AgentRecord, run: RunRecord): State {
  // A run that was never accepted has done nothing.
  const captured = context.workspaces.capture !== null && agent.config.workspace !== null;
  return captured && run.acceptedAt !== null
    ? { status: "missing", reason: "it is not captured yet" }
    : { status: "none" };
}

/** Captures the state that a run has left, if that is wanted. */
export function captureAfter(tree: Tree, threadId: ThreadId, runId: RunId): void {
  if (tree.shared.workspaces.capture === null) return;
  tree.jobs.add(threadId, async (signal) => {
    try {
      await capture(tree, runId, signal);
      if (tree.state !== "owned") return;
      const within = withinOf(tree, signal);
      await pruneStale(tree, threadId, (folder, ref) =>
        inItsTime(
          tree.shared.workspaces.capture!.remove(folder, ref, within),
          within,
          tree.limits.interruptGraceMs,
        ),
      );
    } catch (error) {
      tree.shared.logger.warn(
        { threadId, runId, err: error },
        "a workspace could not be captured, or a checkpoint not removed",
      );
    }
  });
}

async function capture(tree: Tree, runId: RunId, signal: AbortSignal): Promise<void> {
  const wanted = await tree.read((view) => wantedOf(view, runId));
  if (wanted === null) return;
  const { folder, threadId, message, since } = wanted;
  const { workspaces } = tree.shared;
  const request = { name: `${threadId}/${runId}`, message, since };
  const within = withinOf(tree, signal);
  let state: State;
  try {
    using _ = await tree.shared.folders.share(folder, signal);
    const capturing = workspaces.capture!.capture(folder, request, within);
    const found = await inItsTime(capturing, within, tree.limits.interruptGraceMs);
    if (found.status === "ready") {
      state = { status: "ready", ref: found.ref, summary: found.summary, files: found.files };
    } else state = { status: found.lasting ? "none" : "missing", reason: found.reason };
  } catch (error) {
    state = { status: "missing", reason: describeError(error) };
  }
  const { event, archived } = await tree.shared.store.commit(tree.lease, (tx) => ({
    event: note(tree, tx, runId, state),
    archived: tx.agent(threadId)?.state === "archived",
  }));
  if (event !== null) tree.events.publish([event]);
  if (!archived || state.status !== "ready") return;
  // What was archived meanwhile was pruned without it. Its record stays, so that another archiving can remove what this cannot.
  const gone = await workspaces.capture!.remove(folder, state.ref, within);
  if (gone.status === "ready") return;
  tree.shared.logger.warn({ threadId, ref: state.ref, reason: gone.reason }, "a checkpoint was not removed");
}

function withinOf({ shared: { clock, lineage } }: Tree, signal: AbortSignal): Within {
  return { clock, limitMs: lineage.workspaceMs, signal };
}

/** Who does not keep to the time that was given has a grace time, and is not waited for any longer. */
async function inItsTime<T>(
  capturing: Promise<T>,
  { clock, limitMs, signal }: Within,
  graceMs: number,
): Promise<T | Missing> {
  const over = new AbortController();
  const until = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal]);
  const late = delay(clock, limitMs, until)
    .catch(() => undefined)
    .then(() => delay(clock, graceMs, over.signal))
    .then((): Missing => ({ status: "missing", reason: "it took too long", lasting: false }));
  try {
    return await Promise.race([capturing, late]);
  } finally {
    over.abort();
  }
}

/** Runs that are looked back at for the checkpoint before. */
const LOOKS_BACK = 20;

function wantedOf(view: StoreView, runId: RunId) {
  const run = view.run(runId);
  const agent = run === undefined ? undefined : view.agent(run.threadId);
  if (run?.checkpoint?.workspace.status !== "missing" || agent === undefined) return null;
  if (agent.state === "archived") return null;
  const { workspace: folder } = agent.config;
  if (folder === null) return null;
  return {
    folder,
    threadId: run.threadId,
    message: `run ${run.ordinal} of ${agent.path}`,
    since: before(view, run),
  };
}

function before(view: StoreView, run: RunRecord): string | undefined {
  for (let at = run.ordinal - 1; at > Math.max(0, run.ordinal - LOOKS_BACK); at -= 1) {
    const state = view.runAt(run.threadId, at)?.checkpoint?.workspace;
    if (state?.status === "ready" && state.gone !== true) return state.ref;
  }
  return undefined;
}

function note(tree: Tree, tx: StoreTx, runId: RunId, state: State) {
  const run = tx.run(runId);
  if (run?.checkpoint?.workspace.status !== "missing") return null;
  tx.putRun({ ...run, checkpoint: { ...run.checkpoint, workspace: state } });
  const { path } = tx.agent(run.threadId)!;
  return tx.appendEvent(tree.treeId, tree.ids.mint("evt"), tx.now(), {
    type: "run.captured",
    path,
    threadId: run.threadId,
    runId,
    workId: null,
    data:
      state.status === "ready"
        ? { status: state.status, ref: state.ref, summary: state.summary }
        : { status: state.status, reason: state.reason ?? null },
  });
}
