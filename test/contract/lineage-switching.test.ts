/** Switching a thread between providers whose loop is ours: coverage, deltas, and what each of them is told (S3). */
import { describe, expect, test } from "vitest";
import { repeat, say, spawn, wait } from "../../src/providers/scripted/script.ts";
import { scripted, type ScriptedProvider } from "../../src/providers/scripted/provider.ts";
import { harness, STORES, type Harness } from "../support/harness.ts";

/** A thread on `scripted` (A) with another provider `b` beside it; each run says its name and number. */
async function twoProviders(store: (typeof STORES)[number]): Promise<{ h: Harness; b: ScriptedProvider }> {
  const b = scripted({ "/root": [repeat(say("from B"))] });
  const h = await harness({ store, scripts: { "/root": [repeat(say("from A"))] }, others: { b } });
  return { h, b };
}

async function run(h: Harness, message: string, provider?: string): Promise<void> {
  const work = await h.tree.root.send(message, provider === undefined ? {} : { provider });
  const { ending } = await work.outcome();
  expect(ending).toBe("completed");
}

/** What the provider was sent with its newest request, as one text. */
const sent = (provider: ScriptedProvider): string =>
  JSON.stringify(provider.requests("/root").at(-1)!.messages);

describe.each(STORES)("a switch on %s", (store) => {
  test("S3-9 S3-11 S3-16 S0-68 C4.6 C4.8: one to five on A, six to eight on B, nine on A with a delta", async () => {
    const { h, b } = await twoProviders(store);
    await using _ = h;
    for (let n = 1; n <= 5; n += 1) await run(h, `question ${n}`);
    await run(h, "question 6", "b");
    expect(sent(b)).toContain("question 5");
    expect(sent(b)).toContain("from A");
    for (let n = 7; n <= 8; n += 1) await run(h, `question ${n}`);
    await run(h, "question 9", "scripted");
    const told = sent(h.provider);
    expect(told).toContain("question 7");
    expect(told).toContain("from B");
    const { coverage } = await h.runtime.threads.get(h.tree.id);
    const [c1, l1] = coverage;
    expect(c1).toMatchObject({
      provider: "scripted",
      native: [
        [1, 5],
        [9, 9],
      ],
      told: [{ runs: [[6, 8]] }],
      gap: [],
    });
    expect(l1).toMatchObject({ provider: "b", native: [[6, 8]], told: [{ runs: [[1, 5]] }], gap: [[9, 9]] });
    const { rows } = await h.runtime.threads.transfers(h.tree.id, { limit: 10 });
    expect(
      rows.map(({ type, status, basePoint, sourcePoint }) => ({
        type,
        status,
        base: basePoint?.ordinal ?? null,
        source: sourcePoint.ordinal,
      })),
    ).toEqual([
      { type: "provider_handoff", status: "consumed", base: null, source: 5 },
      { type: "provider_handoff", status: "consumed", base: 5, source: 8 },
    ]);
  });

  test("S3-12 S3-7 the delta is told once, and A's own conversation holds no run of B", async () => {
    const { h } = await twoProviders(store);
    await using _ = h;
    await run(h, "first");
    await run(h, "second", "b");
    await run(h, "third", "scripted");
    await run(h, "fourth");
    const messages = h.provider.requests("/root").at(-1)!.messages;
    const assistant = messages.filter(({ role }) => role === "assistant");
    expect(JSON.stringify(assistant)).not.toContain("from B");
    expect(JSON.stringify(messages).match(/from B/g)).toHaveLength(1);
  });

  test("S3-23 C6.10 the stored message is what was typed, the handoff an item of its own", async () => {
    const { h } = await twoProviders(store);
    await using _ = h;
    await run(h, "first");
    await run(h, "second", "b");
    const items = await h.tree.root.transcript();
    expect(items.filter((item) => item.kind === "user").map((item) => item.text)).toEqual([
      "first",
      "second",
    ]);
    const handoffs = items.filter((item) => item.kind === "context" && item.topic === "handoff");
    expect(handoffs).toHaveLength(1);
  });

  test("S3-10 S3-14 C4.5 goes on without a handoff where the provider knows everything", async () => {
    const { h, b } = await twoProviders(store);
    await using _ = h;
    await run(h, "first", "b");
    await run(h, "second");
    expect(b.requests("/root")).toHaveLength(2);
    const { rows } = await h.runtime.threads.transfers(h.tree.id, { limit: 10 });
    expect(rows).toEqual([]);
  });

  test("X-5 C4.16 stays with A when B cannot be opened", async () => {
    const { h } = await twoProviders(store);
    await using _ = h;
    await run(h, "first");
    await expect(h.tree.root.send("second", { provider: "nobody" })).rejects.toMatchObject({
      code: "PROVIDER_UNAVAILABLE",
    });
    await run(h, "third");
    expect((await h.runtime.threads.get(h.tree.id)).provider).toBe("scripted");
  });
});

