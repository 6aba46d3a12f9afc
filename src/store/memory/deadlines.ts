/**
 * The earliest deadline among many, in a binary heap. Entries are never removed when a wait ends: the top is checked
 * against the truth when it is asked for, so that arming and ending a wait cost next to nothing.
 */
interface Entry {
  readonly at: number;
  readonly id: string;
}

export class Deadlines {
  readonly #heap: Entry[] = [];

  add(at: number, id: string): void {
    const heap = this.#heap;
    let child = heap.push({ at, id }) - 1;
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (heap[parent]!.at <= at) break;
      this.#swap(parent, child);
      child = parent;
    }
  }

  /** The earliest deadline of an id that still has it. */
  earliest(isOpen: (id: string, at: number) => boolean): number | null {
    for (let top = this.#heap[0]; top !== undefined; top = this.#heap[0]) {
      if (isOpen(top.id, top.at)) return top.at;
      this.#removeTop();
    }
    return null;
  }

  #removeTop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    heap[0] = last;
    for (let parent = 0; ;) {
      const left = 2 * parent + 1;
      if (left >= heap.length) return;
      const right = left + 1;
      const child = right < heap.length && heap[right]!.at < heap[left]!.at ? right : left;
      if (heap[parent]!.at <= heap[child]!.at) return;
      this.#swap(parent, child);
      parent = child;
    }
  }

  #swap(a: number, b: number): void {
    const kept = this.#heap[a]!;
    this.#heap[a] = this.#heap[b]!;
    this.#heap[b] = kept;
  }
}
