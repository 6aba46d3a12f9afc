/**
 * Worktrees of agents (`isolation: "worktree"`): made before the spawn's commit, which alone makes them somebody's; ended
 * by rule when their agent is closed, and after a crash.
 *
 * - W1 Nothing is made for a spawn that can be refused without it; what was made for one that failed is removed.
 * - W2 A worktree that holds something is never removed, nor one that a thread still works in. The event says so.
 */
import { basename, dirname } from "node:path";
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { Json } from "../protocol/json.ts";
import type { Caller } from "../protocol/tool.ts";
import type { Worktrees, Worktree } from "../platform/workspace/port.ts";
import { checkSpawn, type SpawnInput } from "./spawn.ts";
import type { PlacedWorktree, Transaction } from "./transaction.ts";
import type { Tree } from "./tree.ts";

/** What a spawn answers, as far as it matters here. */
interface Child {
  readonly threadId: ThreadId;
}

/** Spawns a child into a worktree of its own. `done` is the receipt of the same call when it was carried out before. */
export async function spawnInWorktree<T extends Child>(
  tree: Tree,
  caller: Caller,
  input: SpawnInput,
  done: (tx: Transaction) => T | undefined,
  spawn: (worktree: PlacedWorktree) => Promise<T>,
): Promise<T> {
  const asked = await tree.transact(
    (tx) => done(tx) ?? { workspace: checkSpawn(tx, caller, input).config.workspace },
  );
  if (!("workspace" in asked)) return asked;
  const worktrees = requireWorktrees(tree);
  if (asked.workspace === null)
    throw refusal("the agent has no workspace; give one with `workspace`, or leave `isolation` out.");
  const made = await make(tree, worktrees, asked.workspace, input.taskName);
  const { path, folder, repository, base } = made;
  let used = false;
  try {
    const child = await spawn({ folder, worktree: { path, repository, base } });
    used = await tree.read((view) => view.agent(child.threadId)?.config.worktree?.path === path);
    return child;
  } finally {
    if (!used) tree.jobs.add(path, (signal) => removeUnused(tree, worktrees, path, signal));
  }
}

function requireWorktrees(tree: Tree): Worktrees {
  const { worktrees } = tree.shared.workspaces;
  if (worktrees !== null) return worktrees;
  throw refusal(
    "this runtime makes no worktrees; give `createRuntime` a folder for them with `worktrees`, or leave `isolation` out.",
  );
}

function refusal(text: string): RejectedError {
  return new RejectedError("INVALID_ARGUMENT", `\`isolation: "worktree"\`: ${text}`, {
    argument: "isolation",
  });
}

const NAME_CHARACTERS = 40;

async function make(tree: Tree, worktrees: Worktrees, folder: string, taskName: string): Promise<Worktree> {
  const { clock, lineage } = tree.shared;
  // A name of its own: a path that a spawn failed at may be asked for again.
  const unique = tree.ids.mint("thread").slice(-8);
  const name = `${taskName.slice(0, NAME_CHARACTERS)}-${unique}`;
  const within = { clock, limitMs: lineage.workspaceMs };
  const made = await worktrees.add(folder, { owner: tree.treeId, name }, within);
  if (made.status === "ready") return made;
  throw refusal(
    `no worktree of ${folder} can be made: ${made.reason}. Mend that, or leave \`isolation\` out and share the folder.`,
  );
}

async function removeUnused(
  tree: Tree,
  worktrees: Worktrees,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  const { clock, lineage, logger } = tree.shared;
  try {
    // By rule: whether the spawn was stored may be unknown.
    const needed = await tree.read((view) => view.isWorkedIn(tree.treeId, path));
    if (!needed) await worktrees.end(path, { clock, limitMs: lineage.workspaceMs, signal });
  } catch (error) {
    logger.warn({ path, err: error }, "a worktree that nobody uses stays until the tree is opened again");
  }
}

/** The worktree of an agent that was closed, if it had one. */
export function endWorktreeOf(tree: Tree, threadId: ThreadId): void {
  if (tree.shared.workspaces.worktrees === null) return;
  tree.jobs.add(threadId, async (signal) => {
    try {
      const agent = await tree.read((view) => view.agent(threadId));
      const path = agent?.config.worktree?.path;
      // A fork has the configuration of its source, whose worktree it is.
      if (path !== undefined && basename(dirname(path)) === tree.treeId)
        await endWorktree(tree, path, threadId, signal);
    } catch (error) {
      tree.shared.logger.warn({ threadId, err: error }, "a worktree could not be ended");
    }
  });
}

async function endWorktree(
  tree: Tree,
  path: string,
  threadId: ThreadId | null,
  signal: AbortSignal,
): Promise<void> {
  const { clock, lineage, store, workspaces } = tree.shared;
  const ended = (await tree.read((view) => view.isWorkedIn(tree.treeId, path)))
    ? { status: "kept" as const, reason: "a thread works in it" }
    : await workspaces.worktrees!.end(path, { clock, limitMs: lineage.workspaceMs, signal });
  const data: Record<string, Json> = { path, ...ended };
  const event = await store.commit(tree.lease, (tx) =>
    tx.appendEvent(tree.treeId, tree.ids.mint("evt"), tx.now(), {
      type: "worktree.ended",
      path: threadId === null ? null : tx.agent(threadId)!.path,
      threadId,
      runId: null,
      workId: null,
      data,
    }),
  );
  tree.events.publish([event]);
}

/**
 * What a former owner has left: worktrees of agents that are closed, or were never stored. They are looked at beside what
 * the tree does next; those that are made from now on are not among them.
 */
export async function sweepWorktrees(tree: Tree): Promise<void> {
  const { worktrees } = tree.shared.workspaces;
  if (worktrees === null) return;
  const paths = await worktrees.list(tree.treeId);
  for (const path of await tree.read((view) => paths.filter((at) => !view.isWorkedIn(tree.treeId, at)))) {
    tree.jobs.add(path, async (signal) => {
      try {
        await endWorktree(tree, path, null, signal);
      } catch (error) {
        tree.shared.logger.warn({ path, err: error }, "a worktree could not be swept");
      }
    });
  }
}
