/** Errors of a provider: typed, retried within bounds, and one back-off for all who use it (RUN-4). */
import { describe, expect, test } from "vitest";
import type { Harness } from "../support/harness.ts";
import { fail, gate, repeat, say, spawn, together } from "../../src/providers/scripted/script.ts";
import { harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const NONE = { fork_turns: "none" };

/** Lets time pass, timer by timer, until the work has ended. */
async function outcomeOf(h: Harness, text: string) {
  const work = await h.tree.root.send(text);
  let ended = false;
  const outcome = work.outcome().finally(() => (ended = true));
  for (let step = 0; step < 5_000 && !ended; step += 1) await h.clock.advance(100);
  return outcome;
}

describe.each(STORES)("provider errors on %s", (store) => {
  test("RUN-4 errors are typed, and a retryable one is tried again four times and no more", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [fail({ code: "PROVIDER_UNREACHABLE", status: 503, times: 9 }), say("never")] },
    });
    const look = new Look(h);
    expect(await outcomeOf(h, "go")).toMatchObject({
      ending: "provider_error",
      error: { code: "PROVIDER_UNREACHABLE", status: 503 },
    });
    expect(h.provider.requests("/root").map((request) => request.attempt)).toEqual([1, 2, 3, 4, 5]);
    expect(await look.runs("/root")).toMatchObject([
      { status: "failed", reason: "provider_error", error: { code: "PROVIDER_UNREACHABLE", status: 503 } },
    ]);
  });

  test("RUN-4 how often it is tried again is the tree's to say, whatever other trees say", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [fail({ code: "PROVIDER_UNREACHABLE", times: 9 }), say("never")] },
      tree: { limits: { retries: 1 } },
    });
    expect(await outcomeOf(h, "go")).toMatchObject({ ending: "provider_error" });
    expect(h.provider.requests("/root").map((request) => request.attempt)).toEqual([1, 2]);
  });

  test("RUN-4 one that is not retryable is not tried again", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [fail({ code: "PROVIDER_REFUSED", status: 400 }), say("never")] },
    });
    expect(await outcomeOf(h, "go")).toMatchObject({
      ending: "provider_error",
      error: { code: "PROVIDER_REFUSED", status: 400 },
    });
    expect(h.provider.requests("/root")).toHaveLength(1);
  });

  test("RUN-4 the delays double and are jittered between half and whole", async () => {
    const rounds: number[][] = [];
    for (const seed of [1, 2]) {
      await using h = await harness({
        store,
        seed,
        scripts: { "/root": [fail({ code: "PROVIDER_UNREACHABLE", times: 4 }), say("at last")] },
      });
      const look = new Look(h);
      expect(await outcomeOf(h, "go")).toMatchObject({ ending: "completed", text: "at last" });
      const events = await look.events("run.retrying", "/root");
      expect(events.map((event) => event.data["attempt"])).toEqual([1, 2, 3, 4]);
      rounds.push(events.map((event) => event.data["delayMs"] as number));
    }
    for (const delays of rounds) {
      for (const [at, delay] of delays.entries()) {
        expect(delay).toBeGreaterThanOrEqual(250 * 2 ** at);
        expect(delay).toBeLessThanOrEqual(500 * 2 ** at);
      }
    }
    expect(rounds[0]).not.toEqual(rounds[1]);
  });

  test("RUN-4 nothing is tried again after visible output, and what was shown is kept", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(say("half of it"), fail({ code: "PROVIDER_UNREACHABLE", accepted: true })),
          say("never"),
        ],
      },
    });
    expect(await outcomeOf(h, "go")).toMatchObject({ ending: "provider_error", text: "half of it" });
    expect(h.provider.requests("/root")).toHaveLength(1);
  });

  test("RUN-4 after acceptance and before any output it is, and no mail comes twice", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [fail({ code: "PROVIDER_UNREACHABLE", accepted: true }), say("at last")] },
    });
    const look = new Look(h);
    expect(await outcomeOf(h, "go")).toMatchObject({ ending: "completed", text: "at last" });
    const { messages } = h.provider.requests("/root").at(-1)!;
    expect(messages.filter((message) => message.role === "user" && message.text === "go")).toHaveLength(1);
    expect(await look.events("mail.delivered", "/root")).toHaveLength(1);
  });

  test("RUN-4 the retry-after of a 429 holds back the whole tree, and every other tree of the provider", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(spawn("a", "one", NONE), spawn("b", "two", NONE)),
          say("started"),
          repeat(say("end")),
        ],
        "/root/a": [gate("a"), fail({ status: 429, retryAfterMs: 20_000 }), say("from a")],
        "/root/b": [
          gate("b", { beforeAcceptance: false }),
          together(gate("b2"), spawn("sub", "help", NONE)),
          say("from b"),
        ],
        "*": [repeat(say("elsewhere"))],
      },
    });
    const look = new Look(h);
    const work = await h.tree.root.send("go");
    const other = await h.runtime.openTree();
    await h.provider.gates.arrived("a");
    await h.provider.gates.arrived("b");
    await look.until("the root awaits", async () => (await look.status("/root")) === "awaiting_children");
    h.provider.gates.open("a");
    await look.until("a is told", async () => (await look.events("run.retrying", "/root/a")).length === 1);
    expect((await look.events("run.retrying"))[0]!.data).toMatchObject({
      attempt: 1,
      delayMs: 20_000,
      code: "PROVIDER_OVERLOADED",
    });
    // Both are held: the next step of a run under way, and a new run of another tree.
    h.provider.gates.open("b");
    h.provider.gates.open("b2");
    const elsewhere = await other.root.send("hello");
    const count = (path: string, tree: string) =>
      h.provider.requests(path).filter((request) => request.conversationKey === tree).length;
    const counts = () => [count("/root/a", h.tree.id), count("/root/b", h.tree.id), count("/root", other.id)];
    await h.clock.advance(19_999);
    expect(counts()).toEqual([1, 1, 0]);
    expect((await elsewhere.record()).state).toBe("queued");
    // They go on one after the other.
    await h.clock.advance(1);
    expect(counts().reduce((sum, one) => sum + one)).toBe(3);
    await h.clock.advance(1_000);
    expect(counts().every((requests, at) => requests >= [2, 2, 1][at]!)).toBe(true);
    for (let step = 0; step < 60; step += 1) await h.clock.advance(1_000);
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    expect(await elsewhere.outcome()).toMatchObject({ ending: "completed" });
  });
});
