import { expect, test } from "vitest";
import { Lru, type LruLinks } from "../../../src/residency/lru.ts";

class Node implements LruLinks<Node> {
  readonly name: string;
  older: Node | null = null;
  newer: Node | null = null;
  listed = false;
  constructor(name: string) {
    this.name = name;
  }
}

const [a, b, c] = ["a", "b", "c"].map((name) => new Node(name)) as [Node, Node, Node];

test("the list is in the order of use, whatever is touched or removed", () => {
  const lru = new Lru<Node>();
  const order = () => [...lru].map(({ name }) => name).join("");
  for (const node of [a, b, c]) lru.touch(node);
  expect(order()).toBe("abc");
  lru.touch(a);
  expect(order()).toBe("bca");
  lru.touch(a);
  lru.touch(c);
  expect(order()).toBe("bac");
  lru.remove(a);
  lru.remove(a);
  expect([order(), lru.size]).toEqual(["bc", 2]);
  lru.touch(a);
  expect([order(), lru.size]).toEqual(["bca", 3]);
  for (const node of [b, c, a]) lru.remove(node);
  expect([order(), lru.size]).toEqual(["", 0]);
  expect([a, b, c].every(({ older, newer }) => older === null && newer === null)).toBe(true);
});
