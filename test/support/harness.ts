/**
 * One harness for tests of the whole runtime: a runtime on a store, scripted agents, a virtual clock, and a crash that
 * leaves nothing but the store. Test files own scenarios and assertions only.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import type { Runtime } from "../../src/runtime/runtime.ts";
import type { RuntimeOptions, TreeOptions } from "../../src/runtime/options.ts";
import type { TreeHandle } from "../../src/runtime/tree-handle.ts";
import { seededRandom } from "../../src/platform/ids.ts";
import { scripted, type ScriptedProvider } from "../../src/providers/scripted/provider.ts";
import { createMemoryStore, type MemoryStore } from "../../src/store/memory.ts";
import type { MendableTable, Store } from "../../src/store/port.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { createFaultyStore, type FaultPlan, type FaultyStore } from "../../src/testing/faulty-store.ts";
import { virtualClock } from "../../src/testing/virtual-clock.ts";
import type { MailId, ThreadId } from "../../src/protocol/ids.ts";
import { damageRow, openRaw } from "./stores.ts";

export const STORES = ["memory", "sqlite"] as const;
export type StoreKind = (typeof STORES)[number];
type Scripts = Parameters<typeof scripted>[0];
type ScriptedOptions = Parameters<typeof scripted>[1];

export interface HarnessOptions {
  readonly store?: StoreKind;
  readonly scripts?: Scripts;
  readonly scripted?: ScriptedOptions;
  readonly runtime?: Omit<RuntimeOptions, "store" | "clock" | "random">;
  readonly tree?: TreeOptions;
  readonly seed?: number;
  /** Providers beside the one that plays the scripts. */
  readonly others?: NonNullable<RuntimeOptions["providers"]>;
}

const IDENTITY = { host: "test", bootId: "boot", pid: 1, startedAt: "1" } as const;

export class Harness implements AsyncDisposable {
  readonly clock = virtualClock();
  readonly options: HarnessOptions;
  readonly provider: ScriptedProvider;
  runtime!: Runtime;
  tree!: TreeHandle;
  /** The store beneath, which a crash does not touch. */
  store!: Store;
  /** Between the runtime and the store; what it asks `onWrite` decides about each write. */
  faulty!: FaultyStore;
  onWrite: NonNullable<FaultPlan["onWrite"]> = () => null;
  #folder: string | null = null;
  #link: Link | null = null;
  #generation = 0;

  constructor(options: HarnessOptions) {
    this.options = options;
    this.provider = scripted(options.scripts ?? {}, { clock: this.clock, ...options.scripted });
  }

  async open(): Promise<this> {
    this.store = await this.#openStore();
    this.runtime = await this.newRuntime();
    this.tree = await this.runtime.openTree(this.options.tree ?? {});
    return this;
  }

  async #openStore(): Promise<Store> {
    if ((this.options.store ?? "memory") === "memory")
      return createMemoryStore({ clock: this.clock, deepFreeze: true });
    this.#folder ??= mkdtempSync(join(tmpdir(), "coppice-test-"));
    return openSqliteStore({
      path: join(this.#folder, "store.db"),
      synchronous: "normal",
      clock: this.clock,
    });
  }

