/** What agents do with threads of other trees, by their tools (XTR, lineage C1.2, C5, C7, C18.14). */
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/protocol/json.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import {
  call,
  gate,
  repeat,
  say,
  send as sendMail,
  type ScriptEntry,
  type ScriptedStep,
  spawn,
  together,
} from "../../src/providers/scripted/script.ts";
import { noFork } from "../../src/providers/scripted/native/provider.ts";
import type { RuntimeOptions } from "../../src/runtime/options.ts";
import type { TreeHandle } from "../../src/runtime/tree-handle.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { harness, type Harness, STORES, type StoreKind } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const ALL = { allow: "all", approval: "none" } as const;

interface Two {
  readonly h: Harness;
  /** Another tree, on the provider `b`. */
  readonly other: TreeHandle;
  readonly b: ReturnType<typeof scripted>;
}

/** A tree whose root plays `own`, and another one on a provider of its own. */
async function two(
  store: StoreKind,
  own: readonly ScriptEntry[] | ((other: () => string) => readonly ScriptEntry[]),
  options: {
    readonly others?: readonly ScriptEntry[];
    readonly runtime?: Partial<RuntimeOptions>;
    readonly hostDriven?: boolean;
    readonly scripts?: Record<string, readonly ScriptEntry[]>;
  } = {},
): Promise<Two & AsyncDisposable> {
  let id = "";
  const b = scripted({ "/root": options.others ?? [repeat(say("from B"))] });
  const script = typeof own === "function" ? own(() => id) : own;
  const h = await harness({
    store,
    scripts: { "/root": script, ...options.scripts },
    others: { b },
    runtime: { threadTools: ALL, ...options.runtime },
    tree: options.hostDriven === true ? { hostDriven: true } : {},
  });
  const other = await h.runtime.openTree({ provider: "b", title: "other" });
  id = other.id;
  return { h, other, b, [Symbol.asyncDispose]: () => h[Symbol.asyncDispose]() };
}

const send = (to: () => string, message: string): ScriptedStep =>
  call("send_message_to_thread", () => ({ thread_id: to(), message }));

const wait = (to: () => string, more: JsonObject = {}): ScriptedStep =>
  call("wait_threads", () => ({ thread_ids: [to()], ...more }));

async function output(h: Harness, tool: string, at = 0): Promise<JsonObject> {
  return (await new Look(h).outputs("/root", tool))[at]!.output;
}

