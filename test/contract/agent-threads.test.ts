/** Threads that agents make, fork, read and merge back: who pays, what they may, what is shown (lineage C1.2, C5, C7, SEC-3). */
import { describe, expect, test } from "vitest";
import type { ThreadId } from "../../src/protocol/ids.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import type { ScriptContext } from "../../src/providers/scripted/context.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import {
  call,
  repeat,
  say,
  type ScriptEntry,
  type ScriptedStep,
  spawn,
  together,
  usage,
} from "../../src/providers/scripted/script.ts";
import { pageFor } from "../../src/threads/thread-page.ts";
import { harness, type Harness, type HarnessOptions, STORES, type StoreKind } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const ALL = { allow: "all", approval: "none" } as const;
const SPENT = { inputTokens: 58_000, cachedInputTokens: 0, outputTokens: 1_900, reasoningTokens: 0 };

/** A tree whose root plays `own`; what a thread is sent by an agent it answers with `other`. */
async function maker(
  store: StoreKind,
  own: readonly ScriptedStep[],
  options: HarnessOptions & { readonly other?: ScriptedStep } = {},
): Promise<Harness> {
  let mine: ThreadId | null = null;
  const root = (context: ScriptContext): ScriptedStep => {
    mine ??= context.request.threadId;
    if (context.request.threadId !== mine) return options.other ?? say("made");
    return own[Math.min(context.ownSteps, own.length - 1)]!;
  };
  return harness({
    ...options,
    store,
    runtime: { threadTools: ALL, ...options.runtime },
    scripts: { "/root": root as unknown as ScriptEntry[], ...options.scripts },
  });
}

async function outputs(h: Harness, tool: string): Promise<readonly JsonObject[]> {
  return (await new Look(h).outputs("/root", tool)).map(({ output }) => output);
}

const create = (...messages: readonly string[]): ScriptedStep =>
  call("create_thread", { threads: messages.map((message) => ({ message, title: `thread ${message}` })) });

async function madeBy(h: Harness): Promise<readonly ThreadId[]> {
  const { rows } = await h.runtime.threads.list({}, { limit: 100 });
  return rows.map(({ id }) => id).filter((id) => id !== h.tree.id);
}

