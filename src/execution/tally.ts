/** How often each key is held: several may hold one at once, and it is held until the last of them has let go. */
export class Tally<Key> {
  readonly #held = new Map<Key, number>();

  /** Keys that are held. */
  get size(): number {
    return this.#held.size;
  }

  has(key: Key): boolean {
    return this.#held.has(key);
  }

  /** Disposing twice counts once. */
  hold(key: Key): Disposable {
    let holds = true;
    this.#held.set(key, (this.#held.get(key) ?? 0) + 1);
    return {
      [Symbol.dispose]: () => {
        if (!holds) return;
        holds = false;
        const left = this.#held.get(key)! - 1;
        if (left === 0) this.#held.delete(key);
        else this.#held.set(key, left);
      },
    };
  }
}
