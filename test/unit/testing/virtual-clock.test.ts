import { describe, expect, test } from "vitest";
import { delay } from "../../../src/platform/clock.ts";
import { VIRTUAL_START, virtualClock } from "../../../src/testing/virtual-clock.ts";

describe("the virtual clock", () => {
  test("stands still by itself and moves as told", async () => {
    const clock = virtualClock();
    expect([clock.now(), clock.monotonic()]).toEqual([VIRTUAL_START, 0]);
    await clock.advance(1500);
    expect([clock.now(), clock.monotonic()]).toEqual([VIRTUAL_START + 1500, 1500]);
    expect(virtualClock({ start: 7 }).now()).toBe(7);
  });

  test("fires timers in the order of their time, then of their setting, each at its own time", async () => {
    const clock = virtualClock();
    const fired: string[] = [];
    const set = (name: string, ms: number): void => {
      clock.setTimer(ms, () => fired.push(`${name}@${clock.monotonic()}`));
    };
    set("c", 30);
    set("a", 10);
    set("b", 10);
    set("late", 41);
    await clock.advance(40);
    expect(fired).toEqual(["a@10", "b@10", "c@30"]);
    expect(clock.pending()).toEqual([{ at: VIRTUAL_START + 41, keepAlive: false }]);
  });

  test("fires within one advance what timers and the work behind them set", async () => {
    const clock = virtualClock();
    const fired: number[] = [];
    const again = async (): Promise<void> => {
      for (let round = 0; round < 3; round += 1) {
        await delay(clock, 10);
        await new Promise<void>((resolve) => clock.defer(() => clock.defer(resolve)));
        fired.push(clock.monotonic());
      }
    };
    const done = again();
    await clock.advance(29);
    expect(fired).toEqual([10, 20]);
    await clock.advance(1);
    await done;
    expect(fired).toEqual([10, 20, 30]);
  });

  test("forgets a cancelled timer", async () => {
    const clock = virtualClock();
    let fired = false;
    const timer = clock.setTimer(10, () => {
      fired = true;
    });
    clock.setTimer(5, () => timer.cancel());
    await clock.advance(20);
    timer.cancel();
    expect([fired, clock.pending()]).toEqual([false, []]);
  });

  test("goes from timer to timer", async () => {
    const clock = virtualClock();
    const fired: number[] = [];
    for (const ms of [900, 5]) clock.setTimer(ms, () => fired.push(clock.monotonic()));
    expect([await clock.runNext(), await clock.runNext(), await clock.runNext()]).toEqual([
      true,
      true,
      false,
    ]);
    expect(fired).toEqual([5, 900]);
  });

  test("never goes back when two advance it at once", async () => {
    const clock = virtualClock();
    await Promise.all([clock.advance(100), clock.advance(20)]);
    expect(clock.monotonic()).toBe(100);
  });

  test("can hand what is deferred to somebody else, and does not wait for it", async () => {
    const held: (() => void)[] = [];
    const clock = virtualClock({ defer: (callback) => held.push(callback) });
    let ran = false;
    clock.defer(() => {
      ran = true;
    });
    await clock.advance(10);
    expect(ran).toBe(false);
    held[0]?.();
    expect(ran).toBe(true);
  });

  test("gives up on a timer that re-arms itself at the same time", async () => {
    const clock = virtualClock({ defer: (callback) => callback() });
    const again = (): void => void clock.setTimer(0, again);
    again();
    await expect(clock.advance(1)).rejects.toThrow("re-arms itself");
  });
});
