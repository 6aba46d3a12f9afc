/** Errors of threads that no other test meets on its way: each is typed, says what to do, and leaves the thread as it was (C19). */
import { describe, expect, onTestFinished, test } from "vitest";
import { refuse } from "../../src/providers/scripted/native/faults.ts";
import {
  noFork,
  turnFork,
  type ScriptedNativeProvider,
} from "../../src/providers/scripted/native/provider.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { RejectedError, TransientError } from "../../src/protocol/errors.ts";
import { harness, type Harness, type HarnessOptions, STORES } from "../support/harness.ts";

const MODEL = {
  contextWindow: null,
  maxOutputTokens: null,
  efforts: [],
  defaultEffort: null,
  collaborates: true,
};
const ANSWERS = { "*": [repeat(say("an answer"))] };

describe.each(STORES)("an error of threads on %s", (store) => {
  const open = async (more: HarnessOptions = {}): Promise<Harness> => {
    const h = await harness({ store, scripts: ANSWERS, ...more });
    onTestFinished(() => h[Symbol.asyncDispose]());
    return h;
  };
  const openOn = (native: ScriptedNativeProvider, more: HarnessOptions = {}): Promise<Harness> =>
    open({ others: { native }, tree: { provider: "native" }, ...more });
  const send = async (h: Harness, message: string, to: { provider?: string; model?: string } = {}) =>
    (await h.tree.root.send(message, to)).outcome();
  const rows = (h: Harness, id: string) =>
    h.store.read((view) => {
      const all = { limit: 100 };
      const agent = view.agent(id as never)!;
      return structuredClone([agent, view.runsOf(agent.threadId, all), view.history(agent.threadId, all)]);
    });

  test("S1-16 C17.5 a run of another thread is no run of this one, and nothing of either changes", async () => {
    const h = await open();
    const { threads } = h.runtime;
    await h.ask("one");
    const other = await threads.create({ provider: "scripted" });
    await threads.continue(other.id, "two");
    await (await h.runtime.openTree({ id: other.id })).idle();
    const run = await h.store.read((view) => view.runAt(h.tree.id, 1)!.id);
    const before = [await rows(h, h.tree.id), await rows(h, other.id)];
    await expect(threads.sync(other.id, { run })).rejects.toMatchObject({
      code: "THREAD_EXECUTION_BINDING_MISMATCH",
      details: { threadId: other.id, runId: run, boundTo: h.tree.id },
    });
    await expect(threads.sync(h.tree.id, { run: "run_nothing" })).rejects.toMatchObject({
      code: "SOURCE_POINT_NOT_FOUND",
    });
    expect([await rows(h, h.tree.id), await rows(h, other.id)]).toEqual(before);
    await threads.sync(h.tree.id, { run });
    expect((await threads.history(h.tree.id)).level).toBe("complete");
  });

  test.runIf(store === "sqlite").each([
    ["names another thread", `json_set(body, '$.binding.id', 'thread_other')`],
    ["names another digest", `json_set(body, '$.binding.contextDigest', 'other')`],
    ["names another revision", `json_set(body, '$.binding.contextRevision', 7)`],
  ])(
    "S1-16 C17.5 a stored policy that %s is found, and the thread is not mended to fit",
    async (_name, body) => {
      const h = await open();
      await h.ask("one");
      const run = await h.store.read((view) => view.runAt(h.tree.id, 1)!.id);
      await h.runtime.close();
      h.edit(`UPDATE runs SET body = ${body} WHERE id = ?`, run);
      await h.crash();
      const before = await rows(h, h.tree.id);
      await expect(h.runtime.threads.sync(h.tree.id)).rejects.toMatchObject({
        code: "THREAD_EXECUTION_BINDING_MISMATCH",
      });
      expect(await rows(h, h.tree.id)).toEqual(before);
    },
  );

  test("C19 TRANSFER_SOURCE_UNRESOLVABLE a handoff that is not there is not written anew", async () => {
    const h = await open();
    const { threads } = h.runtime;
    const none = { code: "TRANSFER_SOURCE_UNRESOLVABLE" };
    await expect(threads.handoff("hnd_nothing")).rejects.toMatchObject(none);
    await expect(threads.editHandoff("hnd_nothing", "text")).rejects.toMatchObject(none);
    await expect(threads.regenerateHandoff("hnd_nothing")).rejects.toMatchObject(none);
  });

  test("C5.15 FORK_REPLAY_DISABLED a strict replay is refused where replay is switched off, and makes nothing", async () => {
    const h = await open({ runtime: { lineage: { replay: false } } });
    await h.ask("one");
    const asked = h.runtime.threads.fork(h.tree.id, { policy: { strategy: "replay" } });
    await expect(asked).rejects.toMatchObject({ code: "FORK_REPLAY_DISABLED", retryable: false });
    expect(await h.store.read((view) => view.trees({ limit: 10 }).rows.length)).toBe(1);
  });

  test("C6.9 HANDOFF_BUDGET_TOO_SMALL not one item fits: nothing is told, and the message is kept", async () => {
    const native = noFork(ANSWERS);
    const h = await open({ others: { native }, runtime: { lineage: { handoffBytes: 1 } } });
    await h.ask("one");
    const outcome = await send(h, "two", { provider: "native" });
    expect(outcome.error).toMatchObject({ code: "HANDOFF_BUDGET_TOO_SMALL" });
    expect(native.calls("startTurn")).toEqual([]);
    expect((await h.runtime.threads.draft(h.tree.id))!.text).toBe("two");
    await h.ask("three");
  });

  test("C4.3 PROVIDER_CAPABILITY_MISSING a change of model that the provider rejects is not tried, and the message is kept", async () => {
    const native = turnFork(ANSWERS, {
      models: { small: MODEL, large: MODEL },
      defaultModel: "small",
      selectionChange: (from, to) =>
        from.model === to.model ? "apply_next_turn" : { reject: "one model each" },
    });
    const h = await openOn(native);
    expect((await send(h, "one")).ending).toBe("completed");
    const outcome = await send(h, "two", { provider: "native", model: "large" });
    expect(outcome.error).toMatchObject({ code: "PROVIDER_CAPABILITY_MISSING" });
    expect(native.calls("startTurn")).toHaveLength(1);
    expect((await h.runtime.threads.draft(h.tree.id))!.text).toBe("two");
    expect((await send(h, "three", { provider: "native", model: "small" })).ending).toBe("completed");
  });

  test("C9.5 ROLLBACK_TURN_UNAVAILABLE the provider does not know the turn any more: nothing is taken back", async () => {
    const native = turnFork(ANSWERS);
    const h = await openOn(native);
    for (const message of ["one", "two"]) expect((await send(h, message)).ending).toBe("completed");
    await h.clock.settle();
    native.fault(
      "rollbackThread",
      refuse(new RejectedError("ROLLBACK_TURN_UNAVAILABLE", "The provider has no such turn.", {})),
    );
    const before = await rows(h, h.tree.id);
    const to = { kind: "ordinal", ordinal: 1 } as const;
    await expect(h.runtime.threads.rollBack(h.tree.id, { to, native: "demanded" })).rejects.toMatchObject({
      code: "ROLLBACK_TURN_UNAVAILABLE",
    });
    expect(await rows(h, h.tree.id)).toEqual(before);
  });

  test("C4.15 PROVIDER_WRITER_BUSY another writer is waited out; one that stays ends the run, and the thread goes on later", async () => {
    const native = turnFork(ANSWERS);
    const h = await openOn(native);
    expect((await send(h, "one")).ending).toBe("completed");
    const busy = refuse(new TransientError("PROVIDER_WRITER_BUSY", "Another program writes to it.", {}));
    native.fault("startTurn", busy, 20);
    const work = await h.tree.root.send("two");
    let ended = false;
    const outcome = work.outcome().finally(() => (ended = true));
    for (let step = 0; step < 5_000 && !ended; step += 1) await h.clock.advance(1_000);
    expect((await outcome).error).toMatchObject({ code: "PROVIDER_WRITER_BUSY" });
    expect(native.calls("startTurn").length).toBeGreaterThan(2);
  });
});
