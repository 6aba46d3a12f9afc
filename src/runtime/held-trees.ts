/**
 * The trees that a runtime has: which of them it owns now, is just opening, or is giving back.
 *
 * - H1 A tree that was lost stays known until it is opened anew; it is another's, and nobody acts in it from here.
 * - H2 One that is being opened is known before it is recovered: who wants it waits for the opening.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { TreeId } from "../protocol/ids.ts";
import { CallerLeft } from "../platform/abortable.ts";
import type { Tree } from "../control/tree.ts";
import type { TreeHandle } from "./tree-handle.ts";

export interface HeldTree {
  readonly tree: Tree;
  readonly handle: TreeHandle;
}

export class HeldTrees {
  readonly known = new Map<TreeId, HeldTree>();
  /** Who asks for one of them meanwhile gets the same. */
  readonly opening = new Map<TreeId, Promise<TreeHandle>>();
  /** Who opens one of them waits for it. */
  readonly ending = new Map<TreeId, Promise<void>>();

  owned(id: TreeId): HeldTree | undefined {
    const found = this.known.get(id);
    return found?.tree.state === "owned" ? found : undefined;
  }

  /** @throws RejectedError `NOT_OWNER`. */
  requireOwned(id: TreeId): HeldTree {
    const found = this.owned(id);
    if (found !== undefined) return found;
    throw new RejectedError("NOT_OWNER", `this process does not own the tree ${id}.`, { treeId: id });
  }

  /** Resolves when the tree is neither being opened nor given back any more; it never rejects. */
  async settled(id: TreeId): Promise<void> {
    for (let busy; (busy = this.ending.get(id) ?? this.opening.get(id)) !== undefined;)
      await busy.catch(() => undefined);
  }

  /** Resolves when an opening under way has ended; rejects with what it fails with, not when it was called off. */
  opened(id: TreeId): Promise<unknown> | undefined {
    return this.opening.get(id)?.catch((error: unknown) => {
      if (!(error instanceof CallerLeft)) throw error;
    });
  }

  /** Owned, or soon, or yet. */
  isMine(id: TreeId): boolean {
    return this.ending.has(id) || this.opening.has(id) || this.owned(id) !== undefined;
  }
}
