/**
 * Processes that the runtime starts for an agent (REC-4): registered on disk before they run, ended by group, and swept by
 * the next owner when this one dies.
 *
 * - X1 A row stands as long as anybody of its group lives; it is removed when that is over.
 * - X2 A group ends with what it was started for, with its tree's ownership, and with its owner's life: by `SIGTERM`, and by
 *   `SIGKILL` after the grace time; at once where nobody may wait.
 */
import { InterruptedError } from "../protocol/errors.ts";
import type { RunId, ThreadId } from "../protocol/ids.ts";
import type { ProcessGroup } from "../store/port.ts";
import type { ProcessSpec, StartedProcess, StartProcess } from "../platform/process.ts";
import { endWith, signalGroup, startGroup } from "../platform/process-group.ts";
import { ownIdentity } from "../platform/process-identity.ts";
import type { Tree } from "./tree.ts";

/** @throws the lifetime's reason when it is over already, or what starting or registering it failed with. */
export async function startProcess(
  tree: Tree,
  about: { readonly threadId: ThreadId; readonly runId: RunId | null },
  spec: ProcessSpec,
  lifetime: AbortSignal,
): Promise<StartedProcess> {
  lifetime.throwIfAborted();
  // One of a provider serves no single run: it goes at once with its owner, not only when the next one sweeps.
  const leader = await startGroup(spec, { leashed: about.runId === null });
  const { pgid, startedAt, stdin, stdout, stderr, exited } = leader;
  const group: ProcessGroup = { treeId: tree.treeId, ...about, pgid, startedAt, owner: ownIdentity() };
  const kill = (): void => void signalGroup(pgid, startedAt, "SIGKILL");
  try {
    await tree.transact((tx) => tx.store.putProcessGroup(group));
    lifetime.throwIfAborted();
    if (tree.state !== "owned")
      throw new InterruptedError("RUN_INTERRUPTED", "the tree was given up while a process started.");
  } catch (error) {
    leader.abandon();
    void removed(tree, group);
    throw error;
  }
  tree.groups.add(kill);
  const { clock } = tree.shared;
  void endWith(lifetime, clock, tree.limits.interruptGraceMs, leader).then(() => {
    tree.groups.delete(kill);
    return removed(tree, group);
  });
  leader.letGo();
  return { pid: pgid, startedAt, stdin, stdout, stderr, exited };
}

/** Of a provider, for an agent; the run that it began with is nobody's any more when it ends. */
export function processesOf(tree: Tree, threadId: ThreadId): StartProcess {
  return (spec, lifetime) => startProcess(tree, { threadId, runId: null }, spec, lifetime);
}

/** A row that cannot be removed now is swept by the next owner, who finds nobody. */
async function removed(tree: Tree, { pgid }: ProcessGroup): Promise<void> {
  if (tree.state !== "owned") return;
  try {
    await tree.transact((tx) => tx.store.removeProcessGroup(tree.treeId, pgid));
  } catch (error) {
    tree.shared.logger.warn({ treeId: tree.treeId, pgid, err: error }, "a process group stays registered");
  }
}

/** Ends what a former owner has left running on this host, before anything is dispatched (REC-6). */
export async function sweepProcesses(tree: Tree): Promise<void> {
  const groups = await tree.read((view) => view.processGroups(tree.treeId));
  const me = ownIdentity();
  const here = groups.filter(({ owner }) => owner.host === me.host);
  // Of another boot nobody is left, and its ids mean others now.
  for (const { owner, pgid, startedAt } of here)
    if (owner.bootId === me.bootId && (owner.pidNamespace ?? me.pidNamespace) === me.pidNamespace)
      signalGroup(pgid, startedAt, "SIGKILL");
  if (here.length === 0) return;
  await tree.transact((tx) => {
    for (const { pgid } of here) tx.store.removeProcessGroup(tree.treeId, pgid);
  });
}
