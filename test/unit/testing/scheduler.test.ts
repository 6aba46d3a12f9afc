import { describe, expect, test } from "vitest";
import { delay } from "../../../src/platform/clock.ts";
import type { AgentRecord } from "../../../src/protocol/agent.ts";
import type { StepRequest } from "../../../src/protocol/provider-events.ts";
import type { ToolHost } from "../../../src/protocol/tool.ts";
import { scripted } from "../../../src/providers/scripted/provider.ts";
import { fail, say } from "../../../src/providers/scripted/script.ts";
import { crashPoints } from "../../../src/testing/scheduler-crash.ts";
import { shrinkTrace } from "../../../src/testing/scheduler-shrink.ts";
import { seededScheduler, type SeededScheduler } from "../../../src/testing/scheduler.ts";

/** Three workers, each with three waits; answers the order in which they got through. */
async function race(scheduler: SeededScheduler): Promise<string> {
  const process = scheduler.process("p");
  const order: string[] = [];
  const work = async (name: string): Promise<void> => {
    for (let round = 0; round < 3; round += 1) {
      await process.hold(name);
      order.push(name);
    }
  };
  await scheduler.complete(Promise.all(["a", "b", "c"].map(work)));
  return order.join("");
}

describe("a schedule", () => {
  test("is decided by the seed alone", async () => {
    const seeds = Array.from({ length: 20 }, (_, seed) => seed);
    const orders = [];
    for (const seed of seeds) orders.push(await race(seededScheduler(seed)));
    const again = [];
    for (const seed of seeds) again.push(await race(seededScheduler(seed)));
    expect(again).toEqual(orders);
    expect(new Set(orders).size).toBeGreaterThan(15);
  });

  test("is replayed by its trace, under any seed", async () => {
    const first = seededScheduler(11);
    const order = await race(first);
    const second = seededScheduler(99, { replay: first.trace() });
    expect(await race(second)).toBe(order);
    expect(second.trace()).toEqual(first.trace());
    expect(second.history()).toEqual(first.history());
  });

  test("takes the oldest choice behind the end of a trace", async () => {
    expect(await race(seededScheduler(1, { replay: [] }))).toBe("abcabcabc");
  });

  test("lets all microtasks run between two choices", async () => {
    const scheduler = seededScheduler(1);
    const process = scheduler.process("p");
    const seen: (readonly string[])[] = [];
    const work = async (): Promise<void> => {
      await process.hold("first");
      for (let hop = 0; hop < 200; hop += 1) await Promise.resolve();
      await process.hold("second");
    };
    void work();
    await scheduler.run({
      until: () => {
        seen.push(scheduler.enabled());
        return seen.length === 2;
      },
    });
    expect(seen).toEqual([["p: first"], ["p: second"]]);
  });
});

describe("time", () => {
  test("moves only when nothing else can happen", async () => {
    const scheduler = seededScheduler(3);
    const { clock, hold } = scheduler.process("p");
    const seen: number[] = [];
    clock.setTimer(10, () => seen.push(clock.monotonic()));
    for (let round = 0; round < 5; round += 1) {
      void hold("work").then(() => seen.push(clock.monotonic()));
    }
    expect(await scheduler.run()).toMatchObject({ end: "quiet" });
    expect(seen).toEqual([0, 0, 0, 0, 0, 10]);
  });

  test("may overtake the work where that is asked for", async () => {
    const first = async (scheduler: SeededScheduler): Promise<string> => {
      const { clock, hold } = scheduler.process("p");
      let winner = "";
      void hold("work").then(() => (winner ||= "work"));
      clock.setTimer(1000, () => (winner ||= "timer"));
      await scheduler.run();
      return winner;
    };
    const winners = new Set<string>();
    for (let seed = 0; seed < 30; seed += 1) {
      const scheduler = seededScheduler(seed, { earlyTimers: 0.3 });
      const winner = await first(scheduler);
      winners.add(winner);
      expect(await first(seededScheduler(0, { earlyTimers: 0.3, replay: scheduler.trace() }))).toBe(winner);
    }
    expect(winners).toEqual(new Set(["timer", "work"]));
  });

  test("due timers are choices", async () => {
    const orders = new Set<string>();
    for (let seed = 0; seed < 20; seed += 1) {
      const scheduler = seededScheduler(seed);
      const { clock } = scheduler.process("p");
      let order = "";
      for (const name of ["a", "b"]) clock.setTimer(5, () => (order += name));
      await scheduler.run();
      orders.add(order);
    }
    expect(orders).toEqual(new Set(["ab", "ba"]));
  });

  test("is bounded by the caller, and stands at the bound", async () => {
    const scheduler = seededScheduler(3);
    const { clock } = scheduler.process("p");
    let ticks = 0;
    const tick = (): void => {
      ticks += 1;
      clock.setTimer(100, tick);
    };
    clock.setTimer(100, tick);
    expect(await scheduler.run({ forMs: 1050 })).toMatchObject({ end: "time" });
    expect([ticks, scheduler.elapsed()]).toEqual([10, 1050]);
  });

  test("a cancelled timer is no choice", async () => {
    const scheduler = seededScheduler(3);
    const { clock } = scheduler.process("p");
    clock.setTimer(5, () => expect.unreachable()).cancel();
    expect(await scheduler.run()).toEqual({ end: "quiet", steps: 0 });
  });
});

