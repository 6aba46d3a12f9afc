/**
 * Back-off, one gate per provider, shared by all its runs (RUN-4). Pure of providers: control tells it how requests end.
 * Whether and when the failed request itself is sent again is `failed`'s answer; waiting for it is the caller's.
 *
 * - B1 A provider that is overloaded holds back everybody until its retry-after, or for the delay of the retry.
 * - B2 Those held back go on one after the other, in the order in which they came, never all at once.
 * - B3 There is at most one timer, and none while nobody waits. A listener on a signal goes with its wait.
 */
import type { Clock, Timer } from "../platform/clock.ts";
import type { Random } from "../platform/ids.ts";
import { CoppiceError, type TransientError } from "../protocol/errors.ts";

export interface BackOffOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly firstDelayMs?: number;
  readonly longestDelayMs?: number;
  /** A retry-after above this is cut to it. */
  readonly longestHoldMs?: number;
  /** Between two that go on after a hold; half to whole of it. */
  readonly staggerMs?: number;
}

export interface RetryDecision {
  readonly retry: boolean;
  /** Wait so long, then pass `beforeRequest` again. 0 without a retry. */
  readonly delayMs: number;
}

interface Held {
  readonly resume: () => void;
}

export class BackOff {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #firstDelayMs: number;
  readonly #longestDelayMs: number;
  readonly #longestHoldMs: number;
  readonly #staggerMs: number;
  readonly #held = new Set<Held>();
  /** Overloads in a row; those that were already under way when a hold began are the same one. */
  #overloads = 0;
  /** Monotonic. */
  #openAt = Number.NEGATIVE_INFINITY;
  #timer: Timer | null = null;

  constructor(options: BackOffOptions) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.#firstDelayMs = options.firstDelayMs ?? 500;
    this.#longestDelayMs = options.longestDelayMs ?? 30_000;
    this.#longestHoldMs = options.longestHoldMs ?? 300_000;
    this.#staggerMs = options.staggerMs ?? 100;
  }

  /** How many requests are held back now. */
  get waiting(): number {
    return this.#held.size;
  }

  /** Milliseconds until the gate opens; 0 when it is open. */
  get heldForMs(): number {
    return Math.max(0, this.#openAt - this.#clock.monotonic());
  }

  /**
   * Resolves when a request may be sent: at once when nothing is held back.
   * @throws the reason of the signal.
   */
  beforeRequest(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    if (this.#held.size === 0 && this.heldForMs === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const held: Held = {
        resume: () => {
          signal.removeEventListener("abort", onAbort);
          resolve();
        },
      };
      const onAbort = (): void => {
        this.#held.delete(held);
        if (this.#held.size === 0) this.#disarm();
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#held.add(held);
      if (this.#timer === null) this.#arm(this.heldForMs);
    });
  }

  /**
   * A request has failed. `attempt` is 1 for its first try, `retries` is how many may follow it (`limits.retries`); `visible`
   * says that output of it was already shown, after which it is never sent again.
   */
  failed(error: unknown, attempt: number, visible: boolean, retries: number): RetryDecision {
    if (!isPassing(error)) return GIVE_UP;
    const overloaded = error.code === "PROVIDER_OVERLOADED";
    if (overloaded && this.heldForMs === 0) this.#overloads += 1;
    const delayMs = this.#delay(
      overloaded ? Math.max(attempt, this.#overloads) : attempt,
      error.retryAfterMs,
    );
    if (overloaded) this.#hold(delayMs);
    return visible || attempt > retries ? GIVE_UP : { retry: true, delayMs };
  }

  /** A request was accepted. */
  succeeded(): void {
    this.#overloads = 0;
  }

  /** Exponential, half of it jitter, and never below what the provider asked for. */
  #delay(level: number, retryAfterMs: number | null): number {
    const full = Math.min(this.#longestDelayMs, this.#firstDelayMs * 2 ** Math.min(level - 1, 30));
    const jittered = Math.ceil(full * (0.5 + 0.5 * this.#random.fraction()));
    return retryAfterMs === null ? jittered : Math.max(Math.min(retryAfterMs, this.#longestHoldMs), 0);
  }

  #hold(ms: number): void {
    const until = this.#clock.monotonic() + ms;
    if (until <= this.#openAt) return;
    this.#openAt = until;
    if (this.#held.size > 0) this.#arm(ms);
  }

  #arm(ms: number): void {
    this.#disarm();
    this.#timer = this.#clock.setTimer(ms, () => this.#resumeOne(), { keepAlive: true });
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #resumeOne(): void {
    this.#timer = null;
    const [first] = this.#held;
    if (first === undefined) return;
    this.#held.delete(first);
    if (this.#held.size > 0) {
      this.#arm(Math.ceil(this.#staggerMs * (0.5 + 0.5 * this.#random.fraction())));
    }
    first.resume();
  }
}

/** A failure of the provider that may be over soon. */
function isPassing(error: unknown): error is TransientError {
  return CoppiceError.is(error) && error.family === "transient" && error.code.startsWith("PROVIDER_");
}

const GIVE_UP: RetryDecision = { retry: false, delayMs: 0 };
