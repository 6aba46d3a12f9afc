import { describe, expect, test } from "vitest";
import {
  call,
  fail,
  followUp,
  gate,
  repeat,
  say,
  spawn,
  together,
  usage,
  wait,
} from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { estimateTokens } from "../../src/policy/estimate-tokens.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

/** What a request reserves: its input, and the output that is assumed where none is named. */
function reserved(h: Harness, path: string, request = -1): number {
  const { messages, tools } = h.provider.requests(path).at(request)!;
  return estimateTokens(messages, tools) + 4096;
}

const tokens = (inputTokens: number, outputTokens = 0) => usage({ inputTokens, outputTokens });
const notices = async (h: Harness) =>
  (await look(h).mail("/root")).filter(({ kind }) => kind === "notice").map(({ content }) => content.text);

describe.each(STORES)("reservations on %s", (store) => {
  test("BUD-2 what would fit without them waits, its permit given back, and starts when they are", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/top": [repeat(say("ok"))],
        "/root/top/a": [together(gate("a"), tokens(100), say("a is done"))],
        "/root/top/b": [together(gate("b"), tokens(100), say("b is done"))],
        "/root/other": [together(gate("other"), say("other is done"))],
      },
      tree: { limits: { running: 2 } },
    });
    const { agent: top, work } = await h.tree.root.spawn("top", "work", { budgets: { tokens: 20_000 } });
    await work.outcome();
    const spent = (await top.usage()).inputTokens + (await top.usage()).outputTokens;
    const a = await top.spawn("a", "work");
    await h.provider.gates.arrived("a");
    await top.raiseBudget("tokens", spent + reserved(h, "/root/top/a") + 4096);
    const b = await top.spawn("b", "work");
    await waitUntil("b waits", async () => (await b.agent.status()).kind === "waiting");
    expect(h.provider.requests("/root/top/b")).toHaveLength(0);
    // The second permit is not b's: another one takes it.
    const other = await h.tree.root.spawn("other", "work");
    await h.provider.gates.arrived("other");
    expect(await h.tree.counts()).toMatchObject({ running: 2 });
    h.provider.gates.open("a");
    await a.work.outcome();
    await h.provider.gates.arrived("b");
    h.provider.gates.openAll();
    expect(await b.work.outcome()).toMatchObject({ ending: "completed", text: "b is done" });
    expect(await other.work.outcome()).toMatchObject({ ending: "completed" });
  });

  test("BUD-2 is given back after the usage is stored: what was used counts before another starts", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/top": [repeat(say("ok"))],
        "/root/top/a": [together(gate("a"), tokens(9000), say("a used it all"))],
        "/root/top/b": [say("never")],
      },
    });
    const { agent: top, work } = await h.tree.root.spawn("top", "work", { budgets: { tokens: 20_000 } });
    await work.outcome();
    const a = await top.spawn("a", "work");
    await h.provider.gates.arrived("a");
    const spent = (await top.usage()).inputTokens + (await top.usage()).outputTokens;
    // With a's usage stored there is no room for b; with neither reservation nor usage counted there would be.
    await top.raiseBudget("tokens", spent + reserved(h, "/root/top/a") + 5000);
    const b = await top.spawn("b", "work");
    await waitUntil("b waits", async () => (await b.agent.status()).kind === "waiting");
    h.provider.gates.open("a");
    expect((await a.work.outcome()).ending).toBe("completed");
    expect((await b.work.outcome()).ending).toBe("budget_exhausted");
    expect(h.provider.requests("/root/top/b")).toHaveLength(0);
  });

  test("BUD-2 is given back while a request that has failed waits to be made again", async () => {
    const other = scripted({ "*": [say("b is done")] });
    await using h = await harness({
      store,
      others: { other },
      scripts: {
        "/root/top": [repeat(say("ok"))],
        "/root/top/a": [together(gate("a"), fail({ status: 429, retryAfterMs: 60_000 })), say("a is done")],
      },
    });
    const { agent: top, work } = await h.tree.root.spawn("top", "work", { budgets: { tokens: 20_000 } });
    await work.outcome();
    const a = await top.spawn("a", "work");
    await h.provider.gates.arrived("a");
    const spent = (await top.usage()).inputTokens + (await top.usage()).outputTokens;
    await top.raiseBudget("tokens", spent + reserved(h, "/root/top/a") + 4096);
    h.provider.gates.open("a");
    await waitUntil(
      "a is to be asked again",
      async () => (await look(h).events("run.retrying", "/root/top/a")).length === 1,
    );
    const b = await top.spawn("b", "work", { provider: "other" });
    await h.clock.settle();
    expect((await b.work.record()).outcome).toMatchObject({ ending: "completed", text: "b is done" });
    await h.clock.advance(60_000);
    expect(await a.work.outcome()).toMatchObject({ ending: "completed", text: "a is done" });
  });

  test("BUD-2 a run that waits for them goes on when the budget is raised", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/top": [repeat(say("ok"))],
        "/root/top/a": [together(gate("a"), say("a is done"))],
        "/root/top/b": [say("b is done")],
      },
    });
    const { agent: top, work } = await h.tree.root.spawn("top", "work", { budgets: { tokens: 20_000 } });
    await work.outcome();
    await top.spawn("a", "work");
    await h.provider.gates.arrived("a");
    const spent = (await top.usage()).inputTokens + (await top.usage()).outputTokens;
    await top.raiseBudget("tokens", spent + reserved(h, "/root/top/a") + 4096);
    const b = await top.spawn("b", "work");
    await waitUntil("b waits", async () => (await b.agent.status()).kind === "waiting");
    await top.raiseBudget("tokens", null);
    expect(await b.work.outcome()).toMatchObject({ ending: "completed", text: "b is done" });
    expect((await top.status()).kind).toBe("idle");
  });
});