describe("a run that cannot end", () => {
  test("by silence is a failure that says what waits", async () => {
    const scheduler = seededScheduler(42);
    void scheduler.process("p").hold("last words");
    await expect(scheduler.complete(new Promise(() => {}))).rejects.toThrow(
      /ended by `quiet`[^]*seed 42[^]*p: last words[^]*trace/,
    );
  });

  test("by endless work is a failure after its steps", async () => {
    const scheduler = seededScheduler(42);
    const { clock } = scheduler.process("p");
    const again = (): void => clock.defer(again);
    again();
    await expect(scheduler.run({ maxSteps: 50 })).rejects.toThrow(/did not end in 50 steps[^]*p: deferred/);
  });

  test("completing gives the promise's value or failure", async () => {
    const scheduler = seededScheduler(1);
    const { clock } = scheduler.process("p");
    expect(await scheduler.complete(delay(clock, 5000).then(() => "value"))).toBe("value");
    const failing = delay(clock, 5).then(() => Promise.reject(new Error("its own")));
    await expect(scheduler.complete(failing)).rejects.toThrow("its own");
  });
});

describe("a process", () => {
  test("that is killed never runs again, and others go on", async () => {
    const scheduler = seededScheduler(5);
    const doomed = scheduler.process("doomed");
    const other = scheduler.process("other");
    const done: string[] = [];
    const work = async (name: string, process: typeof other): Promise<void> => {
      await process.hold("one");
      await delay(process.clock, 10);
      await process.hold("two");
      done.push(name);
    };
    void work("doomed", doomed);
    void work("other", other);
    await scheduler.run({ until: () => scheduler.elapsed() === 10 });
    doomed.kill();
    doomed.thaw();
    doomed.clock.setTimer(0, () => expect.unreachable()).cancel();
    await scheduler.run();
    expect([done, doomed.state()]).toEqual([["other"], "killed"]);
    expect(scheduler.process("doomed")).toBe(doomed);
  });

  test("that is frozen is late when it is thawed", async () => {
    const scheduler = seededScheduler(5);
    const { clock, freeze, thaw } = scheduler.process("p");
    const other = scheduler.process("other");
    let firedAt = -1;
    clock.setTimer(10, () => {
      firedAt = clock.monotonic();
    });
    freeze();
    await scheduler.complete(delay(other.clock, 100));
    expect(firedAt).toBe(-1);
    thaw();
    await scheduler.run();
    expect(firedAt).toBe(100);
  });

  test("crashes at a named point, of which a first run has told", async () => {
    const program = async (point: { readonly name: string; readonly visit: number } | null) => {
      const scheduler = seededScheduler(8);
      const process = scheduler.process("p");
      const points = crashPoints(() => process.kill());
      if (point !== null) points.arm(point);
      const written: string[] = [];
      const write = async (): Promise<void> => {
        for (const text of ["x", "y"]) {
          await points.reach("commit:before");
          written.push(text);
          await points.reach("commit:after");
          await process.hold("next");
        }
      };
      void write();
      await scheduler.run();
      return { written: written.join(""), passed: points.passed(), crashed: points.crashed() };
    };
    const { passed } = await program(null);
    expect(passed.map(({ name, visit }) => `${name} ${visit}`)).toEqual([
      "commit:before 1",
      "commit:after 1",
      "commit:before 2",
      "commit:after 2",
    ]);
    const outcomes = [];
    for (const point of passed) {
      const { written, crashed } = await program(point);
      expect(crashed).toEqual(point);
      outcomes.push(written);
    }
    expect(outcomes).toEqual(["", "x", "x", "xy"]);
  });
});

