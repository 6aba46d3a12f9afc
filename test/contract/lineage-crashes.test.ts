/**
 * A kill at every write of every command on threads, and after what a provider has done and could not tell: what is stored
 * is the old state or the new one, every promise holds, and the command can be given again (C1.18, C4.13, C5.19, C9.10).
 */
import { describe, expect, test } from "vitest";
import { crashAfter, hang, type NativeMethod } from "../../src/providers/scripted/native/faults.ts";
import {
  noFork,
  type ScriptedNativeProvider,
  turnFork,
} from "../../src/providers/scripted/native/provider.ts";
import { fail, repeat, say } from "../../src/providers/scripted/script.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import type { HandoffId, ThreadId, TreeId } from "../../src/protocol/ids.ts";
import { isSettled } from "../../src/protocol/run.ts";
import type { StoreView } from "../../src/store/port.ts";
import { invariants, type Invariants } from "../../src/testing/invariants.ts";
import { turn } from "../../src/testing/virtual-clock.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { harness, type Harness, STORES } from "../support/harness.ts";

const SCRIPT = { "/root": [repeat(say((context) => `took ${context.inputs.at(-1)}`))] };
/** Refuses everything before it has accepted it. */
const REFUSES = { "/root": [repeat(fail({ code: "PROVIDER_REFUSED" }))] };
const NEW = "thread_000000000000000000001" as ThreadId;
const ALL = { limit: 100 };

/** One life: its trees, its checkers, and what the command is about. */
class Life implements AsyncDisposable {
  readonly h: Harness;
  readonly natives: readonly ScriptedNativeProvider[];
  readonly #checkers = new Map<TreeId, Invariants>();
  /** The thread that the command is about. */
  thread: ThreadId;
  /** Of the thread, before the command. */
  before = { accepted: 0, delivered: 0, consumed: 0 };
  handoff: HandoffId = "hnd_none";

  constructor(h: Harness, natives: readonly ScriptedNativeProvider[]) {
    this.h = h;
    this.natives = natives;
    this.thread = h.tree.id;
  }

  get threads() {
    return this.h.runtime.threads;
  }

  /** All that holds of every tree of the store, since it was last looked at. */
  async check(when: string): Promise<void> {
    const found = await this.h.store.read((view) =>
      view.trees(ALL).rows.flatMap(({ treeId }) => {
        const checker = this.#checkers.get(treeId) ?? invariants(treeId);
        this.#checkers.set(treeId, checker);
        return checker.check(view);
      }),
    );
    expect(found, `${when}`).toEqual([]);
  }

  /** Opens all trees, and lets time pass until nothing is under way. */
  async rest(): Promise<void> {
    const { rows } = await this.h.store.read((view) => view.trees(ALL));
    let over = false;
    const open = rows.map(async ({ treeId: id }) => (await this.h.runtime.openTree({ id })).idle());
    const idle = Promise.all(open).finally(() => (over = true));
    idle.catch(() => undefined);
    let turns = 0;
    await waitUntil("all is at rest", () => over, {
      step: async () => ((turns += 1) % 25 === 0 ? this.h.clock.advance(400) : turn()),
    });
    await idle;
    await this.h.clock.settle();
  }

  async say(message: string, provider?: string, thread = this.thread): Promise<string> {
    const { id } = await this.threads.continue(thread, message, provider === undefined ? {} : { provider });
    await this.rest();
    return this.h.store.read((view) => view.work(id)!.outcome!.ending);
  }

  async talk(message: string, provider?: string, thread = this.thread): Promise<void> {
    expect(await this.say(message, provider, thread)).toBe("completed");
  }

  /** The process is gone, and the providers' with it. */
  async crash(): Promise<void> {
    await this.check("dead");
    this.h.onWrite = () => null;
    await this.h.crash();
    for (const native of this.natives) native.kill();
    await this.check("opened again");
    await this.rest();
    await this.check("at rest");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.h[Symbol.asyncDispose]();
  }
}

