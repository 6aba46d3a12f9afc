/** Starts that did not come about, and what is left of them for the next one (C2.5, C4.13, C4.16, C5.13); what a text tells of subagents. */
import { describe, expect, onTestFinished, test } from "vitest";
import { refuse } from "../../src/providers/scripted/native/faults.ts";
import {
  itemFork,
  noFork,
  type ScriptedNativeProvider,
  turnFork,
} from "../../src/providers/scripted/native/provider.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { fail, gate, repeat, say, spawn, together } from "../../src/providers/scripted/script.ts";
import { estimateTokens } from "../../src/policy/estimate-tokens.ts";
import { RejectedError } from "../../src/protocol/errors.ts";
import type { ProviderSelection } from "../../src/protocol/thread.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { harness, type Harness, type HarnessOptions, STORES } from "../support/harness.ts";

type Store = (typeof STORES)[number];
const SCRIPTS = { "/root": [repeat(say((context) => `answer to ${context.inputs.at(-1)}`))] };
const refusal = () => refuse(new RejectedError("PROVIDER_REFUSED", "not today", {}));
const on = (provider: string): ProviderSelection => ({
  provider,
  model: null,
  effort: null,
  cleanContext: false,
});

/** What the newest request of an agent reserves of a budget. */
function reserved(h: Harness, path: string): number {
  const { messages, tools } = h.provider.requests(path).at(-1)!;
  return estimateTokens(messages, tools) + 4096;
}

async function opened(options: HarnessOptions): Promise<Harness> {
  const h = await harness(options);
  onTestFinished(() => h[Symbol.asyncDispose]());
  return h;
}

async function natives(store: Store, native: ScriptedNativeProvider, other: ScriptedNativeProvider) {
  return opened({ store, others: { native, other }, tree: { provider: "native" } });
}

async function send(h: Harness, thread: string, text: string, provider?: string) {
  const tree = await h.runtime.openTree({ id: thread as `thread_${string}` });
  const work = await tree.root.send(text, provider === undefined ? {} : { provider });
  return work.outcome();
}

const forks = async (h: Harness, thread: string) =>
  (await h.runtime.threads.transfers(thread, { limit: 10 })).rows.filter(({ type }) => type === "fork");

const said = (provider: ScriptedNativeProvider): string =>
  JSON.stringify(provider.calls("startTurn").at(-1)!.input);

describe.each(STORES)("a fork on %s whose first run was refused", (store) => {
  test("C2.5 C5.14 C5.20 goes on elsewhere, told by text, where the provider had forked already", async () => {
    const native = turnFork(SCRIPTS);
    const other = itemFork(SCRIPTS);
    const h = await natives(store, native, other);
    await h.ask("one");
    const { thread } = await h.runtime.threads.fork(h.tree.id);
    native.fault("startTurn", refusal());
    expect((await send(h, thread.id, "two")).ending).toBe("provider_error");
    expect((await forks(h, thread.id)).map(({ status }) => status)).toEqual(["resolved_native"]);
    expect((await send(h, thread.id, "three", "other")).ending).toBe("completed");
    expect(said(other)).toContain("answer to one");
    const [first, second] = await forks(h, thread.id);
    expect(first).toMatchObject({ status: "superseded", supersededBy: second!.id });
    expect(second).toMatchObject({ status: "consumed", sourcePoint: first!.sourcePoint });
    expect(second!.resolution).toMatchObject({ strategy: "portable_context" });
    // At its first try, and not because another run was begun for the message.
    const { rows } = await h.runtime.threads.executions(thread.id, { limit: 10 });
    expect(rows.map(({ settled }) => settled?.outcome)).toEqual(["failed", "completed"]);
  });

  test("C2.5 C5.14 C5.20 goes on with the provider's own fork where a text was ready already", async () => {
    const native = turnFork(SCRIPTS);
    const other = itemFork(SCRIPTS);
    const h = await natives(store, native, other);
    await h.ask("one");
    const { thread } = await h.runtime.threads.fork(h.tree.id);
    other.fault("startTurn", refusal());
    expect((await send(h, thread.id, "two", "other")).ending).toBe("provider_error");
    expect((await forks(h, thread.id)).map(({ status }) => status)).toEqual(["resolved_portable"]);
    expect((await send(h, thread.id, "three", "native")).ending).toBe("completed");
    expect(native.calls("forkThread")).toHaveLength(1);
    const [first, second] = await forks(h, thread.id);
    expect(first).toMatchObject({ status: "superseded", supersededBy: second!.id });
    expect(second).toMatchObject({ status: "consumed", resolution: { strategy: "native_fork" } });
    const { rows } = await h.runtime.threads.handoffs(thread.id, { limit: 10 });
    expect(rows.map(({ status, deliveredAt }) => [status, deliveredAt])).toEqual([["superseded", null]]);
  });

  test("C5.13 is asked for as strictly with the next message, which is never sent with nothing", async () => {
    const native = turnFork(SCRIPTS);
    const h = await natives(store, native, itemFork(SCRIPTS));
    await h.ask("one");
    const { thread } = await h.runtime.threads.fork(h.tree.id, { policy: { strategy: "native" } });
    native.fault("forkThread", refusal(), 2);
    for (const text of ["two", "three"])
      expect((await send(h, thread.id, text)).error).toMatchObject({ code: "FORK_NATIVE_FAILED" });
    expect((await send(h, thread.id, "four")).ending).toBe("completed");
    expect(native.calls("ensureThread")).toHaveLength(1);
    expect((await forks(h, thread.id)).map(({ status }) => status)).toEqual(["failed", "failed", "consumed"]);
  });
});

