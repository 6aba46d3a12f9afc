/** In which order an owner carries out what others leave in its inbox, and how much of it at once (C3, REC-2). */
import { describe, expect, onTestFinished, test } from "vitest";
import type { CommandRecord, CommandVerb } from "../../src/protocol/command.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import { LONG_AT_ONCE } from "../../src/control/inbox-order.ts";
import { gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { harness, type Harness, STORES } from "../support/harness.ts";
import { hang } from "../../src/providers/scripted/native/faults.ts";
import { turnFork } from "../../src/providers/scripted/native/provider.ts";
import { sampleCommand } from "../../src/testing/store-records.ts";
import { heldCapture } from "../support/held-capture.ts";
import { Look } from "../support/look.ts";
import { temporaryFolder } from "../support/repository.ts";

const echo = repeat(say(({ inputs }) => `took ${inputs.at(-1)}`));

describe.each(STORES)("the order of an inbox on %s", (store) => {
  /** A tree whose agents have a run with a checkpoint each; their restores take until they are let go on. */
  async function open(workers: readonly string[]) {
    const { capture, held } = heldCapture();
    const h = await harness({
      store,
      scripts: { "/root/worker": [say("done"), together(gate("work"), say("done"))], "*": [echo] },
      runtime: { workspaceCapture: capture },
      tree: { workspace: temporaryFolder() },
    });
    onTestFinished(() => h[Symbol.asyncDispose]());
    await h.ask("one");
    const ids = [h.tree.id];
    for (const name of workers) ids.push((await h.tree.root.spawn(name, "count")).agent.threadId);
    await h.tree.idle();
    for (const id of ids) await h.tree.control.tree.jobs.of(id);
    const runOf = async (id: string) => (await h.runtime.threads.checkpoints(id)).rows[0]!.runId;
    let posted = 0;
    const post = async (verb: CommandVerb, args: JsonObject): Promise<CommandRecord["id"]> => {
      const id = `cmd_${`${(posted += 1)}`.padStart(21, "0")}` as const;
      const row = { id, treeId: h.tree.id, verb, arguments: args, createdAt: h.clock.now() };
      await h.store.command({ ...row, state: "pending", answer: null, doneAt: null });
      return id;
    };
    const restore = async (id: string) => post("restore_checkpoint", { thread: id, run: await runOf(id) });
    const is = (id: CommandRecord["id"], state: CommandRecord["state"]) =>
      h.store.read((view) => view.command(id)!.state === state);
    const look = new Look(h);
    const done = (id: CommandRecord["id"]) => look.until(`${id} is done`, () => is(id, "done"));
    return { h, id: h.tree.id, ids, held, post, restore, is, done, look };
  }

  /** As many looks as it takes to carry out whatever may be. */
  async function quiet(h: Harness): Promise<void> {
    for (let step = 0; step < 40; step += 1) await h.clock.advance(25);
  }

  test("C3.3 REC-2 a message waits for the end of what was left before it, and of another thread none does", async () => {
    const { h, id, ids, held, post, restore, is, done, look } = await open(["worker"]);
    const first = await restore(id);
    await look.until("the restore is under way", () => held.length === 1);
    const later = await post("continue", { thread: id, message: "two" });
    const pinned = await post("pin", { thread: id, section: "decisions", text: "tabs" });
    const elsewhere = await post("pin", { thread: ids[1]!, section: "decisions", text: "spaces" });
    await done(elsewhere);
    await quiet(h);
    for (const command of [first, later, pinned]) expect(await is(command, "pending")).toBe(true);
    held[0]!();
    for (const command of [first, later, pinned]) await done(command);
    await h.tree.idle();
    const [one, two] = await h.store.read((view) => view.runsOf(id, { limit: 5 }).rows);
    expect([one!.status, two!.status]).toEqual(["completed", "completed"]);
  });

  test("C9.2 REC-2 a rollback begins after the restore before it, and a message after the rollback", async () => {
    const { h, id, held, post, restore, is, done, look } = await open([]);
    await h.ask("two");
    const first = await restore(id);
    await look.until("the restore is under way", () => held.length === 1);
    const back = await post("rollback", { thread: id, to: { kind: "ordinal", ordinal: 1 } });
    const after = await post("continue", { thread: id, message: "three" });
    await quiet(h);
    for (const command of [back, after]) expect(await is(command, "pending")).toBe(true);
    held[0]!();
    for (const command of [first, back, after]) await done(command);
    await h.tree.idle();
    const runs = await h.store.read((view) => view.runsOf(id, { limit: 5 }).rows);
    expect(runs.map(({ rolledBack }) => rolledBack !== null)).toEqual([false, true, false]);
  });

  test("INT-1 REC-2 what stops somebody, answers somebody or names a thread waits for nothing", async () => {
    const { h, id, held, post, restore, is, done, look } = await open(["worker"]);
    const first = await restore(id);
    await look.until("the restore is under way", () => held.length === 1);
    const politely = await post("close", { target: id, politely: true });
    for (const command of [
      await post("rename", { thread: id, title: "b" }),
      await post("interrupt", { target: "/root" }),
      await post("raise_budget", { target: "/root", budget: "tokens", limit: 10_000_000 }),
    ])
      await done(command);
    for (const command of [first, politely]) expect(await is(command, "pending")).toBe(true);
    held[0]!();
    await done(politely);
    expect((await h.runtime.threads.get(id)).status).toBe("closed");
  });

  test("REC-2 no more of them are under way in a tree than fit, and one of each thread", async () => {
    const a = turnFork({ "*": [echo] });
    const h = await harness({ store, others: { a }, tree: { provider: "a" } });
    onTestFinished(() => h[Symbol.asyncDispose]());
    await h.ask("one");
    const ids: string[] = [h.tree.id];
    for (const name of ["a", "b", "c", "d", "e"])
      ids.push((await h.tree.root.spawn(name, "count")).agent.threadId);
    await h.tree.idle();
    await quiet(h);
    expect(ids.length).toBeGreaterThan(LONG_AT_ONCE);
    const read = (n: number) => a.gates.waiting(`read ${n}`);
    for (let n = 0; n <= ids.length; n += 1) a.fault("readThread", hang(`read ${n}`));
    const underWay = () => ids.map((_, n) => read(n)).reduce((sum, count) => sum + count, read(ids.length));
    const posted = [h.tree.id, ...ids].map((thread, n) =>
      sampleCommand(h.tree.id, n, { verb: "sync", arguments: { thread } }),
    );
    for (const command of posted) await h.store.command(command);
    const look = new Look(h);
    await look.until("as many as fit are under way", () => underWay() === LONG_AT_ONCE);
    await quiet(h);
    expect(underWay()).toBe(LONG_AT_ONCE);
    for (let n = 0; n <= ids.length; n += 1) a.gates.open(`read ${n}`);
    await look.until("all are done", () =>
      h.store.read((view) => posted.every(({ id }) => view.command(id)!.state === "done")),
    );
  });
});