interface Command {
  /** The provider on which the thread begins. */
  readonly on?: "scripted" | "able";
  readonly before?: (life: Life) => Promise<void>;
  readonly command: (life: Life) => Promise<unknown>;
  /** Everything of it is there; nothing of it is there. One of the two after every crash. */
  readonly done: (view: StoreView, life: Life) => boolean;
  readonly none: (view: StoreView, life: Life) => boolean;
  /** Given again, where nothing of it was there; then all of it is. */
  readonly again?: (life: Life) => Promise<unknown>;
  /** Calls of the provider after which it is killed as well. */
  readonly calls?: readonly (readonly [provider: 0 | 1, NativeMethod])[];
}

const facts = (view: StoreView, { thread }: Life) => view.agent(thread)!.thread!;
const acceptedOf = (view: StoreView, { thread }: Life) =>
  view.runsOf(thread, ALL).rows.filter(({ acceptedAt }) => acceptedAt !== null);
const figures = (view: StoreView, life: Life) => ({
  accepted: acceptedOf(view, life).length,
  delivered: view.handoffsOf(life.thread, ALL).rows.filter(({ deliveredAt }) => deliveredAt !== null).length,
  consumed: view.transfersOf(life.thread, ALL).rows.filter(({ status, targetThreadId }) => {
    return status === "consumed" && targetThreadId === life.thread;
  }).length,
});
const grown = (view: StoreView, life: Life) => {
  const now = figures(view, life);
  return Object.entries(life.before).map(([key, was]) => now[key as keyof typeof now] - was);
};

/** A run that takes in a context: with it all or nothing, and nothing is left to be told then. */
function taking(message: string, provider?: string): Pick<Command, "command" | "done" | "none" | "again"> {
  return {
    async command({ h, threads, thread }) {
      await threads.continue(thread, message, provider === undefined ? {} : { provider });
      await (await h.runtime.openTree({ id: thread })).idle();
    },
    done: (view, life) => {
      const [accepted, delivered, consumed] = grown(view, life);
      const status = acceptedOf(view, life).at(-1)?.status;
      return (
        accepted === 1 &&
        delivered! <= 1 &&
        consumed === 1 &&
        (status === "completed" || status === "interrupted")
      );
    },
    none: (view, life) =>
      grown(view, life).every((change) => change === 0) && facts(view, life).selection === null,
    again: (life) => life.talk(message, provider),
  };
}

async function fork(life: Life, strategy: "auto" | "native" | "replay"): Promise<void> {
  life.thread = (await life.threads.fork(life.h.tree.id, { policy: { strategy } })).thread.id;
}

const statuses = (view: StoreView, life: Life) =>
  view
    .runsOf(life.thread, ALL)
    .rows.map(({ status }) => status)
    .join();
const isBack: Command["done"] = (view, life) =>
  statuses(view, life) === "completed,rolled_back" && facts(view, life).rolledBack.length === 1;
const isThere: Command["done"] = (view, life) =>
  statuses(view, life) === "completed,completed" && facts(view, life).rolledBack.length === 0;
const back = (life: Life) => life.threads.rollBack(life.thread, { to: { kind: "ordinal", ordinal: 1 } });

/** Of the transfer of a fork: whether nobody knows what has become of what its provider was asked for. */
const inDoubt: Command["done"] = (view, { thread }) =>
  view.transfersOf(thread, ALL).rows.some(({ type, intent }) => type === "fork" && intent !== null);

