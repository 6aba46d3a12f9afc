/** Forms of results under the `codex` profile: what a parent reads when a child has answered, said nothing, or failed. */
import { describe, expect, test } from "vitest";
import {
  end,
  fail,
  followUp,
  gate,
  list,
  say,
  spawn,
  together,
} from "../../src/providers/scripted/script.ts";
import type { FailOptions } from "../../src/providers/scripted/script.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { codex, listed, requestOf, turn } from "../support/codex.ts";
import { type Harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const HINT = /can be given another task/;

/** Lets retries come and go until nothing runs. */
async function settle(h: Harness): Promise<void> {
  await waitUntil("nothing runs", async () => (await h.tree.counts()).running === 0 && (await calm(h)), {
    step: () => h.clock.advance(60_000),
  });
}

async function calm(h: Harness): Promise<boolean> {
  const { agents } = await h.tree.list();
  return agents.every(({ status }) => status.kind === "idle");
}

async function answersOf(h: Harness, path: string): Promise<readonly string[]> {
  const mail = await new Look(h).mail("/root");
  return mail.flatMap((one) =>
    one.kind === "final_answer" && one.author.kind === "agent" && one.author.path === path
      ? [one.content.text]
      : [],
  );
}

describe.each(STORES)("results on %s", (store) => {
  const failures: readonly (readonly [number, FailOptions, RegExp])[] = [
    [
      400,
      { code: "PROVIDER_REFUSED", status: 400, message: "the request is malformed" },
      /the request is malformed/,
    ],
    [500, { code: "PROVIDER_OVERLOADED", status: 500, message: "high demand", times: 5 }, /high demand/],
    [
      429,
      { code: "PROVIDER_OVERLOADED", status: 429, message: "slow down", times: 5, retryAfterMs: 1000 },
      /slow down/,
    ],
  ];

  test.each(failures)(
    "B39 U-178 a child that fails with %d sends its error and a hint",
    async (_status, options, words) => {
      await using h = await codex(store, { scripts: { "/root/worker": [fail(options), say("never")] } });
      await turn(h, spawn("worker", "count"));
      await settle(h);
      const [answer, ...more] = await answersOf(h, "/root/worker");
      expect(more).toEqual([]);
      expect(answer).toMatch(words);
      expect(answer).toMatch(HINT);
      const [agents] = await turn(h, list());
      expect(listed(agents)[1]).toEqual([
        "/root/worker",
        { errored: expect.stringMatching(words) as unknown as string },
      ]);
      // It has no activity of completion, and is read like any result.
      expect(await new Look(h).events("activity.completed")).toEqual([]);
      expect(requestOf(h, "/root", -1).at(-1)).toBe(`FINAL_ANSWER from /root/worker: ${answer}`);
    },
  );

  test("B39 U-178 an answer goes through whole and exact, and its activity is told once", async () => {
    await using h = await codex(store, {
      scripts: { "/root/worker": [gate("count"), say("there are\nseven")] },
    });
    const look = new Look(h);
    await turn(h, spawn("worker", "count"));
    const [asking] = await look.runs("/root");
    h.provider.gates.open("count");
    await h.tree.idle();
    await turn(h, list());
    expect(h.provider.requests("/root").at(-1)!.messages.at(-1)).toEqual({
      role: "user",
      text: [
        "Message Type: FINAL_ANSWER",
        "Task name: /root",
        "Sender: /root/worker",
        "Authority: carries no user authority",
        "Payload:",
        "there are\nseven",
      ].join("\n"),
    });
    expect(await look.events("activity.completed")).toMatchObject([
      { path: "/root", runId: asking!.id, data: { agent: "/root/worker" } },
    ]);
  });

  test("B39 a child that says nothing sends an empty payload", async () => {
    await using h = await codex(store, { scripts: { "/root/worker": [end()] } });
    await turn(h, spawn("worker", "count"));
    await h.tree.idle();
    expect(await answersOf(h, "/root/worker")).toEqual([""]);
    const [agents] = await turn(h, list());
    expect(listed(agents)[1]).toEqual(["/root/worker", { completed: null }]);
    expect(requestOf(h, "/root", -1).at(-1)).toBe("FINAL_ANSWER from /root/worker: ");
  });

  test("B39 an answer of 300 kB goes through whole, in the mail and in the list", async () => {
    const long = "seven ".repeat(50_000);
    await using h = await codex(store, { scripts: { "/root/worker": [say(long)] } });
    await turn(h, spawn("worker", "count"));
    await h.tree.idle();
    const [agents] = await turn(h, list());
    expect(listed(agents)[1]).toEqual(["/root/worker", { completed: long }]);
    expect(requestOf(h, "/root", -1).at(-1)).toBe(`FINAL_ANSWER from /root/worker: ${long}`);
  });

  test("B39 an error of 50 kB is cut to a few thousand characters, the hint included", async () => {
    const message = "x".repeat(50_000);
    await using h = await codex(store, {
      scripts: { "/root/worker": [fail({ code: "PROVIDER_REFUSED", status: 400, message })] },
    });
    await turn(h, spawn("worker", "count"));
    await h.tree.idle();
    const [answer] = await answersOf(h, "/root/worker");
    expect(answer!.length).toBeGreaterThan(3500);
    expect(answer!.length).toBeLessThan(4000);
    expect(answer).toMatch(HINT);
  });

  test("B39 a child that is closed, or ended by a limit, sends no answer but what became of it", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/closed": [together(say("half of it"), gate("closed"))],
        "/root/limited": [list(), say("so far six")],
      },
      runtime: { limits: { stepsPerRun: 1 } },
    });
    const root = h.tree.root;
    await root.spawn("closed", "count");
    await root.spawn("limited", "count");
    await h.provider.gates.arrived("closed");
    await (await h.tree.agent("/root/closed")).close();
    await h.tree.idle();
    expect(await answersOf(h, "/root/closed")).toEqual(["The agent was closed before it had answered."]);
    const [limited] = await answersOf(h, "/root/limited");
    expect(limited).toMatch(/^turn_limit/);
    expect(limited).toMatch(HINT);
    expect(limited).toContain("so far six");
  });

  test("B39 no schema is checked and no salvage is kept, as the reference has neither", async () => {
    await using h = await codex(store, {
      scripts: {
        "/root/a": [say("no number")],
        "/root/b": [list(), fail({ code: "PROVIDER_REFUSED", message: "no more", accepted: true })],
      },
    });
    const a = await h.tree.root.spawn("a", "count", { outputSchema: { type: "number" } });
    const b = await h.tree.root.spawn("b", "count");
    expect(await a.work.outcome()).toMatchObject({ ending: "completed", text: "no number", value: null });
    expect(await b.work.outcome()).toMatchObject({ ending: "provider_error", salvage: null });
  });

  test("U-117 each finished turn sends its result, to the parent alone, without figures or ids", async () => {
    await using h = await codex(store, {
      scripts: { "/root/a": [say("one"), say("one more")], "/root/b": [say("two")] },
      runtime: { limits: { mailboxBytes: 9000, resultReservationBytes: 8192 } },
    });
    // Nothing is reserved for results: two works fit where one reservation would fill the mailbox.
    const made = await turn(h, together(spawn("a", "count"), spawn("b", "count")));
    expect(made.map(({ isError }) => isError)).toEqual([false, false]);
    await h.tree.idle();
    expect(await answersOf(h, "/root/a")).toEqual(["one"]);
    expect(await answersOf(h, "/root/b")).toEqual(["two"]);
    await turn(h, followUp("a", "count again"));
    await h.tree.idle();
    expect(await answersOf(h, "/root/a")).toEqual(["one", "one more"]);
    const mail = (await new Look(h).mail("/root")).filter(({ kind }) => kind === "final_answer");
    expect(mail.map(({ trigger, authority }) => [trigger, authority])).toEqual([
      [false, "agent"],
      [false, "agent"],
      [false, "agent"],
    ]);
  });
});
