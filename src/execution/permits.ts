/**
 * Permits of running children (EXE-1, EXE-4). Pools are nested: one for the runtime, one below it for each tree, and one
 * below that for each subtree with a budget of its own; a permit counts in its pool and in all above it. Roots take none.
 * Who is asked next is `admission.ts`'s; nothing here waits, and giving back wakes nobody by itself.
 *
 * - P1 `inUse` counts permits that are held or overdrawn; one that is lent to a wait counts nowhere.
 * - P2 Nothing is granted, a return included, unless `inUse` is below the limit of every pool above.
 * - P3 In every pool the debts equal what is in use above the limit. A debt is repaid once: by the next permit given back
 *   there, oldest debt first, or by its own run's next lend or settle, which then frees no room.
 */
import { InvariantError } from "../protocol/errors.ts";

/** A number of permits, `null` for no limit. */
export class PermitPool {
  readonly limit: number | null;
  readonly #above: PermitPool | null;
  readonly #debtors = new Set<Permit>();
  #inUse = 0;
  #lent = 0;

  constructor(limit: number | null, above: PermitPool | null = null) {
    this.limit = limit;
    this.#above = above;
  }

  /** Permits that are held or overdrawn: the running count. */
  get inUse(): number {
    return this.#inUse;
  }

  /** Permits whose runs are in a wait. */
  get lent(): number {
    return this.#lent;
  }

  /** Debts that are not repaid. */
  get overdrawn(): number {
    return this.#debtors.size;
  }

  /** Whether a permit would be granted now. */
  get available(): boolean {
    return (
      (this.limit === null || this.#inUse < this.limit) && (this.#above === null || this.#above.available)
    );
  }

  /** A permit, or null when none is free; never waits. */
  take(): Permit | null {
    if (!this.available) return null;
    const permit = new Permit(this);
    this.#use(permit);
    return permit;
  }

  /** Internal to this file: counts a permit as in use, with a debt in each pool that is thereby over its limit. */
  #use(permit: Permit): void {
    for (let pool: PermitPool | null = this; pool !== null; pool = pool.#above) {
      pool.#inUse += 1;
      if (pool.limit !== null && pool.#inUse > pool.limit) pool.#debtors.add(permit);
    }
  }

  #giveBack(permit: Permit): void {
    for (let pool: PermitPool | null = this; pool !== null; pool = pool.#above) {
      pool.#inUse -= 1;
      if (pool.#debtors.delete(permit)) continue;
      for (const oldest of pool.#debtors) {
        pool.#debtors.delete(oldest);
        break;
      }
    }
  }

  #owes(permit: Permit): boolean {
    for (let pool: PermitPool | null = this; pool !== null; pool = pool.#above) {
      if (pool.#debtors.has(permit)) return true;
    }
    return false;
  }

  #countLent(by: 1 | -1): void {
    for (let pool: PermitPool | null = this; pool !== null; pool = pool.#above) pool.#lent += by;
  }

  /** The counters, for `Permit` alone. */
  static readonly access = {
    use: (pool: PermitPool, permit: Permit) => pool.#use(permit),
    giveBack: (pool: PermitPool, permit: Permit) => pool.#giveBack(permit),
    owes: (pool: PermitPool, permit: Permit) => pool.#owes(permit),
    countLent: (pool: PermitPool, by: 1 | -1) => pool.#countLent(by),
  };
}

/** One run's permit. Dispose of it when the run has settled; disposing twice counts once. */
export class Permit implements Disposable {
  readonly #pool: PermitPool;
  #state: "in_use" | "lent" | "settled" = "in_use";

  constructor(pool: PermitPool) {
    this.#pool = pool;
  }

  get state(): "in_use" | "lent" | "settled" {
    return this.#state;
  }

  /** True while its debt is not repaid. */
  get overdrawn(): boolean {
    return PermitPool.access.owes(this.#pool, this);
  }

  /** The run begins a wait. Give others a chance afterwards: pump. */
  lend(): void {
    this.#require("in_use", "lent");
    PermitPool.access.giveBack(this.#pool, this);
    PermitPool.access.countLent(this.#pool, 1);
    this.#state = "lent";
  }

  /** The wait has ended. False when none is free: the run goes on waiting for it. */
  reclaim(): boolean {
    this.#require("lent", "reclaimed");
    if (!this.#pool.available) return false;
    this.#takeAgain();
    return true;
  }

  /** The wait had to answer before a permit was free (EXE-4): in use without having been granted. */
  overdraw(): void {
    this.#require("lent", "overdrawn");
    this.#takeAgain();
  }

  [Symbol.dispose](): void {
    if (this.#state === "in_use") PermitPool.access.giveBack(this.#pool, this);
    if (this.#state === "lent") PermitPool.access.countLent(this.#pool, -1);
    this.#state = "settled";
  }

  #takeAgain(): void {
    PermitPool.access.countLent(this.#pool, -1);
    PermitPool.access.use(this.#pool, this);
    this.#state = "in_use";
  }

  #require(state: "in_use" | "lent", wanted: string): void {
    if (this.#state !== state) {
      throw new InvariantError(`A permit that is ${this.#state} cannot be ${wanted}.`, {
        state: this.#state,
        wanted,
      });
    }
  }
}