const COMMANDS: Readonly<Record<string, Command>> = {
  create: {
    command: ({ threads }) => threads.create({ id: NEW, title: "made" }),
    done: (view) => view.tree(NEW) !== undefined && view.agent(NEW)?.thread?.title === "made",
    none: (view) => view.tree(NEW) === undefined && view.agent(NEW) === undefined,
  },
  "a continue that switches": { before: (life) => life.talk("q1"), ...taking("q2", "other") },
  "a continue that comes back": {
    async before(life) {
      await life.talk("q1");
      await life.talk("q2", "other");
    },
    ...taking("q3", "scripted"),
  },
  "a continue that switches to a loop of its own": {
    before: (life) => life.talk("q1"),
    ...taking("q2", "able"),
    calls: [
      [0, "ensureThread"],
      [0, "startTurn"],
    ],
  },
  "a continue that resumes a loop of its own": {
    on: "able",
    async before(life) {
      await life.talk("q1");
      await life.talk("q2", "poor");
      for (const native of life.natives) native.kill();
    },
    ...taking("q3", "able"),
    calls: [
      [0, "resumeThread"],
      [0, "startTurn"],
    ],
  },
  fork: {
    before: (life) => life.talk("q1"),
    command: ({ threads, thread }) => threads.fork(thread, { policy: { requestId: "once" } }),
    done(view) {
      const [child] = view.trees(ALL).rows;
      const { forkedFrom } = view.agent(child!.treeId)!.thread!;
      return view.trees(ALL).rows.length === 2 && view.transfer(forkedFrom!.transferId)?.status === "pending";
    },
    none: (view) => view.trees(ALL).rows.length === 1,
  },
  "the first run of a native fork": {
    on: "able",
    async before(life) {
      await life.talk("q1");
      await fork(life, "native");
    },
    ...taking("f1"),
    calls: [
      [0, "forkThread"],
      [0, "startTurn"],
    ],
  },
  "the reconcile of a fork in doubt": {
    on: "able",
    async before(life) {
      await life.talk("q1");
      await fork(life, "native");
      life.natives[0]!.fault("forkThread", crashAfter());
      expect(await life.say("f1")).toBe("provider_error");
    },
    command: ({ threads, thread }) => threads.reconcile(thread),
    done: (view, life) => {
      const [native] = view.providerThreadsOf(life.thread);
      return !inDoubt(view, life) && native?.nativeThreadRef !== undefined && native.status === "idle";
    },
    none: (view, life) => inDoubt(view, life) && view.providerThreadsOf(life.thread).length === 0,
    calls: [[0, "findForks"]],
  },
  "the first run of a replay fork": {
    async before(life) {
      await life.talk("q1");
      await fork(life, "replay");
    },
    ...taking("f1"),
  },
  "the run that takes a merge-back in": {
    async before(life) {
      await life.talk("q1");
      await fork(life, "auto");
      await life.talk("f1");
      const child = life.thread;
      life.thread = life.h.tree.id;
      await life.threads.mergeBack(child);
    },
    ...taking("q2"),
  },
  "a rollback": {
    async before(life) {
      await life.talk("q1");
      await life.talk("q2");
    },
    command: back,
    done: isBack,
    none: isThere,
  },
  "a rollback of the provider's own": {
    on: "able",
    async before(life) {
      await life.talk("q1");
      await life.talk("q2");
    },
    command: back,
    done: isBack,
    none: isThere,
    calls: [[0, "rollbackThread"]],
  },
  "the undo of a rollback": {
    async before(life) {
      await life.talk("q1");
      await life.talk("q2");
      await back(life);
    },
    command: ({ threads, thread }) => threads.undoRollback(thread),
    done: isThere,
    none: isBack,
  },
  close: {
    before: (life) => life.talk("q1"),
    command: ({ threads, thread }) => threads.close(thread),
    done: (view, { thread }) => view.agent(thread)!.state === "closed",
    none: (view, { thread }) => view.agent(thread)!.state === "open",
  },
  archive: {
    async before(life) {
      await life.talk("q1");
      await life.threads.close(life.thread);
    },
    command: ({ threads, thread }) => threads.archive(thread),
    done: (view, { thread }) => view.agent(thread)!.state === "archived",
    none: (view, { thread }) => view.agent(thread)!.state === "closed",
  },
  "the edit of a handoff": {
    async before(life) {
      await life.talk("q1");
      expect(await life.say("q2", "refuses")).not.toBe("completed");
      life.handoff = await life.h.store.read((view) => view.handoffsOf(life.thread, ALL).rows[0]!.id);
    },
    command: ({ threads, handoff }) => threads.editHandoff(handoff, "as I say"),
    done(view, { thread, handoff }) {
      const [old, mine] = view.handoffsOf(thread, ALL).rows;
      return (
        old!.supersededBy === mine?.id &&
        mine?.status === "ready" &&
        view.handoff(handoff)!.status === "superseded"
      );
    },
    none: (view, { thread }) =>
      view
        .handoffsOf(thread, ALL)
        .rows.map(({ status }) => status)
        .join() === "ready",
  },
};

