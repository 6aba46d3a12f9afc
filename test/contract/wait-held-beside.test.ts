/** A run that waits for itself while calls by its agent's token wait beside it (WAI-3, EXE-4), and a store that fails meanwhile. */
import { describe, expect, test, vi } from "vitest";
import { TransientError } from "../../src/protocol/errors.ts";
import { gate, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { callByName } from "../../src/tools/host-tools.ts";
import { harness, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

describe.each(STORES)("a run with calls by token on %s", (store) => {
  const kid = [together(gate("kid"), say("kid is done")), repeat(say("more"))];
  async function open() {
    const h = await harness({
      store,
      scripts: {
        "/root/a": [
          spawn("kid", "go"),
          together(gate("before"), wait({ targets: ["kid"] })),
          say("a is done"),
          repeat(say("more")),
        ],
        "/root/a/kid": kid,
        "/root/a/kid2": [together(gate("kid2"), say("kid2 is done")), repeat(say("more"))],
      },
      runtime: { threadTools: { allow: "all" } },
      tree: { limits: { running: 3 } },
    });
    const { agent, work } = await h.tree.root.spawn("a", "go");
    await h.provider.gates.arrived("before");
    await h.provider.gates.arrived("kid");
    const tools = (await h.runtime.actAs(await agent.token())).tools();
    const waits = (): Promise<void> =>
      look(h).until("it waits", async () => (await look(h).runs("/root/a"))[0]!.status === "waiting");
    return { h, work, tools, waits, [Symbol.asyncDispose]: () => h[Symbol.asyncDispose]() };
  }

  test("WAI-3 EXE-4 a question of a call that was given up keeps the run's own wait from nothing", async () => {
    await using one = await open();
    const { h, work, tools } = one;
    const other = await h.runtime.openTree({});
    const asked = { thread_id: other.id, message: "hello" };
    const asking = callByName(tools, "send_message_to_thread", asked, { callId: "call_9" });
    await look(h).until("it is asked", async () => (await h.tree.requests()).length === 1);
    await h.clock.advance(h.tree.control.tree.limits.transportWaitMs);
    await asking;
    h.provider.gates.open("before");
    await one.waits();
    h.provider.gates.open("kid");
    expect(await work.outcome()).toMatchObject({ ending: "completed", text: "a is done" });
    expect(await h.tree.requests()).toEqual([]);
  });

  test("WAI-3 the wait of a call keeps the run's own wait, which has ended, from nothing", async () => {
    await using one = await open();
    const { h, work, tools } = one;
    await callByName(tools, "spawn_agent", { task_name: "kid2", message: "go", fork_turns: "none" });
    await h.provider.gates.arrived("kid2");
    h.provider.gates.open("before");
    await one.waits();
    const held = callByName(tools, "wait_agent", { targets: ["kid2"], timeout_ms: 600_000 });
    await h.clock.settle();
    h.provider.gates.open("kid");
    await look(h).until(
      "it has gone on",
      async () => (await look(h).runs("/root/a"))[0]!.status === "completed",
    );
    h.provider.gates.open("kid2");
    expect(await work.outcome()).toMatchObject({ ending: "completed" });
    expect((await held).output).toMatchObject({ code: "RUN_INTERRUPTED" });
  });

  test.for([1, 2, 3, 4, 5, 6].flatMap((at) => [["error", at] as const, ["error_after", at] as const]))(
    "EXE-4 LST-1 REC-3 after %s at commit %i of a call's wait the run is shown as it is",
    async ([kind, at]) => {
      await using h = await harness({
        store,
        scripts: {
          "/root/a": [together(gate("a"), say("a is done")), repeat(say("more"))],
          "/root/a/kid": kid,
        },
        tree: { limits: { running: 1 } },
      });
      const { agent, work } = await h.tree.root.spawn("a", "go");
      await h.provider.gates.arrived("a");
      const tools = (await h.runtime.actAs(await agent.token())).tools();
      await callByName(tools, "spawn_agent", { task_name: "kid", message: "go", fork_turns: "none" });
      let commits = 0;
      h.onWrite = (_, what) => {
        if (what !== "commit") return null;
        commits += 1;
        return commits === at ? { kind, error: new TransientError("STORE_BUSY", "busy") } : null;
      };
      const held = callByName(tools, "wait_agent", { targets: ["kid"], timeout_ms: 30_000 });
      const answered = held.catch(() => null);
      await h.clock.settle();
      h.provider.gates.open("kid");
      for (let second = 0; second < 60; second += 1) await h.clock.advance(1_000);
      await answered;
      expect(await agent.status()).toEqual({ kind: "running" });
      expect([(await h.tree.counts()).running, h.tree.control.tree.permits.inUse]).toEqual([1, 1]);
      h.provider.gates.openAll();
      expect(await work.outcome()).toMatchObject({ ending: "completed" });
      await h.tree.idle();
      expect([h.tree.control.tree.permits.inUse, h.tree.control.tree.lane.size]).toEqual([0, 0]);
    },
  );

  test.for(["none", "commits"] as const)(
    "EXE-4 LST-1 REC-3 a call whose look at the store fails waits no longer, though %s after it fail",
    async (others) => {
      await using h = await harness({
        store,
        scripts: { "/root/a": [together(gate("a"), say("a is done"))], "/root/a/kid": kid },
        tree: { limits: { running: 2 } },
      });
      const { agent, work } = await h.tree.root.spawn("a", "go");
      await h.provider.gates.arrived("a");
      const tools = (await h.runtime.actAs(await agent.token())).tools();
      await callByName(tools, "spawn_agent", { task_name: "kid", message: "go", fork_turns: "none" });
      await h.provider.gates.arrived("kid");
      const held = callByName(tools, "wait_agent", { targets: ["kid"], timeout_ms: 600_000 });
      await look(h).until("it waits", async () => (await agent.status()).kind === "waiting");
      const busy = new TransientError("STORE_BUSY", "busy");
      const { tree } = h.tree.control;
      const read = vi.spyOn(tree, "read").mockRejectedValueOnce(busy);
      if (others === "commits") {
        let failing = 2;
        h.onWrite = (_, what) => (what === "commit" && failing-- > 0 ? { kind: "error", error: busy } : null);
      }
      tree.watchers.lookAgain();
      expect(await held).toMatchObject({ isError: true });
      read.mockRestore();
      await h.clock.advance(2_000);
      expect(await agent.status()).toMatchObject({ kind: "running" });
      const [run] = await look(h).runs("/root/a");
      expect([run!.permitLent, await h.store.read((view) => view.openWaitsOf(run!.threadId))]).toEqual([
        false,
        [],
      ]);
      h.provider.gates.open("a");
      h.provider.gates.open("kid");
      await h.tree.idle();
      expect((await look(h).work("/root/a")).id).toBe(work.id);
      expect(tree.permits.inUse).toBe(0);
    },
  );
});
