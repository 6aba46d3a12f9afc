import { describe, expect, test } from "vitest";
import { type Permit, PermitPool } from "../../../src/execution/permits.ts";

function must(permit: Permit | null): Permit {
  if (permit === null) throw new Error("no permit was free");
  return permit;
}

test("U-14 permits count running children and come back when one ends", () => {
  const pool = new PermitPool(1);
  {
    using first = must(pool.take());
    expect(first.state).toBe("in_use");
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

test("U-27 giving back twice counts once, in whatever state", () => {
  const pool = new PermitPool(2);
  const permit = must(pool.take());
  const lent = must(pool.take());
  lent.lend();
  for (const one of [permit, permit, lent, lent]) one[Symbol.dispose]();
  expect([pool.inUse, pool.lent]).toEqual([0, 0]);
});

test("a permit that is lent is free for others, and taken again only when one is", () => {
  const pool = new PermitPool(1);
  const parent = must(pool.take());
  parent.lend();
  expect([pool.inUse, pool.lent]).toEqual([0, 1]);
  const child = must(pool.take());
  expect(parent.reclaim()).toBe(false);
  child[Symbol.dispose]();
  expect(parent.reclaim()).toBe(true);
  expect([pool.inUse, pool.lent]).toEqual([1, 0]);
});

test.for([
  ["lent twice", (permit: Permit) => (permit.lend(), permit.lend())],
  ["reclaimed while in use", (permit: Permit) => permit.reclaim()],
  ["overdrawn while in use", (permit: Permit) => permit.overdraw()],
  ["lent after the end", (permit: Permit) => (permit[Symbol.dispose](), permit.lend())],
] as const)("a permit cannot be %s", ([, misuse]) => {
  expect(() => misuse(must(new PermitPool(5).take()))).toThrow("cannot be");
});

describe("an overdrawn permit", () => {
  function overdrawn(limit: number) {
    const pool = new PermitPool(limit);
    const waiting = must(pool.take());
    waiting.lend();
    const others = Array.from({ length: limit }, () => must(pool.take()));
    waiting.overdraw();
    return { pool, waiting, others };
  }

  test("is counted and visible, and nothing is granted meanwhile, returns included", () => {
    const { pool, waiting, others } = overdrawn(2);
    expect([pool.inUse, pool.overdrawn, waiting.overdrawn]).toEqual([3, 1, true]);
    others[0]!.lend();
    // In use is back at the limit: neither a newcomer nor the return goes.
    expect([pool.inUse, pool.overdrawn]).toEqual([2, 0]);
    expect(pool.take()).toBeNull();
    expect(others[0]!.reclaim()).toBe(false);
  });

  test("is repaid by the next permit given back", () => {
    const { pool, waiting, others } = overdrawn(1);
    others[0]![Symbol.dispose]();
    expect([pool.inUse, pool.overdrawn, waiting.overdrawn]).toEqual([1, 0, false]);
    // It holds an ordinary permit now, whose return frees room.
    waiting[Symbol.dispose]();
    expect(pool.available).toBe(true);
  });

  test.for(["lend", "settle"] as const)("is repaid by its own %s, which gives back nothing", (how) => {
    const { pool, waiting } = overdrawn(1);
    if (how === "lend") waiting.lend();
    else waiting[Symbol.dispose]();
    expect([pool.inUse, pool.overdrawn, pool.available]).toEqual([1, 0, false]);
  });

  test("owes nothing when a permit was free after all", () => {
    const pool = new PermitPool(1);
    const waiting = must(pool.take());
    waiting.lend();
    waiting.overdraw();
    expect([pool.inUse, pool.overdrawn]).toEqual([1, 0]);
  });

  test("can be in debt with the runtime alone, and any tree repays it", () => {
    const runtime = new PermitPool(1);
    const tree = new PermitPool(2, runtime);
    const other = new PermitPool(2, runtime);
    const waiting = must(tree.take());
    waiting.lend();
    const foreign = must(other.take());
    waiting.overdraw();
    expect([runtime.overdrawn, tree.overdrawn, tree.available]).toEqual([1, 0, false]);
    foreign[Symbol.dispose]();
    expect([runtime.overdrawn, waiting.overdrawn]).toEqual([0, false]);
  });

  test("repays no other's debt with its own end", () => {
    const pool = new PermitPool(1);
    const first = must(pool.take());
    first.lend();
    const second = must(pool.take());
    second.lend();
    must(pool.take());
    first.overdraw();
    second.overdraw();
    second.lend();
    expect([first.overdrawn, pool.overdrawn, pool.inUse]).toEqual([true, 1, 2]);
  });

  test("is repaid oldest first", () => {
    const pool = new PermitPool(2);
    const [first, second] = [must(pool.take()), must(pool.take())];
    first.lend();
    second.lend();
    const others = [must(pool.take()), must(pool.take())];
    second.overdraw();
    first.overdraw();
    others[0]![Symbol.dispose]();
    expect([second.overdrawn, first.overdrawn, pool.overdrawn]).toEqual([false, true, 1]);
  });
});
