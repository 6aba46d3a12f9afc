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
  readonly #own: Level;
  /** Its own level, then those above. */
  readonly #levels: readonly Level[];

  constructor(limit: number | null, above?: PermitPool) {
    this.#own = { limit, inUse: 0, lent: 0, debtors: new Set() };
    this.#levels = above === undefined ? [this.#own] : [this.#own, ...above.#levels];
  }

  get limit(): number | null {
    return this.#own.limit;
  }

  /** Permits that are held or overdrawn: the running count. */
  get inUse(): number {
    return this.#own.inUse;
  }

  /** Permits whose runs are in a wait. */
  get lent(): number {
    return this.#own.lent;
  }

  /** Debts that are not repaid. */
  get overdrawn(): number {
    return this.#own.debtors.size;
  }

  /** Permits that would be granted now, one after the other. */
  get free(): number {
    return Math.min(
      ...this.#levels.map(({ limit, inUse }) => (limit === null ? Infinity : Math.max(0, limit - inUse))),
    );
  }

  /** Whether a permit would be granted now. */
  get available(): boolean {
    return isFree(this.#levels);
  }

  /** A permit, or null when none is free; never waits. */
  take(): Permit | null {
    return isFree(this.#levels) ? new Permit(this.#levels) : null;
  }
}

/** One run's permit, in use when made. Dispose of it when the run has settled; disposing twice counts once. */
export class Permit implements Disposable {
  readonly #levels: readonly Level[];
  #state: "in_use" | "lent" | "settled" = "in_use";

  constructor(levels: readonly Level[]) {
    this.#levels = levels;
    this.#use();
  }

  get state(): "in_use" | "lent" | "settled" {
    return this.#state;
  }

  /** True while a debt of it is not repaid. */
  get overdrawn(): boolean {
    return this.#levels.some((level) => level.debtors.has(this));
  }

  /** The run begins a wait. Pump afterwards, so that others get their chance. */
  lend(): void {
    this.#require("in_use", "lent");
    this.#giveBack();
    for (const level of this.#levels) level.lent += 1;
    this.#state = "lent";
  }

  /** The wait has ended. False when none is free: the run goes on waiting for it. */
  reclaim(): boolean {
    this.#require("lent", "reclaimed");
    if (!isFree(this.#levels)) return false;
    this.#unlend();
    this.#use();
    return true;
  }

  /** The wait has to answer before a permit is free (EXE-4): in use without having been granted. */
  overdraw(): void {
    this.#require("lent", "overdrawn");
    this.#unlend();
    this.#use();
  }

  [Symbol.dispose](): void {
    if (this.#state === "in_use") this.#giveBack();
    if (this.#state === "lent") this.#unlend();
    this.#state = "settled";
  }

  /** Leaves a debt in each pool that is over its limit thereby. */
  #use(): void {
    this.#state = "in_use";
    for (const level of this.#levels) {
      level.inUse += 1;
      if (level.limit !== null && level.inUse > level.limit) level.debtors.add(this);
    }
  }

  #giveBack(): void {
    for (const level of this.#levels) {
      level.inUse -= 1;
      if (level.debtors.delete(this)) continue;
      const [oldest] = level.debtors;
      if (oldest !== undefined) level.debtors.delete(oldest);
    }
  }

  #unlend(): void {
    for (const level of this.#levels) level.lent -= 1;
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

interface Level {
  readonly limit: number | null;
  inUse: number;
  lent: number;
  /** Oldest debt first. */
  readonly debtors: Set<Permit>;
}

function isFree(levels: readonly Level[]): boolean {
  return levels.every(({ limit, inUse }) => limit === null || inUse < limit);
}
