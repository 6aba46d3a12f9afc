/** Reading a fork's conversation with that of its ancestors (lineage C15). */
import { describe, expect, test } from "vitest";
import { ask, repeat, say } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import type { TranscriptEntry } from "../../src/threads/transcript.ts";
import type { Threads } from "../../src/runtime/threads.ts";
import { TreeReader } from "../../src/runtime/tree-reader.ts";
import { harness, type Harness, type HarnessOptions, STORES } from "../support/harness.ts";

const ALL = { limit: 1000 };

/** What was said, in short: own entries as they are, those of ancestors in brackets, dividers as a line. */
function brief(entries: readonly TranscriptEntry[]): string[] {
  return entries.flatMap((entry) => {
    if (entry.kind === "divider") return "---";
    const { item } = entry;
    // Notes of the runtime to the model are none of what this is about.
    if (entry.kind === "item" && item.kind === "context") return [];
    const text =
      entry.kind === "handoff"
        ? "handoff"
        : item.kind === "user"
          ? item.text
          : item.kind === "assistant"
            ? item.parts.map((part) => ("text" in part ? part.text : part.type)).join("")
            : item.kind;
    return entry.readOnly ? `(${text})` : text;
  });
}

async function pages(threads: Threads, id: string, limit: number): Promise<TranscriptEntry[]> {
  let all: readonly TranscriptEntry[] = [];
  let before: string | null = null;
  for (;;) {
    const page = await threads.transcript(id, { limit, ...(before === null ? {} : { before }) });
    expect(page.entries.length).toBeLessThanOrEqual(limit);
    all = [...page.entries, ...all];
    before = page.before;
    if (before === null) return [...all];
  }
}