describe.each(STORES)("a start on %s", (store) => {
  test("C4.16 leaves what was chosen while it was under way to the next run", async () => {
    const b = scripted({ "/root": [repeat(say("from B"))] });
    const first = together(gate("a", { beforeAcceptance: true }), say("from A"));
    const h = await opened({ store, scripts: { "/root": [first, repeat(say("from A"))] }, others: { b } });
    const work = await h.tree.root.send("one");
    await h.provider.gates.arrived("a");
    await h.runtime.threads.select(h.tree.id, on("b"));
    h.provider.gates.open("a");
    expect((await work.outcome()).text).toBe("from A");
    expect((await h.runtime.threads.get(h.tree.id)).selection).toEqual(on("b"));
    expect((await h.ask("two")).text).toBe("from B");
    expect(await h.runtime.threads.get(h.tree.id)).toMatchObject({ selection: null, provider: "b" });
  });

  test("C2.9 C1.15 of a run that no user has asked for leaves the draft", async () => {
    const kid = [together(gate("kid"), say("done"))];
    const root = [spawn("kid", "look", { detached: true }), say("spawned"), repeat(say("more"))];
    const h = await opened({ store, scripts: { "/root": root, "/root/kid": kid } });
    await h.ask("one");
    await h.ask("two");
    const items = await h.tree.root.transcript();
    const second = items.findLast(({ kind }) => kind === "user")!;
    await h.runtime.threads.rollBack(h.tree.id, { to: { kind: "before_message", seq: second.index + 1 } });
    h.provider.gates.open("kid");
    await waitUntil("its result woke the root", async () => {
      const { executions, activity } = await h.runtime.threads.get(h.tree.id);
      return executions === 3 && activity.kind === "idle";
    });
    expect((await h.runtime.threads.draft(h.tree.id))!.text).toBe("two");
    await h.ask("two, better");
    expect(await h.runtime.threads.draft(h.tree.id)).toBeNull();
  });

  test("C4.13 C4.3 that waited for a budget goes to the provider thread that later runs go on with", async () => {
    const other = scripted({ "/root/top/b": [repeat(say("from other"))] });
    const h = await opened({
      store,
      scripts: {
        "/root/top": [repeat(say("ok"))],
        "/root/top/a": [together(gate("a"), say("a is done"))],
        "/root/top/b": [repeat(say("from A"))],
      },
      others: { other },
    });
    const { agent: top, work } = await h.tree.root.spawn("top", "work", { budgets: { tokens: 40_000 } });
    await work.outcome();
    const { agent: b, work: one } = await top.spawn("b", "one");
    await one.outcome();
    await top.spawn("a", "work");
    await h.provider.gates.arrived("a");
    const used = await top.usage();
    await top.raiseBudget("tokens", used.inputTokens + used.outputTokens + reserved(h, "/root/top/a") + 4096);
    const two = await b.send("two", { provider: "other" });
    await waitUntil("b waits", async () => (await b.status()).kind === "waiting");
    await top.raiseBudget("tokens", null);
    expect((await two.outcome()).text).toBe("from other");
    expect((await (await b.send("three")).outcome()).text).toBe("from other");
    const { rows } = await h.runtime.threads.transfers(b.threadId, { limit: 10 });
    expect(rows.filter(({ type }) => type === "provider_handoff")).toHaveLength(1);
  });

  test("C6.3 S3-7 tells the results of subagents once, and none of runs that were rolled back", async () => {
    const b = scripted({ "/root": [repeat(say("from B"))] });
    const root = [say("one"), spawn("kid", "look"), say("spawned"), say("thanks"), repeat(say("more"))];
    const scripts = { "/root": root, "/root/kid": [say("what kid has found")] };
    const h = await opened({ store, scripts, others: { b } });
    await h.ask("one");
    await h.ask("two");
    await (await h.tree.root.send("three", { provider: "b" })).outcome();
    await (await h.tree.root.send("four", { provider: "scripted" })).outcome();
    const told = JSON.stringify(h.provider.requests("/root").at(-1)!.messages);
    expect(told.match(/what kid has found/g)).toHaveLength(1);
    await h.runtime.threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal: 1 } });
    const { tells } = await h.runtime.threads.preview(h.tree.id, { ...on("b"), cleanContext: true });
    expect(tells.map(({ runs }) => runs)).toEqual([[[1, 1]]]);
    expect(tells[0]!.text).not.toContain("what kid has found");
  });
});

