/**
 * Parsed records by id, in two generations: the older one is forgotten when the younger is full, what is asked for moves
 * up. An agent, a tree or a run is read by every plan about it; parsing it each time would be most of a commit's work.
 */
import type { Cache } from "./connection.ts";

const GENERATION = 1024;

export class RecordCache<R> implements Cache {
  #young = new Map<string, R>();
  #old = new Map<string, R>();

  get(id: string): R | undefined {
    const record = this.#young.get(id);
    if (record !== undefined) return record;
    const aged = this.#old.get(id);
    if (aged !== undefined) this.set(id, aged);
    return aged;
  }

  set(id: string, record: R): void {
    if (this.#young.size >= GENERATION) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(id, record);
  }

  clear(): void {
    if (this.#young.size > 0) this.#young = new Map();
    if (this.#old.size > 0) this.#old = new Map();
  }
}