describe.each(STORES)("messages between trees on %s", (store) => {
  test("XTR-1 a message names its thread, has no authority of the user, asks for no work, and nobody is owed an answer", async () => {
    await using t = await two(store, (other) => [send(other, "look at this"), say("sent")]);
    await t.h.ask("go");
    await t.other.idle();
    expect(await output(t.h, "send_message_to_thread")).toMatchObject({
      thread_id: t.other.id,
      accepted: true,
    });
    const [mail] = (await t.other.root.mail()).rows;
    expect(mail).toMatchObject({
      kind: "message",
      authority: "agent",
      author: { kind: "thread", threadId: t.h.tree.id, path: "/root" },
      workId: null,
      state: "settled",
    });
    const [request] = t.b.requests("/root");
    const sent = JSON.stringify(request!.messages);
    expect(sent).toContain(`Sender: ${t.h.tree.id}`);
    expect(sent).toContain("Authority: carries no user authority");
    expect((await t.other.works()).rows).toEqual([]);
    const { parent, thread } = await t.other.root.record();
    expect([parent, thread?.lineage.parentThreadId]).toEqual([null, null]);
    await t.h.tree.idle();
    expect((await t.h.tree.root.mail()).rows.map(({ kind }) => kind)).toEqual(["user"]);
  });

  test("XTR-1 the six tools reach the caller's tree only, and thread tools nobody in it", async () => {
    await using t = await two(store, (other) => [
      call("send_message", () => ({ target: other(), message: "m" })),
      call("followup_task", () => ({ target: other(), message: "m" })),
      call("send_message_to_thread", (c) => ({ thread_id: c.request.threadId, message: "m" })),
      say("done"),
    ]);
    await t.h.ask("go");
    const look = new Look(t.h);
    for (const tool of ["send_message", "followup_task"])
      expect(await look.outputs("/root", tool)).toMatchObject([
        { isError: true, output: { code: "AGENT_NOT_FOUND" } },
      ]);
    expect(await output(t.h, "send_message_to_thread")).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect((await t.other.root.mail()).rows).toEqual([]);
  });

  test("XTR-2 a live run takes it at its next step", async () => {
    await using t = await two(store, (other) => [send(other, "by the way"), say("sent")], {
      others: [together(gate("busy"), call("list_agents")), say("done"), say("never")],
    });
    const work = await t.other.root.send("go");
    await t.b.gates.arrived("busy");
    await t.h.ask("go");
    t.b.gates.open("busy");
    await work.outcome();
    await t.other.idle();
    expect(t.b.requests("/root")).toHaveLength(2);
    expect(JSON.stringify(t.b.requests("/root")[1]!.messages)).toContain("by the way");
  });

  test("XTR-2 an idle root that nobody owns is opened and starts", async () => {
    await using t = await two(store, (other) => [send(other, "wake up"), say("sent")]);
    await t.other[Symbol.asyncDispose]();
    await t.h.ask("go");
    const again = await t.h.runtime.openTree({ id: t.other.id });
    await again.idle();
    expect(JSON.stringify(t.b.requests("/root")[0]!.messages)).toContain("wake up");
  });

  test("XTR-2 a run that cannot be steered leaves it pending for the next one", async () => {
    const native = noFork({ "/root": [together(gate("turn"), say("first")), say("second")] });
    let id = "";
    await using h = await harness({
      store,
      scripts: { "/root": [send(() => id, "later"), say("sent")] },
      others: { native },
      runtime: { threadTools: ALL },
    });
    const other = await h.runtime.openTree({ provider: "native" });
    id = other.id;
    const work = await other.root.send("go");
    await native.gates.arrived("turn");
    await h.ask("go");
    await h.clock.settle();
    expect((await other.root.mail()).rows.at(-1)).toMatchObject({ state: "accepted" });
    native.gates.open("turn");
    expect((await work.outcome()).text).toBe("first");
    await other.idle();
    expect((await other.root.mail()).rows.at(-1)).toMatchObject({ state: "settled" });
  });

  test("XTR-3 an agent below another root is not addressed from outside", async () => {
    let below = "";
    await using t = await two(
      store,
      () => [
        send(() => below, "psst"),
        call("wait_threads", () => ({ thread_ids: [below] })),
        call("read_thread", () => ({ thread_id: below })),
        say("done"),
      ],
      { others: [spawn("kid", "wait", { wake: "never", detached: true }), say("spawned")] },
    );
    t.b.append("/root/kid", say("here"));
    await (await t.other.root.send("go")).outcome();
    await t.other.idle();
    below = (await t.other.agent("/root/kid")).threadId;
    const before = (await (await t.other.agent("/root/kid")).mail()).rows.length;
    await t.h.ask("go");
    for (const tool of ["send_message_to_thread", "wait_threads", "read_thread"]) {
      const refused = await output(t.h, tool);
      expect(refused).toMatchObject({ code: "INVALID_ARGUMENT", details: { root: t.other.id } });
    }
    expect((await (await t.other.agent("/root/kid")).mail()).rows).toHaveLength(before);
  });

  test("XTR-1 SPN-6 a message that is sent again under its key is one message", async () => {
    await using t = await two(store, [say("unused")], { hostDriven: true });
    const tool = t.h.tree.root.tools().find(({ name }) => name === "send_message_to_thread")!;
    const message = { thread_id: t.other.id, message: "once", idempotency_key: "k" };
    const first = await tool.call(message);
    expect((await tool.call(message)).output).toEqual(first.output);
    expect(await tool.call({ ...message, message: "twice" })).toMatchObject({
      output: { code: "COMMAND_ID_CONFLICT" },
    });
    await t.other.idle();
    expect((await t.other.root.mail()).rows).toHaveLength(1);
  });
});