describe.each(STORES)("a handoff on %s", (store) => {
  test("C3.11 C10 that is full because its delta had no room is written anew", async () => {
    const b = scripted({ "/root": [repeat(say("w".repeat(40_000)))] });
    const root = [say("one"), repeat(fail({ code: "PROVIDER_REFUSED", accepted: false }))];
    const h = await opened({ store, scripts: { "/root": root }, others: { b } });
    await h.ask("one");
    await send(h, h.tree.id, `two ${"w".repeat(40_000)}`, "b");
    await send(h, h.tree.id, "three", "scripted");
    const handoffs = async () => (await h.runtime.threads.handoffs(h.tree.id, { limit: 10 })).rows;
    const ready = (await handoffs()).at(-1)!;
    expect(ready).toMatchObject({ kind: "portable_context", status: "ready", deliveredAt: null });
    const anew = await h.runtime.threads.regenerateHandoff(ready.id);
    expect(anew).toMatchObject({ kind: ready.kind, coveredRuns: ready.coveredRuns });
    expect(await handoffs()).toMatchObject([{}, { status: "superseded" }, { id: anew.id }]);
  });
});

describe.each(STORES)("a fork on %s", (store) => {
  test("S3-62 C5.4 needs no provider: one that does not answer stands in nobody's way", async () => {
    const silent = noFork(SCRIPTS);
    const away = {
      ...silent,
      capabilities: () => Promise.reject(new RejectedError("PROVIDER_UNAVAILABLE", "away", {})),
    };
    const h = await opened({
      store,
      others: { native: turnFork(SCRIPTS), away },
      tree: { provider: "native" },
    });
    await h.ask("one");
    expect((await h.runtime.threads.fork(h.tree.id)).transfer.status).toBe("pending");
  });

  test("C5.6 with a policy that is wrong is refused by name", async () => {
    const h = await opened({ store, scripts: SCRIPTS });
    await h.ask("one");
    const policy = { requestId: " " };
    await expect(h.runtime.threads.fork(h.tree.id, { policy })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringContaining("requestId"),
    });
  });

  test("C9.1 a message that is not the user's is named as the caller has named it", async () => {
    const h = await opened({ store, scripts: SCRIPTS });
    await h.ask("one");
    const answer = (await h.tree.root.transcript()).find(({ kind }) => kind === "assistant")!;
    const seq = answer.index + 1;
    await expect(
      h.runtime.threads.rollBack(h.tree.id, { to: { kind: "before_message", seq } }),
    ).rejects.toThrow(`Message ${seq} of`);
  });
});
