/**
 * The workspace checkpoints of a thread's runs (lineage C1.18): seen, compared, written back and removed. Restoring writes files
 * and nothing else of the user's: no index, branch or stash.
 *
 * - W1 Nothing is written while a run is active in the folder, of whatever tree of this runtime: one that is active is in its way,
 *   and one that is to begin waits for it. Other processes are not known of.
 * - W2 What the port could not or would not do is an answer.
 * - W3 An archived thread keeps none: they go when it is archived, and again with each archiving of it.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { RunId, TreeId } from "../protocol/ids.ts";
import type { Begin } from "../platform/abortable.ts";
import type { RunRecord } from "../protocol/run.ts";
import { overlap } from "../platform/workspace.ts";
import type { Mark } from "../control/begun.ts";
import type { Stages } from "../control/long-commands.ts";
import type { Transaction } from "../control/transaction.ts";
import type { Tree } from "../control/tree.ts";
import type {
  Difference,
  Missing,
  Refused,
  Restored,
  RestoreRequest,
  Within,
} from "../platform/workspace/port.ts";
import type { Page, PageRequest, StoreView } from "../store/port.ts";
import type { ThreadPorts } from "./ports.ts";
import { requireRunOf } from "./run-binding.ts";
import { requireThread } from "./thread-view.ts";

/** The workspace checkpoint of a run. */
export interface WorkspaceCheckpoint {
  readonly runId: RunId;
  readonly ordinal: number;
  /** `none`: nothing can be captured there, or it was removed; `missing`: not yet, or it failed. */
  readonly status: "ready" | "missing" | "none";
  readonly reason: string | null;
  readonly ref: string | null;
  /** Against the checkpoint before it, such as `3 files changed, +10 -2`. */
  readonly summary: string | null;
  readonly files: readonly string[];
  readonly at: number | null;
}

/** Oldest first; runs that were never captured, nor were to be, have none. */
export function checkpointsOf(view: StoreView, id: string, page: PageRequest): Page<WorkspaceCheckpoint> {
  const agent = requireThread(view, id);
  const { rows, next } = view.runsOf(agent.threadId, page);
  return { rows: rows.flatMap((run) => checkpointOf(agent, run) ?? []), next };
}

function checkpointOf({ state }: AgentRecord, run: RunRecord): WorkspaceCheckpoint | null {
  const { id: runId, ordinal, completedAt: at, checkpoint } = run;
  const workspace = checkpoint?.workspace;
  if (workspace === undefined || (workspace.status === "none" && workspace.reason === undefined)) return null;
  const about = { runId, ordinal, at };
  if (workspace.status !== "ready")
    return { ...about, ...NOTHING, status: workspace.status, reason: workspace.reason ?? null };
  if (state === "archived") return { ...about, ...NOTHING, status: "none", reason: "the thread is archived" };
  if (workspace.gone === true)
    return {
      ...about,
      ...NOTHING,
      status: "none",
      reason: "its run was rolled back, and others have followed",
    };
  const { status, ref, summary, files } = workspace;
  return { ...about, status, ref, summary, files, reason: null };
}

const NOTHING = { ref: null, summary: null, files: [] } as const;

interface Found {
  readonly agent: AgentRecord;
  readonly run: RunRecord;
  readonly folder: string;
  readonly ref: string;
}

/** @throws RejectedError `SOURCE_POINT_NOT_FOUND` where there is none that is ready. */
function readyAt(view: StoreView, id: string, runId: string): Found {
  const agent = requireThread(view, id);
  const run = requireRunOf(view, agent, runId);
  const { workspace: folder } = agent.config;
  const found = checkpointOf(agent, run);
  if (found?.status === "ready" && folder !== null) return { agent, run, folder, ref: found.ref! };
  throw new RejectedError(
    "SOURCE_POINT_NOT_FOUND",
    `run ${run.ordinal} of ${agent.threadId} has no checkpoint of its workspace${found?.reason ? `: ${found.reason}` : ""}; list those of the thread.`,
    { threadId: agent.threadId, runId: run.id, missing: "checkpoint" },
  );
}

/** From the checkpoint of a run to that of another, or to the folder as it is. */
export async function diffCheckpoints(
  ports: ThreadPorts,
  id: string,
  { run, to, patchBytes }: { readonly run: string; readonly to?: string; readonly patchBytes?: number },
): Promise<Difference | Missing> {
  const found = await ports.store.read((view) => ({
    from: readyAt(view, id, run),
    until: to === undefined ? undefined : readyAt(view, id, to),
  }));
  const { folder, ref: from } = found.from;
  const between = {
    from,
    ...(found.until === undefined ? {} : { to: found.until.ref }),
    ...(patchBytes === undefined ? {} : { patchBytes }),
  };
  return ports.capture.diff(folder, between, withinOf(ports));
}

function withinOf({ clock, lineage }: ThreadPorts, signal?: AbortSignal): Within {
  return { clock, limitMs: lineage.workspaceMs, signal };
}

/** A restore was begun before, and how it ended was not recorded; nothing was written now. */
export interface Unfinished {
  readonly status: "unfinished";
  readonly reason: string;
}

/** What has become of a restore. */
export type RestoreAnswer = Restored | Refused | Missing | Unfinished;

/** @throws RejectedError `THREAD_BUSY`, `SOURCE_POINT_NOT_FOUND`. */
export function restoreCheckpoint(
  ports: ThreadPorts,
  tree: Tree,
  { thread, run, ...request }: RestoreRequest & { readonly thread: string; readonly run: string },
  { begin, mark, done, refused }: Stages<RestoreAnswer>,
): Promise<RestoreAnswer> {
  return alone(ports, tree, thread, run, async (found, within) => {
    const restored = await tree.transact((tx) => begunBefore(tx, found, begin, mark));
    const come = restored ?? (await restore(ports, tree, found, request, within, mark));
    await tree.transact((tx) => {
      // One that is not done for another reason may have been cut off while it wrote.
      if (come.status !== "refused") return done(tx, come);
      mark?.forget(tx);
      refused(tx, come);
    });
    return come;
  });
}

