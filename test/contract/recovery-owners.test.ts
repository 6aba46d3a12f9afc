/** Who owns a tree, what others may do, and how an owner ends (REC-2, REC-3, REC-6). */
import { describe, expect, test } from "vitest";
import type { AgentRecord } from "../../src/protocol/agent.ts";
import { TransientError } from "../../src/protocol/errors.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { call, gate, repeat, say, spawn, together, wait } from "../../src/providers/scripted/script.ts";
import { commandTree, type CommandOptions } from "../../src/runtime/command-tree.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import type { Runtime } from "../../src/runtime/runtime.ts";
import { TreeReader } from "../../src/runtime/tree-reader.ts";
import type { Store } from "../../src/store/port.ts";
import type { Fault } from "../../src/testing/faulty-store.ts";
import { invariants } from "../../src/testing/invariants.ts";
import { sampleId, sampleMail } from "../../src/testing/store-records.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { type Harness, harness, type HarnessOptions, STORES } from "../support/harness.ts";
import { look } from "../support/look.ts";

const LIVING = { provenDead: () => false };
const SECOND = { host: "test", bootId: "boot", pid: 77, startedAt: "77" } as const;
const scripts = {
  "/root": [spawn("worker", "count"), wait(), repeat(say("done"))],
  "/root/worker": [together(gate("work"), say("seven")), repeat(say("more"))],
};

/** Lets time pass until something is settled, and says how much it took. */
async function inTime<T>(
  h: Harness,
  promise: Promise<T>,
): Promise<{ readonly value: T; readonly ms: number }> {
  const from = h.clock.now();
  let settled = false;
  const watched = promise.finally(() => (settled = true));
  watched.catch(() => undefined);
  await waitUntil("it is settled", () => settled, { step: () => h.clock.advance(25), steps: 2000 });
  return { value: await watched, ms: h.clock.now() - from };
}

function command(
  h: Harness,
  verb: Parameters<typeof commandTree>[2],
  args: object,
  options: CommandOptions = {},
) {
  return inTime(
    h,
    commandTree(h.store, h.tree.id, verb, args as never, { clock: h.clock, ...LIVING, ...options }),
  );
}

/** The same store to a process that gets no hints. */
function withoutHints(store: Store): Store {
  return { ...store, onHint: () => ({ [Symbol.dispose]: () => undefined }) };
}

async function reopenWithoutHints(h: Harness, options: HarnessOptions["runtime"] = {}): Promise<Runtime> {
  await h.runtime.close();
  const runtime = await createRuntime({
    store: withoutHints(h.store),
    clock: h.clock,
    providers: { scripted: h.provider },
    ...LIVING,
    ...options,
  });
  h.tree = await runtime.openTree({ id: h.tree.id });
  return runtime;
}

