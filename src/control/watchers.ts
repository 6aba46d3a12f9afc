/**
 * Callers of the library that wait for something in a tree: a work's end, an idle tree, mail of a host-driven root. They
 * wait on a version that only grows: each commit counts it up, and a waiter looks again (WAI-4: subscribe, then check).
 */
const NO_TOPICS: ReadonlySet<string> = new Set();

export class Watchers {
  readonly #waiting = new Set<{
    readonly topic: string | null;
    readonly look: () => void;
    readonly fail: (reason: Error) => void;
  }>();
  #failed: Error | null = null;

  get size(): number {
    return this.#waiting.size;
  }

  /** Waiters of a topic look only when it is named; those without one always. */
  changed(topics: ReadonlySet<string> = NO_TOPICS): void {
    for (const waiter of this.#waiting) {
      if (waiter.topic === null || topics.has(waiter.topic)) waiter.look();
    }
  }

  fail(reason: Error): void {
    this.#failed = reason;
    for (const waiter of this.#waiting) waiter.fail(reason);
    this.#waiting.clear();
  }

  /**
   * Resolves with the first value that `check` gives; it is asked now and after each commit, with a topic (a work that
   * ended, an agent that got mail) only after those that name it.
   * @throws the signal's reason, or what the tree was lost or closed with.
   */
  until<T>(
    check: () => Promise<T | undefined>,
    signal?: AbortSignal,
    topic: string | null = null,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      let looking = false;
      let again = false;
      const finish = (act: () => void): void => {
        this.#waiting.delete(waiter);
        signal?.removeEventListener("abort", onAbort);
        act();
      };
      const onAbort = (): void => finish(() => reject(signal!.reason as Error));
      const look = (): void => {
        again = true;
        if (looking) return;
        looking = true;
        void (async () => {
          try {
            while (again) {
              again = false;
              const value = await check();
              if (value !== undefined) return finish(() => resolve(value));
            }
          } catch (error) {
            finish(() => reject(error as Error));
          } finally {
            looking = false;
          }
        })();
      };
      const waiter = { topic, look, fail: (reason: Error) => finish(() => reject(reason)) };
      if (signal?.aborted === true) return reject(signal.reason as Error);
      if (this.#failed !== null) return reject(this.#failed);
      this.#waiting.add(waiter);
      signal?.addEventListener("abort", onAbort, { once: true });
      look();
    });
  }
}
