/** Tools that an agent calls by its token from inside of its run, as a program does in which it runs: what it asks is that run's. */
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/protocol/json.ts";
import { gate, say, together } from "../../src/providers/scripted/script.ts";
import { callByName, type HostCallOptions } from "../../src/tools/host-tools.ts";
import { harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const CHILD = { task_name: "kid", message: "count", fork_turns: "none" };

describe.each(STORES)("calls by token in a run on %s", (store) => {
  /** A root in the middle of its run, and its tools. */
  async function inRun(options: HarnessOptions = {}) {
    const h = await harness({
      store,
      ...options,
      scripts: {
        "/root": [together(gate("mine"), say("done")), say("more")],
        "/root/kid": [together(gate("theirs"), say("seven"))],
        ...options.scripts,
      },
    });
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("mine");
    const connection = await h.runtime.actAs(await h.tree.root.token());
    const tools = connection.tools();
    return {
      h,
      work,
      look: new Look(h),
      call: async (name: string, input: object, how: HostCallOptions = {}) =>
        (await callByName(tools, name, input, how)).output as JsonObject,
      [Symbol.asyncDispose]: () => h[Symbol.asyncDispose](),
    };
  }

  const waits = async (look: Look, h: Awaited<ReturnType<typeof inRun>>["h"], open: number) =>
    look.until("the wait is stored", () => look.view((view) => view.openWaitsOf(h.tree.id).length === open));

  test("WAI-3 a wait is stored, is held until what it waits for has ended, and hands out its result once", async () => {
    await using one = await inRun();
    const { h, look } = one;
    await one.call("spawn_agent", CHILD);
    const waiting = one.call("wait_agent", { targets: ["kid"], timeout_ms: 60_000 });
    await waits(look, h, 1);
    h.provider.gates.open("theirs");
    expect(await waiting).toMatchObject({
      ended_by: "settled",
      results: [{ agent: "/root/kid", text: "seven" }],
    });
    expect((await look.mail("/root")).at(-1)).toMatchObject({ kind: "final_answer", state: "delivered" });
    h.provider.gates.open("mine");
    // The work under it is delivered: nothing wakes the root again.
    expect(await one.work.outcome()).toMatchObject({ ending: "completed", text: "done" });
    await h.tree.idle();
    expect(await look.runs("/root")).toHaveLength(1);
  });

  test("WAI-7 it is held no longer than a transport bears, and is taken up again with its cursor", async () => {
    await using one = await inRun();
    const { h, look } = one;
    await one.call("spawn_agent", CHILD);
    const first = one.call("wait_agent", { targets: ["kid"], timeout_ms: 600_000 });
    await waits(look, h, 1);
    await h.clock.advance(h.tree.control.tree.limits.transportWaitMs);
    const cut = await first;
    expect(cut).toMatchObject({ ended_by: "cut_short", timed_out: false, open: [{ agent: "/root/kid" }] });
    await waits(look, h, 0);
    const again = one.call("wait_agent", {
      targets: ["kid"],
      timeout_ms: 600_000,
      cursor: cut["cursor"] as string,
    });
    await waits(look, h, 1);
    h.provider.gates.open("theirs");
    const told = await again;
    expect(told).toMatchObject({ ended_by: "settled", results: [{ text: "seven" }] });
    const { work_id: work } = (told["results"] as JsonObject[])[0]!;
    expect(await one.call("wait_agent", { works: [work], cursor: told["cursor"] as string })).toMatchObject({
      results: [],
    });
  });

  test("WAI-6 one whose caller is gone ends, and harms nobody", async () => {
    await using one = await inRun();
    const { h, look } = one;
    await one.call("spawn_agent", CHILD);
    const gone = new AbortController();
    const waiting = one.call("wait_agent", { targets: ["kid"] }, { signal: gone.signal });
    await waits(look, h, 1);
    gone.abort(new Error("gone"));
    await expect(waiting).rejects.toThrow("gone");
    await waits(look, h, 0);
    expect(await look.runs("/root")).toMatchObject([{ status: "running" }]);
    h.provider.gates.open("theirs");
    h.provider.gates.open("mine");
    expect(await one.work.outcome()).toMatchObject({ ending: "completed" });
  });

  test("WAI-8 one that could never end is refused, naming the loop", async () => {
    await using one = await inRun();
    const { code } = (await one.call("wait_agent", { targets: ["/root"] })) as { code: string };
    expect(code).toBe("WAIT_CYCLE");
  });

  test("INT-4 it ends with its run", async () => {
    await using one = await inRun();
    const { h, look } = one;
    await one.call("spawn_agent", CHILD);
    const waiting = one.call("wait_agent", { targets: ["kid"] });
    await waits(look, h, 1);
    await h.tree.root.interrupt();
    expect(await waiting).toMatchObject({ code: "RUN_INTERRUPTED" });
  });

  test("SPN-6 a call made again with its call id has no second effect; other arguments are refused", async () => {
    await using one = await inRun();
    const { h } = one;
    const spawned = await one.call("spawn_agent", CHILD, { callId: "call_1" });
    expect(await one.call("spawn_agent", CHILD, { callId: "call_1" })).toEqual(spawned);
    expect(await one.call("spawn_agent", { ...CHILD, message: "other" }, { callId: "call_1" })).toMatchObject(
      { code: "COMMAND_ID_CONFLICT" },
    );
    expect(await one.call("spawn_agent", CHILD)).toMatchObject({ code: "AGENT_EXISTS" });
    h.provider.gates.open("theirs");
  });

  test("SPN-6 so has a call of a host, by the id that its model gave it", async () => {
    await using h = await harness({ store, tree: { hostDriven: true }, scripts: { "*": [say("seven")] } });
    const tools = h.tree.root.tools();
    const call = async (callId?: string) =>
      (await callByName(tools, "spawn_agent", CHILD, { callId })).output as JsonObject;
    const first = await call("toolu_1");
    expect((await call("toolu_1"))["work_id"]).toBe(first["work_id"]);
    expect(await call()).toMatchObject({ code: "AGENT_EXISTS" });
  });

  test("XTR-4 a call that wants an approval is held until it is given", async () => {
    await using one = await inRun({
      runtime: { threadTools: { allow: "all" } },
    });
    const { h, look } = one;
    const other = await h.runtime.openTree({});
    const sent = one.call(
      "send_message_to_thread",
      { thread_id: other.id, message: "hello" },
      { callId: "call_9" },
    );
    await look.until("the approval is asked for", async () => (await h.tree.requests()).length === 1);
    const [request] = await h.tree.requests();
    await h.tree.answer(request!.id, "yes");
    expect(await sent).not.toHaveProperty("code");
    h.provider.gates.open("mine");
  });
});
