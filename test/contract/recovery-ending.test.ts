/** How a process stops owning a tree: it gives it back whole, or has lost it and may have it again (REC-2, REC-6). */
import { describe, expect, test } from "vitest";
import { TransientError } from "../../src/protocol/errors.ts";
import { DEFAULT_LIMITS } from "../../src/protocol/limits.ts";
import type { WorkspaceCapture } from "../../src/platform/workspace/port.ts";
import type { ProviderAdapter } from "../../src/providers/port.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { commandTree } from "../../src/runtime/command-tree.ts";
import type { WriteKind } from "../../src/testing/faulty-store.ts";
import { sampleCommand } from "../../src/testing/store-records.ts";
import { type Harness, harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { Look } from "../support/look.ts";
import { NO_CAPTURE } from "../support/no-capture.ts";

const LIVING = { provenDead: () => false };
const ANSWERS = { "*": [repeat(say("done"))] };

/** A promise that somebody else keeps. */
function promised(): { readonly kept: Promise<void>; keep(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { kept: promise, keep: resolve };
}

/** Whether it is settled by now. */
async function isOver(h: Harness, promise: Promise<unknown>): Promise<boolean> {
  let over = false;
  void promise.then(
    () => (over = true),
    () => (over = true),
  );
  await h.clock.settle();
  return over;
}

/** The adapter with sessions that tell when they are opened and closed. */
function watched(
  inner: ProviderAdapter & { readonly loop: "ours" },
  hold: Promise<void>,
  at: "open" | "close",
) {
  const seen = { opened: 0, closed: 0 };
  const adapter: typeof inner = {
    ...inner,
    models: () => inner.models(),
    async openSession(input) {
      seen.opened += 1;
      if (at === "open") await hold;
      const session = await inner.openSession(input);
      return {
        step: (request, signal) => session.step(request, signal),
        async close() {
          if (at === "close") await hold;
          await session.close();
          seen.closed += 1;
        },
      };
    },
  };
  return { adapter, seen };
}

describe.each(STORES)("an owner that ends on %s", (store) => {
  const open = (more: HarnessOptions = {}): Promise<Harness> =>
    harness({ store, scripts: ANSWERS, runtime: LIVING, ...more });

  test("REC-2 a tree that cannot be given back keeps no other one: all are closed, and the failure is told", async () => {
    await using h = await open();
    const trees = [h.tree, await h.runtime.openTree({}), await h.runtime.openTree({})];
    let left = 1;
    const busy = (_write: number, kind: WriteKind) =>
      kind === "release" && (left -= 1) >= 0
        ? { kind: "error" as const, error: new TransientError("STORE_BUSY", "busy") }
        : null;
    h.onWrite = busy;
    await expect(h.runtime.close()).rejects.toMatchObject({ code: "STORE_BUSY" });
    expect(trees.map(({ owned }) => owned)).toEqual([false, false, false]);
    const live = await h.store.read((view) => trees.filter(({ id }) => view.lease(id)?.live === true));
    expect(live).toHaveLength(1);
    expect(h.clock.pending()).toEqual([]);
  });

  test("REC-2 whoever closes a runtime twice waits for the same end", async () => {
    await using h = await open();
    const order: string[] = [];
    await Promise.all([
      h.runtime.close().then(() => order.push("first")),
      h.runtime.close().then(() => order.push("second")),
    ]);
    expect(order).toEqual(["first", "second"]);
  });

  test("REC-2 INT-7 a tree is given back when its providers' sessions have ended, and renewed until then", async () => {
    const session = promised();
    const { adapter, seen } = watched(scripted({ "*": [gate("work"), say("done")] }), session.kept, "close");
    await using h = await open({ others: { other: adapter }, tree: { provider: "other" } });
    await h.tree.root.send("go");
    await h.clock.settle();
    const closing = h.runtime.close();
    await h.clock.advance(12_000);
    const lease = () => h.store.read((view) => view.lease(h.tree.id)!.live);
    expect([await isOver(h, closing), await lease()]).toEqual([false, true]);
    session.keep();
    expect([await isOver(h, closing), seen.closed]).toEqual([true, 1]);
    expect(await lease()).toBe(false);
    expect(h.clock.pending()).toEqual([]);
  });

  test("REC-2 INT-7 what does not end in time is left behind", async () => {
    const { adapter } = watched(scripted(ANSWERS), promised().kept, "close");
    await using h = await open({ others: { other: adapter }, tree: { provider: "other" } });
    await h.ask("go");
    const closing = h.runtime.close();
    await h.clock.advance(DEFAULT_LIMITS.closeDeadlineMs - 1);
    expect(await isOver(h, closing)).toBe(false);
    await h.clock.advance(1);
    expect(await isOver(h, closing)).toBe(true);
    expect(h.clock.pending()).toEqual([]);
  });

  test("REC-2 who opens a tree that is being given back waits, and has it then", async () => {
    const held = promised();
    const capture: WorkspaceCapture = {
      ...NO_CAPTURE,
      available: async () => ({ status: "ready" }),
      capture: async () => {
        await held.kept;
        return { status: "missing", reason: "not now", lasting: false };
      },
    };
    await using h = await open({
      tree: { workspace: "/tmp" },
      runtime: { ...LIVING, workspaceCapture: capture },
    });
    await h.ask("one");
    const closing = h.tree.close();
    const opened = h.runtime.openTree({ id: h.tree.id });
    const named = h.runtime.threads.rename(h.tree.id, "named");
    await h.clock.advance(12_000);
    expect([await isOver(h, closing), await isOver(h, opened)]).toEqual([false, false]);
    held.keep();
    await closing;
    h.tree = await opened;
    expect((await named).title).toBe("named");
    await h.ask("two");
  });

  test("REC-2 a runtime is never in its own way: verbs beside an opening and a closing of the same tree", async () => {
    await using h = await open();
    const { id } = h.tree;
    const { threads } = h.runtime;
    const closing = h.tree.close();
    const opened = h.runtime.openTree({ id }).then((tree) => tree.close());
    const verbs = [threads.rename(id, "a"), threads.pin(id, "decisions", "port 8080")];
    await Promise.all([
      closing,
      opened,
      ...verbs,
      threads.rename(id, "a").then(() => threads.rename(id, "b")),
    ]);
    expect(await threads.get(id)).toMatchObject({ title: "b" });
    const again = h.runtime.openTree({ id });
    await Promise.all([again.then((tree) => tree.close()), threads.rename(id, "c")]);
    expect((await h.runtime.openTree({ id })).owned).toBe(true);
  });

  test.for(["release", "claim"] as const)(
    "REC-2 REC-3 a %s whose outcome is not known locks the runtime out of nothing",
    async (kind) => {
      await using h = await open();
      const { id } = h.tree;
      const once = (fault: "error" | "error_after") => {
        let left = 1;
        h.onWrite = (_write, asked) => (asked === kind && (left -= 1) >= 0 ? { kind: fault } : null);
      };
      once("error");
      if (kind === "release") await expect(h.tree.close()).rejects.toMatchObject({ code: "STORE_BUSY" });
      else await h.tree.close();
      h.tree = await h.runtime.openTree({ id }).catch(() => h.runtime.openTree({ id }));
      await h.ask("one");
      await h.tree.close();
      once("error_after");
      await h.runtime.threads.rename(id, "named").catch(() => h.runtime.threads.rename(id, "named"));
      h.tree = await h.runtime.openTree({ id });
      await h.ask("two");
    },
  );

  test("REC-2 SPN-6 a command that was carried out is answered, whatever becomes of its claim", async () => {
    await using h = await open();
    await h.tree.close();
    h.onWrite = (_write, kind) => (kind === "release" ? { kind: "error" } : null);
    const args = { target: "/root", message: "once" };
    const done = await commandTree(h.faulty, h.tree.id, "send", args, { clock: h.clock, ...LIVING });
    expect(done).toMatchObject({ appliedBy: "here" });
    expect(await new Look(h).mail("/root")).toHaveLength(1);
  });

  test("SPN-6 REC-2 of two commands with one key the slower one is told, and gets no other command's receipt", async () => {
    await using h = await open();
    await h.tree.close();
    const key = "once";
    const send = (store: typeof h.faulty, message: string) =>
      commandTree(
        store,
        h.tree.id,
        "send",
        { target: "/root", message },
        { clock: h.clock, commandId: key, ...LIVING },
      );
    // The other one comes between this one's look and its claim.
    const claim = h.faulty.claim.bind(h.faulty);
    let first: Promise<unknown> | null = null;
    h.faulty.claim = async (request) => {
      if (first === null) await (first = send({ ...h.faulty, claim }, "theirs"));
      return claim(request);
    };
    const slower = send(h.faulty, "mine").catch((error: unknown) => error);
    await h.clock.advance(1_000);
    expect(await slower).toMatchObject({ code: "COMMAND_ID_CONFLICT" });
    expect((await new Look(h).mail("/root")).map(({ content }) => content.text)).toEqual(["theirs"]);
  });

  test("REC-2 REC-6 closing what another process has taken over is no failure", async () => {
    await using h = await open();
    const { id } = h.tree;
    await h.store.claim({
      treeId: id,
      token: "another's",
      owner: { host: "other", bootId: "b", pid: 9, startedAt: "9" },
      leaseMs: 10_000,
      provenDead: () => true,
    });
    await h.tree.close();
    await h.runtime.close();
    expect(await h.store.read((view) => view.lease(id))).toMatchObject({ live: true, owner: { pid: 9 } });
  });

  test("REC-2 OBS-3 what was given back says so: its agents' why, its verbs, and a runtime that is closed", async () => {
    await using h = await open();
    await h.ask("one");
    expect((await h.tree.root.why()).reasons.join()).toContain("owned by this process");
    await h.tree.close();
    expect((await h.tree.root.why()).reasons.join()).not.toContain("owned by this process");
    await expect(h.tree.root.send("two")).rejects.toThrow(/was given back; open it again/);
    await h.runtime.close();
    const closed = { code: "RUNTIME_CLOSED" };
    await expect(h.runtime.openTree({ id: h.tree.id })).rejects.toMatchObject(closed);
    await expect(h.runtime.openPending()).rejects.toMatchObject(closed);
    await expect(h.runtime.threads.create()).rejects.toMatchObject(closed);
    await expect(h.runtime.threads.rename(h.tree.id, "x")).rejects.toMatchObject(closed);
  });

  test("REC-6 a tree whose lease was not renewed in time is told to be lost, and the same runtime has it again at once", async () => {
    const told: string[] = [];
    await using h = await open({
      scripts: { "*": [together(gate("work"), say("one")), repeat(say("two"))] },
      runtime: {
        ...LIVING,
        onTreeLost: async (tree, why) => {
          told.push(`${tree} ${why}`);
          throw new Error("a hook that fails is told to the operator, and harms nobody");
        },
      },
    });
    const { id } = h.tree;
    const lost = h.tree;
    const work = await lost.root.send("go");
    const outcome = work.outcome().catch((error: unknown) => error);
    await h.provider.gates.arrived("work");
    let broken = true;
    h.onWrite = (_write, kind) => (broken && kind === "heartbeat" ? { kind: "error" } : null);
    await h.clock.advance(7_000);
    broken = false;
    expect(await outcome).toMatchObject({ code: "FENCED" });
    expect(told).toEqual([expect.stringMatching(new RegExp(`^${id} no renewal`))]);
    await expect(lost.root.send("more")).rejects.toThrow(/has lost the tree .* open it again/);
    h.provider.gates.open("work");
    h.tree = await h.runtime.openTree({ id });
    expect((await new Look(h).runs("/root")).map(({ status, reason }) => [status, reason])).toEqual([
      ["interrupted", "runtime_lost"],
    ]);
    await h.ask("again");
    // The handle that was lost gives back nothing that is another's.
    await lost.close();
    await h.ask("and again");
    expect(told).toHaveLength(1);
  });

  test("REC-6 another process that has taken a lost tree over keeps it", async () => {
    await using h = await open();
    const { id } = h.tree;
    h.onWrite = (_write, kind) => (kind === "heartbeat" ? { kind: "error" } : null);
    await h.clock.advance(11_000);
    expect(h.tree.owned).toBe(false);
    const other = await h.newRuntime({
      ...LIVING,
      identity: { host: "other", bootId: "b", pid: 9, startedAt: "9" },
    });
    const theirs = await other.openTree({ id });
    await expect(h.runtime.openTree({ id })).rejects.toMatchObject({ code: "NOT_OWNER" });
    await (await theirs.root.send("go")).outcome();
    await other.close();
  });

  test("REC-6 the time of a lease counts from its claim, and it is renewed while the tree is recovered", async () => {
    await using h = await open();
    await h.runtime.close();
    const held = promised();
    let commits = 0;
    const first = await h.newRuntime(LIVING);
    const slow = h.faulty.commit.bind(h.faulty);
    h.faulty.commit = async (lease, plan) => {
      commits += 1;
      if (commits === 1) await held.kept;
      return slow(lease, plan);
    };
    const opening = first.openTree({ id: h.tree.id });
    await h.clock.advance(15_000);
    expect(await h.store.read((view) => view.lease(h.tree.id)!.live)).toBe(true);
    held.keep();
    const tree = await opening;
    await h.clock.advance(15_000);
    expect(tree.owned).toBe(true);
    await first.close();
  });

  test("REC-6 a claim whose recovery outlasts its lease unrenewed does not own the tree", async () => {
    await using h = await open();
    await h.runtime.close();
    const held = promised();
    const runtime = await h.newRuntime(LIVING);
    const through = h.faulty.commit.bind(h.faulty);
    h.faulty.commit = async (lease, plan) => {
      await held.kept;
      return through(lease, plan);
    };
    h.onWrite = (_write, kind) => (kind === "heartbeat" ? { kind: "error" } : null);
    const opening = runtime.openTree({ id: h.tree.id }).catch((error: unknown) => error);
    await h.clock.advance(7_000);
    held.keep();
    expect(await opening).toMatchObject({ code: "FENCED" });
    await runtime.close();
  });

  test.for(["the first", "another"] as const)(
    "REC-2 INT-7 a provider that is still opening for %s run is waited for, and closed",
    async (which) => {
      const held = promised();
      const { adapter, seen } = watched(scripted(ANSWERS), held.kept, "open");
      await using h = await open({ others: { other: adapter } });
      if (which === "another") await h.ask("one");
      await h.tree.root.send("two", { provider: "other" });
      await h.clock.settle();
      const closing = h.runtime.close();
      const lease = () => h.store.read((view) => view.lease(h.tree.id)!.live);
      expect([await isOver(h, closing), await lease(), seen]).toEqual([
        false,
        true,
        { opened: 1, closed: 0 },
      ]);
      held.keep();
      expect([await isOver(h, closing), await lease(), seen]).toEqual([
        true,
        false,
        { opened: 1, closed: 1 },
      ]);
    },
  );

  test("REC-2 INT-7 the provider's session of an agent that was closed is waited for as well", async () => {
    const held = promised();
    const { adapter, seen } = watched(scripted(ANSWERS), held.kept, "close");
    await using h = await open({ others: { other: adapter } });
    const { agent, work } = await h.tree.root.spawn("worker", "go", { provider: "other" });
    await work.outcome();
    await agent.close();
    const closing = h.runtime.close();
    expect([await isOver(h, closing), seen.closed]).toEqual([false, 0]);
    held.keep();
    expect([await isOver(h, closing), seen.closed]).toEqual([true, 1]);
  });

  test("C3.8 C3.9 REC-2 what is one commit on a thread keeps no tree: nobody owns it after, and nothing is polled", async () => {
    await using h = await open();
    const { threads } = h.runtime;
    await h.ask("one");
    const { thread: fork } = await threads.fork(h.tree.id);
    await h.tree.close();
    const { id } = h.tree;
    await threads.rename(id, "named");
    await threads.pin(id, "decisions", "port 8080");
    await threads.select(id, { provider: "scripted" });
    await expect(threads.select(id, { provider: "nobody" })).rejects.toMatchObject({
      code: "PROVIDER_UNAVAILABLE",
    });
    await expect(threads.archive(id)).rejects.toMatchObject({ code: "THREAD_INVARIANT_VIOLATION" });
    await threads.discardDraft(fork.id);
    expect(
      await h.store.read((view) =>
        view.trees({ limit: 10 }).rows.map((tree) => view.lease(tree.treeId)?.live ?? false),
      ),
    ).toEqual([false, false]);
    expect(h.clock.pending()).toEqual([]);
    h.tree = await h.runtime.openTree({ id });
    expect(await threads.get(id)).toMatchObject({ title: "named" });
    await h.ask("two");
    expect((await threads.context(id))!.decisions).toMatchObject([{ text: "port 8080" }]);
  });

  test("REC-2 one question a poll is enough for all trees that rest", async () => {
    await using h = await open();
    for (let made = 0; made < 20; made += 1) await h.runtime.openTree({});
    await h.clock.advance(1_000);
    let asked = 0;
    const changes = h.faulty.changes.bind(h.faulty);
    h.faulty.changes = () => {
      asked += 1;
      return changes();
    };
    await h.clock.advance(10 * DEFAULT_LIMITS.pollMs);
    expect(asked).toBe(10);
    await h.store.command(sampleCommand(h.tree.id, 1, { verb: "close", arguments: { target: "/root" } }));
    await h.clock.advance(DEFAULT_LIMITS.pollMs);
    await h.clock.settle();
    expect((await h.tree.root.status()).kind).toBe("closed");
  });

  test("HDR-5 the grace time of a host ends with the runtime", async () => {
    await using h = await open({ tree: { hostDriven: true, onHostGone: "interrupt" } });
    const host = await h.runtime.actAs(await h.tree.root.token());
    host.close();
    expect(h.clock.pending().filter(({ keepAlive }) => keepAlive)).toHaveLength(1);
    await h.runtime.close();
    expect(h.clock.pending()).toEqual([]);
  });
});
