/** RUN-5: what goes on beside the events of a native turn, each at its own pace, and what its end leaves. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { gate, repeat, say } from "../../src/providers/scripted/script.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";
import { puppet, puppetRef, type Puppet } from "../support/puppet.ts";

const CHILD = { task_name: "kid", message: "x", fork_turns: "none", model: "scripted/scripted" };
const MORE = repeat(say("more"));
const NEVER = new Promise<never>(() => undefined);
const USED = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0 };

describe.each(STORES)("beside the events of a native turn, on %s", (store) => {
  const open = (native: Puppet, more: HarnessOptions = {}) =>
    harness({
      store,
      scripts: { "*": [MORE] },
      ...more,
      others: { native },
      tree: { provider: "native", ...more.tree },
    });

  test("RUN-5 a call beside a wait that is open is carried out and answered at once", async () => {
    const answered: string[] = [];
    const native = puppet(async ({ call, say: tell }) => {
      await call("r0", "spawn_agent", CHILD);
      const waited = call("r1", "wait_agent", { targets: ["kid"] }).then(() => answered.push("wait"));
      const sent = call("r2", "send_message", { target: "kid", message: "hello" });
      await sent.then(() => answered.push("sent"));
      h.provider.gates.open("g");
      await waited;
      tell("both");
    });
    await using h = await open(native, { scripts: { "/root/kid": [gate("g"), say("seven"), MORE] } });
    const outcome = await h.ask("go");
    expect(outcome).toMatchObject({ ending: "completed", text: "both" });
    expect(answered).toEqual(["sent", "wait"]);
  });

  test("RUN-2 calls that come while others are open are of one step, each with its result, before what follows", async () => {
    const both = Promise.withResolvers<void>();
    let running = 0;
    const slow = defineTool({
      name: "slow",
      input: z.object({ n: z.number() }),
      effects: ["read"],
      async run({ n }) {
        running += 1;
        if (running === 2) both.resolve();
        await both.promise;
        return `result ${n}`;
      },
    });
    const native = puppet(async ({ call, say: tell }) => {
      const calls = [call("a", "slow", { n: 1 }), call("b", "slow", { n: 2 })];
      tell("meanwhile");
      const answers = await Promise.all(calls);
      tell(answers.map((answer) => JSON.stringify(answer.kind === "tool" && answer.output)).join(" and "));
    });
    await using h = await open(native, { runtime: { tools: [slow] } });
    const look = new Look(h);
    expect(await h.ask("go")).toMatchObject({ text: '"result 1" and "result 2"' });
    const items = (await look.items("/root")).filter(
      ({ kind }) => kind === "assistant" || kind === "tool_result",
    );
    const kinds = "assistant assistant tool_result tool_result assistant assistant";
    expect(items.map(({ kind }) => kind).join(" ")).toBe(kinds);
    expect(new Set(items.slice(0, 2).map(({ step }) => step)).size).toBe(1);
    expect((await look.runs("/root"))[0]!.steps).toBe(3);
  });

  test("RUN-5 a name of a call that comes again is another call, in the same turn and in the next", async () => {
    let done = 0;
    const count = defineTool({
      name: "count",
      input: z.object({}),
      effects: ["read"],
      run: () => (done += 1),
    });
    const native = puppet(async ({ call, say: tell }) => {
      const told: unknown[] = [];
      for (const id of ["r1", "r2"]) {
        const answer = await call(id, "count", {});
        if (answer.kind === "tool") told.push(answer.output);
      }
      tell(told.join(" "));
    });
    await using h = await open(native, { runtime: { tools: [count] } });
    expect(await h.ask("one")).toMatchObject({ text: "1 2" });
    expect(await h.ask("two")).toMatchObject({ text: "3 4" });
  });

  test("WAI-3 a result that the provider did not take with a wait's output comes again", async () => {
    const ended = Promise.withResolvers<void>();
    let turns = 0;
    const native = puppet(
      async ({ call, say: tell, input }) => {
        turns += 1;
        if (turns > 1)
          return tell(`heard: ${input.userMessage} ${input.preambles.map(({ text }) => text).join(" ")}`);
        await call("r0", "spawn_agent", CHILD);
        void call("r1", "wait_agent", { targets: ["kid"] });
        await ended.promise;
        tell("without it");
      },
      {
        refuses({ nativeId }) {
          if (nativeId === "r1") ended.resolve();
          return nativeId === "r1";
        },
      },
    );
    await using h = await open(native, { scripts: { "/root/kid": [say("SEVEN"), MORE] } });
    const look = new Look(h);
    await h.ask("go");
    await look.until("a run that has heard it", async () =>
      (await look.runs("/root")).some(({ text }) => text.includes("SEVEN")),
    );
  });

  test("BUD-2 what a turn uses counts as it comes, and a spent budget stops the turn", async () => {
    const stopped = Promise.withResolvers<void>();
    const native = puppet(async ({ tell, stopped: signal }) => {
      signal.addEventListener("abort", () => stopped.resolve());
      tell({ type: "usage", usage: { ...USED, inputTokens: 60_000 } });
      tell({ type: "usage", usage: { ...USED, outputTokens: 50_000 } });
      await stopped.promise;
    });
    await using h = await open(native, { tree: { budgets: { tokens: 100_000 } } });
    const outcome = await h.ask("go");
    expect(outcome).toMatchObject({ ending: "budget_exhausted" });
    await new Look(h).until("its turn is stopped", async () => native.log.includes("stop 1"));
    const { usage } = await h.tree.root.record();
    expect(usage).toMatchObject({ inputTokens: 60_000, outputTokens: 50_000 });
  });

  test("BUD-4 a turn that has told what it used is not unreported for want of figures at its end", async () => {
    const native = puppet(async ({ tell, say: told }) => {
      tell({ type: "usage", usage: { ...USED, inputTokens: 7 } });
      told("done");
    });
    await using h = await open(native);
    const outcome = await h.ask("go");
    expect(outcome.usage.own).toMatchObject({ inputTokens: 7, complete: true });
  });

  test.each(["respond", "steerTurn"] as const)(
    "RUN-5 a provider that never answers `%s` holds no run up",
    async (method) => {
      const asked = Promise.withResolvers<void>();
      const hang = (): Promise<never> => {
        asked.resolve();
        return NEVER;
      };
      const native = puppet(
        async ({ call, say: tell }) => {
          if (method === "respond") void call("r", "list_agents", {});
          await asked.promise;
          tell("the answer");
        },
        { session: () => ({ [method]: hang }) },
      );
      await using h = await open(native);
      const work = await h.tree.root.send("go");
      if (method === "steerTurn") {
        const look = new Look(h);
        await look.until("it runs", async () => (await look.runs("/root"))[0]?.status === "running");
        await h.tree.root.tell("and this");
      }
      expect(await work.outcome()).toMatchObject({ ending: "completed", text: "the answer" });
    },
  );

  test("INT-3 a run whose provider hangs before its turn ends when it is interrupted", async () => {
    const asked = Promise.withResolvers<void>();
    const native = puppet(async () => undefined, {
      session: () => ({
        ensureThread() {
          asked.resolve();
          return NEVER;
        },
      }),
    });
    await using h = await open(native);
    const work = await h.tree.root.send("go");
    await asked.promise;
    await h.tree.root.interrupt();
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    const look = new Look(h);
    await look.until("nothing runs", async () => h.tree.control.tree.permits.inUse === 0);
  });

  test("RUN-5 a tool of ours is stopped when the turn has ended without waiting for it", async () => {
    const begun = Promise.withResolvers<void>();
    let cut: unknown = null;
    const endless = defineTool({
      name: "endless",
      input: z.object({}),
      effects: ["read"],
      run(_input, { signal }) {
        begun.resolve();
        return new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => reject((cut = signal.reason))),
        );
      },
    });
    const native = puppet(async ({ call, say: tell }) => {
      void call("r", "endless", {});
      await begun.promise;
      tell("enough");
    });
    await using h = await open(native, { runtime: { tools: [endless] } });
    const look = new Look(h);
    expect(await h.ask("go")).toMatchObject({ ending: "completed", text: "enough" });
    expect(cut).not.toBeNull();
    expect((await look.outputs("/root", "endless"))[0]).toMatchObject({ isError: true });
  });

  test("RUN-5 two sessions of one conversation never overlap: the one before is closed first", async () => {
    const closing = Promise.withResolvers<void>();
    let turns = 0;
    const native = puppet(
      async ({ say: tell }) => {
        turns += 1;
        // Deaf to the interrupt.
        if (turns === 1) await NEVER;
        tell("ok");
      },
      { session: (number) => (number === 1 ? { close: () => closing.promise } : {}) },
    );
    await using h = await open(native);
    const look = new Look(h);
    const first = await h.tree.root.send("one");
    await look.until("it runs", async () => (await look.runs("/root"))[0]?.status === "running");
    await h.tree.root.interrupt();
    await first.outcome();
    const second = await h.tree.root.send("two");
    await h.clock.advance(h.tree.control.tree.limits.interruptGraceMs);
    await look.until("it is being closed", async () => native.log.includes("close 1"));
    expect(native.log.some((entry) => entry.startsWith("open 2"))).toBe(false);
    closing.resolve();
    expect(await second.outcome()).toMatchObject({ ending: "completed", text: "ok" });
    expect(native.log.indexOf("closed 1")).toBeLessThan(
      native.log.findIndex((entry) => entry.startsWith("open 2")),
    );
  });

  test("C4.16 another model is another session where the provider says so, and the one before is closed first", async () => {
    const native = puppet(async ({ say: tell, session }) => tell(`session ${session}`), {
      change: () => "restart_session",
    });
    await using h = await open(native, { tree: { model: "a" } });
    expect(await h.ask("one")).toMatchObject({ text: "session 1" });
    expect(await h.ask("two")).toMatchObject({ text: "session 1" });
    await h.runtime.threads.select(h.tree.id, { provider: "native", model: "b" });
    expect(await h.ask("three")).toMatchObject({ text: "session 2" });
    expect(native.log).toEqual(["open 1 a", "turn 1", "turn 1", "close 1", "closed 1", "open 2 b", "turn 2"]);
  });

  test("WAI-2 a question that its asker withdraws is expired, and the turn goes on", async () => {
    const native = puppet(async ({ ask, tell, say: told }) => {
      const ref = puppetRef("q");
      void ask({ kind: "question", ref, text: "blue?", about: null });
      const look = new Look(h);
      await look.until("it is asked", async () => (await h.tree.requests()).length === 1);
      tell({ type: "withdrawn", request: ref });
      await look.until("nothing is asked", async () => (await h.tree.requests()).length === 0);
      told("never mind");
    });
    await using h = await open(native);
    const look = new Look(h);
    expect(await h.ask("go")).toMatchObject({ ending: "completed", text: "never mind" });
    expect((await look.events("request.closed"))[0]!.data).toMatchObject({ status: "expired" });
    expect((await h.tree.root.record()).openRequests).toBe(0);
  });
});