describe.each(STORES)("a transcript on %s", (store) => {
  const open = (more: HarnessOptions = {}): Promise<Harness> =>
    harness({
      store,
      scripts: { "/root": [repeat(say((context) => `re: ${context.inputs.at(-1)}`))] },
      ...more,
    });
  const talk = async (h: Harness, id: string, ...messages: string[]): Promise<void> => {
    for (const message of messages) {
      await h.runtime.threads.continue(id, message);
      await (await h.runtime.openTree({ id })).idle();
    }
  };

  test("S2-5 S2-33 C15.1 C15.2 C15.4 ancestors first, up to the cut, a divider, then its own", async () => {
    await using h = await open();
    const { threads } = h.runtime;
    const { id } = h.tree;
    await talk(h, id, "one", "two");
    const { thread: child } = await threads.fork(id);
    await talk(h, id, "three");
    expect(brief((await threads.transcript(child.id, ALL)).entries)).toEqual([
      "(one)",
      "(re: one)",
      "(two)",
      "(re: two)",
      "---",
    ]);
    await talk(h, child.id, "other");
    const { entries, before, complete } = await threads.transcript(child.id, ALL);
    expect([before, complete]).toEqual([null, true]);
    expect(brief(entries)).toEqual([
      "(one)",
      "(re: one)",
      "(two)",
      "(re: two)",
      "---",
      "handoff",
      "other",
      "re: other",
    ]);
    expect(entries.find(({ kind }) => kind === "divider")).toMatchObject({
      id: `${id}:${child.id}`,
      parent: id,
      child: child.id,
    });
    // The source sees nothing of its fork.
    expect(brief((await threads.transcript(id, ALL)).entries)).toEqual(
      ["one", "two", "three"].flatMap((text) => [text, `re: ${text}`]),
    );
  });

  test("S2-6 S2-34 C15.2 C15.5 pages of every size are the same whole, and reading stores nothing", async () => {
    await using h = await open();
    const { threads } = h.runtime;
    await talk(h, h.tree.id, "one", "two", "three");
    const { thread: child } = await threads.fork(h.tree.id);
    await talk(h, child.id, "four", "five");
    const { thread: last } = await threads.fork(child.id);
    await talk(h, last.id, "six");
    const rows = () =>
      h.store.read((view) =>
        [child.id, last.id].map((id) => [
          view.agent(id)?.items,
          view.history(id, ALL).rows.length,
          view.lastEvent(id),
        ]),
      );
    const before = await rows();
    const whole = (await threads.transcript(last.id, ALL)).entries;
    expect(brief(whole).filter((text) => text === "---")).toHaveLength(2);
    for (const limit of [1, 2, 3, 4, 5, 7, 50]) {
      const read = await pages(threads, last.id, limit);
      expect(read).toEqual(whole);
      expect(new Set(read.map(({ id }) => id)).size).toBe(read.length);
    }
    expect(await rows()).toEqual(before);
    // What comes meanwhile moves no page that was begun.
    const first = await threads.transcript(last.id, { limit: 2 });
    await talk(h, last.id, "seven");
    const second = await threads.transcript(last.id, { limit: 500, before: first.before! });
    expect([...second.entries, ...first.entries]).toEqual(whole);
  });

  test("S2-35 C15.3 of an ancestor's entries nothing can be used but their words and their place", async () => {
    const b = scripted({ "/root": [repeat(say("from B"))] });
    await using h = await open({
      scripts: { "/root": [ask("red or blue?"), say("done"), ask("and now?"), say("end")] },
      others: { b },
    });
    const { threads } = h.runtime;
    const { id } = h.tree;
    await threads.continue(id, "one");
    await h.clock.settle();
    const [request] = await h.tree.requests();
    const asked = (entries: readonly TranscriptEntry[]) =>
      entries.flatMap((entry) => (entry.kind === "item" ? entry.answerable : []));
    expect(asked((await threads.transcript(id, ALL)).entries)).toEqual([request!.id]);
    await h.tree.answer(request!.id, "blue");
    await h.tree.idle();
    const { thread: child } = await threads.fork(id);
    await threads.continue(id, "two");
    await h.clock.settle();
    const [pending] = await h.tree.requests();
    const reader = new TreeReader(h.store, id);
    expect(pending).toMatchObject({ path: "/root", text: "and now?" });
    expect(await reader.requests()).toEqual([pending]);
    expect([await h.tree.requests(id), await reader.requests(child.id)]).toEqual([[pending], []]);
    const { entries } = await threads.transcript(child.id, ALL);
    expect(asked(entries)).toEqual([]);
    for (const entry of entries) {
      if (entry.kind === "divider") continue;
      expect(entry.readOnly).toBe(true);
      // Copy and link work, and lead to who said it.
      expect(entry.threadId).toBe(id);
      const [found] = await h.store.read((view) => view.items(entry.threadId, entry.item.index, 1));
      expect(found).toEqual(entry.item);
    }
    const tree = await h.runtime.openTree({ id: child.id });
    await expect(tree.answer(pending!.id, "green")).rejects.toMatchObject({ code: "REQUEST_NOT_RESUMABLE" });
    expect((await h.tree.requests()).map((one) => one.id)).toEqual([pending!.id]);
  });

  test("C15.6 a message that stands in both is shown where it is older", async () => {
    await using h = await open();
    const { threads } = h.runtime;
    await talk(h, h.tree.id, "one");
    const { thread: child } = await threads.fork(h.tree.id);
    const tree = await h.runtime.openTree({ id: child.id });
    const items = await h.store.read((view) => view.items(h.tree.id, 0, 10));
    const first = items.find((item) => item.kind === "user");
    await tree.control.tree.transact((tx) => {
      const agent = tx.agent(child.id);
      const { index: _index, ...body } = first!;
      tx.store.appendItems(child.id, agent.items, [{ ...body, runId: null }]);
      tx.putAgent(agent, { items: agent.items + 1 });
    });
    expect(brief(await pages(threads, child.id, 1))).toEqual(["(one)", "(re: one)", "---"]);
  });

  test("C15.8 a switch shows what was handed over, as an item of its own", async () => {
    const b = scripted({ "/root": [repeat(say("from B"))] });
    await using h = await open({ others: { b } });
    const { threads } = h.runtime;
    await talk(h, h.tree.id, "one");
    await threads.continue(h.tree.id, "two", { provider: "b" });
    await h.tree.idle();
    const { entries } = await threads.transcript(h.tree.id, ALL);
    expect(brief(entries)).toEqual(["one", "re: one", "handoff", "two", "from B"]);
    const handoff = entries.find((entry) => entry.kind === "handoff")!;
    const [stored] = (await threads.handoffs(h.tree.id, ALL)).rows;
    expect(handoff.handoff).toMatchObject({
      id: stored!.id,
      transferId: stored!.transferId,
      status: "ready",
    });
    expect(handoff.handoff!.deliveredAt).not.toBeNull();
  });

  test("C15.7 C18.10 a line longer than a transcript goes is cut at its oldest end, and it is said", async () => {
    await using h = await open({ runtime: { lineage: { ancestorDepthMaximum: 2 } } });
    const { threads } = h.runtime;
    await talk(h, h.tree.id, "one");
    let id: string = h.tree.id;
    for (const text of ["two", "three"]) {
      id = (await threads.fork(id)).thread.id;
      await talk(h, id, text);
    }
    expect((await threads.transcript(id, ALL)).complete).toBe(true);
    await expect(threads.fork(id)).rejects.toMatchObject({ code: "LINEAGE_DEPTH_EXCEEDED" });
    // A thread of a store whose line is longer than this runtime allows.
    await using shorter = await h.newRuntime({ lineage: { ancestorDepthMaximum: 1 } });
    const page = await shorter.threads.transcript(id, ALL);
    expect(page.complete).toBe(false);
    expect(brief(page.entries).filter((text) => text === "---")).toHaveLength(1);
  });

  test("C15.7 a cycle and a place that is not in it are refused", async () => {
    await using h = await open();
    const { threads } = h.runtime;
    await talk(h, h.tree.id, "one");
    const { thread: child } = await threads.fork(h.tree.id);
    for (const before of ["x", `${h.tree.id}:99`, `${child.id}:-1`, `${child.id}:`, "thread_other:1"]) {
      await expect(threads.transcript(child.id, { limit: 5, before })).rejects.toMatchObject({
        code: "INVALID_ARGUMENT",
      });
    }
    await h.tree.control.tree.transact((tx) => {
      const agent = tx.agent(h.tree.id);
      const { forkedFrom } = tx.store.agent(child.id)!.thread!;
      const point = { ...forkedFrom!.point, threadId: child.id };
      tx.putAgent(agent, { thread: { ...agent.thread!, forkedFrom: { ...forkedFrom!, point } } });
    });
    await expect(threads.transcript(child.id, ALL)).rejects.toMatchObject({ code: "LINEAGE_CYCLE" });
  });

  test("C9.3 C9.9 what was rolled back is shown as history; to a fork that was made before it is not", async () => {
    await using h = await open();
    const { threads } = h.runtime;
    await talk(h, h.tree.id, "one", "two");
    const { thread: child } = await threads.fork(h.tree.id);
    await h.clock.advance(1000);
    await threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal: 1 } });
    const historical = async (id: string) =>
      brief(
        (await threads.transcript(id, ALL)).entries.filter(
          (entry) => entry.kind === "item" && entry.historical,
        ),
      );
    expect(await historical(h.tree.id)).toEqual(["two", "re: two"]);
    expect(await historical(child.id)).toEqual([]);
  });
});
