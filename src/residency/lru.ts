/**
 * The order of use, as an intrusive doubly linked list: the links are fields of what is listed, so a touch writes a few
 * pointers and hashes nothing. It decides nothing and counts nothing but its own length.
 */
export interface LruLinks<Node> {
  older: Node | null;
  newer: Node | null;
  listed: boolean;
}

/** Least recently used first. A node is in at most one list. */
export class Lru<Node extends LruLinks<Node>> {
  #oldest: Node | null = null;
  #newest: Node | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Lists the node, or moves it, as the most recently used. */
  touch(node: Node): void {
    if (this.#newest === node) return;
    if (node.listed) this.#unlink(node);
    else {
      node.listed = true;
      this.#size += 1;
    }
    node.older = this.#newest;
    if (this.#newest === null) this.#oldest = node;
    else this.#newest.newer = node;
    this.#newest = node;
  }

  /** A node that is not listed changes nothing. */
  remove(node: Node): void {
    if (!node.listed) return;
    this.#unlink(node);
    node.listed = false;
    this.#size -= 1;
  }

  /** Oldest first. The list may not change meanwhile. */
  *[Symbol.iterator](): Generator<Node> {
    for (let node = this.#oldest; node !== null; node = node.newer) yield node;
  }

  #unlink(node: Node): void {
    if (node.older === null) this.#oldest = node.newer;
    else node.older.newer = node.newer;
    if (node.newer === null) this.#newest = node.older;
    else node.newer.older = node.older;
    node.older = null;
    node.newer = null;
  }
}
