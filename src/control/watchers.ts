/**
 * Callers of the library that wait for something in a tree: a work's end, an idle tree, mail of a host-driven root. They
 * wait on a version that only grows: each commit counts it up, and a waiter looks again (WAI-4: subscribe, then check).
 */
import type { ThreadId } from "../protocol/ids.ts";
import type { Timer } from "../platform/clock.ts";

/** Topics of a commit that a waiter looks for; null when nobody knows what has changed. */
export type News = ReadonlySet<string> | null;

interface Waiter {
  readonly look: (news: News) => void;
  readonly fail: (reason: Error) => void;
}

const NO_TOPICS: ReadonlySet<string> = new Set();

/** The topic under which ends of an agent's waits and questions are told. */
export function waitsOf(thread: ThreadId): string {
  return `waits of ${thread}`;
}

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
    return this.#all().size;
  }

  /** Waiters of a topic look only when it is named; those without one always. */
  changed(topics: ReadonlySet<string> = NO_TOPICS): void {
    for (const waiter of this.#waiting.get(null) ?? []) waiter.look(null);
    const news = new Map<Waiter, Set<string>>();
    for (const topic of topics)
      for (const waiter of this.#waiting.get(topic) ?? [])
        news.set(waiter, (news.get(waiter) ?? new Set()).add(topic));
    for (const [waiter, named] of news) waiter.look(named);
  }

  /** Nobody knows what has changed: all look. */
  lookAgain(): void {
    for (const waiter of this.#all()) waiter.look(null);
  }

  fail(reason: Error): void {
    this.#failed = reason;
    for (const waiter of this.#all()) waiter.fail(reason);
    this.#waiting.clear();
    this.#letGo();
  }

  #all(): ReadonlySet<Waiter> {
    return new Set([...this.#waiting.values()].flatMap((waiters) => [...waiters]));
  }

  #add(topics: readonly (string | null)[], waiter: Waiter): void {
    this.#held ??= this.#hold();
    for (const topic of topics) this.#waiting.set(topic, (this.#waiting.get(topic) ?? new Set()).add(waiter));
  }

  #remove(topics: readonly (string | null)[], waiter: Waiter): void {
    for (const topic of topics) {
      const waiters = this.#waiting.get(topic);
      waiters?.delete(waiter);
      if (waiters?.size === 0) this.#waiting.delete(topic);
    }
    if (this.#waiting.size === 0) this.#letGo();
  }

  #letGo(): void {
    this.#held?.cancel();
    this.#held = undefined;
  }

  /**
   * Resolves with the first value that `check` gives; it is asked now and after each commit, with topics (a work that
   * ended, an agent that got mail, `waitsOf` an agent) only after those that name one, and told which.
   * @throws the signal's reason, or what the tree was lost or closed with.
   */
  until<T>(
    check: (news: News) => Promise<T | undefined>,
    signal?: AbortSignal,
    topics: readonly string[] | null = null,
  ): Promise<T> {
    const named = topics ?? [null];
    return new Promise((resolve, reject) => {
      let looking = false;
      let again = false;
      /** What was told since it last began to look. */
      let untold: Set<string> | null = new Set();
      const finish = (act: () => void): void => {
        this.#remove(named, waiter);
        signal?.removeEventListener("abort", onAbort);
        act();
      };
      const onAbort = (): void => finish(() => reject(signal!.reason as Error));
      const look = (news: News): void => {
        again = true;
        untold = untold === null || news === null ? null : untold.union(news);
        if (looking) return;
        looking = true;
        void (async () => {
          try {
            while (again) {
              again = false;
              const news: News = untold;
              untold = new Set();
              const value = await check(news);
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
      this.#add(named, waiter);
      signal?.addEventListener("abort", onAbort, { once: true });
      look(null);
    });
  }
}
