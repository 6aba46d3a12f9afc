/** What a run lends while a call by its agent's token waits in it, and how it has it back (WAI-5, EXE-4). */
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/protocol/json.ts";
import { gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { callByName, type HostCallOptions } from "../../src/tools/host-tools.ts";
import { harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

describe.each(STORES)("calls that wait in a run on %s", (store) => {
  /** `/root/a` in the middle of its run, which stands at the gate `a`; others stand at the gate of their name. */
  async function inRun(options: HarnessOptions = {}) {
    const at = (name: string) => [together(gate(name), say(`${name} is done`)), repeat(say("more"))];
    const h = await harness({
      store,
      ...options,
      scripts: {
        "/root/a": at("a"),
        "/root/a/kid": at("kid"),
        "/root/a/kid2": at("kid2"),
        "/root/b": at("b"),
        ...options.scripts,
      },
      runtime: { limits: { residents: 1 }, ...options.runtime },
      tree: options.tree ?? { limits: { running: 1 } },
    });
    const { agent, work } = await h.tree.root.spawn("a", "go");
    await h.provider.gates.arrived("a");
    const tools = (await h.runtime.actAs(await agent.token())).tools();
    return {
      h,
      agent,
      work,
      permits: h.tree.control.tree.permits,
      call: async (name: string, input: object, how: HostCallOptions = {}) =>
        (await callByName(tools, name, input, how)).output as JsonObject,
      spawn: (task_name: string) =>
        callByName(tools, "spawn_agent", { task_name, message: "go", fork_turns: "none" }),
      [Symbol.asyncDispose]: () => h[Symbol.asyncDispose](),
    };
  }

  test("RUN-3 what a call waits for does not count for the run's wall clock, whatever waits beside it", async () => {
    await using one = await inRun({
      tree: { limits: { running: 1, runWallClockMs: 20_000, wrapUpMs: 5_000 } },
    });
    const { h } = one;
    await one.spawn("kid");
    await h.clock.advance(1_000);
    const waits = [0, 1].map(() => one.call("wait_agent", { targets: ["kid"], timeout_ms: 60_000 }));
    await h.provider.gates.arrived("kid");
    for (let second = 0; second < 15; second += 1) await h.clock.advance(1_000);
    h.provider.gates.open("kid");
    await Promise.all(waits);
    const [run] = await look(h).runs("/root/a");
    expect(run!.waitedMs).toBe(15_000);
    await h.clock.advance(17_000);
    h.provider.gates.open("a");
    expect(await one.work.outcome()).toMatchObject({ ending: "completed", text: "a is done" });
  });

  test("RUN-3 a run whose call waits is cut off by what it takes outside of it", async () => {
    await using one = await inRun({
      tree: { limits: { running: 1, runWallClockMs: 20_000, wrapUpMs: 5_000 } },
    });
    const { h } = one;
    await one.spawn("kid");
    const waiting = one.call("wait_agent", { targets: ["kid"], timeout_ms: 60_000 });
    await h.provider.gates.arrived("kid");
    h.provider.gates.open("kid");
    await waiting;
    await h.clock.advance(25_000);
    expect(await one.work.outcome()).toMatchObject({ ending: "time_limit" });
  });

  test("WAI-5 calls that wait beside one another: whoever one of them waits for has its turn when the other is answered", async () => {
    await using one = await inRun();
    const { h } = one;
    await one.spawn("kid");
    await one.spawn("kid2");
    const first = one.call("wait_agent", { targets: ["kid"], timeout_ms: 60_000 });
    const second = one.call("wait_agent", { targets: ["kid2"], timeout_ms: 60_000 });
    h.provider.gates.open("kid");
    h.provider.gates.open("kid2");
    expect(await first).toMatchObject({ ended_by: "settled", results: [{ text: "kid is done" }] });
    expect(await second).toMatchObject({ ended_by: "settled", results: [{ text: "kid2 is done" }] });
    expect(one.permits.inUse).toBe(1);
    h.provider.gates.open("a");
    expect((await one.work.outcome()).text).toBe("a is done");
    await h.tree.idle();
    expect([one.permits.inUse, h.tree.control.tree.lane.size]).toEqual([0, 0]);
  });

  test("EXE-1 a run that asked for an approval before its provider accepted it has its permit back", async () => {
    await using one = await inRun({
      scripts: {
        "/root/a": [
          together(gate("a", { beforeAcceptance: true }), gate("a2"), say("a is done")),
          repeat(say("more")),
        ],
      },
      runtime: { threadTools: { allow: "all" }, limits: { residents: 4 } },
    });
    const { h } = one;
    const other = await h.runtime.openTree({});
    const asked = { thread_id: other.id, message: "hello" };
    const asking = one.call("send_message_to_thread", asked, { callId: "call_9" });
    await look(h).until("it is asked", async () => (await h.tree.requests()).length === 1);
    await h.clock.settle();
    expect(one.permits.inUse).toBe(0);
    await h.tree.answer((await h.tree.requests())[0]!.id, "yes");
    await asking;
    expect(one.permits.inUse).toBe(1);
    h.provider.gates.openAll();
    expect(await one.work.outcome()).toMatchObject({ ending: "completed" });
    await h.tree.idle();
    expect(one.permits.inUse).toBe(0);
  });

  test("WAI-5 permit and slot are lent: at one permit and one resident whoever is waited for runs", async () => {
    await using one = await inRun();
    const { h, agent } = one;
    await one.spawn("kid");
    const waiting = one.call("wait_agent", { targets: ["kid"], timeout_ms: 60_000 });
    await h.provider.gates.arrived("kid");
    expect(await agent.status()).toEqual({ kind: "waiting", on: ["/root/a/kid"] });
    expect(await h.tree.counts()).toMatchObject({ running: 1, queued: 0 });
    expect([one.permits.inUse, h.tree.control.tree.residency.count]).toEqual([1, 1]);
    h.provider.gates.open("kid");
    expect(await waiting).toMatchObject({ ended_by: "settled", results: [{ text: "kid is done" }] });
    expect(await agent.status()).toEqual({ kind: "running" });
    expect(one.permits.inUse).toBe(1);
    h.provider.gates.open("a");
    expect((await one.work.outcome()).text).toBe("a is done");
    await h.tree.idle();
    expect(one.permits.inUse).toBe(0);
    // Above the limit nobody is loaded; it comes down again, and others have their turn.
    h.provider.gates.open("b");
    expect((await (await h.tree.root.spawn("b", "go")).work.outcome()).text).toBe("b is done");
    expect(h.tree.control.tree.residency.count).toBe(1);
  });

  test("EXE-4 it answers only once its permit is back, before all that are new", async () => {
    await using one = await inRun();
    const { h, agent } = one;
    await one.spawn("kid");
    let answered = false;
    const waiting = one.call("wait_agent", { targets: ["kid"] }).finally(() => (answered = true));
    await h.provider.gates.arrived("kid");
    const { work } = await h.tree.root.spawn("b", "go");
    await agent.send("new input", { onBusy: "steer" });
    await h.clock.settle();
    expect([answered, one.permits.inUse]).toEqual([false, 1]);
    h.provider.gates.open("kid");
    expect(await waiting).toMatchObject({ ended_by: "new_input" });
    expect((await look(h).runs("/root/b")).length).toBe(0);
    h.provider.gates.open("a");
    h.provider.gates.open("b");
    expect((await work.outcome()).text).toBe("b is done");
    expect(one.permits.inUse).toBe(0);
  });

  test("EXE-4 where the transport would give up it answers on time, and the permit is overdrawn until one is given back", async () => {
    await using one = await inRun();
    const { h, agent } = one;
    const { transportWaitMs } = h.tree.control.tree.limits;
    await one.spawn("kid");
    const waiting = one.call("wait_agent", { targets: ["kid"], timeout_ms: 600_000 });
    await h.provider.gates.arrived("kid");
    const { work } = await h.tree.root.spawn("b", "go");
    await h.clock.advance(transportWaitMs);
    expect(await waiting).toMatchObject({ ended_by: "cut_short", timed_out: false });
    expect(await agent.status()).toEqual({ kind: "running" });
    expect([one.permits.inUse, (await h.tree.counts()).running]).toEqual([2, 2]);
    // What is given back first repays it: nobody new runs for it.
    h.provider.gates.open("kid");
    await look(h).until("the kid is done", async () => (await look(h).work("/root/a/kid")).state === "ended");
    await h.clock.settle();
    expect(one.permits.inUse).toBe(1);
    expect(await look(h).runs("/root/b")).toEqual([]);
    h.provider.gates.open("a");
    h.provider.gates.open("b");
    await work.outcome();
    await h.tree.idle();
    expect(one.permits.inUse).toBe(0);
  });

  test("WAI-6 one whose caller is gone gives its run the permit back", async () => {
    await using one = await inRun();
    const { h } = one;
    await one.spawn("kid");
    const gone = new AbortController();
    const waiting = one.call("wait_agent", { targets: ["kid"] }, { signal: gone.signal });
    await h.provider.gates.arrived("kid");
    gone.abort(new Error("gone"));
    await expect(waiting).rejects.toThrow("gone");
    // Its run works on at once, and is counted.
    expect([one.permits.inUse, (await h.tree.counts()).running]).toEqual([2, 2]);
    h.provider.gates.open("kid");
    await look(h).until("the kid is done", async () => (await look(h).work("/root/a/kid")).state === "ended");
    await h.clock.settle();
    expect(one.permits.inUse).toBe(1);
    h.provider.gates.open("a");
    expect((await one.work.outcome()).ending).toBe("completed");
    expect(one.permits.inUse).toBe(0);
  });

  test("WAI-5 a run that is over before its permit is back leaves nothing behind", async () => {
    await using one = await inRun();
    const { h, agent } = one;
    await one.spawn("kid");
    const waiting = one.call("wait_agent", { targets: ["kid"] });
    await h.provider.gates.arrived("kid");
    await agent.interrupt();
    expect(await waiting).toMatchObject({ code: "RUN_INTERRUPTED" });
    h.provider.gates.openAll();
    await h.tree.idle();
    const again = await agent.send("again");
    expect((await again.outcome()).ending).toBe("completed");
    await h.tree.idle();
    expect(one.permits.inUse).toBe(0);
    expect(h.tree.control.tree.lane.size).toBe(0);
  });

  test("EXE-4 a call that wants an approval lends the permit, and keeps the slot", async () => {
    await using one = await inRun({
      runtime: { threadTools: { allow: "all" }, limits: { residents: 2 } },
    });
    const { h } = one;
    const other = await h.runtime.openTree({});
    const asking = one.call(
      "send_message_to_thread",
      { thread_id: other.id, message: "hello" },
      { callId: "call_9" },
    );
    await look(h).until("it is asked", async () => (await h.tree.requests()).length === 1);
    const { work } = await h.tree.root.spawn("b", "go");
    await h.provider.gates.arrived("b");
    expect(one.permits.inUse).toBe(1);
    expect(await one.agent.status()).toEqual({ kind: "awaiting_approval" });
    expect((await h.tree.counts()).running).toBe(1);
    expect(h.tree.control.tree.residency.slotOf((await one.agent.record()).threadId)!.state).toBe("resident");
    const [request] = await h.tree.requests();
    await h.tree.answer(request!.id, "yes");
    await h.clock.settle();
    // It is answered, and `/root/b` has the permit still.
    expect(await one.agent.status()).toEqual({ kind: "waiting", on: [] });
    expect((await h.tree.counts()).running).toBe(1);
    h.provider.gates.open("b");
    await work.outcome();
    expect(await asking).not.toHaveProperty("code");
    expect(await one.agent.status()).toEqual({ kind: "running" });
    expect(one.permits.inUse).toBe(1);
    h.provider.gates.open("a");
    await one.work.outcome();
    expect(one.permits.inUse).toBe(0);
  });

  test("EXE-4 LST-1 one that nobody answers in time works on and is counted, while its request is still there", async () => {
    await using one = await inRun({
      runtime: { threadTools: { allow: "all" }, limits: { residents: 2 } },
      tree: { limits: { running: 1 } },
    });
    const { h, agent } = one;
    const { transportWaitMs } = h.tree.control.tree.limits;
    const other = await h.runtime.openTree({});
    const asked = { thread_id: other.id, message: "hello" };
    const asking = one.call("send_message_to_thread", asked, { callId: "call_9" });
    await look(h).until("it is asked", async () => (await h.tree.requests()).length === 1);
    await h.clock.settle();
    expect(await agent.status()).toEqual({ kind: "awaiting_approval" });
    await h.clock.advance(transportWaitMs);
    expect(await asking).toMatchObject({ code: "SUBAGENT_PARENT_NOT_ACTIVE" });
    expect(await h.tree.requests()).toHaveLength(1);
    expect(await agent.status()).toEqual({ kind: "running" });
    expect([one.permits.inUse, (await h.tree.counts()).running]).toEqual([1, 1]);
    h.provider.gates.open("a");
    expect((await one.work.outcome()).ending).toBe("completed");
    expect((await h.tree.counts()).running).toBe(0);
  });

  test("EXE-4 LST-1 one whose wait has ended waits for its permit, and is not shown as running", async () => {
    await using one = await inRun();
    const { h, agent } = one;
    await one.spawn("kid");
    const waiting = one.call("wait_agent", { targets: ["kid"] });
    await h.provider.gates.arrived("kid");
    await agent.send("new input", { onBusy: "steer" });
    await h.clock.settle();
    expect(await agent.status()).toEqual({ kind: "waiting", on: [] });
    expect((await h.tree.counts()).running).toBe(1);
    h.provider.gates.open("kid");
    expect(await waiting).toMatchObject({ ended_by: "new_input" });
    expect(await agent.status()).toEqual({ kind: "running" });
    h.provider.gates.open("a");
    expect((await one.work.outcome()).ending).toBe("completed");
  });

  test("XTR-4 WAI-5 so does one that waits for threads, and its wait is stored", async () => {
    await using one = await inRun({
      scripts: { "/root": [together(gate("elsewhere"), say("there"))] },
      runtime: { threadTools: { allow: "all" }, limits: { residents: 2 } },
    });
    const { h } = one;
    const other = await h.runtime.openTree({});
    const theirs = await other.root.send("go");
    await h.provider.gates.arrived("elsewhere");
    const waiting = one.call("wait_threads", { thread_ids: [other.id], timeout_ms: 40_000 });
    await look(h).until("it waits", async () => (await one.agent.status()).kind === "waiting");
    expect(one.permits.inUse).toBe(0);
    h.provider.gates.open("elsewhere");
    await theirs.outcome();
    await h.clock.advance(1000);
    expect(await waiting).toMatchObject({ ended_by: "settled" });
    expect(one.permits.inUse).toBe(1);
    h.provider.gates.open("a");
    expect((await one.work.outcome()).ending).toBe("completed");
  });
});
