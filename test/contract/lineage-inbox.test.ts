/** What is done to threads by a process that does not own their tree: through the owner's inbox, or here where there is none (C3, REC-2). */
import { describe, expect, onTestFinished, test } from "vitest";
import type { TreeId } from "../../src/protocol/ids.ts";
import { fail, gate, repeat, say, spawn, together } from "../../src/providers/scripted/script.ts";
import { hang } from "../../src/providers/scripted/native/faults.ts";
import { turnFork } from "../../src/providers/scripted/native/provider.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { commandTree } from "../../src/runtime/command-tree.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { harness, type Harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const echo = repeat(say(({ inputs }) => `took ${inputs.at(-1)}`));

describe.each(STORES)("threads of another process's tree on %s", (store) => {
  const open = async (more: HarnessOptions = {}): Promise<Harness> => {
    const h = await harness({ store, scripts: { "*": [echo] }, ...more });
    onTestFinished(() => h[Symbol.asyncDispose]());
    return h;
  };
  const command = async (
    h: Harness,
    verb: Parameters<typeof commandTree>[2],
    args: object,
    tree: TreeId = h.tree.id,
  ) => {
    const asked = commandTree(h.store, tree, verb, args as never, {
      clock: h.clock,
      provenDead: () => false,
    });
    let over = false;
    const watched = asked.finally(() => (over = true));
    watched.catch(() => undefined);
    for (let step = 0; !over && step < 200; step += 1) await h.clock.advance(25);
    return watched;
  };

  test.for(["owner", "here"] as const)("C9.10 REC-2 a rollback is undone, by %s", async (by) => {
    const h = await open();
    const { id } = h.tree;
    for (const text of ["one", "two"]) await h.ask(text);
    await h.runtime.threads.rollBack(id, { to: { kind: "ordinal", ordinal: 1 } });
    if (by === "here") await h.tree.close();
    expect(await command(h, "undo_rollback", { thread: id })).toMatchObject({ appliedBy: by });
    const [, second] = await h.store.read((view) => view.runsOf(id, { limit: 5 }).rows);
    expect(second).toMatchObject({ status: "completed", rolledBack: null });
    await expect(command(h, "undo_rollback", { thread: id })).rejects.toMatchObject({
      code: "ROLLBACK_TARGET_INVALID",
    });
    if (by === "here") h.tree = await h.runtime.openTree({ id });
    await h.ask("three");
    expect(JSON.stringify(h.provider.requests("/root").at(-1)!.messages)).toContain("two");
  });

  test.for(["owner", "here"] as const)(
    "C7.1 REC-2 a fork of a subagent's thread is merged back into it, by %s",
    async (by) => {
      const h = await open();
      const { agent: worker } = await h.tree.root.spawn("worker", "count");
      await h.tree.idle();
      const { thread: fork } = await h.runtime.threads.fork(worker.threadId);
      await (await h.runtime.threads.continue(fork.id, "look closer")).outcome();
      if (by === "here") await h.tree.close();
      const done = await command(h, "merge_back", { fork: fork.id, into: worker.threadId });
      expect(done).toMatchObject({ appliedBy: by });
      if (by === "here") h.tree = await h.runtime.openTree({ id: h.tree.id });
      const again = await h.tree.agent("worker");
      await (await again.send("and now?")).outcome();
      expect(JSON.stringify(h.provider.requests("/root/worker").at(-1)!.messages)).toContain(
        "took look closer",
      );
      // The root is no fork's origin here, and stays the default.
      await expect(command(h, "merge_back", { fork: fork.id })).rejects.toMatchObject({
        code: "MERGE_BACK_NOT_A_FORK",
      });
    },
  );

  test("C3.12 C7.1 a fork comes back once under an id, whether its root is named or goes without saying", async () => {
    const h = await open();
    await h.ask("one");
    const { thread: fork } = await h.runtime.threads.fork(h.tree.id);
    await (await h.runtime.threads.continue(fork.id, "look closer")).outcome();
    const asked = { fork: fork.id, command_id: "once" };
    const { answer } = await command(h, "merge_back", asked);
    expect((await command(h, "merge_back", { ...asked, into: h.tree.id })).answer).toEqual(answer);
    const again = await h.runtime.threads.mergeBack(fork.id, { commandId: "once" });
    expect(again.id).toBe(answer["transfer_id"]);
  });

  test("C3.11 REC-2 a handoff that was not delivered is edited", async () => {
    const b = scripted({ "*": [repeat(fail({ code: "PROVIDER_REFUSED", accepted: false }))] });
    const h = await open({ others: { b } });
    await h.ask("one");
    await (await h.tree.root.send("two", { provider: "b" })).outcome();
    const { rows } = await h.runtime.threads.handoffs(h.tree.id);
    const { answer } = await command(h, "edit_handoff", {
      handoff: rows.at(-1)!.id,
      text: "we use port 8080",
    });
    expect(await h.runtime.threads.handoff(answer["handoff_id"] as string)).toMatchObject({
      summaryText: "we use port 8080",
      status: "ready",
    });
    await expect(
      command(h, "edit_handoff", { handoff: rows.at(-1)!.id, text: "again" }),
    ).rejects.toMatchObject({
      code: "TRANSFER_STATE_INVALID",
    });
    await expect(command(h, "edit_handoff", { handoff: "hnd_nothing", text: "x" })).rejects.toMatchObject({
      code: "TRANSFER_SOURCE_UNRESOLVABLE",
    });
  });

  test("C8.9 C9.2 REC-2 a result that was kept back is brought in", async () => {
    const h = await open({
      scripts: {
        "/root": [say("one"), spawn("late", "dig", { fork_turns: "none" }), say("asked"), echo],
        "/root/late": [together(gate("dig"), say("found it"))],
      },
    });
    const look = new Look(h);
    await h.ask("q1;");
    await h.tree.root.send("q2;");
    await look.until("the root waits", async () => (await look.status("/root")) === "awaiting_children");
    await h.runtime.threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal: 1 } });
    h.provider.gates.open("dig");
    await look.until("the child is done", async () => (await look.work("/root/late")).state === "ended");
    const [kept] = await look.transfers("subagent_result");
    expect(kept!.staleBase).toBe(true);
    const transfer = kept!.id;
    expect(await command(h, "inject", { transfer })).toMatchObject({ answer: { transfer_id: transfer } });
    await h.ask("q3;");
    expect(JSON.stringify(h.provider.requests("/root").at(-1)!.messages)).toContain("found it");
    await expect(command(h, "inject", { transfer })).rejects.toMatchObject({
      code: "TRANSFER_STATE_INVALID",
    });
  });

  test("C3.12 REC-2 an id names the same command out of the inbox and from the owner's own program", async () => {
    const h = await open();
    const { id } = h.tree;
    const once = { thread: id, title: "a", command_id: "once" };
    const { answer } = await command(h, "rename", once);
    expect(await command(h, "rename", once)).toMatchObject({ answer });
    await h.runtime.threads.rename(id, "a", { commandId: "once" });
    expect((await h.runtime.threads.get(id)).revision).toBe(answer["revision"]);
    const conflict = { code: "COMMAND_ID_CONFLICT" };
    await expect(command(h, "rename", { ...once, title: "b" })).rejects.toMatchObject(conflict);
    await expect(h.runtime.threads.rename(id, "b", { commandId: "once" })).rejects.toMatchObject(conflict);
    await expect(command(h, "rename", { ...once, command_id: " " })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
  });

  test("C1.17 C3.12 SPN-6 an id is the same for a command on a tree as for a method, and free after a refusal", async () => {
    const h = await open();
    const { id } = h.tree;
    await h.tree.close();
    const { threads } = h.runtime;
    const ask = (verb: "rename" | "inject", args: object, commandId: string) =>
      commandTree(h.store, id, verb, args as never, { clock: h.clock, commandId });
    const { answer } = await ask("rename", { thread: id, title: "a" }, "once");
    expect((await threads.rename(id, "a", { commandId: "once" })).revision).toBe(answer["revision"]);
    await expect(threads.rename(id, "b", { commandId: "once" })).rejects.toMatchObject({
      code: "COMMAND_ID_CONFLICT",
    });
    for (const _ of [1, 2])
      await expect(ask("inject", { transfer: "xfr_nothing" }, "later")).rejects.toMatchObject({
        code: "SOURCE_POINT_NOT_FOUND",
      });
    await ask("rename", { thread: id, title: "c" }, "later");
    expect((await threads.rename(id, "c", { commandId: "later" })).title).toBe("c");
    h.tree = await h.runtime.openTree({ id });
  });

  test("C3.2 C3.12 REC-2 a program is told how another process is sent a message, and the work of one that was", async () => {
    const h = await open();
    const { id } = h.tree;
    const elsewhere = await h.newRuntime({ provenDead: () => false });
    const say = (commandId?: string) =>
      elsewhere.threads.continue(id, "one", commandId === undefined ? {} : { commandId });
    await expect(say("once")).rejects.toMatchObject({
      code: "NOT_OWNER",
      message: expect.stringContaining(`commandTree(store, "${id}", verb, arguments)`),
      details: expect.not.objectContaining({ workId: expect.anything() }),
    });
    const { answer } = await command(h, "continue", { thread: id, message: "one", command_id: "once" });
    await h.tree.idle();
    const details = { workId: answer["work_id"], treeId: id };
    await expect(say("once")).rejects.toMatchObject({ code: "NOT_OWNER", details });
    expect((await elsewhere.threads.get(id)).executions).toBe(1);
    await elsewhere.close();
  });

  test("C9.1 C3.12 REC-2 a rollback is done by the owner, once, and not without one", async () => {
    const h = await open();
    const { id } = h.tree;
    for (const text of ["one", "two"]) await h.ask(text);
    const asked = { thread: id, to: { kind: "ordinal", ordinal: 1 }, command_id: "once" };
    const done = await command(h, "rollback", asked);
    expect(done).toMatchObject({ appliedBy: "owner", answer: { target: 1, runs: [[2, 2]] } });
    expect((await h.runtime.threads.get(id)).rolledBack).toEqual([[2, 2]]);
    await h.ask("three");
    expect(await command(h, "rollback", asked)).toEqual(done);
    expect((await h.runtime.threads.get(id)).rolledBack).toEqual([[2, 2]]);
    await expect(
      command(h, "rollback", { ...asked, command_id: "other", native: "x" }),
    ).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    await h.tree.close();
    await expect(command(h, "rollback", { thread: id, to: asked.to })).rejects.toMatchObject({
      code: "NOT_OWNER",
    });
    h.tree = await h.runtime.openTree({ id });
  });

  test("C9.2 C9.10 REC-2 a rollback that waits for its provider holds nothing up; its owner's death leaves it to the next", async () => {
    const a = turnFork({ "*": [echo] });
    const h = await open({ others: { a }, tree: { provider: "a" } });
    const { id } = h.tree;
    for (const text of ["one", "two"]) await h.ask(text);
    a.fault("rollbackThread", hang("asked"));
    let answer: unknown = null;
    const asked = command(h, "rollback", { thread: id, to: { kind: "ordinal", ordinal: 1 } });
    asked.then(
      (receipt) => (answer = receipt),
      (error: unknown) => (answer = error),
    );
    await waitUntil("the provider is asked", () => a.gates.waiting("asked") > 0, {
      step: () => h.clock.advance(25),
    });
    expect(await command(h, "rename", { thread: id, title: "b" })).toMatchObject({ appliedBy: "owner" });
    expect(answer).toBeNull();
    h.cut();
    a.kill();
    await h.crash();
    await waitUntil("it is answered", () => answer !== null, { step: () => h.clock.advance(25) });
    expect(answer).toMatchObject({ appliedBy: "owner", answer: { target: 1 } });
    expect((await h.runtime.threads.get(id)).rolledBack).toEqual([[2, 2]]);
    expect(await h.ask("three")).toMatchObject({ ending: "completed" });
  });

  test("C3.11 C13.7 REC-2 a handoff is built again and a history read again by the owner", async () => {
    const b = scripted({ "*": [repeat(fail({ code: "PROVIDER_REFUSED", accepted: false }))] });
    const h = await open({ others: { b } });
    const { id } = h.tree;
    await h.ask("one");
    await (await h.tree.root.send("two", { provider: "b" })).outcome();
    const { rows } = await h.runtime.threads.handoffs(id);
    const handoff = rows.at(-1)!.id;
    const { answer } = await command(h, "regenerate_handoff", { handoff });
    expect(await h.runtime.threads.handoff(handoff)).toMatchObject({ supersededBy: answer["handoff_id"] });
    await expect(command(h, "regenerate_handoff", { handoff })).rejects.toMatchObject({
      code: "TRANSFER_STATE_INVALID",
    });
    const { messages } = await h.runtime.threads.get(id);
    const synced = await command(h, "sync", { thread: id });
    expect(synced.answer["messages"]).toBeGreaterThan(messages);
    expect((await h.runtime.threads.get(id)).messages).toBe(synced.answer["messages"]);
  });
});
