/** Rollbacks of providers that own their loop (C9.5, C9.6, C9.10): asked through the guard, and never trusted in silence. */
import { describe, expect, test } from "vitest";
import { RejectedError, TransientError } from "../../src/protocol/errors.ts";
import { crashAfter, hang, refuse } from "../../src/providers/scripted/native/faults.ts";
import {
  exclusiveFork,
  itemFork,
  noFork,
  type ScriptedNativeProvider,
  turnFork,
} from "../../src/providers/scripted/native/provider.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import type { Fault } from "../../src/testing/faulty-store.ts";
import type { RollbackOptions } from "../../src/threads/rollback.ts";
import { harness, type Harness, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";

const SCRIPT = { "/root": [repeat(say((context) => `took ${context.inputs.at(-1)}`))] };
const KINDS = { turnFork, itemFork, exclusiveFork };
const legacyFork = (script: typeof SCRIPT) => turnFork(script, { history: "legacy" });

const open = (store: (typeof STORES)[number], native: ScriptedNativeProvider): Promise<Harness> =>
  harness({ store, others: { native }, tree: { provider: "native" } });

async function runs(h: Harness, from: number, to: number): Promise<void> {
  for (let n = from; n <= to; n += 1) expect(await h.ask(`q${n};`)).toMatchObject({ ending: "completed" });
  // What is done after a run is done.
  await h.clock.settle();
}

/** As when the whole machine goes down: the provider's processes too. */
async function crash(h: Harness, native: ScriptedNativeProvider): Promise<void> {
  await h.crash();
  native.kill();
}

const back = (h: Harness, to: number, native: RollbackOptions["native"] = "allowed") =>
  h.runtime.threads.rollBack(h.tree.id, { to: { kind: "ordinal", ordinal: to }, native });

/** What the newest conversation of the provider holds, as one text. */
const held = ({ conversations }: ScriptedNativeProvider): string =>
  JSON.stringify(
    conversations
      .all()
      .at(-1)!
      .items.map(({ message }) => message),
  );

const behind = (h: Harness) => h.store.read((view) => view.providerThreadsOf(h.tree.id));
const statuses = async (h: Harness) => (await new Look(h).runs("/root")).map(({ status }) => status);

describe.each(STORES)("a native rollback on %s", (store) => {
  test.each(Object.entries(KINDS))(
    "S3-60 S2-40 C9.1 C9.5 %s takes the later part back itself, and the next run goes on with the rest",
    async (_name, make) => {
      const native = make(SCRIPT);
      await using h = await open(store, native);
      await runs(h, 1, 3);
      const message = (await h.tree.root.transcript()).find(
        (item) => item.kind === "user" && item.text === "q2;",
      )!;
      const rolled = await h.runtime.threads.rollBack(h.tree.id, {
        to: { kind: "before_message", seq: message.index + 1 },
        native: "demanded",
      });
      expect(rolled).toMatchObject({
        target: 1,
        native: "rolled_back",
        draft: { text: "q2;" },
        refusal: null,
      });
      expect(native.calls("rollbackThread")).toHaveLength(1);
      expect(held(native)).toContain("q1;");
      expect(held(native)).not.toContain("q2;");
      const [record] = await behind(h);
      expect(record).toMatchObject({ nativeRunOrdinals: [[1, 1]], continuity: "ok", status: "idle" });
      const at = (n: number) => h.store.read((view) => view.runAt(h.tree.id, n)!.nativeTurns.length);
      expect([await at(1), record!.nativeHeadRef === null]).toEqual([1, false]);
      await runs(h, 4, 4);
      expect(native.conversations.all()).toHaveLength(1);
      expect(held(native)).toContain("q4;");
      expect(await new Look(h).transfers("provider_handoff")).toEqual([]);
    },
  );

  test.for(["demanded", "allowed"] as const)(
    "C3.12 C9.10 its id is its own from before the provider is asked: %s",
    async (kind) => {
      const native = turnFork(SCRIPT);
      await using h = await open(store, native);
      await runs(h, 1, 3);
      const { threads } = h.runtime;
      native.fault("rollbackThread", hang("asked"));
      const to = { kind: "ordinal", ordinal: 1 } as const;
      const rolling = threads.rollBack(h.tree.id, { to, native: kind, commandId: "once" });
      await native.gates.arrived("asked");
      const conflict = { code: "COMMAND_ID_CONFLICT" };
      await expect(threads.rename(h.tree.id, "a", { commandId: "once" })).rejects.toMatchObject(conflict);
      native.gates.open("asked");
      const rolled = await rolling;
      expect(rolled).toMatchObject({ native: "rolled_back" });
      expect(await behind(h)).toMatchObject([{ status: "idle", continuity: "ok" }]);
      expect(await threads.rollBack(h.tree.id, { to, native: kind, commandId: "once" })).toEqual(rolled);
      expect(native.calls("rollbackThread")).toHaveLength(1);
      await runs(h, 4, 4);
      expect(native.conversations.all()).toHaveLength(1);
    },
  );

  test("C3.12 C9.10 a refused one has had no effect, and its id may be used again", async () => {
    const native = turnFork(SCRIPT);
    await using h = await open(store, native);
    await runs(h, 1, 3);
    const { threads } = h.runtime;
    native.fault("rollbackThread", refuse(new RejectedError("PROVIDER_REFUSED", "no.", {})));
    const rolling = threads.rollBack(h.tree.id, {
      to: { kind: "ordinal", ordinal: 1 },
      native: "demanded",
      commandId: "once",
    });
    await expect(rolling).rejects.toMatchObject({ code: "ROLLBACK_NATIVE_UNSUPPORTED" });
    expect((await threads.rename(h.tree.id, "a", { commandId: "once" })).title).toBe("a");
    expect(await behind(h)).toMatchObject([{ status: "idle", continuity: "ok" }]);
  });

  test("S0-54 legacy history is rolled back by the right number of turns", async () => {
    const native = turnFork(SCRIPT, { history: "legacy" });
    await using h = await open(store, native);
    await runs(h, 1, 4);
    await back(h, 1);
    expect(native.wire().filter(({ method }) => method === "thread/rollback")).toMatchObject([
      { params: { numTurns: 3 } },
    ]);
    expect(held(native)).not.toContain("q2;");
  });

  test.each(Object.entries({ legacy: legacyFork, turnFork, itemFork, exclusiveFork }))(
    "S0-54 C9.5 C9.3 %s is given up where it may hold a turn that it did not live to confirm",
    async (_name, make) => {
      const native = make(SCRIPT);
      await using h = await open(store, native);
      await runs(h, 1, 2);
      native.fault("startTurn", crashAfter());
      const asked = h.ask("q3;");
      await h.clock.settle();
      await h.clock.advance(60_000);
      expect(await asked).toMatchObject({ ending: "completed" });
      await h.clock.settle();
      await expect(back(h, 2, "demanded")).rejects.toMatchObject({ code: "ROLLBACK_TURN_UNAVAILABLE" });
      expect(await back(h, 2)).toMatchObject({ native: "given_up" });
      await runs(h, 4, 4);
      const [record] = (await behind(h)).toReversed();
      const { items } = native.conversations
        .all()
        .find(({ id }) => id === record!.nativeThreadRef!.nativeId)!;
      const holds = JSON.stringify(items.map(({ message }) => message));
      expect([1, 2, 3, 4].filter((n) => holds.includes(`q${n};`))).toEqual([1, 2, 4]);
    },
  );

  test.each(["legacy", "paginated"] as const)(
    "S0-54 C9.5 REC-5 with %s history it is given up also where this process did not live to hear of a turn",
    async (history) => {
      const native = turnFork(SCRIPT, { history });
      await using h = await open(store, native);
      await runs(h, 1, 2);
      let commits = 0;
      // The commit of the acceptance, after that of the reservation.
      h.onWrite = (_write, what): Fault | null =>
        what === "commit" && native.calls("startTurn").length === 3 && (commits += 1) === 1
          ? { kind: "crash_before" }
          : null;
      void h.ask("q3;").catch(() => undefined);
      await new Look(h).until("it has crashed", () => h.faulty.crashed);
      h.onWrite = () => null;
      await crash(h, native);
      expect((await behind(h))[0]!.unsureTurns).toBe(1);
      await h.tree.idle();
      const runsNow = await new Look(h).runs("/root");
      expect(runsNow.map(({ status }) => status)).toEqual([
        "completed",
        "completed",
        "cancelled",
        "completed",
      ]);
      expect(runsNow[3]!.nativeTurns).toEqual([null, expect.objectContaining({ driver: native.driver })]);
      expect((await behind(h))[0]!.unsureTurns).toBeUndefined();
      await expect(back(h, 2, "demanded")).rejects.toMatchObject({ code: "ROLLBACK_TURN_UNAVAILABLE" });
      expect(await back(h, 2)).toMatchObject({ native: "given_up" });
      await runs(h, 5, 5);
      expect(held(native)).not.toContain("q3;");
    },
  );

  test("C9.5 INT-3 a turn that is interrupted before it was sent is none that it may hold", async () => {
    const native = turnFork(SCRIPT, { history: "legacy" });
    await using h = await open(store, native);
    await runs(h, 1, 2);
    native.fault("startTurn", hang("before"));
    const asked = h.ask("q3;");
    await native.gates.arrived("before");
    await h.tree.root.interrupt();
    native.gates.open("before");
    expect(await asked).toMatchObject({ ending: "interrupted" });
    await h.tree.idle();
    expect((await behind(h))[0]!.unsureTurns).toBeUndefined();
    expect(await back(h, 1, "demanded")).toMatchObject({ native: "rolled_back" });
  });

  test("C9.5 C9.10 a rollback that ends elsewhere than was asked is no success, and the rest is not gone on with", async () => {
    for (const demanded of [true, false]) {
      const native = turnFork(SCRIPT, { history: "legacy" });
      await using h = await open(store, native);
      await runs(h, 1, 3);
      // Somebody else has written into it.
      const [conversation] = native.conversations.all();
      conversation!.turns.push({ ...conversation!.turns.at(-1)!, id: "of somebody else" });
      if (demanded) await expect(back(h, 1, "demanded")).rejects.toMatchObject({ code: "PROVIDER_PROTOCOL" });
      else expect(await back(h, 1)).toMatchObject({ native: "given_up" });
      expect((await statuses(h))[2]).toBe(demanded ? "completed" : "rolled_back");
      await runs(h, 4, 4);
      const [first, second] = await behind(h);
      expect([first, second!.nativeRunOrdinals]).toMatchObject([
        demanded ? { status: "error" } : { continuity: "divergent" },
        [[4, 4]],
      ]);
      expect(held(native).includes("q2;")).toBe(demanded);
    }
  });

  test("S0-55 paginated history is probed first, and reverted or refused, never rolled back by count", async () => {
    for (const revert of [true, false]) {
      const native = turnFork(SCRIPT, { history: "paginated", revert });
      await using h = await open(store, native);
      await runs(h, 1, 3);
      const sent = native.wire().length;
      const asked = back(h, 1, "demanded");
      if (revert) await asked;
      else await expect(asked).rejects.toMatchObject({ code: "ROLLBACK_NATIVE_UNSUPPORTED" });
      const methods = native
        .wire()
        .slice(sent)
        .map(({ method }) => method);
      expect(methods).toEqual(revert ? ["thread/read", "thread/revert"] : ["thread/read"]);
    }
  });

  test("S0-56 X-13 C9.10 a demanded rollback that is refused is shown, and nothing is marked", async () => {
    const native = turnFork(SCRIPT, { history: "paginated", revert: false });
    await using h = await open(store, native);
    await runs(h, 1, 3);
    const agent = await h.tree.root.record();
    const records = await behind(h);
    await expect(back(h, 1, "demanded")).rejects.toMatchObject({ code: "ROLLBACK_NATIVE_UNSUPPORTED" });
    native.fault("rollbackThread", refuse(new RejectedError("PROVIDER_REFUSED", "no.", {})));
    await expect(back(h, 1, "demanded")).rejects.toMatchObject({ code: "ROLLBACK_NATIVE_UNSUPPORTED" });
    expect(await h.tree.root.record()).toEqual(agent);
    expect(await behind(h)).toEqual(records);
    expect(await statuses(h)).toEqual(["completed", "completed", "completed"]);
    await runs(h, 4, 4);
    expect(native.conversations.all()).toHaveLength(1);
  });

  test.each([
    ["cannot", noFork(SCRIPT), null],
    ["refuses", turnFork(SCRIPT, { history: "paginated", revert: false }), "cannot be rolled back"],
  ] as const)(
    "S3-61 C9.6 where it %s, work goes on in a new conversation with what is left",
    async (_what, native, why) => {
      await using h = await open(store, native);
      const first = native.conversations.all().length;
      await runs(h, 1, 3);
      const rolled = await back(h, 1);
      expect(rolled.native).toBe("given_up");
      if (why !== null) expect(rolled.refusal).toContain(why);
      expect((await behind(h))[0]).toMatchObject({ continuity: "divergent" });
      await runs(h, 4, 4);
      expect(native.conversations.all()).toHaveLength(first + 2);
      expect(held(native)).toContain("q1;");
      for (const n of [2, 3]) expect(held(native)).not.toContain(`q${n};`);
      const [handoff] = (await h.runtime.threads.handoffs(h.tree.id, { limit: 5 })).rows;
      expect(handoff).toMatchObject({ strategy: "full_thread_summary", coveredRuns: [[1, 1]] });
    },
  );

  test("C9.6 a conversation whose provider was gone in the middle is not resumed, whatever became of it", async () => {
    const native = turnFork(SCRIPT);
    await using h = await open(store, native);
    await runs(h, 1, 3);
    native.fault("rollbackThread", crashAfter());
    await expect(back(h, 1, "demanded")).rejects.toBeInstanceOf(TransientError);
    expect(await statuses(h)).toEqual(["completed", "completed", "completed"]);
    await runs(h, 4, 4);
    expect(native.conversations.all()).toHaveLength(2);
    for (const n of [1, 2, 3, 4]) expect(held(native)).toContain(`q${n};`);
  });

  test("C9.6 a provider that does not say what it can is given up on, unless its own rollback is demanded", async () => {
    const native = turnFork(SCRIPT);
    await using h = await open(store, native);
    await runs(h, 1, 3);
    const silent = { ...native, capabilities: () => Promise.reject(new Error("it is not installed")) };
    await h.crash({ providers: { scripted: h.provider, native: silent } });
    await expect(back(h, 1, "demanded")).rejects.toThrow("it is not installed");
    expect(await statuses(h)).toEqual(["completed", "completed", "completed"]);
    expect(await back(h, 1)).toMatchObject({ target: 1, native: "given_up" });
    expect(await statuses(h)).toEqual(["completed", "rolled_back", "rolled_back"]);
  });

  test("C9.5 an unloaded thread is rolled back by a session of its own, and loaded with what is left", async () => {
    const native = turnFork(SCRIPT);
    await using h = await open(store, native);
    await runs(h, 1, 3);
    await crash(h, native);
    expect((await back(h, 1)).native).toBe("rolled_back");
    await runs(h, 4, 4);
    expect(held(native)).not.toContain("q2;");
    expect(held(native)).toContain("q4;");
  });

  test("C9.2 C9.10 no run begins and no other rollback is taken while the provider has not answered", async () => {
    const native = turnFork(SCRIPT);
    await using h = await open(store, native);
    await runs(h, 1, 3);
    native.fault("rollbackThread", hang("answer"));
    const rolling = back(h, 1);
    await native.gates.arrived("answer");
    await expect(back(h, 2)).rejects.toMatchObject({ code: "ROLLBACK_ACTIVE_RUN" });
    const work = await h.tree.root.send("q4;");
    await h.clock.settle();
    expect(await statuses(h)).toHaveLength(3);
    native.gates.open("answer");
    expect((await rolling).native).toBe("rolled_back");
    expect((await work.outcome()).ending).toBe("completed");
    expect(await statuses(h)).toEqual(["completed", "rolled_back", "rolled_back", "completed"]);
    expect(held(native)).toContain("q4;");
    expect(held(native)).not.toContain("q2;");
  });

  test("the undo leaves it as it is, and the next run is told what it misses", async () => {
    const native = turnFork(SCRIPT);
    await using h = await open(store, native);
    await runs(h, 1, 3);
    await back(h, 1);
    await h.runtime.threads.undoRollback(h.tree.id);
    expect(await statuses(h)).toEqual(["completed", "completed", "completed"]);
    await runs(h, 4, 4);
    expect(native.conversations.all()).toHaveLength(1);
    const [handoff] = (await h.runtime.threads.handoffs(h.tree.id, { limit: 5 })).rows;
    expect(handoff).toMatchObject({ strategy: "delta_since_target_last_seen", coveredRuns: [[2, 3]] });
    for (const n of [1, 2, 3, 4]) expect(held(native)).toContain(`q${n};`);
  });

  test.each(["crash_before", "crash_after"] as const)(
    "C9.10 %s any of its commits leaves either state whole",
    async (kind) => {
      for (let at = 1; at <= 2; at += 1) {
        const native = turnFork(SCRIPT);
        await using h = await open(store, native);
        await runs(h, 1, 3);
        const base = h.faulty.writes;
        let commits = 0;
        h.onWrite = (write, what): Fault | null =>
          what === "commit" && write > base && (commits += 1) === at ? { kind } : null;
        await expect(back(h, 1)).rejects.toThrow("Crashed");
        h.onWrite = () => null;
        await crash(h, native);
        const done = at === 2 && kind === "crash_after";
        const after = done
          ? ["completed", "rolled_back", "rolled_back"]
          : ["completed", "completed", "completed"];
        expect(await statuses(h)).toEqual(after);
        // Whatever the provider has done: the next run knows what stays, once, and nothing else.
        await runs(h, 4, 4);
        const told = held(native);
        for (const n of [1, 4]) expect(told).toContain(`q${n};`);
        for (const n of [2, 3]) expect(told.includes(`q${n};`)).toBe(!done);
        const [first] = await behind(h);
        const sure = done || (at === 1 && kind === "crash_before");
        expect(first!.status === "error").toBe(!sure);
      }
    },
  );
});
