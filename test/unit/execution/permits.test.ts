import { expect, test } from "vitest";
import { type Permit, PermitPool } from "../../../src/execution/permits.ts";

function must(permit: Permit | null): Permit {
  if (permit === null) throw new Error("no permit was free");
  return permit;
}

test("U-14 permits count running children and come back when one ends", () => {
  const pool = new PermitPool(1);
  {
    using _ = must(pool.take());
    expect(pool.inUse).toBe(1);
    expect(pool.take()).toBeNull();
  }
  expect(pool.inUse).toBe(0);
  expect(pool.take()).not.toBeNull();
});

test("a limit of none grants nothing, no limit grants all", () => {
  expect(new PermitPool(0).take()).toBeNull();
  const unlimited = new PermitPool(null);
  for (let at = 0; at < 1_000; at += 1) must(unlimited.take());
  expect(unlimited.inUse).toBe(1_000);
});

test("a permit counts in its tree, in its subtree and in the runtime", () => {
  const runtime = new PermitPool(3);
  const tree = new PermitPool(2, runtime);
  const subtree = new PermitPool(1, tree);
  const other = new PermitPool(null, runtime);
  const inner = must(subtree.take());
  expect(subtree.take()).toBeNull();
  must(tree.take());
  expect(tree.take()).toBeNull();
  must(other.take());
  expect(other.take()).toBeNull();
  inner[Symbol.dispose]();
  expect([runtime.inUse, tree.inUse, subtree.inUse, other.inUse]).toEqual([2, 1, 0, 1]);
});

test("U-27 giving back twice counts once", () => {
  const pool = new PermitPool(2);
  const [permit, other] = [must(pool.take()), must(pool.take())];
  for (const one of [permit, permit, permit]) one[Symbol.dispose]();
  expect([pool.inUse, pool.free]).toEqual([1, 1]);
  other[Symbol.dispose]();
  expect([pool.inUse, pool.free]).toEqual([0, 2]);
});
