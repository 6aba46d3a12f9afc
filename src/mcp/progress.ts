/** How the tree of a client stands, in a line: what a client that waits is told. */
import type { TreeHandle } from "../runtime/tree-handle.ts";

export async function progressOf(tree: TreeHandle | null): Promise<string> {
  const counts = await tree?.counts().catch(() => null);
  // A store that is busy now is no reason to say nothing.
  if (counts === undefined || counts === null) return "it goes on";
  const { running, queued } = counts;
  const agents = `${running} agent${running === 1 ? "" : "s"} running`;
  return queued === 0 ? agents : `${agents}, ${queued} waiting to run`;
}
