/** Which tree of a store is meant: the one that is named, the one an agent's id belongs to, else the newest. */
import { isThreadId } from "../protocol/ids.ts";
import { TreeReader } from "../runtime/tree-reader.ts";
import type { Store } from "../store/port.ts";
import { badUse, CommandError, EXIT } from "./failure.ts";

export async function findTree(store: Store, tree: string | undefined, agent?: string): Promise<TreeReader> {
  if (tree !== undefined) return named(store, tree);
  if (agent !== undefined && isThreadId(agent)) {
    const record = await store.read((view) => view.agent(agent));
    if (record !== undefined) return new TreeReader(store, record.treeId);
    throw notFound(
      "AGENT_NOT_FOUND",
      `no agent ${agent} is in ${store.name}. List them with: npx coppice tree`,
    );
  }
  const newest = await store.read((view) => view.treeIds({ limit: 1 }).rows[0]);
  if (newest !== undefined) return new TreeReader(store, newest);
  throw notFound("AGENT_NOT_FOUND", `there is no tree in ${store.name} yet. Grow one with: npx coppice demo`);
}

async function named(store: Store, tree: string): Promise<TreeReader> {
  if (!isThreadId(tree)) {
    throw badUse(
      `\`${tree}\` is not the id of a tree; it looks like thread_…. List the trees with: npx coppice`,
    );
  }
  const found = await store.read((view) => view.tree(tree));
  if (found !== undefined) return new TreeReader(store, tree);
  throw notFound("AGENT_NOT_FOUND", `no tree ${tree} is in ${store.name}. List the trees with: npx coppice`);
}

function notFound(code: string, message: string): CommandError {
  return new CommandError(EXIT.notFound, code, message);
}