describe("wrapping", () => {
  const request: StepRequest = {
    threadId: "thread_a",
    conversationKey: "tree",
    path: "/root",
    runId: "run_a",
    step: 1,
    attempt: 1,
    ownSteps: 0,
    model: null,
    effort: null,
    messages: [],
    tools: [],
    maxOutputTokens: null,
  };

  test("a provider makes its request, its events and its failure choices", async () => {
    const scheduler = seededScheduler(2);
    const provider = scheduler.process("p").wrapProvider(scripted({ "/root": [fail(), say("hi")] }));
    const session = await scheduler.complete(
      provider.openSession({ threadId: "thread_a", path: "/root", model: null }),
    );
    const read = (): Promise<unknown[]> =>
      scheduler.complete(Array.fromAsync(session.step(request, new AbortController().signal)));
    await expect(read()).rejects.toMatchObject({ code: "PROVIDER_OVERLOADED" });
    expect((await read()).length).toBe(5);
    expect(scheduler.history()).toEqual([
      "p: /root opens",
      "p: /root asks",
      "p: /root fails",
      "p: /root asks",
      ...["accepted", "text", "part", "usage", "finish"].map((event) => `p: /root ${event}`),
    ]);
  });

  test("a provider is wrapped whole, its instance included", () => {
    const process = seededScheduler(2).process("p");
    const wrapped = process.wrapProvider({ ...scripted({}), instanceId: "one" });
    expect(wrapped).toMatchObject({ driver: "scripted", instanceId: "one" });
  });

  test("tools and functions keep their results and failures", async () => {
    const scheduler = seededScheduler(2);
    const process = scheduler.process("p");
    const host: ToolHost = {
      specs: () => [],
      execute: async (call) => ({ kind: "result", output: call.input, isError: false }),
    };
    const agent = { path: "/root/a" } as unknown as AgentRecord;
    const outcome = process.wrapTools(host).execute(
      { callId: "c", name: "read", input: "{}" },
      {
        agent,
        runId: "run_a",
        step: 1,
        signal: new AbortController().signal,
        lifetime: () => new AbortController().signal,
      },
    );
    expect(await scheduler.complete(outcome)).toEqual({ kind: "result", output: "{}", isError: false });
    const failing = process.wrap("write", async (text: string) => {
      throw new Error(text);
    });
    await expect(scheduler.complete(failing("disk"))).rejects.toThrow("disk");
    expect(scheduler.history()).toEqual([
      "p: /root/a read",
      "p: /root/a read done",
      "p: write",
      "p: write failed",
    ]);
  });
});

describe("shrinking", () => {
  test("leaves the choices that matter", async () => {
    /** Fails when `c` overtakes `a` at the very start. */
    const fails = async (trace: readonly number[]): Promise<boolean> =>
      (await race(seededScheduler(0, { replay: trace }))).startsWith("c");
    let found: readonly number[] = [];
    for (let seed = 0; found.length === 0; seed += 1) {
      const scheduler = seededScheduler(seed);
      if ((await race(scheduler)).startsWith("c")) found = scheduler.trace();
    }
    expect(found.filter((index) => index !== 0).length).toBeGreaterThan(1);
    expect(await shrinkTrace(found, fails)).toEqual([2]);
  });

  test("keeps within its runs and never answers a trace that passes", async () => {
    let runs = 0;
    const fails = async (trace: readonly number[]): Promise<boolean> => {
      runs += 1;
      return trace.filter((index) => index > 0).length >= 3;
    };
    const small = await shrinkTrace([1, 1, 1, 1, 1, 1, 1, 1, 0, 0], fails, 40);
    expect(small.filter((index) => index > 0).length).toBe(3);
    expect(runs).toBeLessThanOrEqual(40);
    expect(await shrinkTrace([1, 2, 3, 0], async () => false)).toEqual([1, 2, 3]);
  });
});
