import { expect, test } from "vitest";
import { FairQueue } from "../../../src/execution/fair-queue.ts";

/** A queue and the ids that left it; ids are `<branch><number>`. */
function queueOf(...ids: string[]) {
  const queue = new FairQueue();
  const left: string[] = [];
  const add = (id: string) =>
    queue.enqueue(
      async () => {
        left.push(id);
      },
      { id, branch: id.slice(0, 1) },
    );
  ids.forEach(add);
  const take = async (count = 1) => {
    for (let at = 0; at < count; at += 1) await queue.dequeue()?.();
  };
  return { queue, left, add, take };
}

test("branches take turns, and each is first come, first served", async () => {
  const { queue, left, take } = queueOf("a1", "a2", "a3", "b1", "b2", "c1");
  expect([...queue.order()]).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"]);
  await take(6);
  expect(left).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"]);
  expect(queue.dequeue()).toBeUndefined();
});

test("a branch that is chatty waits for its turn like others", async () => {
  const { left, add, take } = queueOf("a1", "b1", "b2");
  await take();
  add("a2");
  add("a3");
  await take(4);
  expect(left).toEqual(["a1", "b1", "a2", "b2", "a3"]);
});

test("a branch that comes back after it was empty is last in the rotation", async () => {
  const { left, add, take } = queueOf("a1", "b1", "c1");
  await take();
  add("a2");
  await take(3);
  expect(left).toEqual(["a1", "b1", "c1", "a2"]);
});

test("places ahead are what the order says", () => {
  const { queue } = queueOf("a1", "a2", "b1", "c1", "c2", "c3");
  const order = [...queue.order()];
  expect(order.map((id) => queue.ahead(id))).toEqual(order.map((_, at) => at));
  expect(queue.ahead("d1")).toBeNull();
});

test("who is promoted goes next, and the turn of its branch is taken", async () => {
  const { queue, left, take } = queueOf("a1", "b1", "b2", "c1");
  queue.promote("b2");
  await take(4);
  expect(left).toEqual(["b2", "a1", "c1", "b1"]);
});

test("who is removed is never served; unknown ids change nothing", async () => {
  const { queue, left, take } = queueOf("a1", "a2", "b1");
  queue.promote("a1");
  queue.remove("a1");
  queue.remove("a1");
  queue.remove("x");
  expect(queue.size).toBe(2);
  await take(3);
  expect(left).toEqual(["a2", "b1"]);
});

test("one waits once, and there are no priorities", () => {
  const { queue, add } = queueOf("a1");
  expect(() => add("a1")).toThrow("does not wait yet");
  expect(() => queue.enqueue(async () => undefined)).toThrow("needs a branch");
  expect(() => queue.setPriority("a1")).toThrow("no priorities");
  expect(queue.filter({ priority: 0 })).toHaveLength(1);
  expect(queue.filter({ priority: 1 })).toHaveLength(0);
});