describe.each(STORES)("threads that an agent makes on %s", (store) => {
  test("XTR-1 C1.2 are roots of trees of their own, name who pays, and start with their input", async () => {
    await using h = await maker(store, [create("one", "two"), say("done")]);
    await h.ask("go");
    const [made] = await outputs(h, "create_thread");
    const ids = (made!["threads"] as { thread_id: ThreadId }[]).map(({ thread_id: id }) => id);
    expect(ids).toHaveLength(2);
    for (const [at, id] of ids.entries()) {
      const tree = await h.runtime.openTree({ id });
      await tree.idle();
      expect(await tree.root.record()).toMatchObject({
        createdBy: "agent",
        parent: null,
        thread: { lineage: { parentThreadId: null, rootThreadId: id } },
        lastOutcome: { status: "completed", text: "made" },
      });
      const record = await h.store.read((view) => view.tree(id));
      const payer = { treeId: h.tree.id, threadId: h.tree.id, path: "/root" };
      expect(record).toMatchObject({ title: `thread ${["one", "two"][at]!}`, billedTo: payer });
      expect((await tree.root.mail()).rows).toMatchObject([
        { author: { kind: "thread", threadId: h.tree.id } },
      ]);
    }
    expect(await h.store.read((view) => view.tree(h.tree.id))).toMatchObject({ agents: 0, billed: 2 });
    // A user's thread pays for itself.
    expect(await h.store.read((view) => view.tree(h.tree.id)?.billedTo)).toBeUndefined();
  });

  test("C18.14 1 to 20 at once, all of them or none", async () => {
    const twenty = Array.from({ length: 20 }, (_, n) => String(n));
    await using h = await maker(
      store,
      [
        create(),
        create(...twenty, "one more"),
        call("create_thread", { threads: [{ message: "fine" }, { message: "wider", effects: ["network"] }] }),
        create(...twenty),
        say("done"),
      ],
      { tree: { effects: ["read"] } },
    );
    await h.ask("go");
    expect(await outputs(h, "create_thread")).toMatchObject([
      { code: "INVALID_ARGUMENT" },
      { code: "INVALID_ARGUMENT" },
      { code: "AUTHORITY_ESCALATION_DENIED" },
      { threads: expect.any(Array) },
    ]);
    const ids = await madeBy(h);
    expect(ids).toHaveLength(20);
    const { config } = (await h.store.read((view) => view.agent(ids[0]!)))!;
    expect(config.effects).toEqual(["read"]);
  });

  test("C1.2 BUD-1 they count in the agents and the spawn rate of the maker's tree, and in budgets below it", async () => {
    await using h = await maker(store, [create("a", "b"), create("c"), spawn("kid", "x"), say("done")], {
      tree: { limits: { agentsPerTree: 2 } },
    });
    await h.ask("go");
    const [, third] = await outputs(h, "create_thread");
    expect(third).toMatchObject({ code: "AGENT_LIMIT_REACHED", details: { value: 2, use: 2 } });
    expect(await outputs(h, "spawn_agent")).toMatchObject([{ code: "AGENT_LIMIT_REACHED" }]);

    await using fast = await maker(store, [create("a", "b"), create("c", "d"), create("e"), say("done")], {
      tree: { limits: { spawnsPerMinute: 3 } },
    });
    await fast.ask("go");
    expect(await outputs(fast, "create_thread")).toMatchObject([
      { threads: expect.any(Array) },
      { code: "LIMIT_REACHED", details: { limit: "spawnsPerMinute" } },
      { threads: expect.any(Array) },
    ]);

    await using scoped = await maker(store, [create("a", "b"), create("c"), say("done")], {
      tree: { budgets: { agents: 2 } },
    });
    await scoped.ask("go");
    expect((await outputs(scoped, "create_thread"))[1]).toMatchObject({ code: "LIMIT_REACHED" });
  });

  test("C1.2 BUD-2 what they use counts in the tokens of the maker's tree, and in those above the maker", async () => {
    await using h = await maker(store, [create("a"), say("done"), say("more")], {
      other: together(usage(SPENT), say("made")),
      runtime: { threadTools: ALL, subagents: { maxOutputTokens: 100 } },
      tree: { limits: { tokensPerTree: 62_000 }, maxOutputTokens: 100 },
    });
    await h.ask("go");
    const [id] = await madeBy(h);
    const made = await h.runtime.openTree({ id: id! });
    await made.idle();
    await made.root.raiseBudget("tokens", 1_000_000);
    // The made tree has a budget of its own, which is not spent: it is the maker's that ends what comes next.
    const work = await made.root.send("again");
    expect(await work.outcome()).toMatchObject({
      ending: "budget_exhausted",
      error: { message: expect.stringContaining(`/root of ${h.tree.id}`) },
    });
    expect((await h.store.read((view) => view.tree(id!)))!.exhausted).toEqual([]);
    expect(await h.ask("more")).toMatchObject({ ending: "budget_exhausted" });
    await expect(made.root.send("and again")).rejects.toMatchObject({ code: "BUDGET_EXHAUSTED" });
    await h.tree.root.raiseBudget("tokens", 1_000_000);
    expect((await (await made.root.send("now")).outcome()).ending).toBe("completed");
  });

  test("SPN-6 a call that is made again after a crash makes nothing twice", async () => {
    await using h = await harness({
      store,
      runtime: { threadTools: ALL },
      tree: { hostDriven: true },
      scripts: { "/root": [repeat(say("made"))] },
    });
    const input = { threads: [{ message: "a" }], idempotency_key: "k" };
    const tool = () => h.tree.root.tools().find(({ name }) => name === "create_thread")!;
    const first = await tool().call(input);
    await h.crash();
    expect((await tool().call(input)).output).toEqual(first.output);
    expect(await madeBy(h)).toHaveLength(1);
  });
});

