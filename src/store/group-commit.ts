/**
 * Group commit: what is asked for in one tick is one transaction (S4), a flood is several. Owns the queue, its single
 * flush a tick, waiting for a lock that another process holds, and taking turns with it; what a transaction is, the
 * backend knows.
 *
 * - G1 Operations run and settle in the order in which they were submitted; what is urgent, the renewal of leases, goes before
 *   all that is queued, so that no pile of heavy ones costs the lease (REC-6).
 * - G2 A busy backend never blocks the event loop: the group is tried again, first at once, then by timer, until
 *   `busyTimeoutMs` has passed for its oldest operations.
 * - G3 After a group, a process that has seen another one write lets it have a turn: it waits until the other has
 *   written, or for as long as its own group took twice over. Without that, a writer who writes again at once starves
 *   the others, since SQLite's lock knows no queue.
 * - G4 A group holds up the event loop for about `GROUP_MS` at most: what is queued beyond that is the next tick's. How
 *   many that is, the groups before tell; one whose operations are heavier than theirs ends after `LONGEST_GROUP_MS`.
 */
import type { TreeId } from "../protocol/ids.ts";
import type { Clock } from "../platform/clock.ts";
import { CoppiceError } from "../protocol/errors.ts";
import type { Backend, BackendTx, Operation } from "./backend.ts";

interface Pending extends Operation {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Attempts without a timer in between: a group of another process is mostly over within a millisecond. */
const SPINS = 100;
/** Waiting for longer than this, there is no hurry any more. */
const PATIENT_AFTER_MS = 100;
const LONGEST_PAUSE_MS = 8;
const SHORTEST_TURN_MS = 2;
const GROUP_MS = 5;
const LONGEST_GROUP_MS = 50;
/** Small groups are mostly the fixed costs of a transaction and tell nothing. */
const TELLING_GROUP = 32;
const SMALLEST_PORTION = 64;
const FIRST_PORTION = 1000;

export class GroupCommit {
  readonly #backend: Backend;
  readonly #clock: Clock;
  readonly #busyTimeoutMs: number;
  readonly #afterCommit: () => void;
  #queue: Pending[] = [];
  #armed = false;
  #portion = FIRST_PORTION;
  #idle: (() => void)[] = [];
  /** Since when the lock could not be had, how often it was tried, and which operations were there at the start. */
  #busy: { readonly since: number; tries: number; readonly waiting: ReadonlySet<Pending> } | null = null;
  #turn = { version: 0, endedAt: 0, tookMs: 0, contended: false, polls: 0 };

  constructor(backend: Backend, clock: Clock, busyTimeoutMs: number, afterCommit: () => void) {
    this.#backend = backend;
    this.#clock = clock;
    this.#busyTimeoutMs = busyTimeoutMs;
    this.#afterCommit = afterCommit;
  }

  submit<T>(tree: TreeId | null, run: (tx: BackendTx) => T, urgent = false): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const pending = { tree, run, outcome: null, resolve: resolve as (value: unknown) => void, reject };
      if (urgent) this.#queue.unshift(pending);
      else this.#queue.push(pending);
      if (this.#armed) return;
      this.#armed = true;
      this.#clock.defer(() => this.#flush());
    });
  }

  /** Resolves when nothing is queued any more. */
  drained(): Promise<void> {
    return this.#armed ? new Promise((resolve) => this.#idle.push(resolve)) : Promise.resolve();
  }

  #flush(): void {
    const startedAt = this.#clock.monotonic();
    let group: readonly Pending[] =
      this.#queue.length > this.#portion ? this.#queue.slice(0, this.#portion) : this.#queue;
    let failure: unknown;
    let failed = false;
    try {
      if (this.#othersTurn(startedAt)) {
        this.#tryAgain(this.#turn.polls, 1);
        return;
      }
      const until = startedAt + LONGEST_GROUP_MS;
      const ran = this.#backend.transact(group, () => this.#clock.monotonic() >= until);
      if (ran < group.length) group = group.slice(0, ran);
      this.#queue = group === this.#queue ? [] : this.#queue.slice(ran);
      this.#learn(group.length, this.#clock.monotonic() - startedAt);
    } catch (error) {
      if (isBusy(error) && this.#waitForLock(startedAt)) return;
      failed = true;
      failure = error;
      group = isBusy(error) ? this.#waitedTooLong() : this.#queue.splice(0, group.length);
    }
    this.#busy = null;
    this.#endTurn(startedAt, failed);
    if (!failed) this.#afterCommit();
    for (const { outcome, resolve, reject } of group) {
      if (failed || outcome === null) reject(failure);
      else if ("error" in outcome) reject(outcome.error);
      else resolve(outcome.value);
    }
    this.#armed = this.#queue.length > 0;
    if (this.#armed) this.#clock.defer(() => this.#flush());
    else for (const resolve of this.#idle.splice(0)) resolve();
  }

  #learn(operations: number, tookMs: number): void {
    if (operations < TELLING_GROUP) return;
    this.#portion =
      tookMs === 0 ? Infinity : Math.max(SMALLEST_PORTION, Math.floor((operations * GROUP_MS) / tookMs));
  }

  /** Arranges another attempt; false when the time for it is over. */
  #waitForLock(now: number): boolean {
    this.#busy ??= { since: now, tries: 0, waiting: new Set(this.#queue) };
    const busy = this.#busy;
    const waited = now - busy.since;
    if (waited >= this.#busyTimeoutMs) return false;
    busy.tries += 1;
    this.#turn.contended = true;
    // Not all who wait come back at the same moment.
    const pause = waited < PATIENT_AFTER_MS ? 1 : 1 + (busy.tries % LONGEST_PAUSE_MS);
    this.#tryAgain(busy.tries, Math.min(pause, this.#busyTimeoutMs - waited));
    return true;
  }

  /** Takes out those who have waited from the start; what is urgent and came later stands before them. */
  #waitedTooLong(): readonly Pending[] {
    const { waiting } = this.#busy!;
    this.#queue = this.#queue.filter((pending) => !waiting.has(pending));
    return [...waiting];
  }

  #tryAgain(tries: number, pauseMs: number): void {
    if (tries < SPINS) this.#clock.defer(() => this.#flush());
    else this.#clock.setTimer(pauseMs, () => this.#flush(), { keepAlive: true });
  }

  #othersTurn(now: number): boolean {
    const turn = this.#turn;
    const version = this.#backend.foreignVersion();
    if (version !== turn.version) {
      turn.contended = turn.endedAt > 0;
      turn.version = version;
      return false;
    }
    if (!turn.contended || this.#busy !== null) return false;
    turn.polls += 1;
    const patience = Math.max(SHORTEST_TURN_MS, 2 * turn.tookMs);
    if (now - turn.endedAt < patience) return true;
    turn.contended = false;
    return false;
  }

  #endTurn(startedAt: number, failed: boolean): void {
    const endedAt = this.#clock.monotonic();
    const { version, contended } = this.#turn;
    this.#turn = { version, contended: contended && !failed, endedAt, tookMs: endedAt - startedAt, polls: 0 };
  }
}

export function isBusy(error: unknown): boolean {
  return CoppiceError.is(error) && error.code === "STORE_BUSY";
}
