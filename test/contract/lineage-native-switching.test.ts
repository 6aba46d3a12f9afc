/** Switching between providers that own their loop: resume, fallback, staleness, channels, and what the user sees before (S3; C4, C10). */
import { describe, expect, onTestFinished, test } from "vitest";
import { hang, refuse } from "../../src/providers/scripted/native/faults.ts";
import {
  itemFork,
  mute,
  noFork,
  type ScriptedNativeProvider,
  turnFork,
} from "../../src/providers/scripted/native/provider.ts";
import { gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { RejectedError, TransientError } from "../../src/protocol/errors.ts";
import type { LineageLimitsInput } from "../../src/protocol/lineage-limits.ts";
import { type Harness, harness, STORES } from "../support/harness.ts";

type Store = (typeof STORES)[number];
const says = (who: string) => ({
  "/root": [repeat(say((context) => `${who} answers ${context.inputs.at(-1)}`))],
});

interface Pair {
  readonly h: Harness;
  readonly a: ScriptedNativeProvider;
  readonly b: ScriptedNativeProvider;
}

async function pair(
  store: Store,
  b: ScriptedNativeProvider = itemFork(says("B")),
  lineage: LineageLimitsInput = {},
  a: ScriptedNativeProvider = turnFork(says("A")),
): Promise<Pair> {
  const h = await harness({ store, others: { a, b }, tree: { provider: "a" }, runtime: { lineage } });
  onTestFinished(() => h[Symbol.asyncDispose]());
  return { h, a, b };
}

async function send(h: Harness, message: string, provider?: "a" | "b") {
  const work = await h.tree.root.send(message, provider === undefined ? {} : { provider });
  return work.outcome();
}

async function talk(h: Harness, provider: "a" | "b", ...messages: string[]): Promise<void> {
  for (const message of messages)
    expect(await send(h, message, provider)).toMatchObject({ ending: "completed" });
}

const turn = (provider: ScriptedNativeProvider) =>
  provider.calls("startTurn").at(-1)!.input as {
    userMessage: string;
    preambles: { kind: string; channel: string; text: string }[];
  };
const transfers = async (h: Harness) => (await h.runtime.threads.transfers(h.tree.id, { limit: 50 })).rows;
const handoffs = async (h: Harness) => (await h.runtime.threads.handoffs(h.tree.id, { limit: 50 })).rows;
const coverage = async (h: Harness) => (await h.runtime.threads.get(h.tree.id)).coverage;

const GONE = new TransientError("PROVIDER_UNREACHABLE", "gone", {});

describe.each(STORES)("a native switch on %s", (store) => {
  test("S3-1 S3-2 S3-3 S3-13 S3-22 S3-26 S3-69 S0-8 S0-67 A, B, A: one thread, both resumed by their own ids", async () => {
    const { h, a, b } = await pair(store);
    await talk(h, "a", "one");
    await talk(h, "b", "two");
    await talk(h, "a", "three");
    expect(a.calls("ensureThread")).toHaveLength(1);
    expect(b.calls("ensureThread")).toHaveLength(1);
    expect(a.calls("resumeThread")).toHaveLength(1);
    const told = turn(a);
    expect(told.userMessage).toBe("three");
    expect(told.preambles).toHaveLength(1);
    expect(told.preambles[0]).toMatchObject({ kind: "handoff", channel: "system" });
    expect(told.preambles[0]!.text).toContain("B answers two");
    expect(told.preambles[0]!.text).not.toContain("A answers one");
    const rows = await transfers(h);
    const here = { type: "provider_handoff", sourceThreadId: h.tree.id, targetThreadId: h.tree.id };
    expect(rows).toMatchObject([
      { ...here, sourceProvider: "a", targetProvider: "b" },
      { ...here, sourceProvider: "b", targetProvider: "a" },
    ]);
    expect(await coverage(h)).toHaveLength(2);
    expect((await h.runtime.threads.list({ state: "any" }, { limit: 10 })).rows).toHaveLength(1);
  });

  test.each(["a conversation that is resumed", "a new one"])(
    "S3-22 S0-39 C4.17 of %s: the text stands in the store before its session is asked to send it, and counts after",
    async (kind) => {
      const { h, a, b } = await pair(store);
      const [to, name] = kind === "a new one" ? ([b, "b"] as const) : ([a, "a"] as const);
      await talk(h, "a", "one");
      if (to === a) await talk(h, "b", "two");
      const before = to.calls().length;
      const { activeProviderThreadId: bound } = await h.runtime.threads.get(h.tree.id);
      to.fault("startTurn", hang("sent"));
      const work = await h.tree.root.send("three", { provider: name });
      await to.gates.arrived("sent");
      const made = to.calls().slice(before);
      expect(made.map(({ method }) => method).filter((method) => method !== "openSession")).toEqual([
        to === a ? "resumeThread" : "ensureThread",
        "startTurn",
      ]);
      const [handoff, transfer] = [(await handoffs(h)).at(-1)!, (await transfers(h)).at(-1)!];
      expect(handoff).toMatchObject({ status: "ready", deliveredAt: null, transferId: transfer.id });
      expect(transfer).toMatchObject({ status: "resolved_portable", targetProvider: name });
      expect((await h.runtime.threads.get(h.tree.id)).activeProviderThreadId).toBe(bound);
      expect(turn(to)).toMatchObject({ userMessage: "three", preambles: [{ text: handoff.summaryText }] });
      to.gates.open("sent");
      expect((await work.outcome()).ending).toBe("completed");
      expect((await transfers(h)).at(-1)).toMatchObject({ id: transfer.id, status: "consumed" });
      expect((await h.runtime.threads.get(h.tree.id)).activeProviderThreadId).not.toBe(bound);
    },
  );

  test.each(["openSession", "ensureThread", "startTurn"] as const)(
    "X-5 C4.16 stays with A where B fails at %s: A's session is let go of for an open one alone, and A goes on as it was",
    async (method) => {
      const { h, a, b } = await pair(store);
      await talk(h, "a", "one");
      const before = await h.runtime.threads.get(h.tree.id);
      b.fault(method, refuse(new RejectedError("PROVIDER_REFUSED", "not today", {})), 5);
      const outcome = await send(h, "two", "b");
      expect(outcome.ending).toBe(method === "openSession" ? "failed" : "provider_error");
      const { provider, activeProviderThreadId, coverage: knows } = await h.runtime.threads.get(h.tree.id);
      expect({ provider, activeProviderThreadId, knows }).toEqual({
        provider: "a",
        activeProviderThreadId: before.activeProviderThreadId,
        knows: before.coverage,
      });
      expect(a.calls("close")).toHaveLength(method === "openSession" ? 0 : 1);
      await talk(h, "a", "three");
      expect(a.calls("openSession")).toHaveLength(method === "openSession" ? 1 : 2);
      expect(a.calls("ensureThread")).toHaveLength(1);
      expect(turn(a)).toMatchObject({ userMessage: "three", preambles: [] });
    },
  );

  test("C4.16 A's session is closed when B's is open, and not before", async () => {
    const { h, a, b } = await pair(store);
    await talk(h, "a", "one");
    b.fault("openSession", hang("opening"));
    const work = await h.tree.root.send("two", { provider: "b" });
    await b.gates.arrived("opening");
    expect(a.calls("close")).toEqual([]);
    b.gates.open("opening");
    expect((await work.outcome()).ending).toBe("completed");
    expect(a.calls("close")).toHaveLength(1);
  });

  test("X-14 C4.3 A, B, A, B resumes each by its own native id, and nothing is told twice", async () => {
    const { h, a, b } = await pair(store);
    await talk(h, "a", "one");
    await talk(h, "b", "two");
    await talk(h, "a", "three");
    await talk(h, "b", "four");
    const resumed = (provider: ScriptedNativeProvider) =>
      provider.calls("resumeThread").map(({ input }) => (input as { nativeId: string }).nativeId);
    const [c1, l1] = await h.store.read((view) => view.providerThreadsOf(h.tree.id));
    expect(resumed(a)).toEqual([c1!.nativeThreadRef!.nativeId]);
    expect(resumed(b)).toEqual([l1!.nativeThreadRef!.nativeId]);
    expect(turn(b).preambles[0]!.text).toContain("A answers three");
    expect(turn(b).preambles[0]!.text).not.toContain("A answers one");
    expect((await coverage(h)).map(({ gap }) => gap)).toEqual([[[4, 4]], []]);
  });

  test("S3-4 S3-28 S3-34 C4.15 a conversation that cannot be resumed is given up for a new one, told everything", async () => {
    const { h, a } = await pair(store);
    await talk(h, "a", "one");
    await talk(h, "b", "two");
    a.fault("resumeThread", refuse(new RejectedError("PROVIDER_REFUSED", "gone", {})));
    await talk(h, "a", "three");
    expect(turn(a).preambles[0]!.text).toContain("A answers one");
    expect(turn(a).preambles[0]!.text).toContain("B answers two");
    const last = (await transfers(h)).at(-1)!;
    expect(last).toMatchObject({
      createdBy: "system",
      basePoint: null,
      staleness: ["resume_failed"],
      status: "consumed",
    });
    const records = await h.store.read((view) => view.providerThreadsOf(h.tree.id));
    expect(records.map(({ provider, status }) => [provider, status])).toEqual([
      ["a", "error"],
      ["b", "idle"],
      ["a", "idle"],
    ]);
  });

  test.each(["while loaded", "with its session", "in the middle of a start"])(
    "S3-4 C4.15 a conversation that is lost %s is given up for a new one in the same run",
    async (when) => {
      const { h, a } = await pair(store);
      await talk(h, "a", "one");
      await h.clock.settle();
      if (when === "with its session") a.kill();
      if (when === "in the middle of a start") a.fault("startTurn", refuse(GONE));
      a.lose({ nativeId: a.conversations.all()[0]!.id });
      const work = await h.tree.root.send("two");
      await h.clock.settle();
      await h.clock.advance(60_000);
      expect(await work.outcome()).toMatchObject({ ending: "completed" });
      expect(turn(a).preambles[0]!.text).toContain("A answers one");
      expect((await transfers(h)).at(-1)).toMatchObject({
        createdBy: "system",
        staleness: ["resume_failed"],
      });
    },
  );

  test("C5.14 C5.19 C9.8 a fork whose session has died asks another one for its fork", async () => {
    const { h, a } = await pair(store);
    await talk(h, "a", "one");
    for (const strategy of ["auto", "native"] as const) {
      const { thread } = await h.runtime.threads.fork(h.tree.id, { policy: { strategy } });
      const fork = await h.runtime.openTree({ id: thread.id });
      expect(await (await fork.root.send("f1")).outcome()).toMatchObject({ ending: "completed" });
      await h.clock.settle();
      await h.runtime.threads.rollBack(thread.id, { to: { kind: "ordinal", ordinal: 0 } });
      a.kill();
      const work = await fork.root.send("f2");
      await h.clock.settle();
      await h.clock.advance(60_000);
      expect(await work.outcome()).toMatchObject({ ending: "completed" });
    }
  });

  test.each([turnFork, itemFork])(
    "C5.2 C5.17 a strict fork of the latest stable point is not refused because a run is under way (%s)",
    async (make) => {
      const native = make({ "/root": [say("one"), together(gate("held"), say("two")), repeat(say("more"))] });
      await using h = await harness({ store, others: { native }, tree: { provider: "native" } });
      await h.ask("q1");
      await h.clock.settle();
      const work = await h.tree.root.send("q2");
      await native.gates.arrived("held");
      await h.clock.settle();
      const { thread, transfer } = await h.runtime.threads.fork(h.tree.id, {
        policy: { strategy: "native" },
      });
      expect(transfer.sourcePoint.ordinal).toBe(1);
      native.gates.open("held");
      await work.outcome();
      await h.clock.settle();
      const fork = await h.runtime.openTree({ id: thread.id });
      expect(await (await fork.root.send("f1")).outcome()).toMatchObject({ ending: "completed" });
      expect(native.calls("forkThread")).toHaveLength(1);
    },
  );

  test("C4.15 when the new one cannot begin either the run fails, and is never an empty session", async () => {
    const { h, a } = await pair(store);
    await talk(h, "a", "one");
    await talk(h, "b", "two");
    a.fault("resumeThread", refuse(new RejectedError("PROVIDER_REFUSED", "gone", {})));
    a.fault("ensureThread", refuse(new RejectedError("PROVIDER_REFUSED", "full", {})));
    const outcome = await send(h, "three", "a");
    expect(outcome.error).toMatchObject({ code: "PROVIDER_RESUME_FAILED" });
    expect(a.calls("startTurn")).toHaveLength(1);
    expect((await h.runtime.threads.get(h.tree.id)).provider).toBe("b");
    expect((await h.runtime.threads.draft(h.tree.id))!.text).toBe("three");
    await talk(h, "b", "four");
  });

  test("C4.15 a moment of weakness is waited out: the conversation is resumed all the same", async () => {
    const { h, a } = await pair(store);
    await talk(h, "a", "one");
    await talk(h, "b", "two");
    a.fault("resumeThread", refuse(new TransientError("PROVIDER_OVERLOADED", "busy", {})), 2);
    const work = await h.tree.root.send("three", { provider: "a" });
    let ended = false;
    const outcome = work.outcome().finally(() => (ended = true));
    for (let step = 0; step < 5_000 && !ended; step += 1) await h.clock.advance(100);
    expect((await outcome).ending).toBe("completed");
    expect(turn(a).preambles[0]!.text).not.toContain("A answers one");
  });

  test("S3-29 S0-47 C4.9 a provider that takes no context is refused: nothing is asked, the message is kept", async () => {
    const b = mute(says("B"));
    const { h } = await pair(store, b);
    await talk(h, "a", "one");
    const outcome = await send(h, "two", "b");
    expect(outcome.error).toMatchObject({ code: "CONTEXT_UNSUPPORTED" });
    expect(b.calls().filter(({ method }) => method !== "openSession" && method !== "close")).toEqual([]);
    expect((await h.runtime.threads.draft(h.tree.id))!.text).toBe("two");
    expect(await handoffs(h)).toEqual([]);
    await talk(h, "a", "three");
  });

  test("S3-24 C6.10 the best channel that a provider has is used", async () => {
    const b = noFork(says("B"));
    const { h } = await pair(store, b);
    await talk(h, "a", "one");
    await talk(h, "b", "two");
    expect(turn(b).preambles[0]).toMatchObject({ kind: "handoff", channel: "synthetic_user" });
    await talk(h, "a", "three");
    expect(h.runtime).toBeDefined();
  });

  test("X-1 C4.13 a start that fails leaves coverage as it was, and the next run is told", async () => {
    const { h, b } = await pair(store);
    await talk(h, "a", "one");
    b.fault("startTurn", refuse(new RejectedError("PROVIDER_REFUSED", "no", {})));
    expect((await send(h, "two", "b")).ending).toBe("provider_error");
    expect((await coverage(h)).map(({ provider, native }) => [provider, native])).toEqual([["a", [[1, 1]]]]);
    expect((await handoffs(h)).map(({ status, deliveredAt }) => [status, deliveredAt])).toEqual([
      ["ready", null],
    ]);
    await talk(h, "b", "three");
    expect(turn(b).preambles[0]!.text).toContain("A answers one");
    expect((await handoffs(h)).filter(({ deliveredAt }) => deliveredAt !== null)).toHaveLength(1);
  });

  test("X-2 C4.5 runs that failed are told, with how they ended", async () => {
    const { h, a, b } = await pair(store);
    await talk(h, "a", "one");
    a.fault("startTurn", refuse(new RejectedError("PROVIDER_REFUSED", "no", {})));
    await send(h, "lost before it began", "a");
    const work = await h.tree.root.send("two", { provider: "a" });
    await work.outcome();
    await talk(h, "b", "three");
    expect(turn(b).preambles[0]!.text).toContain("A answers two");
    expect(turn(b).preambles[0]!.text).not.toContain("lost before it began");
    const [, l1] = await coverage(h);
    expect(l1!.told[0]!.runs).toEqual([
      [1, 1],
      [3, 3],
    ]);
  });

  test.each([
    ["off_provider_runs", { offProviderRuns: 1 }],
    ["handoff_chain", { handoffsHard: 0 }],
  ] as const)(
    "S3-31 S3-32 C10 %s makes a conversation stale: a new one is told everything",
    async (signal, lineage) => {
      const { h } = await pair(store, undefined, lineage);
      await talk(h, "a", "one");
      await talk(h, "b", "two");
      await talk(h, "a", "three");
      await talk(h, "b", "four", "five");
      await talk(h, "a", "six");
      const last = (await transfers(h)).at(-1)!;
      expect(last.staleness).toContain(signal);
      expect(last.basePoint).toBeNull();
      expect((await handoffs(h)).at(-1)).toMatchObject({
        kind: "portable_context",
        strategy: "full_thread_summary",
      });
    },
  );

  test("S3-27 S3-30 C4.7 over a soft limit alone the conversation is resumed and told everything", async () => {
    const { h, a } = await pair(store, undefined, { handoffsSoft: 0 });
    await talk(h, "a", "one");
    await talk(h, "b", "two");
    await talk(h, "a", "three");
    await talk(h, "b", "four");
    await talk(h, "a", "five");
    expect(a.calls("ensureThread")).toHaveLength(1);
    expect(turn(a).preambles[0]!.text).toContain("A answers one");
    expect((await transfers(h)).at(-1)).toMatchObject({ staleness: [], basePoint: null });
  });

  test("S3-5 S3-33 C10 a change that the provider cannot make in one conversation begins another", async () => {
    const model = (settings: { readonly model: string | null }) => settings.model;
    const a = turnFork(says("A"), {
      selectionChange: (now, next) => (model(now) === model(next) ? "apply_next_turn" : "handoff"),
    });
    const { h } = await pair(store, undefined, {}, a);
    await talk(h, "a", "one");
    await h.runtime.threads.select(h.tree.id, {
      provider: "a",
      model: "other",
      effort: null,
      cleanContext: false,
    });
    expect((await send(h, "two")).ending).toBe("completed");
    expect(a.calls("ensureThread")).toHaveLength(2);
    expect(turn(a).preambles[0]!.text).toContain("A answers one");
    expect((await transfers(h)).at(-1)!.staleness).toEqual(["incompatible_settings"]);
  });

  test("S3-6 S3-37 C10 a delta that does not fit is no delta: a new conversation is told what fits", async () => {
    const { h, a } = await pair(store, undefined, { handoffBytes: 2_000 });
    await talk(h, "a", "one");
    await talk(h, "b", "x".repeat(4_000));
    await talk(h, "a", "three");
    expect((await transfers(h)).at(-1)).toMatchObject({ staleness: ["delta_too_large"], basePoint: null });
    expect(a.calls("ensureThread")).toHaveLength(2);
    const [told] = turn(a).preambles;
    expect(told!.text).toContain("A answers one");
    expect(Buffer.byteLength(told!.text)).toBeLessThanOrEqual(2_000);
    expect((await handoffs(h)).at(-1)!.payload.omittedItemIds.length).toBeGreaterThan(0);
  });

  test("S3-15 S3-25 C4.5 a conversation that misses a run is never gone on with in silence", async () => {
    const { h, a } = await pair(store);
    await talk(h, "a", "one", "two");
    expect(turn(a).preambles).toEqual([]);
    await talk(h, "b", "three");
    await talk(h, "a", "four");
    expect(turn(a).preambles.map(({ kind }) => kind)).toEqual(["handoff"]);
    await talk(h, "a", "five");
    expect(turn(a).preambles).toEqual([]);
  });

  test("S3-62 S3-63 C5.4 C5.17 a thread of two providers is forked without either, and told at its first run", async () => {
    const { h, a, b } = await pair(store);
    await talk(h, "a", "one");
    await talk(h, "b", "two");
    const calls = a.calls().length + b.calls().length;
    const { thread, transfer } = await h.runtime.threads.fork(h.tree.id);
    expect(a.calls().length + b.calls().length).toBe(calls);
    expect(transfer).toMatchObject({ status: "pending", sourceProvider: "b", targetProvider: null });
    const tree = await h.runtime.openTree({ id: thread.id });
    expect((await (await tree.root.send("three", { provider: "a" })).outcome()).ending).toBe("completed");
    const told = turn(a).preambles[0]!.text;
    expect(told).toContain("A answers one");
    expect(told).toContain("B answers two");
  });

  test("S2-21 S2-22 C5.19 a native fork takes as long as it takes, and nobody asks whether it is ready", async () => {
    const { h, a } = await pair(store);
    await talk(h, "a", "one");
    const { thread } = await h.runtime.threads.fork(h.tree.id);
    const tree = await h.runtime.openTree({ id: thread.id });
    a.fault("forkThread", hang("fork"));
    const work = await tree.root.send("two");
    await a.gates.arrived("fork");
    const calls = a.calls().length;
    await h.clock.advance(3 * 3_600_000);
    expect((await work.record()).state).not.toBe("ended");
    expect(a.calls()).toHaveLength(calls);
    a.gates.open("fork");
    expect((await work.outcome()).ending).toBe("completed");
    expect(a.calls("forkThread")).toHaveLength(1);
  });

  test("S3-36 C10 a clean context that was asked for is a new conversation, once", async () => {
    const { h, a } = await pair(store);
    await talk(h, "a", "one");
    await h.runtime.threads.select(h.tree.id, {
      provider: "a",
      model: null,
      effort: null,
      cleanContext: true,
    });
    expect((await send(h, "two")).ending).toBe("completed");
    expect(a.calls("ensureThread")).toHaveLength(2);
    expect(turn(a).preambles[0]!.text).toContain("A answers one");
    expect((await send(h, "three")).ending).toBe("completed");
    expect(a.calls("ensureThread")).toHaveLength(2);
    expect((await h.runtime.threads.get(h.tree.id)).selection).toBeNull();
  });

  test("S2-52 C4 a switch is previewed: what is known, what would be told and why; nothing is made", async () => {
    const { h, b } = await pair(store);
    await talk(h, "a", "one", "two");
    const calls = b.calls().length;
    const selection = { provider: "b", model: null, effort: null, cleanContext: false };
    const first = await h.runtime.threads.preview(h.tree.id, selection);
    expect(first).toMatchObject({ strategy: "full", into: "new", knows: [], code: null });
    expect(first.tells).toHaveLength(1);
    expect(first.tells[0]).toMatchObject({ runs: [[1, 2]], omitted: 0 });
    expect(first.tells[0]!.tokens).toBeGreaterThan(0);
    expect(b.calls()).toHaveLength(calls);
    expect(await handoffs(h)).toEqual([]);
    await talk(h, "b", "three");
    const back = await h.runtime.threads.preview(h.tree.id, { ...selection, provider: "a" });
    expect(back).toMatchObject({ strategy: "delta", into: "existing", knows: [[1, 2]] });
    expect(back.why).toContain("3");
    const same = await h.runtime.threads.preview(h.tree.id, selection);
    expect(same).toMatchObject({ strategy: "none", into: "existing", tells: [] });
  });

  test("C3.11 a handoff is written anew for the model that its provider would run on, whatever else was chosen since", async () => {
    const rest = { maxOutputTokens: null, efforts: [], defaultEffort: null, collaborates: true };
    const big = { contextWindow: 1_000_000, ...rest };
    const b = itemFork(says("B"), {
      models: { tiny: { contextWindow: 24_000, ...rest }, big },
      defaultModel: "tiny",
    });
    const a = turnFork(says(`A ${"x".repeat(60_000)}`), { models: { big } });
    const { h } = await pair(store, b, {}, a);
    await talk(h, "a", "one");
    b.fault("startTurn", refuse(new RejectedError("PROVIDER_REFUSED", "no", {})));
    await send(h, "two", "b");
    const [built] = await handoffs(h);
    await h.runtime.threads.select(h.tree.id, { provider: "a", model: "big" });
    const anew = await h.runtime.threads.regenerateHandoff(built!.id);
    // A third of what the provider's own model takes.
    expect(anew.budget.limit).toBe(8_000);
    await h.runtime.threads.select(h.tree.id, { provider: "b", model: "big" });
    const wider = await h.runtime.threads.regenerateHandoff(anew.id);
    expect(wider.budget.limit).toBeGreaterThan(anew.budget.limit);
  });

  test("S3-21 C3.11 C1.10 a ready handoff is edited and written anew; the old one keeps its text", async () => {
    const { h, b } = await pair(store);
    await talk(h, "a", "one");
    b.fault("startTurn", refuse(new RejectedError("PROVIDER_REFUSED", "no", {})));
    await send(h, "two", "b");
    const [built] = await handoffs(h);
    const anew = await h.runtime.threads.regenerateHandoff(built!.id);
    expect(anew.summaryText).toContain("A answers one");
    const edited = await h.runtime.threads.editHandoff(
      anew.id,
      "All you need to know: blue. password=hunter2",
    );
    expect(edited).toMatchObject({ strategy: "manual_context", status: "ready" });
    const [first, second] = await handoffs(h);
    expect(first).toMatchObject({
      status: "superseded",
      supersededBy: anew.id,
      summaryText: built!.summaryText,
    });
    expect(second).toMatchObject({ status: "superseded", supersededBy: edited.id });
    const back = await h.runtime.threads.regenerateHandoff(edited.id);
    expect(back.strategy).toBe("full_thread_summary");
    expect(back.summaryText).toContain("A answers one");
    await h.runtime.threads.editHandoff(back.id, "All you need to know: blue. password=hunter2");
    await talk(h, "b", "three");
    expect(turn(b).preambles[0]!.text).toContain("All you need to know: blue.");
    expect(turn(b).preambles[0]!.text).not.toContain("hunter2");
    const delivered = (await handoffs(h)).find(({ deliveredAt }) => deliveredAt !== null)!;
    await expect(h.runtime.threads.editHandoff(delivered.id, "x")).rejects.toMatchObject({
      code: "TRANSFER_STATE_INVALID",
    });
  });
});