describe.each(STORES)("forks by agents on %s", (store) => {
  test("C1.2 C5.4 a fork of the own thread is one commit with the counters, and pays there", async () => {
    await using h = await maker(
      store,
      [say("remember seven"), call("fork_thread", { message: "try" }), say("done")],
      {
        other: say((c) =>
          JSON.stringify(c.messages).includes("remember seven") ? "knows it" : "knows nothing",
        ),
      },
    );
    await h.ask("first");
    await h.ask("fork");
    const [forked] = await outputs(h, "fork_thread");
    const id = forked!["thread_id"] as ThreadId;
    const tree = await h.runtime.openTree({ id });
    await tree.idle();
    const record = await tree.root.record();
    expect(record).toMatchObject({
      createdBy: "agent",
      lastOutcome: { text: "knows it" },
      thread: {
        lineage: { parentThreadId: h.tree.id, relationshipToParent: "fork", rootThreadId: h.tree.id },
      },
    });
    expect(await h.store.read((view) => view.tree(id)?.billedTo?.threadId)).toBe(h.tree.id);
    expect(await h.store.read((view) => view.tree(h.tree.id)?.billed)).toBe(1);
    const { rows } = await h.runtime.threads.transfers(id, { limit: 10 });
    expect(rows).toMatchObject([{ type: "fork", createdBy: "agent", sourcePoint: { ordinal: 1 } }]);
  });

  test("POL-1 C5.21 a fork may do no more than who makes it, and what is cut off is said", async () => {
    const b = scripted({ "/root": [repeat(say("from B"))] });
    let id = "";
    await using h = await harness({
      store,
      others: { b },
      runtime: { threadTools: ALL },
      tree: { effects: ["read"] },
      scripts: { "/root": [call("fork_thread", () => ({ thread_id: id })), say("done")] },
    });
    const wide = await h.runtime.openTree({ provider: "b" });
    id = wide.id;
    await (await wide.root.send("go")).outcome();
    await h.ask("go");
    const [forked] = await outputs(h, "fork_thread");
    expect(forked).toMatchObject({ effects: ["read"], forked_from: wide.id });
    const { config } = (await h.store.read((view) => view.agent(forked!["thread_id"] as ThreadId)))!;
    expect(config).toMatchObject({
      effects: ["read"],
      adjustments: [{ field: "effects", effect: "clipped" }],
    });
    expect(config.policyHash).not.toBe((await wide.root.record()).config.policyHash);
  });

  test("C7.1 a fork comes back into the caller's thread, and into no other's", async () => {
    let fork = "";
    let foreign = "";
    await using h = await maker(
      store,
      [
        say("start"),
        call("fork_thread", { message: "find the number" }),
        say("forked"),
        call("merge_back", () => ({ fork_thread_id: fork })),
        call("merge_back", () => ({ fork_thread_id: foreign })),
        call("merge_back", {}),
        say("merged"),
        say("answered"),
      ].map((step) => step as ScriptedStep),
      { other: say("the number is 4711") },
    );
    await h.ask("first");
    await h.ask("fork");
    fork = (await outputs(h, "fork_thread"))[0]!["thread_id"] as string;
    const tree = await h.runtime.openTree({ id: fork });
    await tree.idle();
    const other = await h.runtime.openTree();
    await (await other.root.send("go")).outcome();
    foreign = (await h.runtime.threads.fork(other.id)).thread.id;
    await h.ask("merge");
    const merged = await new Look(h).outputs("/root", "merge_back");
    expect(merged).toMatchObject([
      { isError: false, output: { into: h.tree.id } },
      { isError: true, output: { code: "AUTHORITY_ESCALATION_DENIED" } },
      { isError: true, output: { code: "MERGE_BACK_NOT_A_FORK" } },
    ]);
    await h.ask("what is it?");
    expect(JSON.stringify(h.provider.requests("/root").at(-1)!.messages)).toContain("4711");
  });
});

const told = (output: JsonObject | undefined): string => JSON.stringify(output);

