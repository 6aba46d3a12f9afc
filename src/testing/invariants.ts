/**
 * The promises of the runtime as formulas over a store: what must hold of a tree after every commit, whoever made it and
 * however it was interrupted. Each formula is named by the contract id that it checks. They read a `StoreView` and nothing
 * else, so they hold for any adapter, within a commit's own view as well as between commits.
 *
 * - V1 A checker belongs to one tree and remembers what it saw: states only move forward, what has ended stays as it is.
 * - V2 A formula answers in words what is wrong; it changes nothing and throws nothing.
 */
import type { TreeId } from "../protocol/ids.ts";
import type { StoreView } from "../store/port.ts";
import { boundFormulas } from "./invariants-bounds.ts";
import { logFormulas } from "./invariants-log.ts";
import { mailFormulas } from "./invariants-mail.ts";
import { type Formula, newMemory, remember, takePicture, type Violation } from "./invariants-picture.ts";
import { runFormulas } from "./invariants-run.ts";
import { threadFormulas } from "./invariants-thread.ts";
import { transferFormulas } from "./invariants-transfer.ts";
import { workFormulas } from "./invariants-work.ts";

/** Checks over all that a store holds. */
export interface Invariants {
  /** Looks at the tree and answers everything that does not hold. */
  check(view: StoreView): readonly Violation[];
}

const FORMULAS: readonly Formula[] = [
  ...mailFormulas,
  ...workFormulas,
  ...runFormulas,
  ...threadFormulas,
  ...transferFormulas,
  ...boundFormulas,
  ...logFormulas,
];

/** A checker for one tree, to be asked after each commit. */
export function invariants(treeId: TreeId): Invariants {
  const memory = newMemory();
  return {
    check(view) {
      const tree = view.tree(treeId);
      if (tree === undefined) return [];
      const picture = takePicture(view, tree, memory);
      const violations = FORMULAS.flatMap((formula) => [...formula(picture)]);
      remember(picture);
      return violations;
    },
  };
}
