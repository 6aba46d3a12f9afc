/** A capture of workspaces whose restores stay under way until they are let go on, or called off. */
import { RejectedError } from "../../src/protocol/errors.ts";
import type { WorkspaceCapture } from "../../src/platform/workspace/port.ts";
import { NO_CAPTURE } from "./no-capture.ts";

const ready = { status: "ready" } as const;

export function heldCapture() {
  const held: (() => void)[] = [];
  const removed: string[] = [];
  /** Paths for which a restore is refused. */
  const refuse = new Set<string>();
  let restores = 0;
  const capture: WorkspaceCapture = {
    ...NO_CAPTURE,
    available: async () => ready,
    async capture(_, { name: ref }) {
      return { ...ready, ref, tree: "tree", summary: "", files: [], omitted: [] };
    },
    async restore(_, __, { paths = [] }, { signal }) {
      for (const path of paths)
        if (refuse.has(path)) throw new RejectedError("INVALID_ARGUMENT", "no such path", { path });
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
  return { capture, held, removed, refuse, restores: () => restores };
}