describe.each(STORES)("one owner on %s", (store) => {
  test("REC-2 another process cannot own the tree, and can read all of it", async () => {
    await using h = await harness({ store, scripts, runtime: LIVING });
    await h.tree.root.send("go");
    await h.provider.gates.arrived("work");
    await waitUntil("it waits", async () => (await h.tree.root.status()).kind === "waiting");
    const other = await h.newRuntime(LIVING);
    await expect(other.openTree({ id: h.tree.id })).rejects.toMatchObject({
      code: "NOT_OWNER",
      retryable: true,
      details: { owner: { host: "test", pid: 1 } },
    });
    const reader = new TreeReader(h.store, h.tree.id, LIVING.provenDead);
    expect((await reader.agents()).agents.map(({ path, status }) => [path, status.kind])).toEqual([
      ["/root", "waiting"],
      ["/root/worker", "running"],
    ]);
    expect(await reader.log()).toEqual(await h.tree.log(0));
    expect(await reader.owner()).toMatchObject({ pid: 1 });
  });

  test("REC-2 others append mail; the owner notices it within 100 ms of its clock, without any hint", async () => {
    await using h = await harness({ store, scripts, runtime: LIVING });
    await using runtime = await reopenWithoutHints(h);
    const work = await h.tree.root.send("go");
    await h.provider.gates.arrived("work");
    await waitUntil("it waits", async () => (await h.tree.root.status()).kind === "waiting");
    await h.clock.advance(1000);
    expect(await h.store.send([sampleMail(h.tree.id, h.tree.id, "other")])).toMatchObject([
      { kind: "accepted" },
    ]);
    await h.clock.settle();
    expect((await h.tree.root.status()).kind).toBe("waiting");
    await h.clock.advance(100);
    await waitUntil(
      "the wait has ended",
      async () => (await look(h).outputs("/root", "wait_agent")).length === 1,
    );
    expect((await look(h).outputs("/root", "wait_agent"))[0]!.output).toMatchObject({
      message: expect.stringContaining("activity"),
    });
    h.provider.gates.openAll();
    await work.outcome();
    await runtime.close();
  });

  test("REC-2 a command on a tree that is not there is refused, and leaves nothing in the store", async () => {
    await using h = await harness({ store, scripts, runtime: LIVING });
    const unknown = sampleId("thread", "unknown");
    for (const options of [{}, { claim: false }, { forward: false, commandId: "k" }]) {
      const sent = commandTree(h.store, unknown, "interrupt", { target: "/root" }, { ...LIVING, ...options });
      await expect(sent).rejects.toMatchObject({
        code: "AGENT_NOT_FOUND",
        message: expect.stringMatching(/^no tree thread_\S+ is in .+; list the trees there/),
        details: { tree: unknown },
      });
    }
    await h.store.read((view) => {
      expect(view.lease(unknown)).toBe(undefined);
      expect(view.pendingCommands(unknown)).toEqual([]);
    });
  });

  test("REC-2 commands of others are rows that the owner applies once, and its answer is the receipt", async () => {
    await using h = await harness({ store, scripts, runtime: LIVING });
    await using runtime = await reopenWithoutHints(h);
    await h.tree.root.send("go");
    await h.provider.gates.arrived("work");
    const { value, ms } = await command(h, "interrupt", { target: "/root/worker" });
    expect(value).toMatchObject({
      appliedBy: "owner",
      answer: { touched: [{ path: "/root/worker", previous: "running", status: "idle" }] },
    });
    expect(ms).toBeLessThanOrEqual(150);
    expect((await look(h).work("/root/worker")).outcome?.ending).toBe("interrupted");
    const applied = (await h.tree.log(0, 1000)).filter(({ type }) => type === "command.applied");
    expect(applied).toHaveLength(1);
    // A refusal is an answer too.
    await expect(command(h, "interrupt", { target: "/root/nobody" })).rejects.toMatchObject({
      code: "AGENT_NOT_FOUND",
    });
    await expect(command(h, "interrupt", { where: "x" })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      details: { verb: "interrupt", accepted: ["target", "cascade", "pending", "run"] },
    });
    const closed = await command(h, "close", { target: "/root/worker" });
    expect(closed.value.answer).toEqual({ closed: ["/root/worker"] });
    expect((await (await h.tree.agent("worker")).status()).kind).toBe("closed");
    await runtime.close();
  });

  test("REC-2 SPN-6 a command sent again under its key, by whomever, is the same command", async () => {
    await using h = await harness({ store, scripts, runtime: LIVING });
    const asked = { target: "/root", message: "by the way" };
    const racing = await Promise.all(
      [1, 2, 3]
        .map(() =>
          commandTree(h.store, h.tree.id, "send", asked, { clock: h.clock, ...LIVING, commandId: "k" }),
        )
        .map((sent) => inTime(h, sent)),
    );
    const again = await command(h, "send", asked, { commandId: "k" });
    const answers = [...racing, again].map(({ value }) => value.answer);
    expect(answers.every((answer) => answer["message_id"] === answers[0]!["message_id"])).toBe(true);
    expect((await look(h).mail("/root")).map(({ content }) => content.text)).toEqual(["by the way"]);
    await expect(command(h, "send", { ...asked, message: "else" }, { commandId: "k" })).rejects.toMatchObject(
      {
        code: "COMMAND_ID_CONFLICT",
      },
    );
    await command(h, "send", asked, { commandId: "another" });
    expect(await look(h).mail("/root")).toHaveLength(2);
  });

  test.for(["an owner", "nobody"])(
    "SPN-6 C3.12 its arguments may be put otherwise then, and it is the same command: with %s",
    async (owner) => {
      await using h = await harness({ store, scripts, runtime: LIVING });
      const target = "/root";
      if (owner === "nobody") await h.runtime.close();
      const key = { commandId: "k" };
      const first = await command(h, "interrupt", { target }, key);
      const again = await command(h, "interrupt", { target, cascade: "none" }, key);
      expect(again.value.answer).toEqual(first.value.answer);
      await expect(command(h, "interrupt", { target, cascade: "subtree" }, key)).rejects.toMatchObject({
        code: "COMMAND_ID_CONFLICT",
      });
    },
  );

  test("REC-2 with forwarding off a tree of another owner is refused, and nothing is stored", async () => {
    await using h = await harness({ store, scripts, runtime: LIVING });
    await expect(
      command(h, "send", { target: "/root", message: "x" }, { forward: false }),
    ).rejects.toMatchObject({
      code: "NOT_OWNER",
    });
    expect(await h.store.read((view) => view.pendingCommands(h.tree.id))).toEqual([]);
    await h.clock.advance(200);
    expect(await look(h).mail("/root")).toEqual([]);
  });

  test("REC-2 without an owner a command waits and the caller is told so; the next owner applies it once", async () => {
    await using h = await harness({ store, scripts, runtime: LIVING });
    await h.runtime.close();
    const { value } = await command(h, "send", { target: "/root", message: "wait for me" }, { claim: false });
    expect(value).toEqual({ appliedBy: "nobody", answer: {} });
    expect(await h.store.read((view) => view.pendingCommands(h.tree.id))).toHaveLength(1);
    h.runtime = await h.newRuntime();
    h.tree = await h.runtime.openTree({ id: h.tree.id });
    await waitUntil("it is applied", async () => (await look(h).mail("/root")).length === 1);
    await h.crash({ provenDead: () => true });
    await h.clock.advance(1000);
    expect((await look(h).mail("/root")).map(({ content }) => content.text)).toEqual(["wait for me"]);
  });

  test("REC-2 a command on a tree without a live owner claims it for the command alone", async () => {
    await using h = await harness({ store, scripts, runtime: LIVING });
    await h.tree.root.send("go");
    await h.provider.gates.arrived("work");
    await h.runtime.close();
    const { value } = await command(h, "followup", { target: "/root/worker", message: "later" });
    expect(value).toMatchObject({ appliedBy: "here", answer: { agent: "/root/worker" } });
    await expect(command(h, "close", { target: "/root/nobody" })).rejects.toMatchObject({
      code: "AGENT_NOT_FOUND",
    });
    expect(await h.store.read((view) => view.lease(h.tree.id)?.live)).toBe(false);
    // Nothing ran for it; the next owner takes the tree at once, and the work with it.
    expect(h.provider.gates.waiting("work")).toBe(0);
    h.provider.gates.openAll();
    h.runtime = await h.newRuntime();
    h.tree = await h.runtime.openTree({ id: h.tree.id });
    const id = value.answer["work_id"] as `wrk_${string}`;
    expect((await h.tree.work(id).outcome()).ending).toBe("completed");
  });

  test("REC-2 a refused command is answered where it was claimed, and no later owner carries it out", async () => {
    await using h = await harness({ store, scripts, runtime: LIVING });
    await h.runtime.close();
    await command(h, "close", { target: "/root/late" }, { claim: false, commandId: "k" });
    await expect(command(h, "close", { target: "/root/late" }, { commandId: "k" })).rejects.toMatchObject({
      code: "AGENT_NOT_FOUND",
    });
    h.runtime = await h.newRuntime();
    h.tree = await h.runtime.openTree({ id: h.tree.id });
    const { agent } = await h.tree.root.spawn("late", "work");
    await h.clock.advance(1000);
    expect((await agent.status()).kind).not.toBe("closed");
  });

  test("REC-2 a former owner's late commit is refused: what its run was doing is not stored", async () => {
    await using h = await harness({ store, scripts, runtime: LIVING });
    await h.tree.root.send("go");
    await h.provider.gates.arrived("work");
    const former = h.tree;
    const second = await h.newRuntime({ identity: SECOND, provenDead: () => true, providers: {} });
    const taken = await second.openTree({ id: former.id });
    const before = await h.store.read((view) => view.lastEvent(former.id));
    h.provider.gates.open("work");
    await waitUntil("it has noticed", () => !former.owned);
    await h.clock.settle();
    const since = await taken.log(before);
    expect(since.map(({ type }) => type)).not.toContain("run.step");
    expect((await look(h).works("/root/worker"))[0]!.outcome?.ending).toBe("runtime_lost");
    await expect(former.root.tell("late")).rejects.toMatchObject({ code: "FENCED" });
    await second.close();
  });
});