describe.each(STORES)("a spent budget on %s", (store) => {
  test("BUD-2 ends each unfinished work in its scope, tells the root once, wakes nobody there", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [repeat(say("told"))],
        "/root/top": [
          together(tokens(5000), spawn("a", "first"), spawn("b", "second"), spawn("queued", "third")),
          together(gate("spend"), tokens(60_000), call("list_agents", {})),
          say("never"),
        ],
        "/root/top/a": [together(gate("a"), say("never"))],
        "/root/top/b": [together(gate("b"), say("never"))],
        "/root/top/queued": [say("never")],
        "/root/beside": [together(gate("beside"), say("goes on"))],
      },
      tree: { limits: { running: 4 } },
    });
    const top = await h.tree.root.spawn("top", "work", { budgets: { tokens: 60_000 } });
    const beside = await h.tree.root.spawn("beside", "work");
    for (const name of ["spend", "a", "b", "beside"]) await h.provider.gates.arrived(name);
    h.provider.gates.open("spend");
    expect(await top.work.outcome()).toMatchObject({
      ending: "budget_exhausted",
      error: { code: "BUDGET_EXHAUSTED", message: "the tokens budget of /root/top is spent" },
    });
    await waitUntil("the root is told", async () => (await notices(h)).length > 0);
    const works = await look(h).works();
    expect(works.map(({ executorPath, outcome }) => [executorPath, outcome?.ending ?? null])).toEqual([
      ["/root/top", "budget_exhausted"],
      ["/root/beside", null],
      ["/root/top/a", "budget_exhausted"],
      ["/root/top/b", "budget_exhausted"],
      ["/root/top/queued", "budget_exhausted"],
    ]);
    for (const path of ["/root/top", "/root/top/a", "/root/top/b"]) {
      expect((await look(h).runs(path)).map(({ status, reason }) => [status, reason])).toEqual([
        ["failed", "budget_exhausted"],
      ]);
    }
    expect(await look(h).runs("/root/top/queued")).toEqual([]);
    await h.clock.settle();
    // Results of what ended lie in the mailbox of whoever asked, and start nothing there.
    const results = (await look(h).mail("/root/top")).filter(({ kind }) => kind === "final_answer");
    expect(results.map(({ trigger, state }) => [trigger, state])).toEqual(
      Array.from({ length: 3 }, () => [false, "accepted"]),
    );
    expect(await notices(h)).toEqual([expect.stringContaining("The tokens budget of /root/top is spent.")]);
    await expect(top.agent.send("more")).rejects.toMatchObject({
      code: "BUDGET_EXHAUSTED",
      retryable: false,
      details: { limit: "tokens", path: "/root/top", value: 60_000, use: 65_000, frees: expect.any(String) },
    });
    const a = await h.tree.agent("/root/top/a");
    await expect(a.send("more")).rejects.toMatchObject({ code: "BUDGET_EXHAUSTED" });
    await expect(a.spawn("more", "work")).rejects.toMatchObject({ code: "BUDGET_EXHAUSTED" });
    h.provider.gates.open("beside");
    expect((await beside.work.outcome()).ending).toBe("completed");
  });

  test("BUD-2 refuses until it is raised; what is raised takes requests again", async () => {
    await using h = await harness({
      store,
      scripts: { "/root": [together(tokens(900_000), say("dear")), repeat(say("cheap"))] },
      tree: { limits: { tokensPerTree: 900_000 } },
    });
    expect((await h.ask("one")).ending).toBe("completed");
    expect((await h.ask("two")).ending).toBe("budget_exhausted");
    await expect(h.tree.root.send("three")).rejects.toMatchObject({ code: "BUDGET_EXHAUSTED" });
    await h.crash();
    await expect(h.tree.root.send("three")).rejects.toMatchObject({ code: "BUDGET_EXHAUSTED" });
    await h.tree.root.raiseBudget("tokens", 1_000_000);
    expect(await h.ask("three")).toMatchObject({ ending: "completed", text: "cheap" });
  });

  test("BUD-2 settles a run that is left without an open work, too", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root/top": [repeat(say("ok"))],
        "/root/top/reported": [
          call("report_result", (context) => ({
            work_id: /Work id: (\S+)/.exec(context.inputs.join("\n"))![1]!,
            result: "here it is",
          })),
          together(gate("after"), say("never")),
        ],
        "/root/top/spender": [together(gate("spend"), tokens(60_000), call("list_agents", {})), say("never")],
      },
    });
    const { agent: top } = await h.tree.root.spawn("top", "work", { budgets: { tokens: 60_000 } });
    await h.tree.idle();
    const { work } = await top.spawn("reported", "work");
    await top.spawn("spender", "work");
    for (const name of ["after", "spend"]) await h.provider.gates.arrived(name);
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "here it is" });
    h.provider.gates.open("spend");
    await h.tree.idle();
    expect((await look(h).runs("/root/top/reported")).map(({ status, reason }) => [status, reason])).toEqual([
      ["failed", "budget_exhausted"],
    ]);
    expect((await look(h).work("/root/top/reported")).outcome?.ending).toBe("completed");
  });
});