describe.each(STORES)("waiting for threads on %s", (store) => {
  test("XTR-4 its cursor says how the threads of this wait were seen, and grows with no other", async () => {
    let ids: readonly string[] = [];
    const look = (from: number) =>
      call("wait_threads", (c) => ({
        thread_ids: ids.slice(from, from + 8),
        timeout_ms: 0,
        ...(c.lastToolResult === null ? {} : { cursor: (c.lastToolResult as JsonObject)["cursor"]! }),
      }));
    await using t = await two(store, [...[0, 8, 16, 16].map(look), say("done")]);
    const made = Array.from({ length: 24 }, () => t.h.runtime.threads.create({ provider: "b" }));
    ids = (await Promise.all(made)).map(({ id }) => id);
    await t.h.ask("go");
    const outputs = (await new Look(t.h).outputs("/root", "wait_threads")).map(({ output: one }) => one);
    for (const [at, { cursor }] of outputs.entries()) {
      const seen = (cursor as string).split(",").map((mark) => mark.split("=")[0]);
      expect(seen).toEqual(ids.slice(Math.min(at, 2) * 8, Math.min(at, 2) * 8 + 8));
    }
    // What was seen in the wait before is told once.
    expect(outputs[2]!["threads"]).toMatchObject(Array.from({ length: 8 }, () => ({ changed: true })));
    expect(outputs[3]!["threads"]).toMatchObject(Array.from({ length: 8 }, () => ({ changed: false })));
  });

  test("XTR-4 ends when a thread has come to rest, tells it once, and consumes no mail", async () => {
    await using t = await two(
      store,
      (other) => [
        send(other, "count"),
        wait(other),
        call("wait_threads", (c) => ({
          thread_ids: [other()],
          timeout_ms: 1000,
          cursor: (c.lastToolResult as JsonObject)["cursor"]!,
        })),
        say("done"),
      ],
      { others: [together(gate("busy"), say("seven"))] },
    );
    const work = await t.h.tree.root.send("go");
    await t.b.gates.arrived("busy");
    await t.h.clock.advance(5_000);
    expect(await t.h.tree.root.status()).toEqual({ kind: "waiting", on: [t.other.id] });
    expect(t.h.tree.control.tree.permits.free).toBe(4);
    t.b.gates.open("busy");
    await t.other.idle();
    await t.h.clock.advance(200);
    await t.h.clock.advance(2_000);
    await work.outcome();
    expect(await output(t.h, "wait_threads")).toMatchObject({
      ended_by: "settled",
      timed_out: false,
      threads: [
        {
          thread_id: t.other.id,
          status: "idle",
          changed: true,
          last_outcome: { status: "completed", text: "seven" },
        },
      ],
    });
    const later = await output(t.h, "wait_threads", 1);
    expect(later).toMatchObject({
      ended_by: "timed_out",
      threads: [{ thread_id: t.other.id, changed: false }],
    });
    expect(JSON.stringify(later)).not.toContain("seven");
  });

  test("XTR-4 plain mail neither ends it nor is taken by it; input of the user ends it", async () => {
    await using t = await two(
      store,
      (other) => [
        spawn("kid", "talk", { wake: "never", detached: true }),
        wait(other, { timeout_ms: 120_000 }),
        say("done"),
      ],
      {
        others: [together(gate("busy"), say("seven"))],
        scripts: { "/root/kid": [gate("kid"), sendMail("/root", "a notice"), say("talked")] },
      },
    );
    await t.other.root.send("go");
    await t.b.gates.arrived("busy");
    const work = await t.h.tree.root.send("go");
    await waitUntil("it waits", async () => (await t.h.tree.root.status()).kind === "waiting");
    t.h.provider.gates.open("kid");
    await waitUntil("the kid is done", async () => (await new Look(t.h).status("/root/kid")) === "idle");
    await t.h.clock.advance(300);
    expect((await t.h.tree.root.status()).kind).toBe("waiting");
    expect((await t.h.tree.root.mail()).rows.slice(1)).toMatchObject([
      { kind: "message", state: "accepted" },
      { kind: "final_answer", state: "accepted" },
    ]);
    await t.h.tree.root.send("never mind", { onBusy: "steer" });
    await work.outcome();
    expect(await output(t.h, "wait_threads")).toMatchObject({ ended_by: "new_input" });
    t.b.gates.openAll();
  });

  test("XTR-4 at most 8 threads and 120 s; no time at all is a look", async () => {
    await using t = await two(store, (other) => [
      call("wait_threads", () => ({ thread_ids: Array.from({ length: 9 }, () => other()) })),
      wait(other, { timeout_ms: 120_001 }),
      wait(other, { timeout_ms: 0 }),
      call("wait_threads", (c) => ({
        thread_ids: [other()],
        timeout_ms: 0,
        cursor: (c.lastToolResult as JsonObject)["cursor"]!,
      })),
      say("done"),
    ]);
    await t.h.ask("go");
    const outputs = await new Look(t.h).outputs("/root", "wait_threads");
    expect(outputs).toMatchObject([
      { isError: true, output: { code: "INVALID_ARGUMENT" } },
      { isError: true, output: { code: "INVALID_ARGUMENT" } },
      { isError: false, output: { ended_by: "snapshot", threads: [{ status: "idle", changed: true }] } },
      { isError: false, output: { ended_by: "snapshot", threads: [{ status: "idle", changed: false }] } },
    ]);
  });

  test("XTR-4 REC-1 it is stored: a crash loses neither the wait nor what ends it", async () => {
    await using t = await two(store, (other) => [wait(other, { timeout_ms: 120_000 }), say("done")], {
      others: [together(gate("busy"), say("seven")), say("again")],
    });
    await t.other.root.send("go");
    await t.b.gates.arrived("busy");
    await t.h.tree.root.send("go");
    await waitUntil("it waits", async () => (await t.h.tree.root.status()).kind === "waiting");
    await t.h.crash();
    expect((await t.h.tree.root.status()).kind).toBe("waiting");
    // Its run was lost with the process: the thread is at rest by that.
    await t.h.runtime.openTree({ id: t.other.id });
    await t.h.clock.advance(500);
    await t.h.tree.idle();
    expect(await output(t.h, "wait_threads")).toMatchObject({
      ended_by: "settled",
      threads: [{ last_outcome: { status: "interrupted" } }],
    });
    t.b.gates.openAll();
  });

  test("XTR-4 HDR-1 a host-driven root waits within its call, as long as its transport lasts", async () => {
    await using t = await two(store, [say("unused")], {
      hostDriven: true,
      others: [together(gate("busy"), say("seven"))],
    });
    await t.other.root.send("go");
    await t.b.gates.arrived("busy");
    const waiting = t.h.tree.root
      .tools({ shortTransport: true })
      .find(({ name }) => name === "wait_threads")!
      .call({ thread_ids: [t.other.id], timeout_ms: 100_000 });
    await t.h.clock.advance(45_000);
    expect((await waiting).output).toMatchObject({ ended_by: "cut_short", threads: [{ status: "running" }] });
    t.b.gates.openAll();
  });
});