describe.each(STORES)("leases on %s", (store) => {
  const expiry = (h: Harness): Promise<number> => h.store.read((view) => view.lease(h.tree.id)!.expiresAt);
  const heartbeatsFail = (_write: number, kind: string): Fault | null =>
    kind === "heartbeat" ? { kind: "error" } : null;

  test("REC-6 a lease lasts 10 s by the store's clock and is renewed every 2 s", async () => {
    await using h = await harness({ store, scripts, runtime: LIVING });
    expect((await expiry(h)) - h.clock.now()).toBe(10_000);
    await h.clock.advance(1999);
    expect((await expiry(h)) - h.clock.now()).toBe(8001);
    await h.clock.advance(1);
    await waitUntil("it is renewed", async () => (await expiry(h)) - h.clock.now() === 10_000);
    await h.clock.advance(60_000);
    expect(h.tree.owned).toBe(true);
    expect((await expiry(h)) - h.clock.now()).toBeGreaterThan(7000);
  });

  test("REC-6 after 6 s without a renewal the owner stops by itself, before anybody may claim", async () => {
    await using h = await harness({ store, scripts, runtime: LIVING });
    await h.tree.root.send("go");
    await h.provider.gates.arrived("work");
    await h.clock.settle();
    // The root waits, and asks for nothing.
    const signals = [...h.tree.control.tree.sessions.values()].flatMap(({ abort }) => abort?.signal ?? []);
    expect(signals).toHaveLength(1);
    await h.clock.advance(2000);
    h.onWrite = heartbeatsFail;
    await h.clock.advance(5900);
    expect(h.tree.owned).toBe(true);
    await h.clock.advance(100);
    await waitUntil("it has stopped", () => !h.tree.owned);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    // Nothing is started and nothing is committed from then on.
    const writes = h.faulty.writes;
    h.provider.gates.openAll();
    await h.clock.settle();
    expect(h.faulty.writes).toBe(writes);
    const second = await h.newRuntime({ identity: SECOND, ...LIVING });
    await expect(second.openTree({ id: h.tree.id })).rejects.toMatchObject({ code: "NOT_OWNER" });
    await h.clock.advance(4000);
    const taken = await second.openTree({ id: h.tree.id });
    expect((await taken.log(0, 1000)).filter(({ type }) => type === "tree.claimed")).toHaveLength(2);
    await second.close();
  });

  test("REC-6 an owner that is proved dead is taken over at once", async () => {
    await using h = await harness({ store, scripts, runtime: LIVING });
    const asked: unknown[] = [];
    const second = await h.newRuntime({
      identity: SECOND,
      provenDead: (owner) => {
        asked.push(owner);
        return true;
      },
    });
    const taken = await second.openTree({ id: h.tree.id });
    expect(asked).toEqual([{ host: "test", bootId: "boot", pid: 1, startedAt: "1" }]);
    expect(taken.owned).toBe(true);
    await second.close();
  });

  test("REC-6 after a freeze it does nothing before it has looked at its lease", async () => {
    await using h = await harness({ store, scripts });
    let jumped = 0;
    const frozen: Clock = {
      ...h.clock,
      now: () => h.clock.now() + jumped,
      monotonic: () => h.clock.monotonic() + jumped,
    };
    await h.runtime.close();
    const runtime = await createRuntime({
      store: h.store,
      clock: frozen,
      providers: { scripted: h.provider },
    });
    const tree = await runtime.openTree({ id: h.tree.id });
    await tree.root.send("go");
    await h.provider.gates.arrived("work");
    const calls = h.provider.requests("/root/worker").length;
    // Twenty seconds are gone, and the first thing that happens is a timer.
    jumped = 20_000;
    await h.clock.advance(100);
    expect(tree.owned).toBe(false);
    h.provider.gates.openAll();
    await h.clock.settle();
    expect(h.provider.requests("/root/worker")).toHaveLength(calls);
    await runtime.close();
  });
});

