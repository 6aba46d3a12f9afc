/**
 * Callers of the library that wait for something in a tree: a work's end, an idle tree, mail of a host-driven root. They
 * wait on a version that only grows: each commit counts it up, and a waiter looks again (WAI-4: subscribe, then check).
 */
import type { Timer } from "../platform/clock.ts";

interface Waiter {
  readonly look: () => void;
  readonly fail: (reason: Error) => void;
}

const NO_TOPICS: ReadonlySet<string> = new Set();

export class Watchers {
  /** By topic; under null those that look after every commit. */
  readonly #waiting = new Map<string | null, Set<Waiter>>();
  readonly #hold: () => Timer | undefined;
  #held: Timer | undefined;
  #failed: Error | null = null;

  /** `hold` keeps the process alive while somebody waits. */
  constructor(hold: () => Timer | undefined) {
    this.#hold = hold;
  }

  get size(): number {
    let size = 0;
    for (const waiters of this.#waiting.values()) size += waiters.size;
    return size;
  }

  /** Waiters of a topic look only when it is named; those without one always. */
  changed(topics: ReadonlySet<string> = NO_TOPICS): void {
    for (const topic of [null, ...topics]) {
      for (const waiter of this.#waiting.get(topic) ?? []) waiter.look();
    }
  }

  /** Nobody knows what has changed: all look. */
  lookAgain(): void {
    for (const waiters of this.#waiting.values()) for (const waiter of waiters) waiter.look();
  }

  fail(reason: Error): void {
    this.#failed = reason;
    for (const waiters of this.#waiting.values()) for (const waiter of waiters) waiter.fail(reason);
    this.#waiting.clear();
    this.#letGo();
  }

  #add(topic: string | null, waiter: Waiter): void {
    this.#held ??= this.#hold();
    const waiters = this.#waiting.get(topic) ?? new Set();
    this.#waiting.set(topic, waiters.add(waiter));
  }

  #remove(topic: string | null, waiter: Waiter): void {
    const waiters = this.#waiting.get(topic);
    waiters?.delete(waiter);
    if (waiters?.size === 0) this.#waiting.delete(topic);
    if (this.#waiting.size === 0) this.#letGo();
  }

  #letGo(): void {
    this.#held?.cancel();
    this.#held = undefined;
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
        this.#remove(topic, waiter);
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
      const waiter: Waiter = { look, fail: (reason: Error) => finish(() => reject(reason)) };
      if (signal?.aborted === true) return reject(signal.reason as Error);
      if (this.#failed !== null) return reject(this.#failed);
      this.#add(topic, waiter);
      signal?.addEventListener("abort", onAbort, { once: true });
      look();
    });
  }
}
