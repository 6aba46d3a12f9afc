/**
 * Notices inside one process: which trees were written to by somebody else, and who wants to hear of it. A hint may be
 * lost or doubled (S7); the counters are what `changes` answers, and never go back.
 */
import type { TreeId } from "../protocol/ids.ts";
import type { Clock } from "../platform/clock.ts";

export class Hints {
  readonly #clock: Clock;
  #all = 0;
  readonly #counts = new Map<TreeId, number>();
  readonly #listeners = new Map<TreeId, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  count(tree?: TreeId): number {
    return tree === undefined ? this.#all : (this.#counts.get(tree) ?? 0);
  }

  tell(trees: Iterable<TreeId>): void {
    for (const tree of trees) {
      this.#all += 1;
      this.#counts.set(tree, this.count(tree) + 1);
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
