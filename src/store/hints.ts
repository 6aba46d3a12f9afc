/**
 * Notices inside one process: which trees were written to by somebody else, and who wants to hear of it. A hint may be
 * lost or doubled (S7); the count of all is a part of what `changes` answers, and never goes back. Nothing is kept of a tree
 * that nobody listens for.
 */
import type { TreeId } from "../protocol/ids.ts";
import type { Clock } from "../platform/clock.ts";

export class Hints {
  readonly #clock: Clock;
  #told = 0;
  readonly #listeners = new Map<TreeId, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Times that a tree was told of. */
  get told(): number {
    return this.#told;
  }

  tell(trees: Iterable<TreeId>): void {
    for (const tree of trees) {
      this.#told += 1;
      const listeners = this.#listeners.get(tree);
      if (listeners === undefined) continue;
      for (const listener of listeners) {
        // After the promises of the commit that caused it, and not if it was given up meanwhile.
        this.#clock.defer(() => {
          if (listeners.has(listener)) listener();
        });
      }
    }
  }

  listen(tree: TreeId, callback: () => void): Disposable {
    const listeners = this.#listeners.get(tree) ?? new Set();
    this.#listeners.set(tree, listeners);
    const listener = (): void => callback();
    listeners.add(listener);
    return {
      [Symbol.dispose]: () => {
        listeners.delete(listener);
        if (listeners.size === 0 && this.#listeners.get(tree) === listeners) this.#listeners.delete(tree);
      },
    };
  }
}