describe.each(STORES)("records on %s", (store) => {
  test("S3-66 C4.8 a fork of a checkpoint whose provider has no conversation of its own is told by its checkpoint", async () => {
    const { h, b } = await twoProviders(store);
    await using _ = h;
    await run(h, "first");
    const [first] = (await h.tree.root.runs()).rows;
    const { thread } = await h.runtime.threads.fork(h.tree.id, {
      at: { kind: "checkpoint", checkpointId: first!.checkpoint!.id },
    });
    const tree = await h.runtime.openTree({ id: thread.id });
    await (await tree.root.send("second", { provider: "b" })).outcome();
    const [handoff] = (await h.runtime.threads.handoffs(thread.id, { limit: 5 })).rows;
    expect(handoff!.payload.checkpointRef).toBe(first!.checkpoint!.id);
    expect(sent(b)).toContain("from A");
    expect((await h.runtime.threads.get(thread.id)).coverage).toMatchObject([
      { provider: "b", native: [[1, 1]] },
    ]);
  });

  test("S3-68 C1 the records have what they promise", async () => {
    const { h } = await twoProviders(store);
    await using _ = h;
    await run(h, "first");
    await run(h, "second", "b");
    const last = (await h.tree.root.runs()).rows.at(-1)!;
    expect(last).toMatchObject({
      provider: "b",
      providerThreadId: expect.stringMatching(/^pth_/) as string,
      contextHandoffIds: [expect.stringMatching(/^hnd_/)],
    });
    const [, l1] = await h.store.read((view) => view.providerThreadsOf(h.tree.id));
    expect(l1).toMatchObject({ nativeRunOrdinals: [[2, 2]], handoffIds: last.contextHandoffIds });
  });

  test("S0-43 C4.5 a provider that covers everything is told nothing, and nothing is written for it", async () => {
    const { h } = await twoProviders(store);
    await using _ = h;
    await run(h, "first");
    await run(h, "second");
    expect((await h.tree.root.runs()).rows.at(-1)!.contextHandoffIds).toEqual([]);
    expect(
      await h.runtime.threads.preview(h.tree.id, {
        provider: "scripted",
        model: null,
        effort: null,
        cleanContext: false,
      }),
    ).toMatchObject({ strategy: "none", into: "existing", tells: [], knows: [[1, 2]] });
  });

  test("X-7 C8.6 C8.10 a work that was ended before a crash and looked at after it has one result transfer", async () => {
    const h = await harness({
      store,
      scripts: {
        "/root": [
          spawn("worker", "count", { fork_turns: "none" }),
          wait({ targets: ["worker"] }),
          repeat(say("done")),
        ],
        "/root/worker": [repeat(say("seven"))],
      },
    });
    await using _ = h;
    await h.ask("go");
    await h.crash();
    await h.crash();
    const transfers = await h.store.read((view) => view.transfers(h.tree.id, { limit: 50 }).rows);
    expect(transfers.filter(({ type }) => type === "subagent_result")).toHaveLength(1);
  });
});
