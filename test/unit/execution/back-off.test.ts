import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { BackOff, type BackOffOptions } from "../../../src/execution/back-off.ts";
import { RejectedError, TransientError } from "../../../src/protocol/errors.ts";
import { virtualClock } from "../../../src/testing/virtual-clock.ts";

/** Jitter at its lowest: half of the whole delay. */
function gateOf(fraction = 0, options: Partial<BackOffOptions> = {}) {
  const clock = virtualClock();
  const random = { fraction: () => fraction, bytes: (count: number) => new Uint8Array(count) };
  const gate = new BackOff({ clock, random, firstDelayMs: 1_000, staggerMs: 100, ...options });
  const passed: string[] = [];
  const ask = (name: string, signal = new AbortController().signal) =>
    gate.beforeRequest(signal).then(() => void passed.push(name));
  return { clock, gate, passed, ask };
}

const overloaded = (retryAfterMs: number | null = null) =>
  new TransientError("PROVIDER_OVERLOADED", "limited", { status: 429 }, { retryAfterMs });
const cut = new TransientError("PROVIDER_UNREACHABLE", "cut");

describe("whether a request is sent again", () => {
  test("an error that is not retryable is not", () => {
    const refused = new RejectedError("PROVIDER_REFUSED", "bad request");
    const ofTheStore = new TransientError("STORE_BUSY", "locked");
    for (const error of [refused, ofTheStore, new Error("a bug"), undefined]) {
      expect(gateOf().gate.failed(error, 1, false, 4)).toEqual({ retry: false, delayMs: 0 });
    }
  });

  test("a retryable one is, so many times", () => {
    const { gate } = gateOf();
    expect([1, 2, 3, 4, 5].map((attempt) => gate.failed(cut, attempt, false, 4).retry)).toEqual([
      true,
      true,
      true,
      true,
      false,
    ]);
  });

  test("never after visible output", () => {
    expect(gateOf().gate.failed(cut, 1, true, 4)).toEqual({ retry: false, delayMs: 0 });
  });
});

test("delays double up to the longest, half of each is jitter", () => {
  const delays = (fraction: number) => {
    const { gate } = gateOf(fraction, { longestDelayMs: 3_000 });
    return [1, 2, 3, 4].map((attempt) => gate.failed(cut, attempt, false, 4).delayMs);
  };
  expect(delays(0)).toEqual([500, 1_000, 1_500, 1_500]);
  expect(delays(1)).toEqual([1_000, 2_000, 3_000, 3_000]);
});

test("a cut connection holds back nobody else", async () => {
  const { gate, ask, passed } = gateOf();
  gate.failed(cut, 1, false, 4);
  await ask("other");
  expect(passed).toEqual(["other"]);
});

test("a retry-after holds back everybody, who then go on one after the other, in order", async () => {
  const { clock, gate, ask, passed } = gateOf();
  expect(gate.failed(overloaded(5_000), 1, false, 4)).toEqual({ retry: true, delayMs: 5_000 });
  for (const name of ["a", "b", "c"]) void ask(name);
  await clock.advance(4_999);
  expect([passed.length, gate.waiting, clock.pending().length]).toEqual([0, 3, 1]);
  await clock.advance(1);
  expect(passed).toEqual(["a"]);
  await clock.advance(49);
  expect(passed).toEqual(["a"]);
  await clock.advance(1);
  expect(passed).toEqual(["a", "b"]);
  // A newcomer does not overtake who is still held back.
  void ask("d");
  await clock.advance(100);
  expect(passed).toEqual(["a", "b", "c", "d"]);
  expect([gate.waiting, clock.pending().length]).toEqual([0, 0]);
});

test("a request that is spent or visible still holds back the others", async () => {
  const { clock, gate, ask, passed } = gateOf();
  gate.failed(overloaded(5_000), 9, true, 4);
  void ask("a");
  await clock.settle();
  expect(passed).toEqual([]);
  await clock.advance(5_000);
  expect(passed).toEqual(["a"]);
});

test("a later, longer hold stops those who have not gone on yet", async () => {
  const { clock, gate, ask, passed } = gateOf();
  gate.failed(overloaded(1_000), 1, false, 4);
  for (const name of ["a", "b"]) void ask(name);
  await clock.advance(1_000);
  gate.failed(overloaded(1_000), 2, false, 4);
  await clock.advance(999);
  expect(passed).toEqual(["a"]);
  await clock.advance(1);
  expect(passed).toEqual(["a", "b"]);
});

test("a shorter hold does not shorten one", async () => {
  const { gate } = gateOf();
  gate.failed(overloaded(5_000), 1, false, 4);
  gate.failed(overloaded(10), 1, false, 4);
  expect(gate.heldForMs).toBe(5_000);
});

test("an excessive retry-after is cut", () => {
  expect(gateOf(0, { longestHoldMs: 60_000 }).gate.failed(overloaded(3_600_000), 1, false, 4).delayMs).toBe(
    60_000,
  );
});

test("overloads in a row lengthen the delay of all, those of one moment count once, a success ends it", async () => {
  const { clock, gate } = gateOf();
  const fail = () => gate.failed(overloaded(), 1, false, 4).delayMs;
  expect([fail(), fail(), fail()]).toEqual([500, 500, 500]);
  await clock.advance(500);
  expect(fail()).toBe(1_000);
  await clock.advance(1_000);
  gate.succeeded();
  expect(fail()).toBe(500);
});

describe("a signal", () => {
  test("ends the wait with its reason, and others go on in its place", async () => {
    const { clock, gate, ask, passed } = gateOf();
    gate.failed(overloaded(1_000), 1, false, 4);
    const controller = new AbortController();
    const first = ask("a", controller.signal);
    void ask("b");
    controller.abort(new Error("stopped"));
    await expect(first).rejects.toThrow("stopped");
    await clock.advance(1_000);
    expect(passed).toEqual(["b"]);
  });

  test("that is aborted already never waits", async () => {
    const { gate } = gateOf();
    await expect(gate.beforeRequest(AbortSignal.abort(new Error("stopped")))).rejects.toThrow("stopped");
  });

  test("keeps no listener and the clock no timer afterwards", async () => {
    const { clock, gate, ask } = gateOf();
    const [kept, stopped] = [new AbortController(), new AbortController()];
    gate.failed(overloaded(1_000), 1, false, 4);
    const waits = Promise.allSettled([ask("a", kept.signal), ask("b", stopped.signal)]);
    stopped.abort(new Error("stopped"));
    await clock.advance(1_000);
    await waits;
    expect([kept, stopped].flatMap(({ signal }) => getEventListeners(signal, "abort"))).toEqual([]);
    expect(clock.pending().length).toBe(0);
  });

  test("of the last one that waits takes the timer with it", async () => {
    const { clock, gate, ask } = gateOf();
    gate.failed(overloaded(1_000), 1, false, 4);
    const controller = new AbortController();
    const wait = ask("a", controller.signal);
    expect(clock.pending().length).toBe(1);
    controller.abort(new Error("stopped"));
    await expect(wait).rejects.toThrow("stopped");
    expect(clock.pending().length).toBe(0);
  });
});
