import { describe, expect, test } from "vitest";
import { RejectedError } from "../../../src/protocol/errors.ts";
import { createMemoryStore } from "../../../src/store/memory.ts";
import type { StoreTx } from "../../../src/store/port.ts";
import {
  CrashSignal,
  createFaultyStore,
  type FaultPlan,
  faultsAt,
  type WriteKind,
} from "../../../src/testing/faulty-store.ts";
import { openTree } from "../../../src/testing/store-harness.ts";
import { sampleId, sampleMail } from "../../../src/testing/store-records.ts";

const tree = sampleId("thread", "tree");

async function build(plan: FaultPlan) {
  const inner = createMemoryStore({ deepFreeze: true });
  const lease = await openTree(inner, tree);
  const store = createFaultyStore(inner, plan);
  const rename = (title: string): Promise<void> =>
    store.commit(lease, (tx: StoreTx) => tx.putTree({ ...tx.tree(tree)!, title }));
  const title = (): Promise<string | null | undefined> => inner.read((view) => view.tree(tree)?.title);
  return { inner, store, lease, rename, title };
}

describe("errors", () => {
  test("before a write store nothing, after it they store", async () => {
    const { rename, title, store } = await build(
      faultsAt({ 1: { kind: "error" }, 3: { kind: "error_after" } }),
    );
    await expect(rename("one")).rejects.toMatchObject({ code: "STORE_BUSY" });
    expect(await title()).toBe(null);
    await rename("two");
    await expect(rename("three")).rejects.toMatchObject({ code: "STORE_BUSY" });
    expect([await title(), store.writes, store.crashed]).toEqual(["three", 3, false]);
  });

  test("may be of any kind, and are asked for by the kind of write", async () => {
    const kinds: WriteKind[] = [];
    const error = new RejectedError("FENCED", "Somebody else has it.");
    const { rename, store, lease } = await build({
      onWrite: (_, kind) => {
        kinds.push(kind);
        return kind === "heartbeat" ? { kind: "error", error } : null;
      },
    });
    await rename("one");
    await store.send([sampleMail(tree, tree, 1)]);
    await expect(store.heartbeat([lease], 1)).rejects.toBe(error);
    expect(kinds).toEqual(["commit", "send", "heartbeat"]);
  });
});

describe("a crash", () => {
  test.for([
    ["crash_before", null],
    ["crash_after", "one"],
  ] as const)("%s leaves what a killed process leaves", async ([kind, expected]) => {
    const { rename, title, store } = await build(faultsAt({ 1: { kind } }));
    await expect(rename("one")).rejects.toBeInstanceOf(CrashSignal);
    await expect(rename("two")).rejects.toBeInstanceOf(CrashSignal);
    await expect(store.read((view) => view.now())).rejects.toBeInstanceOf(CrashSignal);
    await expect(store.changes()).rejects.toBeInstanceOf(CrashSignal);
    expect([await title(), store.crashed]).toEqual([expected, true]);
  });

  test("takes the answers of what was under way", async () => {
    const { rename, title } = await build(faultsAt({ 2: { kind: "crash_before" } }));
    const outcomes = await Promise.allSettled([rename("one"), rename("two")]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(await title()).toBe("one");
  });
});

describe("a store that hangs", () => {
  test("goes on when it is let", async () => {
    const { rename, title, store } = await build(faultsAt({ 1: { kind: "hang" } }));
    let done = false;
    const hanging = rename("one").then(() => {
      done = true;
    });
    await rename("two");
    expect([await title(), done]).toEqual(["two", false]);
    store.resume();
    await hanging;
    expect(await title()).toBe("one");
  });
});

describe("hints", () => {
  async function hear(hints: FaultPlan["hints"] & string): Promise<{ heard: number[]; release: () => void }> {
    const { store, inner } = await build({ hints });
    const heard: number[] = [];
    const arrived = Promise.withResolvers<void>();
    for (const n of [1, 2]) store.onHint(tree, () => void heard.push(n));
    inner.onHint(tree, () => arrived.resolve());
    await inner.send([sampleMail(tree, tree, 1)]);
    await arrived.promise;
    return { heard, release: () => store.releaseHints() };
  }

  test.for([
    ["as they come", [1, 2]],
    ["lost", []],
    ["doubled", [1, 1, 2, 2]],
    ["held", []],
  ] as const)("come %s", async ([hints, expected]) => {
    expect((await hear(hints)).heard).toEqual(expected);
  });

  test("that were held come in another order", async () => {
    const { heard, release } = await hear("held");
    release();
    expect(heard).toEqual([2, 1]);
  });
});
