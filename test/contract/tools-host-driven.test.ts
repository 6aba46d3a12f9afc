/** Host-driven roots through the tools that their host calls (HDR-2, HDR-3), and the waits that those calls are. */
import { describe, expect, test } from "vitest";
import type { Json } from "../../src/protocol/json.ts";
import { gate, say, send, type ScriptEntry } from "../../src/providers/scripted/script.ts";
import { callByName, hostTools, type HostToolOptions } from "../../src/tools/host-tools.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { harness, type Harness, STORES, type StoreKind } from "../support/harness.ts";

interface Host {
  readonly h: Harness;
  readonly call: (name: string, input?: object, signal?: AbortSignal) => Promise<Record<string, Json>>;
}

async function host(
  store: StoreKind,
  scripts: Record<string, ScriptEntry[]>,
  options: HostToolOptions & { readonly profile?: "codex" } = {},
): Promise<Host & AsyncDisposable> {
  const { profile, ...rest } = options;
  const runtime = profile === undefined ? {} : { runtime: { profile } };
  const h = await harness({ store, scripts, tree: { hostDriven: true }, ...runtime });
  return {
    h,
    call: async (name, input = {}, signal) => {
      const tools = hostTools(h.tree.control, h.tree.id, rest);
      return (await callByName(tools, name, input, { signal })).output as Record<string, Json>;
    },
    [Symbol.asyncDispose]: () => h[Symbol.asyncDispose](),
  };
}

/** Mail of the root that no host has acknowledged. */
async function unread(h: Harness): Promise<number> {
  return h.tree.control.read((view) => view.mailbox(h.tree.id).unread);
}

/** A wait of the root is under way, its timer set. */
function waits(h: Harness): Promise<void> {
  return waitUntil("the wait has begun", () => h.tree.control.tree.watchers.size === 1);
}

const worker = { task_name: "worker", message: "count" };

