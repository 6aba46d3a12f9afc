/** A queue of events for one reader, which ends or breaks once. */
export class Feed<T> implements AsyncIterable<T> {
  readonly #waiting: T[] = [];
  #wake: (() => void) | null = null;
  #over: { readonly error: Error | null } | null = null;

  push(event: T): void {
    if (this.#over !== null) return;
    this.#waiting.push(event);
    this.#wake?.();
  }

  end(error: Error | null = null): void {
    this.#over ??= { error };
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) {
        yield next;
        continue;
      }
      if (this.#over !== null) {
        if (this.#over.error !== null) throw this.#over.error;
        return;
      }
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = null;
    }
  }
}
