/** Providers that never answer what they are asked beside a turn: nothing waits for them for ever, and no late answer counts (C18, C9.10). */
import { describe, expect, onTestFinished, test } from "vitest";
import { hang } from "../../src/providers/scripted/native/faults.ts";
import { type ScriptedNativeProvider, turnFork } from "../../src/providers/scripted/native/provider.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { harness, type Harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";
import { NO_CAPTURE } from "../support/no-capture.ts";
import { temporaryFolder } from "../support/repository.ts";

const SCRIPT = { "*": [repeat(say((context) => `took ${context.inputs.at(-1)}`))] };
const LIMIT = 5_000;

describe.each(STORES)("a provider that does not answer, on %s", (store) => {
  async function open(native: ScriptedNativeProvider, asked = 3): Promise<Harness> {
    const h = await harness({
      store,
      others: { native },
      tree: { provider: "native" },
      runtime: { lineage: { providerCallMs: LIMIT } },
    });
    onTestFinished(() => h[Symbol.asyncDispose]());
    await ask(h, 1, asked);
    return h;
  }

  async function ask(h: Harness, from: number, to = from): Promise<void> {
    for (let n = from; n <= to; n += 1) expect(await h.ask(`q${n};`)).toMatchObject({ ending: "completed" });
    await h.clock.settle();
  }

  const statuses = async (h: Harness) => (await new Look(h).runs("/root")).map(({ status }) => status);
  const back = (h: Harness, native: "allowed" | "demanded") =>
    h.runtime.threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal: 1 }, native });

  test.each(["before it is done", "after it was done"])(
    "C18.17 C9.6 a rollback that is not answered gives the conversation up; the thread goes on, whatever is answered later: %s",
    async (when) => {
      const native = turnFork(SCRIPT);
      const h = await open(native);
      native.fault("rollbackThread", hang("answer", { done: when === "after it was done" }));
      const rolling = back(h, "allowed");
      await native.gates.arrived("answer");
      await h.clock.advance(LIMIT);
      expect(await rolling).toMatchObject({
        native: "given_up",
        refusal: expect.stringContaining("not known"),
      });
      await ask(h, 4);
      native.gates.open("answer");
      await h.clock.settle();
      await ask(h, 5);
      expect(native.calls("rollbackThread")).toHaveLength(1);
      expect(await statuses(h)).toEqual([
        "completed",
        "rolled_back",
        "rolled_back",
        "completed",
        "completed",
      ]);
      const [first, second] = await h.store.read((view) => view.providerThreadsOf(h.tree.id));
      expect(first).toMatchObject({ continuity: "divergent" });
      expect(second).toMatchObject({ nativeRunOrdinals: [[4, 5]], continuity: "ok" });
    },
  );

  test("C9.10 P7 where it is demanded it fails, nothing is taken back, and the conversation is not relied on", async () => {
    const native = turnFork(SCRIPT);
    const h = await open(native);
    native.fault("rollbackThread", hang("answer", { done: true }));
    const rolling = back(h, "demanded").catch((error: unknown) => error);
    await native.gates.arrived("answer");
    await h.clock.advance(LIMIT);
    expect(await rolling).toMatchObject({
      code: "PROVIDER_STALLED",
      details: { provider: "native", asked: "rollbackThread", limitMs: LIMIT },
    });
    expect(await statuses(h)).toEqual(["completed", "completed", "completed"]);
    await ask(h, 4);
    native.gates.open("answer");
    await h.clock.settle();
    await ask(h, 5);
    expect(native.conversations.all()).toHaveLength(2);
    const [first] = await h.store.read((view) => view.providerThreadsOf(h.tree.id));
    expect(first).toMatchObject({ status: "error" });
  });

  test("INT-3 C4.15 a run that waits for its conversation is over at its interrupt, and what comes later is not the next one's", async () => {
    const native = turnFork(SCRIPT);
    const h = await open(native, 1);
    await h.crash();
    native.kill();
    native.fault("resumeThread", hang("answer"));
    const work = await h.tree.root.send("q2;");
    await native.gates.arrived("answer");
    await h.tree.root.interrupt();
    expect(await work.outcome()).toMatchObject({ ending: "interrupted" });
    // No grace time is waited for.
    await ask(h, 3);
    native.gates.open("answer");
    await ask(h, 4);
    expect(await h.store.read((view) => view.providerThreadsOf(h.tree.id))).toMatchObject([
      { continuity: "ok", status: "idle" },
    ]);
    expect(native.conversations.all()).toHaveLength(1);
  });

  test("C13.7 a history that is not told takes the time of one answer, and not of one for each run", async () => {
    const native = turnFork(SCRIPT);
    const h = await open(native);
    const before = native.calls("readThread").length;
    native.fault("readThread", hang("read"), 10);
    const syncing = h.runtime.threads.sync(h.tree.id);
    await native.gates.arrived("read");
    await h.clock.advance(LIMIT);
    expect((await syncing).status).toBe("open");
    expect(native.calls("readThread")).toHaveLength(before + 1);
  });

  test("REC-1 C1.18 a runtime is closed beside a restore that does not hear that it is called off", async () => {
    const asked = Promise.withResolvers<void>();
    const h = await harness({
      store,
      scripts: SCRIPT,
      tree: { workspace: temporaryFolder() },
      runtime: {
        workspaceCapture: {
          ...NO_CAPTURE,
          available: async () => ({ status: "ready" }),
          async capture(_, { name: ref }) {
            return { status: "ready", ref, tree: "tree", summary: "", files: [], omitted: [] };
          },
          restore() {
            asked.resolve();
            return new Promise(() => undefined);
          },
        },
      },
    });
    onTestFinished(() => h[Symbol.asyncDispose]());
    await h.ask("one");
    await h.tree.control.tree.jobs.of(h.tree.id);
    const { runId: run } = (await h.runtime.threads.checkpoints(h.tree.id)).rows[0]!;
    h.runtime.threads.restoreCheckpoint(h.tree.id, { run, commandId: "once" }).catch(() => undefined);
    await asked.promise;
    let closed = false;
    const closing = h.runtime.close().then(() => (closed = true));
    const { closeDeadlineMs, interruptGraceMs } = h.tree.control.tree.limits;
    await h.clock.advance(closeDeadlineMs);
    expect(closed).toBe(false);
    await h.clock.advance(interruptGraceMs);
    await closing;
    // Whoever asks again hears that nobody knows how far it came.
    h.runtime = await h.newRuntime();
    expect(await h.runtime.threads.restoreCheckpoint(h.tree.id, { run, commandId: "once" })).toMatchObject({
      status: "unfinished",
    });
  });
});