  /** Another runtime on the same store, as another process would have. */
  async newRuntime(overrides: HarnessOptions["runtime"] = {}): Promise<Runtime> {
    this.#generation += 1;
    this.faulty = createFaultyStore(this.store, { onWrite: (write, kind) => this.onWrite(write, kind) });
    this.#link = new Link(this.faulty);
    return createRuntime({
      providers: { scripted: this.provider, ...this.options.others },
      identity: { ...IDENTITY, pid: this.#generation },
      provenDead: () => true,
      ...this.options.runtime,
      ...overrides,
      store: this.#link.store,
      clock: this.clock,
      random: seededRandom((this.options.seed ?? 1) * 1000 + this.#generation),
    });
  }

  /** Makes a stored message unreadable, as a broken row of a file would be (MBX-10). */
  damageMail(id: MailId): void {
    if (this.#folder === null) {
      (this.store as MemoryStore).damageMail(id);
      return;
    }
    damageRow(join(this.#folder, "store.db"), "mail", id);
  }

  /** Makes another stored row unreadable (REC-1). */
  damageRow(table: MendableTable, id: string): void {
    if (this.#folder === null) (this.store as MemoryStore).damageRow(table, id);
    else damageRow(join(this.#folder, "store.db"), table, id);
  }

  /** The text of a row that was set aside. Of a file only. */
  setAside(id: string): string | undefined {
    if (this.#folder === null) return undefined;
    using other = openRaw(join(this.#folder, "store.db"));
    const row = other.database.prepare("SELECT body FROM unreadable_bodies WHERE id = ?").get(id);
    return row?.["body"] as string | undefined;
  }

  /** Makes the transcript of a thread unreadable. Of a file only: a store in memory has no rows that could break. */
  damageItems(thread: ThreadId): void {
    if (this.#folder === null) throw new Error("A store in memory cannot be damaged.");
    using other = openRaw(join(this.#folder, "store.db"));
    other.database
      .prepare(
        "UPDATE items SET body = substr(body, 1, 9) WHERE thread = (SELECT rowid FROM threads WHERE id = ?)",
      )
      .run(thread);
  }

  /** Changes rows of the file behind everybody's back. A store in memory has none that could be changed. */
  edit(sql: string, ...values: readonly (string | number)[]): void {
    if (this.#folder === null) throw new Error("A store in memory cannot be edited.");
    using other = openRaw(join(this.#folder, "store.db"));
    other.database.prepare(sql).run(...values);
  }

  /** The process is gone, and no other has taken its place yet. */
  cut(): void {
    this.#link?.cut();
  }

  /** As `kill -9`: from now on nothing of the old runtime reaches the store; a new one opens the same tree. */
  async crash(overrides: HarnessOptions["runtime"] = {}): Promise<void> {
    const { id } = this.tree;
    this.#link?.cut();
    if (this.#folder !== null) this.store = await this.#openStore();
    this.runtime = await this.newRuntime(overrides);
    this.tree = await this.runtime.openTree({ id });
  }

  /** Sends to the root and waits for the outcome, letting virtual time pass in steps where it must. */
  async ask(text: string) {
    const work = await this.tree.root.send(text);
    return work.outcome();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    let over = false;
    const closing = this.runtime
      ?.close()
      .catch(() => undefined)
      .finally(() => (over = true));
    await this.clock.settle();
    // What does not end by itself has its time.
    for (let rounds = 0; !over && rounds < 100; rounds += 1) await this.clock.advance(1_000);
    await closing;
    await this.store?.close().catch(() => undefined);
    if (this.#folder !== null) rmSync(this.#folder, { recursive: true, force: true });
  }
}

export async function harness(options: HarnessOptions = {}): Promise<Harness> {
  return new Harness(options).open();
}

/** A connection to a store that can be cut, after which its calls never come back. */
class Link {
  readonly store: Store;
  #cut = false;

  constructor(inner: Store) {
    const never = <T>(): Promise<T> => new Promise<T>(() => undefined);
    const through = <T>(call: () => Promise<T>): Promise<T> => {
      if (this.#cut) return never();
      return call().then(
        (value) => (this.#cut ? never<T>() : value),
        (error: unknown) => (this.#cut ? never<T>() : Promise.reject(error as Error)),
      );
    };
    this.store = {
      kind: inner.kind,
      name: inner.name,
      send: (mail) => through(() => inner.send(mail)),
      command: (record) => through(() => inner.command(record)),
      claim: (request) => through(() => inner.claim(request)),
      heartbeat: (leases, leaseMs) => through(() => inner.heartbeat(leases, leaseMs)),
      release: (lease, options) => through(() => inner.release(lease, options)),
      claimable: (limit, dead) => through(() => inner.claimable(limit, dead)),
      commit: (lease, plan) => through(() => inner.commit(lease, plan)),
      read: (plan) => through(() => inner.read(plan)),
      changes: () => through(() => inner.changes()),
      onHint: (tree, callback) => inner.onHint(tree, () => (this.#cut ? undefined : callback())),
      close: async () => undefined,
    };
  }

  cut(): void {
    this.#cut = true;
  }
}