describe.each(STORES)("usage on %s", (store) => {
  const scripts = {
    "/root": [
      together(usage({ inputTokens: 100, outputTokens: 10 }), spawn("a", "work")),
      together(usage({ inputTokens: 200, outputTokens: 20 }), wait({ targets: ["a"] })),
      together(usage({ inputTokens: 300, outputTokens: 30 }), say("done")),
    ],
    "/root/a": [
      together(usage({ inputTokens: 1000, outputTokens: 100 }), spawn("b", "work")),
      together(usage({ inputTokens: 2000, outputTokens: 200 }), say("working")),
      together(usage({ inputTokens: 3000, outputTokens: 300 }), say("a is done")),
    ],
    "/root/a/b": [together(usage({ inputTokens: 50_000, outputTokens: 5000 }), say("b is done"))],
  };

  test("BUD-4 is stored at the leaf and derived upwards; every result carries its own and its subtree's", async () => {
    await using h = await harness({ store, scripts });
    const outcome = await h.ask("go");
    expect(outcome.usage.own).toMatchObject({ inputTokens: 600, outputTokens: 60, complete: true });
    expect(outcome.usage.subtree).toMatchObject({ inputTokens: 56_600, outputTokens: 5660, complete: true });
    const own = async (path: string) => (await (await h.tree.agent(path)).record()).usage.inputTokens;
    expect([await own("/root"), await own("/root/a"), await own("/root/a/b")]).toEqual([600, 6000, 50_000]);
    const under = async (path: string) => (await (await h.tree.agent(path)).usage()).inputTokens;
    expect([await under("/root"), await under("/root/a"), await under("/root/a/b")]).toEqual([
      56_600, 56_000, 50_000,
    ]);
    // Mail with a result says it, and so does a wait that returns one.
    const woken = look(h).inputs("/root/a", 2).join("\n");
    expect(woken).toContain("Usage: 55000 tokens, 55000 with all below, cost unknown\n");
    const [waited] = await look(h).outputs("/root", "wait_agent");
    expect(waited!.output).toMatchObject({
      results: [{ usage: { tokens: 6600, subtree_tokens: 61_600, cost: null, complete: true } }],
    });
    const ended = (await h.tree.log(0, 1000)).filter(({ type }) => type === "work.ended");
    expect(ended.map(({ data }) => data["tokens"])).toEqual([55_000, 61_600, 62_260]);
  });

  test("BUD-4 is marked partial where a provider reported none, for the work and all above it", async () => {
    await using h = await harness({
      store,
      scripts: { ...scripts, "/root/a/b": [together(usage(null), say("b is done"))] },
    });
    const outcome = await h.ask("go");
    expect(outcome.usage.own.complete).toBe(true);
    expect(outcome.usage.subtree).toMatchObject({ inputTokens: 6600, complete: false });
    expect((await h.tree.root.usage()).complete).toBe(false);
    expect(look(h).inputs("/root/a", 2).join("\n")).toMatch(
      /Usage: 0 tokens.* \(partial: not all was reported\)/,
    );
  });
});

