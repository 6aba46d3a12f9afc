/** The line of threads behind a fork. */
import { describe, expect, test } from "vitest";
import { ancestorsOf, type OriginOf, requireDepth } from "../../../src/lineage/chain.ts";
import type { ThreadId } from "../../../src/protocol/ids.ts";
import { point } from "./records.ts";

/** `thread_0` is the root; each next one was forked from the one before, at its own number. */
const line = (length: number): OriginOf => {
  const known = new Map<ThreadId, ReturnType<OriginOf>>([["thread_0", null]]);
  for (let at = 1; at <= length; at += 1) {
    known.set(`thread_${at}`, point({ threadId: `thread_${at - 1}`, ordinal: at, items: at * 2 }));
  }
  return (id) => known.get(id);
};
const refused = (code: string) => expect.objectContaining({ code }) as Error;

describe("ancestors", () => {
  test("S2-23 C5.22 C15.7 come oldest first, each up to its own cut", () => {
    const { segments, complete } = ancestorsOf("thread_3", line(3), 10);
    expect(complete).toBe(true);
    expect(
      segments.map(({ threadId, child, until }) => [threadId, child, until.ordinal, until.items]),
    ).toEqual([
      ["thread_0", "thread_1", 1, 2],
      ["thread_1", "thread_2", 2, 4],
      ["thread_2", "thread_3", 3, 6],
    ]);
  });

  test("C5.22 of a thread that is no fork are none", () => {
    expect(ancestorsOf("thread_0", line(0), 10)).toEqual({ segments: [], complete: true });
  });

  test("C5.22 go on with the thread that owns the point, which need not be the parent", () => {
    const origins: OriginOf = (id) =>
      id === "thread_9" ? point({ threadId: "thread_1", ordinal: 1 }) : line(3)(id);
    expect(ancestorsOf("thread_9", origins, 10).segments.map(({ threadId }) => threadId)).toEqual([
      "thread_0",
      "thread_1",
    ]);
  });

  test("C15.7 C18.10 beyond the depth the oldest are left out, and it is said", () => {
    const { segments, complete } = ancestorsOf("thread_12", line(12), 10);
    expect(complete).toBe(false);
    expect(segments.map(({ threadId }) => threadId)).toEqual(
      Array.from({ length: 10 }, (_, at) => `thread_${at + 2}`),
    );
    expect(ancestorsOf("thread_10", line(10), 10).complete).toBe(true);
  });

  test.for<[string, OriginOf]>([
    ["a thread forked from itself", () => point({ threadId: "thread_1" })],
    ["two forked from each other", (id) => point({ threadId: id === "thread_1" ? "thread_2" : "thread_1" })],
    [
      "a loop further up",
      (id) =>
        point({ threadId: id === "thread_1" ? "thread_2" : id === "thread_2" ? "thread_3" : "thread_2" }),
    ],
  ])("C1.2 C15.7 %s is a cycle", ([, origins]) => {
    expect(() => ancestorsOf("thread_1", origins, 25)).toThrow(refused("LINEAGE_CYCLE"));
    expect(() => requireDepth("thread_1", origins, 25)).toThrow(refused("LINEAGE_CYCLE"));
  });

  test("C19 that are gone are refused", () => {
    expect(() =>
      ancestorsOf("thread_1", (id) => (id === "thread_1" ? point({ threadId: "thread_0" }) : undefined), 9),
    ).toThrow(refused("THREAD_NOT_FOUND"));
  });
});

test("C5.22 C18.10 a fork may have as many ancestors as the limit, and no more", () => {
  requireDepth("thread_24", line(24), 25);
  expect(() => requireDepth("thread_25", line(25), 25)).toThrow(refused("LINEAGE_DEPTH_EXCEEDED"));
  expect(() => requireDepth("thread_40", line(40), 25)).toThrow(refused("LINEAGE_DEPTH_EXCEEDED"));
});
