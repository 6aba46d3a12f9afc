/** Commands of several commits: what becomes of them when the tree, the store or another one of their id comes in between (C3.12, REC-2). */
import { describe, expect, onTestFinished, test } from "vitest";
import type { CommandId } from "../../src/protocol/ids.ts";
import type { CommandVerb } from "../../src/protocol/command.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import { fail, repeat, say } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { commandTree } from "../../src/runtime/command-tree.ts";
import type { FaultPlan } from "../../src/testing/faulty-store.ts";
import { harness, type Harness, STORES } from "../support/harness.ts";
import { heldCapture } from "../support/held-capture.ts";
import { temporaryFolder } from "../support/repository.ts";

const echo = repeat(say(({ inputs }) => `took ${inputs.at(-1)}`));
const ready = { status: "ready" } as const;
const POSTED: CommandId = `cmd_${"a".repeat(21)}`;
const ROW = { id: POSTED, state: "pending", answer: null, doneAt: null } as const;

describe.each(STORES)("commands of several commits on %s", (store) => {
  /** A thread of two runs with checkpoints; a restore stays under way until it is let go on, or called off. */
  async function open() {
    const { capture, held, removed, refuse, answers, restores } = heldCapture();
    const refuses = scripted({ "*": [repeat(fail({ code: "PROVIDER_REFUSED", accepted: false }))] });
    const h = await harness({
      store,
      scripts: { "*": [echo] },
      others: { refuses },
      runtime: { workspaceCapture: capture },
      tree: { workspace: temporaryFolder() },
    });
    onTestFinished(() => h[Symbol.asyncDispose]());
    for (const text of ["one", "two"]) await h.ask(text);
    await h.tree.control.tree.jobs.of(h.tree.id);
    const run = (await h.runtime.threads.checkpoints(h.tree.id)).rows[0]!.runId;
    const { threads } = h.runtime;
    return { h, threads, id: h.tree.id, run, held, removed, refuse, answers, restores };
  }

  const underWay = (h: Harness, held: readonly unknown[], count = 1) =>
    until(h, "a restore is under way", () => held.length === count);

  async function until(h: Harness, what: string, is: () => boolean | Promise<boolean>): Promise<void> {
    for (let step = 0; step < 200; step += 1) {
      if (await is()) return;
      await h.clock.advance(25);
    }
    throw new Error(`not so: ${what}`);
  }

  const post = (h: Harness, verb: CommandVerb, args: JsonObject) =>
    h.store.command({
      ...ROW,
      treeId: h.tree.id,
      verb,
      arguments: args,
      createdAt: h.clock.now(),
    });
  const rowOf = (h: Harness) => h.store.read((view) => view.command(POSTED)!);
  const answered = (h: Harness) =>
    until(h, "the command is answered", async () => (await rowOf(h)).state !== "pending");

  /** Of the commits from now on, the one with this number, counted from 0. */
  function atCommit(h: Harness, number: number, fault: ReturnType<NonNullable<FaultPlan["onWrite"]>>): void {
    let commits = 0;
    h.onWrite = (_, kind) => (kind === "commit" && commits++ === number ? fault : null);
  }

  test.for([
    ["lost", "FENCED"],
    ["given back", "RUNTIME_CLOSED"],
  ] as const)("C1.18 REC-6 a restore that waits writes nothing of a tree that is %s", async ([how, code]) => {
    const { h, threads, id, run, held, restores } = await open();
    const both = Promise.allSettled([1, 2].map(() => threads.restoreCheckpoint(id, { run })));
    await underWay(h, held);
    await h.clock.settle();
    if (how === "lost") h.tree.control.tree.lose("its lease was taken over");
    const closed = how === "lost" ? undefined : h.tree.close();
    if (how === "given back") held[0]!();
    for (const one of await both) expect(one).toMatchObject({ status: "rejected", reason: { code } });
    expect(restores()).toBe(1);
    await closed;
  });

  test("C1.18 REC-2 a removal and its answer are one commit", async () => {
    const { h, id, run, removed } = await open();
    await post(h, "remove_checkpoint", { thread: id, run });
    atCommit(h, 1, { kind: "crash_before" });
    await until(h, "it is removed", () => removed.length === 1);
    await h.clock.settle();
    h.onWrite = () => null;
    await h.crash();
    await answered(h);
    expect(await rowOf(h)).toMatchObject({ state: "done", answer: ready });
    expect((await h.runtime.threads.checkpoints(id)).rows[0]).toMatchObject({ status: "none" });
  });

  test.for([
    ["its history was collected", 0, "before"],
    ["it is archived", 2, "before"],
    ["its checkpoints are removed", 2, "after"],
    ["it is noted", 3, "before"],
    ["its answer is seen", 3, "after"],
  ] as const)("C2.1 C3.12 REC-2 an archiving goes on after a crash before %s", async ([, commit, when]) => {
    const { h, threads, id, removed } = await open();
    await threads.close(id);
    await h.clock.settle();
    atCommit(h, commit, { kind: `crash_${when}` });
    await post(h, "archive", { thread: id, command_id: "once" });
    await until(h, "it has crashed", () => h.faulty.crashed);
    h.onWrite = () => null;
    await h.crash();
    await answered(h);
    expect(await rowOf(h)).toMatchObject({ state: "done" });
    expect(await h.runtime.threads.get(id)).toMatchObject({ status: "archived", messages: 6 });
    const refs = new Set(removed);
    expect(refs.size).toBe(2);
    // The same command, wherever it is given, has no second effect.
    const before = [h.faulty.writes, removed.length];
    await h.runtime.threads.archive(id, { commandId: "once" });
    expect([h.faulty.writes, removed.length]).toEqual(before);
    // Without the id it is another one, and looks again for what is left.
    await h.runtime.threads.archive(id);
    expect(removed).toHaveLength(before[1]! + 2);
  });

  test("C2.1 REC-2 one that is open is refused, and nothing of it is collected or removed", async () => {
    const { h, threads, id, removed } = await open();
    await post(h, "archive", { thread: id });
    await answered(h);
    expect(await rowOf(h)).toMatchObject({
      state: "refused",
      answer: { code: "THREAD_INVARIANT_VIOLATION" },
    });
    expect([(await threads.get(id)).messages, removed]).toEqual([0, []]);
  });

  test("REC-2 what the store was in the way of is carried out by another look", async () => {
    const { h, id } = await open();
    atCommit(h, 0, { kind: "error" });
    await post(h, "sync", { thread: id });
    await answered(h);
    expect(await rowOf(h)).toMatchObject({ state: "done" });
  });

  test("REC-2 a refusal that could not be stored is given by another look", async () => {
    const { h, id } = await open();
    h.onWrite = (_, kind) => (kind === "commit" ? { kind: "error" } : null);
    await post(h, "remove_checkpoint", { thread: id, run: "run_nothing" });
    for (let step = 0; step < 40; step += 1) await h.clock.advance(25);
    expect(await rowOf(h)).toMatchObject({ state: "pending" });
    h.onWrite = () => null;
    await answered(h);
    expect(await rowOf(h)).toMatchObject({ state: "refused", answer: { code: "SOURCE_POINT_NOT_FOUND" } });
  });

  test("C3.12 of two at once with one id both have the answer that was noted first", async () => {
    const { h, threads, id, run, held, restores } = await open();
    const both = Promise.all([1, 2].map(() => threads.restoreCheckpoint(id, { run, commandId: "once" })));
    await underWay(h, held);
    held[0]!();
    const [first, second] = await both;
    expect(first).toMatchObject({ before: "before 1" });
    expect(restores()).toBe(1);
    expect(second).toEqual(first);
    await (await h.tree.root.send("three", { provider: "refuses" })).outcome();
    const handoff = (await threads.handoffs(id)).rows.at(-1)!.id;
    const made = await Promise.all(
      [1, 2].map(() => threads.regenerateHandoff(handoff, { commandId: "anew" })),
    );
    expect(made[1]).toEqual(made[0]);
  });

  test("C3.12 the id of one that has begun is its own, and one whose id was used meanwhile is refused", async () => {
    const { h, threads, id, run, held, restores } = await open();
    const conflict = { code: "COMMAND_ID_CONFLICT" };
    const restored = threads.restoreCheckpoint(id, { run, commandId: "once" });
    await underWay(h, held);
    await expect(threads.rename(id, "a", { commandId: "once" })).rejects.toMatchObject(conflict);
    const waits = threads.restoreCheckpoint(id, { run, commandId: "twice" });
    waits.catch(() => undefined);
    await h.clock.settle();
    await threads.rename(id, "b", { commandId: "twice" });
    held[0]!();
    expect(await restored).toMatchObject({ status: "ready" });
    await expect(waits).rejects.toMatchObject(conflict);
    expect(restores()).toBe(1);
    await post(h, "restore_checkpoint", { thread: id, run, command_id: "twice" });
    await answered(h);
    expect(await rowOf(h)).toMatchObject({ state: "refused", answer: conflict });
  });

  test.for(["once", undefined])(
    "C1.18 REC-2 a restore that a crash cut off is not done again, and says so; its id: %s",
    async (commandId) => {
      const { h, id, run, held, restores } = await open();
      const asked = commandId === undefined ? { run } : { run, command_id: commandId };
      atCommit(h, 1, { kind: "crash_before" });
      await post(h, "restore_checkpoint", { thread: id, ...asked });
      await underWay(h, held);
      held[0]!();
      await h.clock.settle();
      h.onWrite = () => null;
      await h.crash();
      await answered(h);
      expect(restores()).toBe(1);
      const unfinished = {
        status: "unfinished",
        reason: expect.stringContaining("files may be those of run 1"),
      };
      expect(await rowOf(h)).toMatchObject({ state: "done", answer: unfinished });
      expect((await h.runtime.threads.checkpoints(id)).rows[0]).toMatchObject({ status: "ready" });
    },
  );

  test("C1.18 C3.12 REC-1 nor is one that was asked for here, at each of its commits", async () => {
    for (const number of [0, 1]) {
      const { h, id, run, held, restores } = await open();
      atCommit(h, number, { kind: "crash_after" });
      h.runtime.threads.restoreCheckpoint(id, { run, commandId: "once" }).catch(() => undefined);
      if (number === 1) {
        await underWay(h, held);
        held[0]!();
      }
      await h.clock.settle();
      h.onWrite = () => null;
      await h.crash();
      const answer = await h.runtime.threads.restoreCheckpoint(id, { run, commandId: "once" });
      expect(answer).toMatchObject({ status: number === 0 ? "unfinished" : "ready" });
      expect(await h.runtime.threads.restoreCheckpoint(id, { run, commandId: "once" })).toEqual(answer);
      expect(restores()).toBe(number);
    }
  });

  test("C1.18 C3.12 one that its port refuses has had no effect, and its id may be used again", async () => {
    const { h, threads, id, run, held, refuse } = await open();
    refuse.add("nowhere");
    const wrong = { code: "INVALID_ARGUMENT" };
    const asked = { run, commandId: "once" };
    await expect(threads.restoreCheckpoint(id, { ...asked, paths: ["nowhere"] })).rejects.toMatchObject(
      wrong,
    );
    const restored = threads.restoreCheckpoint(id, asked);
    await underWay(h, held);
    held[0]!();
    expect(await restored).toMatchObject({ status: "ready" });
  });

  const inTheWay = { status: "refused", reason: "files are in the way", paths: ["a"] } as const;
  const busy = { status: "missing", reason: "it is locked", lasting: false } as const;

  test.for([
    ["restore_checkpoint", inTheWay, true],
    ["restore_checkpoint", busy, false],
    ["restore_checkpoint", { ...busy, lasting: true }, false],
    ["remove_checkpoint", busy, true],
  ] as const)("C1.18 C3.12 %s that is answered %o: its id is free is %s", async ([verb, answer, free]) => {
    for (const from of ["here", "inbox"] as const) {
      const { h, threads, id, run, held, answers, removed, restores } = await open();
      const ask = (overwrite: boolean): Promise<unknown> => {
        if (from === "here" && verb === "remove_checkpoint")
          return threads.removeCheckpoint(id, run, { commandId: "once" });
        if (from === "here") return threads.restoreCheckpoint(id, { run, overwrite, commandId: "once" });
        const given = { thread: id, run, ...(verb === "remove_checkpoint" ? {} : { overwrite }) };
        return commandTree(h.store, id, verb, given, {
          clock: h.clock,
          provenDead: () => false,
          commandId: "once",
        }).then((receipt) => receipt.answer);
      };
      const inTime = async (asked: Promise<unknown>): Promise<unknown> => {
        let come: unknown;
        void asked.then(
          (value) => (come = value),
          (error: unknown) => (come = error),
        );
        await until(h, "it is answered", () => {
          held[0]?.();
          return come !== undefined;
        });
        return come;
      };
      answers.push(answer);
      expect(await inTime(ask(false))).toEqual(answer);
      // The same again, and again.
      for (let again = 0; again < 2; again += 1)
        expect(await inTime(ask(false))).toMatchObject(free ? ready : answer);
      expect(restores() + removed.length).toBe(free ? 1 : 0);
      // Another command under the id of one that was done is refused.
      if (verb === "restore_checkpoint")
        expect(await inTime(ask(true))).toMatchObject({ code: "COMMAND_ID_CONFLICT" });
    }
  });

  test.for([
    ["lost", "FENCED"],
    ["given back", "RUNTIME_CLOSED"],
  ] as const)("C1.18 REC-6 a restore that is cut off because its tree is %s says so", async ([how, code]) => {
    const { h, threads, id, run, held } = await open();
    const cut = Promise.allSettled([threads.restoreCheckpoint(id, { run })]);
    await underWay(h, held);
    if (how === "lost") h.tree.control.tree.lose("its lease was taken over");
    const closed = how === "lost" ? undefined : h.tree.close();
    await h.clock.advance(60_000);
    expect(await cut).toMatchObject([{ status: "rejected", reason: { code } }]);
    await closed;
  });

  test("C3.12 of a rollback and another command at once with one id, one is done and nothing of the other", async () => {
    const { h, threads, id } = await open();
    const [rolled, renamed] = await Promise.allSettled([
      threads.rollBack(id, { to: { kind: "ordinal", ordinal: 1 }, commandId: "once" }),
      threads.rename(id, "a", { commandId: "once" }),
    ]);
    const runs = await h.store.read((view) => view.runsOf(id, { limit: 5 }).rows);
    const done = [rolled, renamed].filter(({ status }) => status === "fulfilled");
    expect(done).toHaveLength(1);
    expect(runs.some(({ rolledBack }) => rolledBack !== null)).toBe(rolled.status === "fulfilled");
    expect((await threads.get(id)).title).toBe(renamed.status === "fulfilled" ? "a" : null);
    for (const one of [rolled, renamed])
      if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "COMMAND_ID_CONFLICT" });
  });

  test("C2.1 closing a closed thread without an id writes nothing", async () => {
    const { h, threads, id } = await open();
    await threads.close(id);
    await h.clock.settle();
    const before = h.faulty.writes;
    expect((await threads.close(id)).status).toBe("closed");
    expect(h.faulty.writes).toBe(before);
  });
});
