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
    throw notFound(`no agent ${agent} is in ${store.name}.`, "tree");
  }
  const newest = await store.read((view) => view.treeIds({ limit: 1 }).rows[0]);
  if (newest !== undefined) return new TreeReader(store, newest);
  throw notFound(`there is no tree in ${store.name} yet; grow one.`, "demo");
}

async function named(store: Store, tree: string): Promise<TreeReader> {
  if (!isThreadId(tree)) {
    throw badUse(`\`${tree}\` is not the id of a tree; it looks like thread_…. List the trees.`, "");
  }
  const found = await store.read((view) => view.tree(tree));
  if (found !== undefined) return new TreeReader(store, tree);
  throw notFound(`no tree ${tree} is in ${store.name}; list the trees.`, "");
}

function notFound(message: string, see: string): CommandError {
  return new CommandError(EXIT.notFound, "AGENT_NOT_FOUND", message, see);
}