describe.each(STORES)("reading threads on %s", (store) => {
  const reader = (thread: () => string, more: JsonObject = {}): ScriptedStep =>
    call("read_thread", () => ({ thread_id: thread(), ...more }));

  test("SEC-3 pages from the newest backwards, bounded, without secrets for another provider", async () => {
    let id = "";
    const b = scripted({ "/root": [say(`the key is hunter2 ${"x".repeat(10_000)}`), say("second answer")] });
    await using h = await harness({
      store,
      others: { b },
      runtime: { threadTools: ALL, secrets: ["hunter2"] },
      scripts: {
        "/root": [
          reader(() => id, { limit: 2 }),
          call("read_thread", (c) => ({
            thread_id: id,
            limit: 10,
            before: (c.lastToolResult as JsonObject)["before"]!,
          })),
          call("read_thread", {}),
          reader(() => "thread_000000000000000000000"),
          say("done"),
        ],
      },
    });
    const other = await h.runtime.openTree({ provider: "b", title: "keys" });
    id = other.id;
    for (const text of ["first question", "second question"]) await (await other.root.send(text)).outcome();
    await h.ask("look it up");
    const [newest, older, own, unknown] = await outputs(h, "read_thread");
    expect(newest).toMatchObject({
      title: "keys",
      runs: 2,
      entries: [
        { kind: "user", text: "second question" },
        { kind: "assistant", phase: "answer", text: "second answer" },
      ],
      before: `${id}:3`,
    });
    expect(older!["before"]).toBeNull();
    expect(older!["entries"]).toMatchObject([
      { kind: "note", item: 0 },
      { kind: "user", text: "first question", item: 1 },
      { kind: "assistant", item: 2 },
    ]);
    expect(told(older)).not.toContain("second");
    expect(told(older)).toContain("the key is");
    expect(told(older)).not.toContain("hunter2");
    expect(told(older).length).toBeLessThan(6000);
    expect(own).toMatchObject({ thread_id: h.tree.id });
    expect(unknown).toMatchObject({ code: "THREAD_NOT_FOUND" });
    expect((await other.root.mail()).rows).toHaveLength(2);
  });

  test("C15 SEC-3 a page always leads on: where a fork was made stands on none alone", async () => {
    await using h = await harness({ store });
    const { threads } = h.runtime;
    const { id } = await threads.create({ title: "source" });
    const said = { runId: null, step: 0, at: 1, inherited: false } as const;
    const calls = Array.from({ length: 14 }, (_, at) => ({
      type: "tool_call" as const,
      callId: `c${at}`,
      name: "write",
      input: "x".repeat(4096),
    }));
    const lease = await h.store.claim({
      treeId: id,
      token: "mine",
      owner: { host: "test", bootId: "boot", pid: 1, startedAt: "1" },
      leaseMs: 1000,
      provenDead: () => true,
    });
    await h.store.commit(lease, (tx) => {
      tx.appendItems(id, 0, [
        { ...said, kind: "user", text: "first words", mailId: null, workId: null },
        { ...said, kind: "assistant", phase: "tools", parts: calls, model: null },
      ]);
      tx.putAgent({ ...tx.agent(id)!, items: 2 });
    });
    await h.store.release(lease, { abandon: true });
    const { thread } = await threads.fork(id, { at: { kind: "message", seq: 2 } });
    const shown: string[] = [];
    for (let before: string | undefined, pages = 0; pages < 5; pages += 1) {
      const page = await h.store.read((view) => {
        const fork = view.agent(thread.id)!;
        return pageFor(view, fork, fork, { before, limit: 50, depth: 25, redact: (text) => text });
      });
      shown.push(
        ...(page["entries"] as readonly JsonObject[]).map(({ kind }) => kind as string).toReversed(),
      );
      if (page["before"] === null) break;
      before = page["before"] as string;
    }
    expect(shown.filter((kind) => kind !== "forked_from")).toEqual(["assistant", "user"]);
    expect(shown[0]).toBe("forked_from");
  });

  test("C6.8 a handoff points at the tool that reads what it left out, where the agent has it", async () => {
    for (const [threadTools, points] of [
      [{ allow: "read" }, true],
      [{ allow: "none" }, false],
    ] as const) {
      const b = scripted({ "/root": [repeat(say("from B"))] });
      await using h = await harness({
        store,
        others: { b },
        runtime: { threadTools },
        scripts: { "/root": [repeat(say(`word ${"y".repeat(30_000)}`))] },
      });
      for (let n = 0; n < 6; n += 1) await h.ask(`question ${n}`);
      await (await h.tree.root.send("switch", { provider: "b" })).outcome();
      const sent = JSON.stringify(b.requests("/root")[0]!.messages);
      expect(sent).toContain("== Left out ==");
      expect(sent.includes("Read them with `read_thread`")).toBe(points);
    }
  });
});