describe.each(STORES)("money on %s", (store) => {
  const prices = { "scripted/priced": { input: 10, cachedInput: 1, output: 100 } };
  const models = { priced: {}, free: {} };

  test("BUD-7 cost follows the given prices, cached input apart, and is unknown without one", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          together(
            usage({ inputTokens: 1_000_000, cachedInputTokens: 400_000, outputTokens: 10_000 }),
            spawn("free", "work", { model: "free" }),
          ),
          together(usage({ inputTokens: 0, outputTokens: 0 }), wait({ targets: ["free"] })),
          together(usage({ inputTokens: 0, outputTokens: 0 }), say("done")),
        ],
        "/root/free": [say("free of charge")],
      },
      scripted: { models },
      tree: { model: "priced" },
      runtime: { prices },
    });
    const outcome = await h.ask("go");
    // 0.6 M at 10, 0.4 M at 1, 0.01 M at 100.
    expect(outcome.usage.own.cost).toBeCloseTo(7.4, 6);
    expect(outcome.usage.subtree.cost).toBe(null);
    expect((await (await h.tree.agent("free")).usage()).cost).toBe(null);
  });

  test("BUD-7 a money budget on a model without a price is refused at the spawn", async () => {
    await using h = await harness({
      store,
      scripts: { "*": [repeat(say("ok"))] },
      scripted: { models },
      tree: { model: "priced" },
      runtime: { prices },
    });
    const spawned = h.tree.root.spawn("a", "work", { model: "free", budgets: { money: 1 } });
    await expect(spawned).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringContaining("no price is known for scripted/free"),
    });
    const { agent } = await h.tree.root.spawn("b", "work", { budgets: { money: 1 } });
    await expect(agent.spawn("c", "work", { model: "free" })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    expect((await h.tree.counts()).registered).toBe(2);
  });

  test("BUD-1 BUD-2 money of a tree holds where prices are known, beside agents that have none", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [repeat(together(usage({ inputTokens: 100_000, outputTokens: 0 }), say("dear")))],
        "/root/free": [repeat(together(usage({ inputTokens: 5_000_000, outputTokens: 0 }), say("free")))],
      },
      scripted: { models },
      tree: { model: "priced", limits: { moneyPerTree: 3 } },
      runtime: { prices },
    });
    await (await h.tree.root.spawn("free", "work", { model: "free" })).work.outcome();
    expect((await h.ask("one")).usage.own.cost).toBeCloseTo(1, 6);
    expect((await h.ask("two")).ending).toBe("completed");
    // 2 are spent; a request may use 0.4 of output and as much of input as it has, so the third fits and the fourth cannot.
    expect((await h.ask("three")).ending).toBe("completed");
    expect(await h.ask("four")).toMatchObject({
      ending: "budget_exhausted",
      error: { message: "the money budget of /root is spent" },
    });
  });
});

