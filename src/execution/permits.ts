/**
 * Permits of running children (EXE-1, EXE-4). Pools are nested: one for the runtime, one below it for each tree, and one
 * below that for each subtree with a budget of its own; a permit counts in its pool and in all above it. Roots take none.
 * Who is asked next is `admission.ts`'s; nothing here waits, and giving back wakes nobody by itself.
 *
 * - P1 `inUse` counts the permits that are held. A run that waits has given its own back, and asks for another to go on.
 * - P2 Nothing is granted, a return included, unless `inUse` is below the limit of every pool above.
 */

/** A number of permits, `null` for no limit. */
export class PermitPool {
  readonly #own: Level;
  /** Its own level, then those above. */
  readonly #levels: readonly Level[];

  constructor(limit: number | null, above?: PermitPool) {
    this.#own = { limit, inUse: 0 };
    this.#levels = above === undefined ? [this.#own] : [this.#own, ...above.#levels];
  }

  get limit(): number | null {
    return this.#own.limit;
  }

  /** Permits that are held: the running count. */
  get inUse(): number {
    return this.#own.inUse;
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

  /** A permit even over the limit, for a run that had lent its own and has to go on now (EXE-4). */
  overdraw(): Permit {
    return new Permit(this.#levels);
  }
}

/** One run's permit, in use when made. Dispose of it when the run waits or has settled; disposing twice counts once. */
export class Permit implements Disposable {
  readonly #levels: readonly Level[];
  #held = true;

  constructor(levels: readonly Level[]) {
    this.#levels = levels;
    for (const level of levels) level.inUse += 1;
  }

  [Symbol.dispose](): void {
    if (!this.#held) return;
    this.#held = false;
    for (const level of this.#levels) level.inUse -= 1;
  }
}

interface Level {
  readonly limit: number | null;
  inUse: number;
}

function isFree(levels: readonly Level[]): boolean {
  return levels.every(({ limit, inUse }) => limit === null || inUse < limit);
}
