/** The history mirror: what is kept of what happened, how much of it is here, and that nothing depends on it (lineage C13). */
import { describe, expect, test } from "vitest";
import { ownTool } from "../../src/providers/scripted/native/words.ts";
import { refuse } from "../../src/providers/scripted/native/faults.ts";
import { itemFork, turnFork } from "../../src/providers/scripted/native/provider.ts";
import { call, repeat, say, think, together } from "../../src/providers/scripted/script.ts";
import type { NativeAdapter } from "../../src/providers/port.ts";
import { TransientError } from "../../src/protocol/errors.ts";
import type { NativeHistoryPage } from "../../src/protocol/native-events.ts";
import type { HistoryEntry } from "../../src/protocol/thread.ts";
import { sha256 } from "../../src/platform/digest.ts";
import { MARKER } from "../../src/platform/redaction-steps.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { z } from "zod";
import { harness, type Harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { warningsTo } from "../support/logger.ts";

const PAGE = { limit: 500 };
const SECRET = `ghp_${"aB3dE5gH7j".repeat(4)}`;
const OUTPUT = `${"x".repeat(10_240)} the end`;

const big = defineTool({
  name: "big",
  input: z.strictObject({ password: z.string() }),
  run: async () => `${SECRET} ${OUTPUT}`,
});

/** A native provider whose history a test may rewrite before it is read. */
function rewritten(adapter: NativeAdapter, rewrite: (page: NativeHistoryPage) => unknown): NativeAdapter {
  return {
    ...adapter,
    async openSession(input) {
      const session = await adapter.openSession(input);
      const read = session.readThread!.bind(session);
      session.readThread = async (thread, page) => rewrite(await read(thread, page)) as NativeHistoryPage;
      return session;
    },
  };
}

const bodies = (rows: readonly HistoryEntry[]) => rows.map(({ body }) => body);
const boundaries = (rows: readonly HistoryEntry[]) => bodies(rows).filter((body) => body.kind === "boundary");

describe.each(STORES)("history on %s", (store) => {
  const open = (more: HarnessOptions = {}): Promise<Harness> => harness({ store, ...more });
  const native = (adapter: NativeAdapter, more: HarnessOptions = {}): Promise<Harness> =>
    open({ ...more, others: { native: adapter, ...more.others }, tree: { provider: "native" } });
  const mirrored = async (h: Harness) => {
    await h.clock.settle();
    return h.store.read((view) => view.history(h.tree.id, PAGE).rows);
  };

  test("S1-39 S1-40 C13.1 C13.2 C13.10 of a loop of ours all is here, in order, with a boundary a run", async () => {
    await using h = await open({
      scripts: {
        "/root": [
          together(think("hm"), say("let me see"), call("list_agents")),
          say("none"),
          say("again none"),
        ],
      },
    });
    await h.ask("who is there?");
    await h.ask("and now?");
    expect(await h.store.read((view) => view.history(h.tree.id, PAGE).rows)).toEqual([]);
    const { rows, level } = await h.runtime.threads.history(h.tree.id, PAGE);
    expect(level).toBe("complete");
    expect(rows.map(({ sequence }) => sequence)).toEqual(rows.map((_, at) => at + 1));
    expect(bodies(rows)).toEqual([
      { kind: "user", text: "who is there?" },
      { kind: "assistant", text: "let me see" },
      { kind: "tool", name: "list_agents", summary: "{}", result: expect.anything() as unknown },
      { kind: "assistant", text: "none" },
      { kind: "boundary", level: "complete", entries: 4, skipped: 0 },
      { kind: "user", text: "and now?" },
      { kind: "assistant", text: "again none" },
      { kind: "boundary", level: "complete", entries: 2, skipped: 0 },
    ]);
    const thread = await h.runtime.threads.get(h.tree.id);
    expect(thread.messages).toBe(rows.length);
    const { rows: runs } = await h.runtime.threads.executions(h.tree.id, PAGE);
    expect(runs.map(({ history }) => history)).toMatchObject([
      { level: "complete", entries: 4 },
      { level: "complete", entries: 2 },
    ]);
    for (const { id, executionId } of rows) expect(id.startsWith(`${executionId}:`)).toBe(true);
  });

  test("S1-45 S1-46 C13.7 a sync reads every settled run again and adds nothing twice", async () => {
    await using h = await open({ scripts: { "/root": [repeat(say("yes"))] } });
    for (const text of ["one", "two", "three"]) await h.ask(text);
    await h.runtime.threads.sync(h.tree.id);
    const { rows } = await h.runtime.threads.history(h.tree.id, PAGE);
    expect(boundaries(rows)).toHaveLength(3);
    const before = await h.runtime.threads.get(h.tree.id);
    await h.runtime.threads.sync(h.tree.id);
    expect(await h.runtime.threads.get(h.tree.id)).toEqual(before);
    expect((await h.runtime.threads.history(h.tree.id, PAGE)).rows).toEqual(rows);
  });

  test("C13.1 C1.1 a thread of a loop of ours is archived with its history", async () => {
    await using h = await open({ scripts: { "/root": [say("one"), say("two")] } });
    await h.ask("first");
    await h.ask("second");
    await h.runtime.threads.close(h.tree.id);
    await h.runtime.threads.archive(h.tree.id);
    const { rows, level } = await h.runtime.threads.history(h.tree.id, PAGE);
    expect(level).toBe("complete");
    expect(boundaries(rows)).toHaveLength(2);
  });

  test("S1-39 S1-40 C13.1 a provider's own record is mirrored when a run of the root has settled", async () => {
    const adapter = turnFork({
      "/root": [together(ownTool("shell", { command: "ls" }, "a b"), say("two files")), say("more")],
    });
    await using h = await native(adapter);
    await h.ask("what is here?");
    const first = await mirrored(h);
    expect(boundaries(first)).toEqual([
      { kind: "boundary", level: "complete", entries: first.length - 1, skipped: 0 },
    ]);
    expect(bodies(first)).toContainEqual({
      kind: "user",
      text: expect.stringContaining("what is here?") as string,
    });
    expect(bodies(first)).toContainEqual({
      kind: "assistant",
      text: expect.stringContaining("two files") as string,
    });
    await h.ask("go on");
    const rows = await mirrored(h);
    expect(rows.slice(0, first.length)).toEqual(first);
    expect(boundaries(rows)).toHaveLength(2);
    expect(JSON.stringify(rows.slice(first.length))).not.toContain("two files");
    // No transcript is read at the settle of a loop of ours.
    expect(adapter.calls("readThread").length).toBeGreaterThan(0);
  });

  test("S1-41 C13.3 what cannot be read is left out and counted", async () => {
    const adapter = rewritten(turnFork({ "/root": [say("one"), say("two")] }), (page) => ({
      ...page,
      turns: [
        "no turn",
        ...page.turns.map((turn) => ({ ...turn, items: [...turn.items, { role: "assistant" }, "broken"] })),
      ] as typeof page.turns,
    }));
    await using h = await native(adapter);
    await h.ask("go");
    const rows = await mirrored(h);
    expect(boundaries(rows)).toMatchObject([{ level: "partial", skipped: 3 }]);
    expect(bodies(rows)).toContainEqual({ kind: "assistant", text: "one" });
    expect((await h.runtime.threads.executions(h.tree.id, PAGE)).rows[0]?.history).toMatchObject({
      level: "partial",
      skipped: 3,
    });
  });

  test("S1-46 C13.7 a sync that finds more adds that alone: an entry is known by its native id", async () => {
    let whole = false;
    const adapter = rewritten(turnFork({ "/root": [say("one")] }), (page) => ({
      ...page,
      turns: page.turns.map((turn) => ({ ...turn, items: whole ? turn.items : turn.items.slice(0, 1) })),
    }));
    await using h = await native(adapter);
    await h.ask("go");
    const before = await mirrored(h);
    whole = true;
    await h.runtime.threads.sync(h.tree.id);
    const rows = await mirrored(h);
    expect(rows.slice(0, before.length)).toEqual(before);
    expect(bodies(rows.slice(before.length))).toContainEqual({ kind: "assistant", text: "one" });
    const told = bodies(rows).map((body) => JSON.stringify(body));
    expect(new Set(told).size).toBe(told.length);
    for (const { id, executionId, nativeId, body } of rows)
      expect(id).toBe(`${executionId}:${body.kind === "boundary" ? "boundary" : nativeId}`);
  });

  test("S1-41 C13.3 a record that was rotated away is partial", async () => {
    const adapter = rewritten(turnFork({ "/root": [say("one")] }), () => ({ turns: [], next: null }));
    await using h = await native(adapter);
    await h.ask("go");
    expect(boundaries(await mirrored(h))).toMatchObject([{ level: "partial", entries: 0 }]);
  });

  test("C13.3 a record whose pages lead back to one another is read once, and holds nobody", async () => {
    let pages = 0;
    const adapter = rewritten(turnFork({ "/root": [say("one")] }), () => {
      pages += 1;
      if (pages > 20) throw new Error("it is followed for ever");
      return { turns: [], next: pages % 2 === 0 ? "here" : "there" };
    });
    await using h = await native(adapter);
    await h.ask("go");
    expect(boundaries(await mirrored(h))).toMatchObject([{ level: "partial", entries: 0 }]);
    expect(pages).toBe(3);
  });

  test("SEC-3 C13.4 what a provider fails with is told to the operator without secrets, and is in no message", async () => {
    const warnings: [object, string][] = [];
    const adapter = rewritten(turnFork({ "/root": [say("one")] }), () => {
      throw new Error(`no access for ${SECRET}`);
    });
    const logger = warningsTo((fields, message) => void warnings.push([fields, message]));
    await using h = await native(adapter, { runtime: { logger } });
    await h.ask("go");
    await mirrored(h);
    const [fields, message] = warnings[0]!;
    expect(message).toBe("the history of a run is not here");
    expect(fields).toMatchObject({ err: { message: `no access for ${MARKER}` } });
  });

  test("S1-42 S1-66 C13.4 C13.7 a record that cannot be read at all leaves the outcome, and fails nothing", async () => {
    const adapter = turnFork({ "/root": [say("one"), say("two")] });
    adapter.fault("readThread", refuse(new TransientError("PROVIDER_UNREACHABLE", "not now", {})), 2);
    await using h = await native(adapter);
    expect((await h.ask("go")).ending).toBe("completed");
    expect(boundaries(await mirrored(h))).toMatchObject([{ level: "final-only", entries: 0 }]);
    const { rows } = await h.runtime.threads.executions(h.tree.id, PAGE);
    expect(rows[0]).toMatchObject({ settled: { outcome: "completed" }, history: { level: "final-only" } });
    await expect(h.runtime.threads.sync(h.tree.id)).resolves.toBeDefined();
    // The next sync finds it; the boundary says what was there when the run had settled.
    await h.runtime.threads.sync(h.tree.id);
    const { rows: found, level } = await h.runtime.threads.history(h.tree.id, PAGE);
    expect(level).toBe("complete");
    expect(bodies(found)).toContainEqual({ kind: "assistant", text: "one" });
    expect(boundaries(found)).toHaveLength(1);
    // And a later one that finds less takes nothing away.
    adapter.fault("readThread", refuse(new TransientError("PROVIDER_UNREACHABLE", "gone", {})));
    await h.runtime.threads.sync(h.tree.id);
    expect(await h.runtime.threads.history(h.tree.id, PAGE)).toEqual({ rows: found, next: null, level });
  });

  test("S1-43 S1-44 C13.5 C13.6 a provider without a bridge is unsupported, and the thread as bad as its worst run", async () => {
    const adapter = itemFork({ "/root": [repeat(say("native"))] });
    await using h = await native(adapter, { scripts: { "/root": [repeat(say("ours"))] } });
    await h.runtime.threads.continue(h.tree.id, "one", { provider: "scripted" });
    await h.tree.idle();
    expect((await h.runtime.threads.history(h.tree.id, PAGE)).level).toBe("complete");
    await h.runtime.threads.continue(h.tree.id, "two", { provider: "native" });
    await h.tree.idle();
    const { rows, level } = await h.runtime.threads.history(h.tree.id, PAGE);
    expect(level).toBe("unsupported");
    expect(boundaries(rows).map((body) => body.kind === "boundary" && body.level)).toEqual([
      "complete",
      "unsupported",
    ]);
    await h.runtime.threads.continue(h.tree.id, "three", { provider: "scripted" });
    await h.tree.idle();
    expect((await h.runtime.threads.show(h.tree.id)).history.level).toBe("unsupported");
  });

  test("S1-47 C13.8 SEC-3 redacted, then cut, then stored, with a digest of the whole", async () => {
    await using h = await open({
      runtime: { tools: [big] },
      scripts: {
        "/root": [call("big", { password: "correct-horse-battery" }), say(`${"y".repeat(20_000)} ${SECRET}`)],
      },
    });
    await h.ask(`my key is ${SECRET}`);
    const { rows } = await h.runtime.threads.history(h.tree.id, PAGE);
    const told = JSON.stringify(rows);
    expect(told.includes(SECRET)).toBe(false);
    expect(told.includes("correct-horse-battery")).toBe(false);
    const tool = bodies(rows).find((body) => body.kind === "tool")!;
    const item = (await h.tree.root.transcript()).find(({ kind }) => kind === "tool_result")!;
    expect(item.kind === "tool_result" && JSON.stringify(item.output)).toContain(SECRET);
    const { result } = tool as Extract<typeof tool, { kind: "tool" }>;
    expect(result!.tail).toHaveLength(2048);
    expect(OUTPUT.endsWith(result!.tail.slice(-100))).toBe(true);
    expect(result!.bytes).toBeGreaterThan(10_240);
    expect(result!.digest).toBe(sha256(`${MARKER} ${OUTPUT}`));
    const answer = bodies(rows).find((body) => body.kind === "assistant")!;
    expect(Buffer.byteLength((answer as { readonly text: string }).text)).toBe(16_384);
  });

  test("S1-48 C13.11 history is no context: what the next run opens on is the same with it and without", async () => {
    const snapshot = async (mirror: boolean) => {
      await using h = await open({ seed: 7, scripts: { "/root": [repeat(say("chat, chat"))] } });
      await h.ask("one");
      if (mirror) await h.runtime.threads.sync(h.tree.id);
      await h.ask("two");
      return h.runtime.threads.context(h.tree.id);
    };
    const [without, withIt] = [await snapshot(false), await snapshot(true)];
    expect({ ...withIt, digest: null, outcomes: null, threadId: null }).toEqual({
      ...without,
      digest: null,
      outcomes: null,
      threadId: null,
    });
    expect(JSON.stringify(withIt)).not.toContain("chat");
  });
});

describe("history in a file", () => {
  test("S1-50 C11.11 an entry that was edited is refused when it is read", async () => {
    await using h = await harness({ store: "sqlite", scripts: { "/root": [repeat(say("yes"))] } });
    await h.ask("one");
    await h.runtime.threads.sync(h.tree.id);
    h.edit("UPDATE history SET body = replace(body, '\"yes\"', '\"no\"')");
    await expect(h.runtime.threads.history(h.tree.id, PAGE)).rejects.toMatchObject({
      code: "THREAD_CONTEXT_TAMPERED",
    });
    expect((await h.ask("two")).ending).toBe("completed");
  });
});