describe.each(STORES)("bounds on loops on %s", (store) => {
  test("BUD-5 a chain of works is bounded: the asker is told to answer instead", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("a", "1"), repeat(say("ok"))],
        "/root/a": [spawn("b", "2"), repeat(say("ok"))],
        "/root/a/b": [spawn("c", "3"), say((context) => context.lastToolText), repeat(say("ok"))],
        "/root/a/b/c": [say("too deep")],
      },
      tree: { limits: { causalChain: 3 } },
    });
    await h.ask("go");
    await h.tree.idle();
    const [refused] = await look(h).outputs("/root/a/b", "spawn_agent");
    expect(refused).toMatchObject({
      isError: true,
      output: { code: "CAUSAL_LIMIT", details: { limit: "causalChain", value: 3, use: 3 } },
    });
    expect((await h.tree.counts()).registered).toBe(3);
  });

  test("BUD-5 work made by a wake keeps the chain of what woke it, so that two agents cannot feed each other for ever", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "begin", { detached: true }),
          say("started"),
          repeat((context) =>
            context.toolResults.length > 0
              ? say("asked again")
              : followUp("worker", `round ${context.ownSteps}`, { detached: true, wake: "always" }),
          ),
        ],
        "/root/worker": [repeat(say("done"))],
      },
      tree: { limits: { causalChain: 6, runsPerMinute: null } },
    });
    await h.ask("go");
    await h.tree.idle();
    const works = await look(h).works("/root/worker");
    // The user's work is the first of the chain.
    expect(works.map(({ chain }) => chain)).toEqual([2, 3, 4, 5, 6]);
    const last = (await look(h).outputs("/root", "followup_task")).at(-1)!;
    expect(last).toMatchObject({ isError: true, output: { code: "CAUSAL_LIMIT" } });
  });

  test("BUD-5 a work is served by a bounded number of runs, then it ends turn_limit", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "begin"),
          say("started"),
          repeat((context) =>
            context.toolResults.length > 0
              ? say("asked again")
              : followUp("worker", `round ${context.ownSteps}`),
          ),
        ],
        "/root/worker": [repeat(say("done"))],
      },
      tree: { limits: { runsPerWork: 4, runsPerMinute: null } },
    });
    expect(await h.ask("go")).toMatchObject({ ending: "turn_limit", error: { code: "LIMIT_REACHED" } });
    expect((await look(h).work("/root")).runsServed).toBe(4);
  });

  test("BUD-5 over the runs a minute requests are refused, wakes and committed works wait for the minute", async () => {
    await using h = await harness({
      store,
      scripts: {
        "/root": [spawn("worker", "count"), say("started"), say("woken"), repeat(say("again"))],
        "/root/worker": [say("seven")],
      },
      tree: { limits: { runsPerMinute: 2 } },
    });
    const work = await h.tree.root.send("go");
    await waitUntil("the result waits", async () => (await h.tree.root.status()).kind === "queued");
    await h.clock.settle();
    expect((await look(h).runs("/root")).length).toBe(1);
    expect((await h.tree.root.why()).reasons.join("\n")).toContain("has started 2 runs within a minute");
    const worker = await h.tree.agent("worker");
    await expect(worker.send("more")).rejects.toMatchObject({
      code: "LIMIT_REACHED",
      details: { limit: "runsPerMinute", value: 2, use: 2, retryAfterMs: 60_000 },
    });
    await h.clock.advance(59_999);
    expect((await look(h).runs("/root")).length).toBe(1);
    await h.clock.advance(1);
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "woken" });
  });
});
