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
  const second = watchers.until(async () => known.value, undefined, "topic");
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
