/** How the tree of a client stands, in a line: what a client that waits is told. */
import type { TreeHandle } from "../runtime/tree-handle.ts";

export async function progressOf(tree: TreeHandle | null): Promise<string> {
  if (tree === null) return "The tree is opened.";
  const { running, queued } = await tree.counts();
  const agents = `${running} agent${running === 1 ? "" : "s"} running`;
  return queued === 0 ? agents : `${agents}, ${queued} waiting to run`;
}
