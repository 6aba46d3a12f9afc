/** All that a store holds of its trees, to be compared before and after: whoever owns them is not part of it. */
import type { Store } from "../../src/store/port.ts";
import { newMemory, takePicture } from "../../src/testing/invariants-picture.ts";

export function everything(store: Store) {
  return store.read((view) =>
    view.trees({ limit: 1000 }).rows.map((tree) => {
      const { view: _view, memory: _memory, ...picture } = takePicture(view, tree, newMemory());
      const of = picture.agents.map(({ threadId, thread }) => ({
        draft: view.draft(threadId),
        context: thread?.currentContext,
        history: view.history(threadId, { limit: 1000 }).rows,
        requests: view.openRequestsOf(threadId),
      }));
      return { ...picture, of, commands: view.pendingCommands(tree.treeId) };
    }),
  );
}
