/** A capture of workspaces whose restores stay under way until they are let go on, or called off. */
import type { WorkspaceCapture } from "../../src/platform/workspace/port.ts";
import { NO_CAPTURE } from "./no-capture.ts";

const ready = { status: "ready" } as const;

export function heldCapture() {
  const held: (() => void)[] = [];
  const removed: string[] = [];
  let restores = 0;
  const capture: WorkspaceCapture = {
    ...NO_CAPTURE,
    available: async () => ready,
    async capture(_, { name: ref }) {
      return { ...ready, ref, tree: "tree", summary: "", files: [], omitted: [] };
    },
    async restore(_, __, ___, { signal }) {
      const before = `before ${(restores += 1)}`;
      await new Promise<void>((resolve) => {
        held.push(resolve);
        signal?.addEventListener("abort", () => resolve());
      });
      return { ...ready, before, written: [], removed: [] };
    },
    async remove(_, ref) {
      removed.push(ref);
      return ready;
    },
  };
  return { capture, held, removed, restores: () => restores };
}
