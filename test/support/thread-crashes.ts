/**
 * A life of threads that ends with a crash: its trees, its checkers, and the command that is killed at one of its writes. What is
 * stored then is the old state or the new one, and the command can be given again.
 */
import { expect } from "vitest";
import type { NativeMethod } from "../../src/providers/scripted/native/faults.ts";
import {
  noFork,
  type ScriptedNativeProvider,
  turnFork,
} from "../../src/providers/scripted/native/provider.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { fail, repeat, type Script } from "../../src/providers/scripted/script.ts";
import type { HandoffId, ThreadId, TransferId, TreeId } from "../../src/protocol/ids.ts";
import { isSettled } from "../../src/protocol/run.ts";
import type { StoreView } from "../../src/store/port.ts";
import { invariants, type Invariants } from "../../src/testing/invariants.ts";
import { turn } from "../../src/testing/virtual-clock.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { harness, type Harness, type StoreKind } from "./harness.ts";

export const ALL = { limit: 100 };
/** Refuses everything before it has accepted it. */
const REFUSES = { "/root": [repeat(fail({ code: "PROVIDER_REFUSED" }))] };
type Scripts = Readonly<Record<string, Script>>;

/** One life: its trees, its checkers, and what the command is about. */
export class Life implements AsyncDisposable {
  readonly h: Harness;
  readonly natives: readonly ScriptedNativeProvider[];
  readonly #checkers = new Map<TreeId, Invariants>();
  /** The thread that the command is about. */
  thread: ThreadId;
  /** Of the thread, before the command. */
  before = { accepted: 0, delivered: 0, consumed: 0 };
  handoff: HandoffId = "hnd_none";
  transfer: TransferId = "xfr_none";
  /** Another thread than that one. */
  other: ThreadId = "thread_none" as ThreadId;

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

export interface Command {
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

export const facts = (view: StoreView, { thread }: Life) => view.agent(thread)!.thread!;
export const acceptedOf = (view: StoreView, { thread }: Life) =>
  view.runsOf(thread, ALL).rows.filter(({ acceptedAt }) => acceptedAt !== null);
const figures = (view: StoreView, life: Life) => ({
  accepted: acceptedOf(view, life).length,
  delivered: view.handoffsOf(life.thread, ALL).rows.filter(({ deliveredAt }) => deliveredAt !== null).length,
  consumed: view.transfersOf(life.thread, ALL).rows.filter(({ status, targetThreadId }) => {
    return status === "consumed" && targetThreadId === life.thread;
  }).length,
});
export const grown = (view: StoreView, life: Life) => {
  const now = figures(view, life);
  return Object.entries(life.before).map(([key, was]) => now[key as keyof typeof now] - was);
};

export async function begin(
  store: StoreKind,
  scripts: Scripts,
  { on = "scripted", before }: Command,
): Promise<Life> {
  const able = turnFork(scripts);
  const poor = noFork(scripts);
  const others = { able, poor, other: scripted(scripts), refuses: scripted(REFUSES) };
  const runtime = { threadTools: { allow: "all", approval: "none" } } as const;
  const h = await harness({ store, scripts, others, runtime, tree: { provider: on } });
  const life = new Life(h, [able, poor]);
  await before?.(life);
  await h.clock.settle();
  life.before = await h.store.read((view) => figures(view, life));
  await life.check("before");
  return life;
}

/** Old or new, and new at the latest when it was given again; then the thread goes on. */
export async function judge(life: Life, name: string, given: Command, when: string): Promise<void> {
  const { done, none, command, again = command } = given;
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

/** Kills a command before and after each of its writes; answers how often. */
export async function killedAtEachWrite(
  store: StoreKind,
  scripts: Scripts,
  name: string,
  command: Command,
): Promise<number> {
  let kills = 0;
  for (const kind of ["crash_before", "crash_after"] as const)
    for (let write = 1; await killedAt(write, kind); write += 1) kills += 1;
  return kills;

  async function killedAt(write: number, kind: "crash_before" | "crash_after"): Promise<boolean> {
    await using life = await begin(store, scripts, command);
    const { h } = life;
    const base = h.faulty.writes;
    h.onWrite = (number) => (number === base + write ? { kind } : null);
    let ended = false;
    const end = (): boolean => (ended = true);
    command.command(life).then(end, end);
    await waitUntil("it has crashed or ended", () => h.faulty.crashed || ended);
    if (!h.faulty.crashed) return false;
    await life.crash();
    await judge(life, name, command, `${kind} of write ${write}`);
    return true;
  }
}
