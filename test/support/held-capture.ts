/** A capture of workspaces whose restores stay under way until they are let go on, or called off. */
import { RejectedError } from "../../src/protocol/errors.ts";
import type { Missing, Refused, WorkspaceCapture } from "../../src/platform/workspace/port.ts";
import { NO_CAPTURE } from "./no-capture.ts";

const ready = { status: "ready" } as const;

export function heldCapture() {
  const held: (() => void)[] = [];
  const removed: string[] = [];
  /** Paths for which a restore is refused. */
  const refuse = new Set<string>();
  /** What comes next answers so, and does nothing. */
  const answers: (Refused | Missing)[] = [];
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
      const other = answers.shift();
      if (other !== undefined) return other;
      const before = `before ${(restores += 1)}`;
      await new Promise<void>((resolve) => {
        held.push(resolve);
        signal?.addEventListener("abort", () => resolve());
      });
      signal?.throwIfAborted();
      return { ...ready, before, written: [], removed: [] };
    },
    async remove(_, ref) {
      const other = answers.shift();
      if (other?.status === "missing") return other;
      removed.push(ref);
      return ready;
    },
  };
  return { capture, held, removed, refuse, answers, restores: () => restores };
}
