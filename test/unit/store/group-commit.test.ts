import { describe, expect, test } from "vitest";
import type { Timer } from "../../../src/platform/clock.ts";
import { TransientError } from "../../../src/protocol/errors.ts";
import type { Backend, BackendTx, Operation } from "../../../src/store/backend.ts";
import { GroupCommit } from "../../../src/store/group-commit.ts";

/** Time moves only by `step`, which runs the next thing that was put off. */
function createSteps() {
  let now = 0;
  const queue: { readonly at: number; readonly run: () => void }[] = [];
  const put = (ms: number, run: () => void): Timer => {
    queue.push({ at: now + ms, run });
    queue.sort((a, b) => a.at - b.at);
    return { cancel: () => undefined };
  };
  return {
    clock: {
      now: () => now,
      monotonic: () => now,
      setTimer: put,
      defer: (run: () => void) => void put(0, run),
    },
    get now() {
      return now;
    },
    get left() {
      return queue.length;
    },
    step() {
      const next = queue.shift();
      if (next === undefined) throw new Error("Nothing was put off.");
      now = Math.max(now, next.at);
      next.run();
    },
    spend: (ms: number) => {
      now += ms;
    },
  };
}

/** A backend whose lock the test holds. */
function createBackend(onGroup: (size: number) => void = () => undefined) {
  const state = { locked: false, version: 0, groups: [] as number[], failure: null as Error | null };
  const backend: Backend = {
    kind: "test",
    name: "test",
    context: { tree: null, told: new Set() },
    transact(operations: readonly Operation[], isEnough: () => boolean) {
      if (state.locked) throw new TransientError("STORE_BUSY", "locked");
      if (state.failure !== null) throw state.failure;
      let ran = 0;
      for (const one of operations) {
        one.outcome = { value: one.run({} as BackendTx) };
        ran += 1;
        if (isEnough()) break;
      }
      state.groups.push(ran);
      onGroup(ran);
      return ran;
    },
    read: () => {
      throw new Error("not used");
    },
    foreignVersion: () => state.version,
    close: () => undefined,
  };
  return { backend, state };
}

function build(busyTimeoutMs = 1000, onGroup?: (size: number) => void) {
  const steps = createSteps();
  const { backend, state } = createBackend(onGroup);
  return { steps, state, group: new GroupCommit(backend, steps.clock, busyTimeoutMs, () => undefined) };
}

