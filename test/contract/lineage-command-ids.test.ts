/** Commands on threads that are given again under their id: one effect, one answer, and no other command by it (C1.17, C3.12). */
import { describe, expect, onTestFinished, test } from "vitest";
import type { ThreadId, TreeId } from "../../src/protocol/ids.ts";
import { fail, gate, repeat, say, spawn, together } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { commandTree } from "../../src/runtime/command-tree.ts";
import type { Threads } from "../../src/runtime/threads.ts";
import { Work } from "../../src/runtime/work.ts";
import { type Harness, harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

interface Case {
  readonly options?: HarnessOptions;
  /** What there is before it; answers what the command is about, the harness's thread unless it does. */
  readonly before?: (h: Harness) => Promise<string>;
  readonly command: (threads: Threads, about: string, commandId: string) => Promise<unknown>;
  /** The same command with other arguments. */
  readonly other: (threads: Threads, about: string, commandId: string) => Promise<unknown>;
}

const echo = repeat(say(({ inputs }) => `took ${inputs.at(-1)}`));
const back = { kind: "ordinal", ordinal: 1 } as const;
const talked = async (h: Harness): Promise<string> => {
  for (const text of ["one", "two"]) await h.ask(text);
  return h.tree.id;
};
const handedOff: Pick<Case, "options" | "before"> = {
  options: {
    others: { b: scripted({ "*": [repeat(fail({ code: "PROVIDER_REFUSED", accepted: false }))] }) },
  },
  async before(h) {
    await h.ask("one");
    await (await h.tree.root.send("two", { provider: "b" })).outcome();
    return (await h.runtime.threads.handoffs(h.tree.id)).rows.at(-1)!.id;
  },
};

const CASES: Readonly<Record<string, Case>> = {
  create: {
    command: (threads, _, commandId) => threads.create({ title: "a", commandId }),
    other: (threads, _, commandId) => threads.create({ title: "b", commandId }),
  },
  "create with an id": {
    command: (threads, _, commandId) => threads.create({ id: `thread_${"a".repeat(21)}`, commandId }),
    other: (threads, _, commandId) => threads.create({ id: `thread_${"b".repeat(21)}`, commandId }),
  },
  fork: {
    before: talked,
    command: (threads, id, commandId) => threads.fork(id, { commandId }),
    other: (threads, id, commandId) => threads.fork(id, { title: "b", commandId }),
  },
  continue: {
    command: (threads, id, commandId) => threads.continue(id, "one", { commandId }),
    other: (threads, id, commandId) => threads.continue(id, "two", { commandId }),
  },
  select: {
    command: (threads, id, commandId) => threads.select(id, { provider: "scripted" }, { commandId }),
    other: (threads, id, commandId) => threads.select(id, null, { commandId }),
  },
  rename: {
    command: (threads, id, commandId) => threads.rename(id, "a", { commandId }),
    other: (threads, id, commandId) => threads.rename(id, "b", { commandId }),
  },
  pin: {
    command: (threads, id, commandId) => threads.pin(id, "decisions", "a", { commandId }),
    other: (threads, id, commandId) => threads.pin(id, "decisions", "b", { commandId }),
  },
  close: {
    command: (threads, id, commandId) => threads.close(id, { commandId }),
    other: (threads, id, commandId) => threads.archive(id, { commandId }),
  },
  archive: {
    async before(h) {
      await h.runtime.threads.close(h.tree.id);
      return h.tree.id;
    },
    command: (threads, id, commandId) => threads.archive(id, { commandId }),
    other: (threads, id, commandId) => threads.rename(id, "b", { commandId }),
  },
  mergeBack: {
    async before(h) {
      await h.ask("one");
      const { thread } = await h.runtime.threads.fork(h.tree.id);
      await (await h.runtime.threads.continue(thread.id, "two")).outcome();
      return thread.id;
    },
    command: (threads, id, commandId) => threads.mergeBack(id, { commandId }),
    other: async (threads, id, commandId) => {
      const { rows } = await threads.executions(id);
      return threads.mergeBack(id, { run: rows[0]!.executionId, commandId });
    },
  },
  rollBack: {
    before: talked,
    command: (threads, id, commandId) => threads.rollBack(id, { to: back, commandId }),
    other: (threads, id, commandId) => threads.rollBack(id, { to: { ...back, ordinal: 0 }, commandId }),
  },
  "rollBack to the newest run": {
    before: talked,
    command: (threads, id, commandId) => threads.rollBack(id, { to: { ...back, ordinal: 2 }, commandId }),
    other: (threads, id, commandId) => threads.rollBack(id, { to: back, commandId }),
  },
  undoRollback: {
    async before(h) {
      const id = await talked(h);
      await h.runtime.threads.rollBack(id, { to: back });
      return id;
    },
    command: (threads, id, commandId) => threads.undoRollback(id, { commandId }),
    other: (threads, id, commandId) => threads.discardDraft(id, { commandId }),
  },
  discardDraft: {
    async before(h) {
      const id = await talked(h);
      const seq = (await h.tree.root.transcript()).find(({ kind }) => kind === "user")!.index + 1;
      await h.runtime.threads.rollBack(id, { to: { kind: "before_message", seq } });
      return id;
    },
    command: (threads, id, commandId) => threads.discardDraft(id, { commandId }),
    other: (threads, id, commandId) => threads.undoRollback(id, { commandId }),
  },
  inject: {
    options: {
      scripts: {
        "/root": [say("one"), spawn("late", "dig", { fork_turns: "none" }), say("asked"), echo],
        "/root/late": [together(gate("dig"), say("found it"))],
      },
    },
    async before(h) {
      const look = new Look(h);
      await h.ask("q1;");
      await h.tree.root.send("q2;");
      await look.until("the root waits", async () => (await look.status("/root")) === "awaiting_children");
      await h.runtime.threads.rollBack(h.tree.id, { to: back });
      h.provider.gates.open("dig");
      await look.until("the child is done", async () => (await look.work("/root/late")).state === "ended");
      return (await look.transfers("subagent_result"))[0]!.id;
    },
    command: (threads, id, commandId) => threads.inject(id, { commandId }),
    other: (threads, _, commandId) => threads.inject(`xfr_${"a".repeat(21)}`, { commandId }),
  },
  sync: {
    before: talked,
    command: (threads, id, commandId) => threads.sync(id, { commandId }),
    other: async (threads, id, commandId) =>
      threads.sync(id, { run: (await threads.executions(id)).rows[0]!.executionId, commandId }),
  },
  editHandoff: {
    ...handedOff,
    command: (threads, id, commandId) => threads.editHandoff(id, "a", { commandId }),
    other: (threads, id, commandId) => threads.editHandoff(id, "b", { commandId }),
  },
  regenerateHandoff: {
    ...handedOff,
    command: (threads, id, commandId) => threads.regenerateHandoff(id, { commandId }),
    other: (threads, id, commandId) => threads.editHandoff(id, "b", { commandId }),
  },
};

describe.each(STORES)("ids of commands on %s", (store) => {
  /** What can be compared: of a work, which one it is. */
  const answerOf = async (given: Promise<unknown>): Promise<unknown> => {
    const answer = await given;
    if (!(answer instanceof Work)) return answer;
    await answer.outcome();
    return answer.id;
  };

  /** Every tree, and how much has ever happened in it. */
  const all = (h: Harness) =>
    h.store.read((view) =>
      view.trees({ limit: 100 }).rows.map(({ treeId }) => [treeId, view.lastEvent(treeId)]),
    );

  test.for(Object.keys(CASES))(
    "X-16 C1.17 C3.12 %s: given twice it is one effect and one answer, after a crash too; anything else is refused",
    async (name) => {
      const { options, before, command, other } = CASES[name]!;
      const h = await harness({ store, scripts: { "*": [echo] }, ...options });
      onTestFinished(() => h[Symbol.asyncDispose]());
      const about = (await before?.(h)) ?? h.tree.id;
      const first = await answerOf(command(h.runtime.threads, about, "once"));
      await h.clock.settle();
      const after = await all(h);
      expect(await answerOf(command(h.runtime.threads, about, "once"))).toEqual(first);
      await expect(other(h.runtime.threads, about, "once")).rejects.toMatchObject({
        code: "COMMAND_ID_CONFLICT",
      });
      await h.clock.settle();
      expect(await all(h)).toEqual(after);
      await h.crash();
      await h.clock.settle();
      const again = await all(h);
      expect(await answerOf(command(h.runtime.threads, about, "once"))).toEqual(first);
      await expect(other(h.runtime.threads, about, "once")).rejects.toMatchObject({
        code: "COMMAND_ID_CONFLICT",
      });
      await h.clock.settle();
      expect(await all(h)).toEqual(again);
    },
  );

  test("C3.12 the same command is the same however its arguments are put, by the library or by another process", async () => {
    const h = await harness({ store, scripts: { "*": [echo] } });
    onTestFinished(() => h[Symbol.asyncDispose]());
    const { threads } = h.runtime;
    const id = await talked(h);
    await threads.select(id, { provider: "scripted" }, { commandId: "chosen" });
    await threads.select(
      id,
      { provider: "scripted", model: null, cleanContext: false },
      { commandId: "chosen" },
    );
    const rolled = await threads.rollBack(id, { to: back, commandId: "rolled" });
    expect(await threads.rollBack(id, { to: back, native: "allowed", commandId: "rolled" })).toEqual(rolled);
    await expect(
      threads.rollBack(id, { to: back, native: "demanded", commandId: "rolled" }),
    ).rejects.toMatchObject({ code: "COMMAND_ID_CONFLICT" });
    await h.tree.close();
    const sent = { thread: id, provider: "scripted", model: null, command_id: "chosen" };
    expect(await commandTree(h.store, id as TreeId, "select", sent, { clock: h.clock })).toMatchObject({
      appliedBy: "here",
      answer: { revision: expect.any(Number) },
    });
    await expect(
      commandTree(h.store, id as TreeId, "select", { ...sent, model: "other" }, { clock: h.clock }),
    ).rejects.toMatchObject({ code: "COMMAND_ID_CONFLICT" });
  });

  test("C3.12 one id is one command in the whole store, whichever thread it is about", async () => {
    const h = await harness({ store, scripts: { "*": [echo] } });
    onTestFinished(() => h[Symbol.asyncDispose]());
    const { threads } = h.runtime;
    const { id } = await threads.create();
    await threads.rename(id, "a", { commandId: "once" });
    await expect(threads.rename(h.tree.id, "a", { commandId: "once" })).rejects.toMatchObject({
      code: "COMMAND_ID_CONFLICT",
    });
    expect((await threads.get(h.tree.id)).title).toBeNull();
  });

  test("C3.12 what was refused has had no effect, and its id may be used again", async () => {
    const h = await harness({ store, scripts: { "*": [echo] } });
    onTestFinished(() => h[Symbol.asyncDispose]());
    const { threads } = h.runtime;
    await expect(threads.archive(h.tree.id, { commandId: "once" })).rejects.toMatchObject({
      code: "THREAD_INVARIANT_VIOLATION",
    });
    await threads.close(h.tree.id);
    expect((await threads.archive(h.tree.id, { commandId: "once" })).status).toBe("archived");
  });

  test("C3.12 C3.1 of two that make a thread at once with one id, both answer with the same one", async () => {
    const h = await harness({ store, scripts: { "*": [echo] } });
    onTestFinished(() => h[Symbol.asyncDispose]());
    const other = await h.newRuntime();
    onTestFinished(() => other.close());
    const made = await Promise.all(
      [h.runtime, other, h.runtime].map(({ threads }) => threads.create({ title: "a", commandId: "once" })),
    );
    expect(new Set(made.map(({ id }): ThreadId => id)).size).toBe(1);
    expect((await h.runtime.threads.list()).rows).toHaveLength(2);
  });
});