describe.each(STORES)("a host-driven root on %s", (store) => {
  test("HDR-2 its wait returns unread mail with a cursor, at once when it is there already", async () => {
    await using one = await host(store, { "/root/worker": [say("seven")] });
    await one.call("spawn_agent", worker);
    await one.h.tree.idle();
    expect(await one.call("wait_agent")).toMatchObject({
      ended_by: "activity",
      timed_out: false,
      messages: [
        {
          type: "final_answer",
          from: "/root/worker",
          authority: "agent",
          text: expect.stringContaining("seven") as string,
        },
      ],
      cursor: "seq:1",
    });
  });

  test("HDR-2 every other result ends with a notice, refusals too, and a wait has none", async () => {
    await using one = await host(store, { "/root/worker": [say("seven")] });
    const spawned = await one.call("spawn_agent", worker);
    expect(spawned).not.toHaveProperty("unread");
    await one.h.tree.idle();
    const notice = "[1 unread message from /root/worker; call wait_agent to read]";
    for (const answer of [await one.call("list_agents"), await one.call("spawn_agent", worker)]) {
      expect(Object.entries(answer).at(-1)).toEqual(["unread", notice]);
    }
    expect(await one.call("wait_agent")).not.toHaveProperty("unread");
  });

  test("HDR-2 a wait that begins before the mail ends with it", async () => {
    await using one = await host(store, { "/root/worker": [gate("hold"), say("seven")] });
    await one.call("spawn_agent", worker);
    const waiting = one.call("wait_agent");
    await waits(one.h);
    await one.h.provider.gates.arrived("hold");
    one.h.provider.gates.open("hold");
    expect(await waiting).toMatchObject({ ended_by: "activity", messages: [{ type: "final_answer" }] });
  });

  test("HDR-3 mail comes again, marked, until a later call carries its cursor", async () => {
    await using one = await host(store, { "/root/worker": [say("seven"), say("eight")] });
    await one.call("spawn_agent", worker);
    await one.h.tree.idle();
    const first = await one.call("wait_agent");
    expect(first["messages"]).not.toMatchObject([{ repeated: true }]);
    expect(await one.call("wait_agent")).toMatchObject({ messages: [{ repeated: true }] });
    expect(await unread(one.h)).toBe(1);
    await one.call("followup_task", { target: "worker", message: "again" });
    const messages = JSON.stringify((await one.call("wait_agent", { cursor: first["cursor"] }))["messages"]);
    expect(messages).toContain("eight");
    expect(messages).not.toContain("seven");
    const read = await one.h.tree.control.read((view) => view.mailOf(one.h.tree.id, { limit: 10 }).rows);
    expect(read[0]).toMatchObject({ seq: 1, state: expect.stringMatching(/delivered|settled/) as string });
  });

  test("HDR-3 an old cursor acknowledges what came with it, and not what came later", async () => {
    await using one = await host(store, { "/root/worker": [say("seven"), say("eight")] });
    await one.call("spawn_agent", worker);
    await one.h.tree.idle();
    const { cursor } = await one.call("wait_agent");
    await one.call("followup_task", { target: "worker", message: "again" });
    await one.h.tree.idle();
    await one.call("wait_agent");
    expect(await one.call("wait_agent", { cursor })).toMatchObject({
      messages: [{ text: "eight", repeated: true }],
    });
    expect(await unread(one.h)).toBe(1);
  });

  test("HDR-2 one answer holds 32 messages, and 64 KiB of them", async () => {
    await using one = await host(store, {});
    const taken = async (cursor?: Json) => {
      const answer = await one.call("wait_agent", cursor === undefined ? {} : { cursor });
      const texts = (answer["messages"] as { text: string }[]).map(({ text }) => text[0]);
      return { texts, more: answer["more"] ?? false, cursor: answer["cursor"]! };
    };
    for (let at = 0; at < 40; at += 1) await one.h.tree.root.tell("m");
    const first = await taken();
    expect(first).toMatchObject({ texts: Array(32).fill("m"), more: true });
    const second = await taken(first.cursor);
    expect(second).toMatchObject({ texts: Array(8).fill("m"), more: false });
    for (const letter of ["a", "b", "c"]) await one.h.tree.root.tell(letter.repeat(40 * 1024));
    await one.h.tree.root.tell("d".repeat(70 * 1024));
    let { cursor } = second;
    // What is too long for a message by itself comes as its head, and takes no more than that.
    for (const [texts, more] of [
      [["a"], true],
      [["b"], true],
      [["c", "d"], false],
    ] as const) {
      const next = await taken(cursor);
      expect(next).toMatchObject({ texts, more });
      ({ cursor } = next);
    }
  });

  test("HDR-3 what is no cursor is refused and acknowledges nothing", async () => {
    await using one = await host(store, {});
    await one.h.tree.root.tell("m");
    await one.call("wait_agent");
    for (const cursor of ["zzz", "seq:", "seq:1x", "wrk_0123456789abcdefghijk"])
      expect(await one.call("wait_agent", { cursor })).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(await unread(one.h)).toBe(1);
  });

  test("HDR-3 a crash between two calls loses nothing", async () => {
    await using one = await host(store, { "/root/worker": [say("seven")] });
    await one.call("spawn_agent", worker);
    await one.h.tree.idle();
    await one.call("wait_agent");
    await one.h.crash();
    expect(await one.call("wait_agent")).toMatchObject({
      messages: [{ type: "final_answer", repeated: true }],
    });
  });

  test("a wait for works ends when they have, whatever else is in the mailbox", async () => {
    await using one = await host(store, {
      "/root/talker": [send("/root", "by the way"), say("talked")],
      "/root/worker": [gate("hold"), say("seven")],
    });
    await one.call("spawn_agent", { task_name: "talker", message: "talk", wake: "never" });
    const { work_id: work } = await one.call("spawn_agent", worker);
    const waiting = one.call("wait_agent", { works: [work] });
    await one.h.provider.gates.arrived("hold");
    one.h.provider.gates.open("hold");
    expect(await waiting).toMatchObject({
      ended_by: "settled",
      works: [{ work_id: work, agent: "/root/worker", state: "completed" }],
    });
  });

  test("a message from an agent waited for ends the wait early", async () => {
    await using one = await host(store, {
      "/root/worker": [send("/root", "a question"), gate("hold"), say("seven")],
    });
    await one.call("spawn_agent", worker);
    expect(await one.call("wait_agent", { targets: ["worker"] })).toMatchObject({
      ended_by: "new_input",
      messages: [{ type: "message", text: "a question" }],
      works: [{ state: "running" }],
    });
  });

  test("a wait out of time is a result, and the agent goes on", async () => {
    await using one = await host(store, { "/root/worker": [gate("hold"), say("seven")] });
    await one.call("spawn_agent", worker);
    await one.h.provider.gates.arrived("hold");
    const waiting = one.call("wait_agent", { targets: ["worker"], timeout_ms: 1 });
    await waits(one.h);
    await one.h.clock.advance(10_000);
    expect(await waiting).toMatchObject({
      timed_out: true,
      timeout_raised_to_ms: 10_000,
      works: [{ state: "running" }],
    });
    one.h.provider.gates.open("hold");
    expect(await one.call("wait_agent", { targets: ["worker"] })).toMatchObject({ ended_by: "settled" });
  });

  test("a short transport cuts a wait short, and it is taken up again", async () => {
    await using one = await host(
      store,
      { "/root/worker": [gate("hold"), say("seven")] },
      { shortTransport: true },
    );
    await one.call("spawn_agent", worker);
    await one.h.provider.gates.arrived("hold");
    const waiting = one.call("wait_agent", { timeout_ms: 600_000 });
    await waits(one.h);
    await one.h.clock.advance(45_000);
    expect(await waiting).toMatchObject({ ended_by: "cut_short", timed_out: false, messages: [] });
  });

  test("in the reference's profile the answer is its summary, with the mail that nothing else would bring", async () => {
    await using one = await host(store, { "/root/worker": [say("seven")] }, { profile: "codex" });
    expect(await one.call("spawn_agent", worker)).toEqual({ task_name: "/root/worker" });
    await one.h.tree.idle();
    expect(await one.call("wait_agent")).toMatchObject({
      message: "There was activity.",
      timed_out: false,
      messages: [{ type: "final_answer", text: "seven" }],
    });
  });

  test("an abort ends the wait and leaves nobody behind", async () => {
    await using one = await host(store, { "/root/worker": [gate("hold"), say("seven")] });
    await one.call("spawn_agent", worker);
    const abort = new AbortController();
    const waiting = one.call("wait_agent", {}, abort.signal);
    await waits(one.h);
    abort.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    expect(one.h.tree.control.tree.watchers.size).toBe(0);
  });
});
