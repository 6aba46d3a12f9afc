/** `wait_agent` under the `codex` profile: its bounds, what ends it, and the little that it tells. */
import { describe, expect, test } from "vitest";
import {
  call,
  gate,
  interrupt,
  say,
  send,
  spawn,
  together,
  wait,
} from "../../src/providers/scripted/script.ts";
import { codeOf, codex, refusal, requestOf, turn, untilIdle, untilWaiting } from "../support/codex.ts";
import { type Harness, STORES } from "../support/harness.ts";

const BOUNDS = { waitMinimumMs: 500, waitDefaultMs: 1500, waitMaximumMs: 20_000 };
const ACTIVITY = { message: "There was activity.", timed_out: false };
const TIMED_OUT = { message: "The wait ran out of time.", timed_out: true };
const NEW_INPUT = { message: "The wait was interrupted by new input.", timed_out: false };

/** Lets a wait of the root run out, and sees that it does so then and not before. */
async function lasts(h: Harness, ms: number): Promise<void> {
  await untilWaiting(h);
  await h.clock.advance(ms - 1);
  expect(await h.tree.root.status()).toMatchObject({ kind: "waiting" });
  await h.clock.advance(1);
}

describe.each(STORES)("waiting on %s", (store) => {
  test("B20 a wait below the minimum is raised and says so; minimum, default and maximum are kept", async () => {
    await using h = await codex(store, { runtime: { limits: BOUNDS } });
    const playing = turn(
      h,
      wait({ timeout_ms: 1 }),
      wait({ timeout_ms: -5 }),
      wait({ timeout_ms: 500 }),
      wait(),
      wait({ timeout_ms: 20_000 }),
    );
    for (const ms of [500, 500, 500, 1500, 20_000]) await lasts(h, ms);
    const made = (await playing).map(({ output }) => output);
    const raised = {
      message: "The wait ran out of time. The time-out was raised to 500 ms.",
      timed_out: true,
    };
    expect(made).toEqual([raised, raised, TIMED_OUT, TIMED_OUT, TIMED_OUT]);
    const { parameters } = h.provider.requests("/root")[0]!.tools.find(({ name }) => name === "wait_agent")!;
    for (const ms of [500, 1500, 20_000]) expect(JSON.stringify(parameters)).toContain(String(ms));
  });

  test("B20 by default a wait lasts half a minute, ten seconds at least and an hour at most", async () => {
    await using h = await codex(store);
    const playing = turn(h, wait(), wait({ timeout_ms: 9999 }), wait({ timeout_ms: 3_600_001 }));
    await lasts(h, 30_000);
    await lasts(h, 10_000);
    const [byDefault, raised, tooLong] = await playing;
    expect(byDefault!.output).toEqual(TIMED_OUT);
    expect(JSON.stringify(raised!.output)).toContain("10000");
    expect(refusal(tooLong)).toContain("3600000");
  });

  test("B20 a configured wait of zero returns at once", async () => {
    await using h = await codex(store, {
      runtime: { limits: { waitMinimumMs: 0, waitDefaultMs: 0, waitMaximumMs: 0 } },
    });
    const [waited] = await turn(h, wait());
    expect(waited!.output).toEqual(TIMED_OUT);
    expect(h.clock.monotonic()).toBe(0);
  });

  test("B20 a configured default outside of its bounds is refused when the tree is opened", async () => {
    const options = (limits: object) => ({ runtime: { limits } });
    await expect(codex(store, options({ ...BOUNDS, waitDefaultMs: 499 }))).rejects.toThrow("waitDefaultMs");
    await expect(codex(store, options({ ...BOUNDS, waitDefaultMs: 20_001 }))).rejects.toThrow(
      "waitDefaultMs",
    );
  });

  test("B21 a wait above the maximum, of another type or with targets is refused, each in its own words", async () => {
    await using h = await codex(store, { runtime: { limits: BOUNDS } });
    const made = await turn(
      h,
      together(
        wait({ timeout_ms: 20_001 }),
        wait({ timeout_ms: "abc" }),
        wait({ targets: ["/root/worker"] }),
      ),
    );
    expect(made.map(codeOf)).toEqual(Array(3).fill("INVALID_ARGUMENT"));
    expect(refusal(made[0])).toContain("20000");
    expect(refusal(made[1])).toContain("timeout_ms");
    expect(refusal(made[2])).toContain("`targets`");
    expect(new Set(made.map(refusal)).size).toBe(3);
    expect(h.clock.monotonic()).toBe(0);
  });

  test("B22 a steer ends a wait at once, as new input and not as a time-out, and follows it", async () => {
    await using h = await codex(store);
    const playing = turn(h, wait());
    await untilWaiting(h);
    await h.clock.advance(700);
    await h.tree.root.send("change course");
    const [waited] = await playing;
    expect(waited!.output).toEqual(NEW_INPUT);
    expect(h.clock.monotonic()).toBe(700);
    expect(requestOf(h, "/root", 1).slice(-2)).toEqual([
      `wait_agent → ${JSON.stringify(NEW_INPUT)}`,
      "change course",
    ]);
    expect((await h.tree.root.runs()).rows).toHaveLength(1);
  });

  test("B22 a steer that is pending already ends a wait before it begins, and beats mail", async () => {
    await using h = await codex(store, { scripts: { "/root/worker": [gate("count"), say("seven")] } });
    const playing = turn(h, spawn("worker", "count"), together(gate("late"), wait()));
    await h.provider.gates.arrived("late");
    h.provider.gates.open("count");
    await untilIdle(h, "/root/worker");
    await h.tree.root.send("change course");
    h.provider.gates.open("late");
    const [, waited] = await playing;
    expect(waited!.output).toEqual(NEW_INPUT);
    expect(h.clock.monotonic()).toBe(0);
    expect(requestOf(h, "/root", 2).slice(-2)).toEqual([
      "FINAL_ANSWER from /root/worker: seven",
      "change course",
    ]);
  });

  test("B23 a wait returns at once when mail is there already, and leaves it there", async () => {
    await using h = await codex(store, { scripts: { "/root/worker": [gate("count"), say("seven")] } });
    const playing = turn(h, spawn("worker", "count"), together(gate("late"), wait()));
    await h.provider.gates.arrived("late");
    h.provider.gates.open("count");
    await untilIdle(h, "/root/worker");
    h.provider.gates.open("late");
    const [, waited] = await playing;
    expect(waited!.output).toEqual(ACTIVITY);
    expect(h.clock.monotonic()).toBe(0);
    expect(requestOf(h, "/root", 2).slice(-2)).toEqual([
      `wait_agent → ${JSON.stringify(ACTIVITY)}`,
      "FINAL_ANSWER from /root/worker: seven",
    ]);
  });

  test("B24 two waits over one message both tell of activity, from whomever it comes", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/worker": [gate("count"), send("/root", "half of it"), gate("more"), say("seven")],
        "/root/other": [gate("never"), say("eight")],
      },
    });
    const playing = turn(
      h,
      together(spawn("worker", "count"), spawn("other", "count")),
      together(wait(), wait()),
    );
    await untilWaiting(h);
    h.provider.gates.open("count");
    const [, , first, second] = await playing;
    expect([first!.output, second!.output]).toEqual([ACTIVITY, ACTIVITY]);
    expect(h.clock.monotonic()).toBe(0);
    const seen = requestOf(h, "/root", 2).filter((words) => words.startsWith("MESSAGE"));
    expect(seen).toEqual(["MESSAGE from /root/worker: half of it"]);
    h.provider.gates.openAll();
  });

  test("U-2 two messages of one moment end a wait once, and both follow it", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/worker": [gate("say"), together(send("/root", "one"), send("/root", "two")), say("three")],
      },
    });
    const playing = turn(h, spawn("worker", "count"), wait(), wait({ timeout_ms: 10_000 }));
    await untilWaiting(h);
    h.provider.gates.open("say");
    await untilIdle(h, "/root/worker");
    await h.clock.advance(10_000);
    const [, first] = await playing;
    expect(first!.output).toEqual(ACTIVITY);
    const texts = requestOf(h, "/root", -1).filter((words) => /^(MESSAGE|FINAL_ANSWER)/.test(words));
    expect(texts).toEqual([
      "MESSAGE from /root/worker: one",
      "MESSAGE from /root/worker: two",
      "FINAL_ANSWER from /root/worker: three",
    ]);
  });

  test("B24 what ends a wait of another agent, or interrupts a child, ends no wait here", async () => {
    await using h = await codex(store, {
      scripts: { "/root/worker": [call("list_agents"), gate("count"), say("seven")] },
    });
    const playing = turn(h, spawn("worker", "count"), interrupt("worker"), wait({ timeout_ms: 10_000 }));
    await lasts(h, 10_000);
    expect((await playing)[2]!.output).toEqual(TIMED_OUT);
  });
});