async function begin(store: (typeof STORES)[number], { on = "scripted", before }: Command): Promise<Life> {
  const able = turnFork(SCRIPT);
  const poor = noFork(SCRIPT);
  const others = { able, poor, other: scripted(SCRIPT), refuses: scripted(REFUSES) };
  const h = await harness({ store, scripts: SCRIPT, others, tree: { provider: on } });
  const life = new Life(h, [able, poor]);
  await before?.(life);
  await h.clock.settle();
  life.before = await h.store.read((view) => figures(view, life));
  await life.check("before");
  return life;
}

/** Old or new, and new at the latest when it was given again; then the thread goes on. */
async function judge(life: Life, name: string, when: string): Promise<void> {
  const { done, none, command, again = command } = COMMANDS[name]!;
  const whole = await life.h.store.read((view) => [done(view, life), none(view, life)]);
  expect(whole.filter(Boolean), `${name}, ${when}: neither the old nor the new state is whole`).toHaveLength(
    1,
  );
  if (whole[1] === true) {
    await again(life);
    await life.check(`${when}, given again`);
    expect(await life.h.store.read((view) => done(view, life)), `${name}, ${when}: given again`).toBe(true);
  }
  const open = await life.h.store.read((view) => view.agent(life.thread)!.state === "open");
  if (!open) return;
  await life.talk("and on");
  await life.check(`${when}, gone on`);
  const { activeProviderThreadId, coverage } = await life.threads.get(life.thread);
  expect(coverage.find(({ id }) => id === activeProviderThreadId)?.gap, `${name}, ${when}`).toEqual([]);
  const runs = await life.h.store.read((view) => view.runsOf(life.thread, ALL).rows);
  expect(runs.every(isSettled)).toBe(true);
  // What a provider has forked is found again, and not forked once more (C5.19).
  const forked = life.natives[0]!.conversations.all().filter(({ forkedFrom }) => forkedFrom !== null);
  expect(forked.length, `${name}, ${when}`).toBeLessThanOrEqual(1);
}

describe.each(STORES)("crashes in commands on threads on %s", (store) => {
  test.for(Object.keys(COMMANDS))(
    "REC-1 C4.13 C9.10 %s: at each of its writes, before and after it",
    { timeout: 120_000 },
    async (name) => {
      let kills = 0;
      for (const kind of ["crash_before", "crash_after"] as const)
        for (let write = 1; await killedAt(name, write, kind); write += 1) kills += 1;
      expect(kills).toBeGreaterThan(1);
    },
  );

  async function killedAt(
    name: string,
    write: number,
    kind: "crash_before" | "crash_after",
  ): Promise<boolean> {
    await using life = await begin(store, COMMANDS[name]!);
    const { h } = life;
    const base = h.faulty.writes;
    h.onWrite = (number) => (number === base + write ? { kind } : null);
    let ended = false;
    const end = (): boolean => (ended = true);
    COMMANDS[name]!.command(life).then(end, end);
    await waitUntil("it has crashed or ended", () => h.faulty.crashed || ended);
    if (!h.faulty.crashed) return false;
    await life.crash();
    await judge(life, name, `${kind} of write ${write}`);
    return true;
  }

  const calls = Object.entries(COMMANDS).flatMap(([name, { calls = [] }]) =>
    calls.map(([provider, method]) => ({ name, provider, method })),
  );
  test.for(calls)(
    "C5.19 C4.13 C9.10 $name: after $method was done and not told",
    async ({ name, provider, method }) => {
      await using life = await begin(store, COMMANDS[name]!);
      const native = life.natives[provider]!;
      native.fault(method, hang("done", { done: true }));
      COMMANDS[name]!.command(life).catch(() => undefined);
      await waitUntil("it is done", () => native.gates.waiting("done") > 0);
      await life.crash();
      await judge(life, name, `after ${method}`);
    },
  );
});
