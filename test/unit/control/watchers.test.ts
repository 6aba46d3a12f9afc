import { expect, test } from "vitest";
import { Watchers } from "../../../src/control/watchers.ts";

test("the process is held while somebody waits, and let go with the last", async () => {
  let held = 0;
  const watchers = new Watchers(() => {
    held += 1;
    return { cancel: () => void (held -= 1) };
  });
  const known: { value?: number } = {};
  const first = watchers.until(async () => known.value);
  const second = watchers.until(async () => known.value, undefined, ["topic"]);
  expect(held).toBe(1);
  known.value = 7;
  watchers.changed(new Set(["topic"]));
  expect(await Promise.all([first, second])).toEqual([7, 7]);
  expect(held).toBe(0);
  const failing = watchers.until(async () => undefined);
  expect(held).toBe(1);
  watchers.fail(new Error("closed"));
  await expect(failing).rejects.toThrow("closed");
  expect(held).toBe(0);
});

test("a waiter of several topics looks once for a commit, and is told which of them it names", async () => {
  const watchers = new Watchers(() => undefined);
  const told: (readonly string[] | null)[] = [];
  const over = new AbortController();
  const waiting = watchers.until(async (news) => void told.push(news && [...news]), over.signal, [
    "a",
    "b",
    "c",
  ]);
  expect(watchers.size).toBe(1);
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  await turn();
  watchers.changed(new Set(["a", "other", "c"]));
  await turn();
  watchers.changed(new Set(["other"]));
  watchers.changed();
  await turn();
  // What comes during a look is told by the next one, together.
  watchers.changed(new Set(["a"]));
  watchers.changed(new Set(["b"]));
  watchers.changed(new Set(["c"]));
  await turn();
  watchers.changed(new Set(["a"]));
  watchers.lookAgain();
  watchers.changed(new Set(["b"]));
  await turn();
  expect(told).toEqual([null, ["a", "c"], ["a"], ["b", "c"], ["a"], null]);
  over.abort(new Error("over"));
  await expect(waiting).rejects.toThrow("over");
  expect(watchers.size).toBe(0);
});