describe.each(STORES)("approval between trees on %s", (store) => {
  const ASK = { threadTools: { allow: "all" } } as const;

  test("XTR-4 sending waits for an approval that outlives a crash, and is done once it is given", async () => {
    await using t = await two(store, (other) => [send(other, "hello"), say("sent")], { runtime: ASK });
    await t.h.tree.root.send("go");
    await waitUntil("it asks", async () => (await t.h.tree.root.status()).kind === "awaiting_approval");
    expect((await t.other.root.mail()).rows).toEqual([]);
    await t.h.crash();
    const [request] = await t.h.tree.requests();
    expect(request).toMatchObject({ kind: "approval", text: expect.stringContaining("hello") });
    await t.h.tree.answer(request!.id, "yes");
    await t.h.tree.idle();
    expect(await output(t.h, "send_message_to_thread")).toMatchObject({ accepted: true });
    const other = await t.h.runtime.openTree({ id: t.other.id });
    expect((await other.root.mail()).rows).toHaveLength(1);
  });

  test("XTR-4 a decision is an answer, and its note reaches whoever asked", async () => {
    await using t = await two(store, (other) => [send(other, "one"), send(other, "two"), say("done")], {
      runtime: ASK,
    });
    const work = await t.h.tree.root.send("go");
    for (const verdict of ["approved", "denied"] as const) {
      await waitUntil("it asks", async () => (await t.h.tree.requests()).length === 1);
      const [request] = await t.h.tree.requests();
      await t.h.tree.answer(request!.id, { verdict, note: "not before noon" });
    }
    await work.outcome();
    expect(await output(t.h, "send_message_to_thread")).toMatchObject({ accepted: true });
    expect(await output(t.h, "send_message_to_thread", 1)).toMatchObject({
      code: "AUTHORITY_ESCALATION_DENIED",
      error: expect.stringContaining("denied: not before noon"),
    });
  });

  test("XTR-4 an approval tells all that is approved with it, each thing once", async () => {
    const threads = [
      { message: "Read the tests.\nThen say what is missing.", title: "Tests", effects: ["read"] },
      { message: "go", model: "other/large", reasoning_effort: "high", agent_type: "explorer" },
    ];
    const asking: readonly (readonly [tool: string, input: object, words: string])[] = [
      [
        "create_thread",
        { threads },
        'start 2 threads: (1) "Tests": "Read the tests. Then say what is missing.", on scripted/scripted, in /work, may read; (2) "go", on other/large, effort high, as explorer, in /work, may read, write, execute, network',
      ],
      [
        "create_thread",
        { threads: [{ message: "go" }] },
        'start a thread: "go", on scripted/scripted, in /work, may read, write, execute, network',
      ],
      [
        "fork_thread",
        { title: "again" },
        'fork this thread, as "again", to rest until somebody writes to it',
      ],
      ["send_message_to_thread", { thread_id: "thread_a", message: "hi" }, 'send to thread_a: "hi"'],
    ];
    await using h = await harness({
      store,
      scripts: { "/root": [...asking.map(([tool, input]) => call(tool, input as JsonObject)), say("done")] },
      runtime: ASK,
      tree: { workspace: "/work" },
    });
    const work = await h.tree.root.send("go");
    for (const [tool, input, words] of asking) {
      await waitUntil("it asks", async () => (await h.tree.requests()).length === 1);
      const [request] = await h.tree.requests();
      expect(request).toMatchObject({ text: words, about: { tool, input: JSON.stringify(input) } });
      await h.tree.answer(request!.id, "no");
    }
    await work.outcome();
  });

  test("XTR-4 what is not approved is not done, and the model is told", async () => {
    await using t = await two(
      store,
      (other) => [
        together(send(other, "hello"), call("create_thread", { threads: [{ message: "go" }] })),
        call("read_thread", () => ({ thread_id: other() })),
        say("done"),
      ],
      { runtime: ASK },
    );
    const work = await t.h.tree.root.send("go");
    await waitUntil("it asks", async () => (await t.h.tree.requests()).length === 2);
    for (const { id } of await t.h.tree.requests()) await t.h.tree.answer(id, "no, thanks");
    await work.outcome();
    for (const tool of ["send_message_to_thread", "create_thread"])
      expect(await output(t.h, tool)).toMatchObject({
        code: "AUTHORITY_ESCALATION_DENIED",
        error: expect.stringContaining("no, thanks"),
      });
    expect(await output(t.h, "read_thread")).toMatchObject({ thread_id: t.other.id });
    expect((await t.h.runtime.threads.list({}, { limit: 10 })).rows).toHaveLength(2);
  });

  test("XTR-4 a host that cannot wait is refused where an approval is wanted", async () => {
    await using t = await two(store, [say("unused")], { runtime: ASK, hostDriven: true });
    const tool = t.h.tree.root.tools().find(({ name }) => name === "send_message_to_thread")!;
    const answer = await tool.call({ thread_id: t.other.id, message: "hello" });
    expect(answer).toMatchObject({ isError: true, output: { code: "INVALID_ARGUMENT" } });
    expect((await t.other.root.mail()).rows).toEqual([]);
  });

  test("XTR-4 without `threadTools` there are none, `read` acts nowhere, and `codex` has none", async () => {
    for (const [runtime, expected] of [
      [{}, []],
      [{ threadTools: { allow: "read" } }, ["read_thread", "wait_threads"]],
      [{ threadTools: ALL, profile: "codex" }, []],
    ] as const) {
      await using h = await harness({
        store,
        runtime,
        scripts: { "/root": [say((c) => JSON.stringify(c.request.tools.map(({ name }) => name)))] },
      });
      const { text } = await h.ask("go");
      expect(
        (JSON.parse(text) as string[]).filter((name) => name.includes("thread") || name === "merge_back"),
      ).toEqual(expected);
    }
  });
});
