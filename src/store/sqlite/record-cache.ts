/**
 * Parsed records by id, in two generations: the older one is forgotten when the younger is full, what is asked for moves
 * up. An agent, a tree or a run is read by every plan about it; parsing it each time would be most of a commit's work.
 *
 * - M1 A generation is full by its records or by their weights, so that large bodies do not stay in memory (RES-7): what is
 *   held weighs at most twice `GENERATION_WEIGHT`. A record that outweighs a generation is not held at all.
 */
import type { Cache } from "./connection.ts";

const GENERATION = 1024;
/** Characters of stored bodies: room for as many agents as a generation has records. */
export const GENERATION_WEIGHT = 4 * 1024 * 1024;

interface Held<R> {
  readonly record: R;
  readonly weight: number;
}

export class RecordCache<R> implements Cache {
  #young = new Map<string, Held<R>>();
  #old = new Map<string, Held<R>>();
  #youngWeight = 0;
  #oldWeight = 0;

  /** The weights of all that it holds. */
  get weight(): number {
    return this.#youngWeight + this.#oldWeight;
  }

  get(id: string): R | undefined {
    const held = this.#young.get(id);
    if (held !== undefined) return held.record;
    const aged = this.#old.get(id);
    if (aged !== undefined) this.#add(id, aged);
    return aged?.record;
  }

  /** Records without a weight are bounded by their number alone. */
  set(id: string, record: R, weight = 0): void {
    this.#youngWeight -= this.#young.get(id)?.weight ?? 0;
    this.#young.delete(id);
    if (weight <= GENERATION_WEIGHT) this.#add(id, { record, weight });
    else this.#forgetOld(id);
  }

  clear(): void {
    if (this.#young.size > 0) this.#young = new Map();
    if (this.#old.size > 0) this.#old = new Map();
    this.#youngWeight = 0;
    this.#oldWeight = 0;
  }

  /** It is not among the young ones. */
  #add(id: string, held: Held<R>): void {
    if (this.#young.size >= GENERATION || this.#youngWeight + held.weight > GENERATION_WEIGHT) {
      this.#old = this.#young;
      this.#oldWeight = this.#youngWeight;
      this.#young = new Map();
      this.#youngWeight = 0;
    }
    this.#young.set(id, held);
    this.#youngWeight += held.weight;
  }

  /** An earlier version of what is not held must not be found. */
  #forgetOld(id: string): void {
    this.#oldWeight -= this.#old.get(id)?.weight ?? 0;
    this.#old.delete(id);
  }
}