describe("one tick", () => {
  test("is one group", async () => {
    const { steps, state, group } = build();
    const values = [1, 2, 3].map((n) => group.submit(null, () => n));
    expect([steps.left, state.groups]).toEqual([1, []]);
    steps.step();
    expect([steps.left, state.groups]).toEqual([0, [3]]);
    expect(await Promise.all(values)).toEqual([1, 2, 3]);
    void group.submit(null, () => 4);
    steps.step();
    expect(state.groups).toEqual([3, 1]);
  });

  test("REC-6 ends when its operations turn out to be heavy, and goes on with the rest next", async () => {
    const { steps, state, group } = build();
    const done = [1, 2, 3].map((n) =>
      group.submit(null, () => {
        steps.spend(n * 20);
        return n;
      }),
    );
    steps.step();
    expect(state.groups).toEqual([2]);
    steps.step();
    expect([state.groups, await Promise.all(done)]).toEqual([
      [2, 1],
      [1, 2, 3],
    ]);
  });

  test("REC-6 lets what is urgent go before all that is heavy and queued, so that it waits for one operation at most", async () => {
    const { steps, state, group } = build();
    const ran: string[] = [];
    const heavy = (name: string) =>
      group.submit(null, () => {
        ran.push(name);
        steps.spend(1000);
      });
    const answers = ["one", "two", "three", "four"].map(heavy);
    steps.step();
    const renewal = group.submit(null, () => ran.push("renewal"), true);
    steps.step();
    expect([ran, state.groups]).toEqual([
      ["one", "renewal", "two"],
      [1, 2],
    ]);
    await renewal;
    steps.step();
    steps.step();
    await Promise.all(answers);
    expect(ran.slice(3)).toEqual(["three", "four"]);
  });

  test("fails as a whole when its transaction does, and the next one does not", async () => {
    const { steps, state, group } = build();
    const failed = Promise.allSettled([1, 2].map((n) => group.submit(null, () => n)));
    state.failure = new Error("no space");
    steps.step();
    expect((await failed).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    state.failure = null;
    const next = group.submit(null, () => 3);
    steps.step();
    expect(await next).toBe(3);
  });

  test("is waited for before the store is closed", async () => {
    const { steps, group } = build();
    let drained = false;
    await group.drained();
    void group.submit(null, () => 1);
    const closing = group.drained().then(() => {
      drained = true;
    });
    await Promise.resolve();
    expect(drained).toBe(false);
    steps.step();
    await closing;
  });
});

describe("a lock that another process holds", () => {
  test("is tried at once, then by timer, and what came meanwhile joins the group", async () => {
    const { steps, state, group } = build();
    state.locked = true;
    const first = group.submit(null, () => 1);
    for (let n = 0; n < 50; n += 1) steps.step();
    expect(steps.now).toBe(0);
    const second = group.submit(null, () => 2);
    while (steps.now < 20) steps.step();
    state.locked = false;
    steps.step();
    expect(await Promise.all([first, second])).toEqual([1, 2]);
    expect(state.groups).toEqual([2]);
  });

  test("is given up after the time-out for those who waited, and not for those who came later", async () => {
    const { steps, state, group } = build(50);
    state.locked = true;
    const early = group.submit(null, () => 1);
    const refused = Promise.allSettled([early]);
    steps.step();
    const late = group.submit(null, () => 2);
    while (steps.now < 50) steps.step();
    expect(await refused).toMatchObject([{ reason: { code: "STORE_BUSY" } }]);
    state.locked = false;
    steps.step();
    expect(await late).toBe(2);
  });

  test("REC-6 is given up for those who waited, not for what is urgent and came later", async () => {
    const { steps, state, group } = build(50);
    state.locked = true;
    const early = [1, 2].map((n) => group.submit(null, () => n));
    const refused = Promise.allSettled(early);
    steps.step();
    const order: number[] = [];
    const late = [3, 4].map((n) => group.submit(null, () => order.push(n), n === 4));
    while (steps.now < 50) steps.step();
    const busy = { reason: { code: "STORE_BUSY" } };
    expect(await refused).toMatchObject([busy, busy]);
    state.locked = false;
    steps.step();
    await Promise.all(late);
    expect(order).toEqual([4, 3]);
  });
});

describe("another writer", () => {
  test("gets a turn after each of our groups, for as long as it takes one", async () => {
    const took = 10;
    const { steps, state, group } = build(1000, () => steps.spend(took));
    const commit = (): Promise<number> => group.submit(null, () => steps.now);
    void commit();
    steps.step();
    state.version += 1;
    void commit();
    steps.step();
    expect(state.groups).toEqual([1, 1]);
    // Somebody has written between our two groups: the third waits until it wrote again.
    const endedAt = steps.now;
    void commit();
    while (steps.now < endedAt + took) steps.step();
    expect(state.groups).toEqual([1, 1]);
    state.version += 1;
    steps.step();
    expect(state.groups).toEqual([1, 1, 1]);
  });

  test("that has gone costs one turn", async () => {
    const took = 10;
    const { steps, state, group } = build(1000, () => steps.spend(took));
    const commit = (): void => void group.submit(null, () => 0);
    commit();
    steps.step();
    state.version += 1;
    commit();
    steps.step();
    const endedAt = steps.now;
    commit();
    while (state.groups.length < 3) steps.step();
    expect(steps.now - took - endedAt).toBe(2 * took);
    commit();
    steps.step();
    expect(state.groups).toEqual([1, 1, 1, 1]);
  });
});

describe("a flood", () => {
  test("is taken in portions that do not hold up the loop for long", async () => {
    const { steps, state, group } = build(1000, (size) => steps.spend(size / 10));
    const values = Promise.all(Array.from({ length: 2500 }, (_, n) => group.submit(null, () => n)));
    while (steps.left > 0) steps.step();
    // The first portion tells that an operation takes a tenth of a millisecond.
    expect(state.groups.slice(0, 3)).toEqual([1000, 64, 64]);
    expect(state.groups.reduce((sum, size) => sum + size, 0)).toBe(2500);
    expect(await values).toEqual(Array.from({ length: 2500 }, (_, n) => n));
  });

  test("is one group where time does not pass", () => {
    const { steps, state, group } = build();
    const submit = (count: number) => {
      for (let n = 0; n < count; n += 1) void group.submit(null, () => n);
      while (steps.left > 0) steps.step();
    };
    submit(100);
    submit(5000);
    expect(state.groups).toEqual([100, 5000]);
  });
});