function begunBefore(
  tx: Transaction,
  { run: { id, ordinal } }: Found,
  begin: Begin,
  mark: Mark | null,
): Unfinished | undefined {
  begin();
  if (mark === null || !mark.begin(tx)) {
    const { checkpoint, ...run } = tx.store.run(id)!;
    if (checkpoint?.workspace.status === "ready")
      tx.store.putRun({
        ...run,
        checkpoint: { ...checkpoint, workspace: { ...checkpoint.workspace, written: true } },
      });
    return undefined;
  }
  return {
    status: "unfinished",
    reason:
      `it was begun before, and how that ended was not recorded: the folder's files may be those of run ${ordinal}, all or some of them. ` +
      "Nothing was written now, for it may have changed since. What stood there before is kept with the checkpoint; compare with it, and " +
      "ask again under another id",
  };
}

async function restore(
  { capture }: ThreadPorts,
  tree: Tree,
  { folder, ref }: Found,
  request: RestoreRequest,
  within: Within,
  mark: Mark | null,
): Promise<RestoreAnswer> {
  try {
    return await capture.restore(folder, ref, request, within);
  } catch (error) {
    // A refusal is no effect, and its id may be used again.
    if (mark !== null && error instanceof RejectedError) await tree.transact(mark.forget);
    throw error;
  }
}

type Removed = { readonly status: "ready" } | Missing;

/** The run says so after, in the commit that ends it. @throws RejectedError `THREAD_BUSY`, `SOURCE_POINT_NOT_FOUND`. */
export function removeCheckpoint(
  ports: ThreadPorts,
  tree: Tree,
  { thread, run }: { readonly thread: string; readonly run: string },
  { begin, done, refused }: Stages<Removed>,
): Promise<Removed> {
  return alone(ports, tree, thread, run, async ({ folder, ref, run: { id } }, within) => {
    begin();
    const gone = await ports.capture.remove(folder, ref, within);
    await tree.transact((tx) => {
      if (gone.status === "ready") noteRemoved(tx, id);
      (gone.status === "missing" && !gone.lasting ? refused : done)(tx, gone);
    });
    return gone;
  });
}

function noteRemoved(tx: Transaction, id: RunId): void {
  const run = tx.store.run(id);
  if (run === undefined || run.checkpoint === null) return;
  const workspace = { status: "none", reason: "it was removed" } as const;
  tx.store.putRun({ ...run, checkpoint: { ...run.checkpoint, workspace } });
  tx.emit("run.captured", tx.agent(run.threadId), { runId: id }, { ...workspace });
}

/** With the thread's place among what is done in its workspace, and with the folder alone: no run begins there meanwhile. */
function alone<T>(
  ports: ThreadPorts,
  tree: Tree,
  id: string,
  runId: string,
  act: (found: Found, within: Within) => Promise<T>,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const job = async (signal: AbortSignal): Promise<T> => {
    const { folder } = await tree.read((view) => readyAt(view, id, runId));
    using _ = await tree.shared.folders.alone(folder, signal);
    const found = await tree.read((view) => {
      const ready = readyAt(view, id, runId);
      requireIdle(view, tree.shared.treesHere(), ready);
      return ready;
    });
    // The lease may be lost, or given back, since it was asked for: the folder is the next owner's then.
    tree.requireOwned();
    return await act(found, withinOf(ports, signal));
  };
  tree
    .read((view) => requireThread(view, id))
    .then(({ threadId }) => tree.jobs.add(threadId, (signal) => job(signal).then(resolve, reject)), reject);
  return promise;
}

/** @throws RejectedError `THREAD_BUSY`. */
function requireIdle(view: StoreView, trees: Iterable<TreeId>, { agent, folder }: Found): void {
  const worksThere = ({ threadId }: RunRecord): boolean => {
    const workspace = view.agent(threadId)?.config.workspace ?? null;
    return workspace !== null && overlap(workspace, folder);
  };
  const active = [...trees].flatMap((id) => view.openRuns(id)).find(worksThere);
  if (active === undefined) return;
  throw new RejectedError(
    "THREAD_BUSY",
    `a run is active in ${folder}, whose files it may be writing; wait until it is idle, or interrupt it.`,
    { threadId: agent.threadId, executionId: active.id },
  );
}

/** Of an archived thread. What could not be removed is removed when it is archived again. */
export async function pruneCheckpoints(ports: ThreadPorts, id: string): Promise<void> {
  const agent = await ports.store.read((view) => requireThread(view, id));
  const { workspace: folder } = agent.config;
  if (agent.state !== "archived" || folder === null) return;
  let after: string | null = null;
  do {
    const { rows, next }: Page<RunRecord> = await ports.store.read((view) =>
      view.runsOf(agent.threadId, { after, limit: PAGE }),
    );
    for (const { checkpoint } of rows) {
      if (checkpoint?.workspace.status !== "ready" || checkpoint.workspace.gone === true) continue;
      const { ref } = checkpoint.workspace;
      const gone = await ports.capture.remove(folder, ref, withinOf(ports));
      if (gone.status === "ready") continue;
      ports.logger.warn(
        { threadId: agent.threadId, ref, reason: gone.reason },
        "a checkpoint was not removed",
      );
      // Neither will the others be.
      if (gone.lasting) return;
    }
    after = next;
  } while (after !== null);
}

const PAGE = 200;
