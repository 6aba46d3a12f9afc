/** A handoff in the user's own words beside other texts of the same start, within one budget (lineage C3.11, C6.7). */
import { describe, expect, onTestFinished, test } from "vitest";
import type { ThreadId } from "../../src/protocol/ids.ts";
import type { HandoffRecord } from "../../src/protocol/transfer.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { fail, repeat, say } from "../../src/providers/scripted/script.ts";
import { harness, type Harness, STORES } from "../support/harness.ts";

const WINDOW = 32_000;
/** What is kept for a run is 16,000 tokens. */
const ROOM = 16_000;
const MODEL = {
  contextWindow: WINDOW,
  maxOutputTokens: null,
  efforts: [],
  defaultEffort: null,
  collaborates: true,
};

describe.each(STORES)("a handoff in the user's own words on %s", (store) => {
  const says = (who: string) =>
    repeat(({ inputs }: { readonly inputs: readonly string[] }) =>
      String(inputs.at(-1)).includes("REFUSE")
        ? fail({ code: "PROVIDER_REFUSED" })
        : say(`${who}: ${inputs.at(-1)}`),
    );
  /** A switch to `b` that was refused, and a fork with so many runs of 3,000 characters, to be brought back. */
  async function prepared(runs: number) {
    const b = scripted({ "/root": [says("B")] }, { models: { b: MODEL } });
    const h = await harness({ store, scripts: { "/root": [says("A")] }, others: { b } });
    onTestFinished(() => h[Symbol.asyncDispose]());
    const run = async (message: string, thread: ThreadId = h.tree.id, to: object = {}) => {
      const { id } = await h.runtime.threads.continue(thread, message, to);
      return (await h.runtime.openTree({ id: thread })).work(id).outcome();
    };
    await run("q1;");
    const fork = (await h.runtime.threads.fork(h.tree.id)).thread.id;
    for (let at = 1; at <= runs; at += 1) await run(`f${at}; ${"y".repeat(3_000)}`, fork);
    const onB = { provider: "b", model: "b" };
    await run("q2 REFUSE", h.tree.id, onB);
    return { h, b, fork, next: (message: string) => run(message, h.tree.id, onB), last: await newest(h) };
  }
  const all = async (h: Harness) => (await h.runtime.threads.handoffs(h.tree.id, { limit: 50 })).rows;
  const newest = async (h: Harness) => (await all(h)).at(-1)!;
  const delivered = async (h: Harness) => (await all(h)).filter(({ deliveredAt }) => deliveredAt !== null);
  const size = (texts: readonly HandoffRecord[]) => texts.reduce((sum, { bytes }) => sum + bytes, 0);

  test("C3.11 C6.7 is sent whole, and what a fork has brought back takes what is left", async () => {
    const { h, b, fork, next, last } = await prepared(5);
    const words = "m".repeat(9_000);
    await h.runtime.threads.editHandoff(last.id, words);
    await h.runtime.threads.mergeBack(fork);
    expect(await next("q3")).toMatchObject({ ending: "completed", error: null });
    const told = await delivered(h);
    expect(told.map(({ strategy }) => strategy)).toEqual(["manual_context", "delta_since_target_last_seen"]);
    expect(told[0]!.summaryText).toBe(words);
    expect(size(told)).toBeLessThanOrEqual(ROOM);
    expect(told[1]!.payload.omittedItemIds.length).toBeGreaterThan(0);
    expect(JSON.stringify(b.requests("/root").at(-1)!.messages)).toContain(words);
  });

  test("C3.11 C6.9 one that leaves no room blocks nothing: the others go beyond it", async () => {
    const { h, fork, next, last } = await prepared(1);
    await h.runtime.threads.editHandoff(last.id, "m".repeat(ROOM - 100));
    await h.runtime.threads.mergeBack(fork);
    expect(await next("q3")).toMatchObject({ ending: "completed", error: null });
    expect((await delivered(h)).map(({ payload }) => payload.items > 0)).toEqual([true, true]);
  });

  test("C3.11 C6.9 is sent where the message leaves no room for a text that would be built", async () => {
    const { h, next, last } = await prepared(0);
    await h.runtime.threads.editHandoff(last.id, "in my own words");
    expect(await next("q".repeat(ROOM))).toMatchObject({ ending: "completed", error: null });
    expect(await delivered(h)).toMatchObject([{ summaryText: "in my own words" }]);
  });

  test("C3.11 C18.11 is refused where it is longer than its model has room for, with both sizes", async () => {
    const { h, last } = await prepared(0);
    const edit = (bytes: number) => h.runtime.threads.editHandoff(last.id, "m".repeat(bytes));
    const refused = { code: "INVALID_ARGUMENT", details: { bytes: ROOM + 1, limit: ROOM } };
    await expect(edit(ROOM + 1)).rejects.toMatchObject(refused);
    expect(await newest(h)).toEqual(last);
    expect(await edit(ROOM)).toMatchObject({ budget: { limit: ROOM, used: ROOM, unit: "bytes" } });
  });
});