describe.each(STORES)("a failing store on %s", (store) => {
  const LIFE = {
    "/root": [
      together(spawn("one", "first"), spawn("two", "second")),
      wait({ targets: ["one", "two"] }),
      repeat(say((context) => `done ${context.ownSteps}`)),
    ],
    "*": [call("list_agents"), repeat(say("ok"))],
  };

  /** What is in memory and what is stored, for every loaded agent. */
  async function differences(h: Harness): Promise<string[]> {
    const { sessions, mailboxes } = h.tree.control.tree;
    return h.store.read((view) =>
      [...sessions].flatMap(([id, session]) => {
        const agent = view.agent(id)!;
        const stored = view.items(id, 0, agent.items);
        const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
        const mailbox = mailboxes.get(id);
        return [
          ...(same(session.items, stored) ? [] : [`${agent.path}: transcript`]),
          ...((session.run?.id ?? null) === agent.currentRun ? [] : [`${agent.path}: run`]),
          ...(mailbox === undefined || same(mailbox, view.mailbox(id)) ? [] : [`${agent.path}: mailbox`]),
        ];
      }),
    );
  }

  test.for(["error", "error_after"] as const)(
    "REC-3 at any write (%s), memory never runs ahead of the store, and the tree goes on",
    { timeout: 120_000 },
    async (kind) => {
      const step = store === "memory" ? 1 : 6;
      let failed = 0;
      for (let write = 1; ; write += step) {
        await using h = await harness({
          store,
          scripts: LIFE,
          runtime: { subagents: { onLostRun: "retry" } },
          tree: { onLostRun: "retry" },
        });
        const base = h.faulty.writes;
        let hit = false;
        h.onWrite = (number, writeKind) => {
          if (number !== base + write || writeKind === "heartbeat") return null;
          hit = true;
          return { kind };
        };
        const checker = invariants(h.tree.id);
        const sent = await h.tree.root.send("go").catch((error: unknown) => error);
        if (sent instanceof TransientError) {
          expect(sent).toMatchObject({ code: "STORE_BUSY", retryable: true });
          failed += 1;
          continue;
        }
        const works = async () => (await look(h).works()).filter(({ state }) => state !== "ended");
        await waitUntil("all works have ended", async () => (await works()).length === 0, {
          step: () => h.clock.advance(100),
          steps: 400,
          dump: () => ({ write }),
        });
        await h.tree.idle();
        await h.clock.settle();
        expect(await differences(h), `${kind} at write ${write}`).toEqual([]);
        expect(await h.store.read((view) => checker.check(view)), `${kind} at write ${write}`).toEqual([]);
        if (!hit) break;
        failed += 1;
      }
      expect(failed).toBeGreaterThan(store === "memory" ? 20 : 3);
    },
  );

  test("REC-3 what the caller asked for and was refused by the store has not happened in memory either", async () => {
    await using h = await harness({ store, scripts: { "*": [repeat(say("ok"))] } });
    h.onWrite = () => ({ kind: "error" });
    for (const act of [
      () => h.tree.root.send("go"),
      () => h.tree.root.tell("x"),
      () => h.tree.root.spawn("a", "work"),
      () => h.tree.root.close(),
    ]) {
      await expect(act()).rejects.toMatchObject({ code: "STORE_BUSY", family: "transient" });
    }
    h.onWrite = () => null;
    expect(await h.tree.counts()).toMatchObject({ registered: 1, running: 0, queued: 0 });
    expect((await h.tree.root.record()) satisfies AgentRecord).toMatchObject({
      state: "open",
      currentRun: null,
    });
    expect((await h.ask("go")).ending).toBe("completed");
  });
});
