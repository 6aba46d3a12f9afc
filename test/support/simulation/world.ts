/**
 * The simulated world: one store, the processes that own the tree one after the other or side by side, and a judge that
 * looks at the store within every commit. What happens in it is drawn elsewhere (`actors.ts`, `agent-script.ts`).
 */
import { z } from "zod";
import type { Logger } from "../../../src/platform/logger.ts";
import { seededRandom } from "../../../src/platform/ids.ts";
import { ROOT_PATH } from "../../../src/protocol/agent-path.ts";
import type { TreeId } from "../../../src/protocol/ids.ts";
import type { LimitsInput } from "../../../src/protocol/limits.ts";
import type { LineageLimitsInput } from "../../../src/protocol/lineage-limits.ts";
import { createNativeConversations } from "../../../src/providers/scripted/native/conversations.ts";
import type { ScriptedNativeProvider } from "../../../src/providers/scripted/native/provider.ts";
import { scripted } from "../../../src/providers/scripted/provider.ts";
import { totalTokens } from "../../../src/protocol/usage.ts";
import type { Tree } from "../../../src/control/tree.ts";
import { createRuntime } from "../../../src/runtime/create-runtime.ts";
import type { Runtime } from "../../../src/runtime/runtime.ts";
import type { TreeOptions } from "../../../src/runtime/options.ts";
import type { TreeHandle } from "../../../src/runtime/tree-handle.ts";
import type { Store, StoreView } from "../../../src/store/port.ts";
import { invariants, type Invariants } from "../../../src/testing/invariants.ts";
import type { SeededScheduler } from "../../../src/testing/scheduler.ts";
import type { SimulatedProcess } from "../../../src/testing/scheduler-process.ts";
import { defineTool } from "../../../src/tools/define-tool.ts";
import { type Behaviour, agentScript } from "./agent-script.ts";
import { link, type LinkFault } from "./link.ts";
import { describeStore } from "./describe.ts";
import { nativeProviders } from "./natives.ts";
import { dice, type Dice } from "./randomness.ts";

export interface Faults {
  /** Probability that a commit is refused by the store. */
  readonly refuse: number;
  /** Probability that a commit is stored and its owner is told that it failed. */
  readonly lose: number;
  /** Probability that the process dies at a commit. */
  readonly crash: number;
  readonly lateAnswers: boolean;
}

export interface WorldOptions {
  readonly scheduler: SeededScheduler;
  readonly store: Store;
  readonly behaviour: Behaviour;
  readonly limits: LimitsInput;
  readonly lineage: LineageLimitsInput;
  /** Beside the one provider another with the same scripts, and two that own their loops. */
  readonly threads: boolean;
  /** Agents may do with other trees what is approved, when a program calls for them. */
  readonly calls: boolean;
  readonly faults: Faults;
  readonly tree: Pick<TreeOptions, "onLostRun" | "profile" | "provider">;
}

/** A process that owns the tree, or did. */
export interface Owner {
  readonly pid: number;
  readonly process: SimulatedProcess;
  /** Settles when the tree is open here, or was refused; never when the process is killed before. */
  readonly opened: Promise<void>;
  handle: TreeHandle | null;
  runtime: Runtime | null;
  readonly natives: Readonly<Record<string, ScriptedNativeProvider>>;
  /** Trees of forks that it was asked to open. */
  readonly forks: Map<TreeId, TreeHandle>;
}

/** Errors that are answers; any other in the log is a fault of the runtime. */
const ANSWERS = ["RejectedError", "TransientError", "InterruptedError"];

/** A promise of the runtime was broken; the message says which. */
export class Broken extends Error {
  override readonly name = "Broken";
}

export class World {
  readonly scheduler: SeededScheduler;
  readonly store: Store;
  readonly options: WorldOptions;
  readonly owners: Owner[] = [];
  readonly #dice: Dice;
  readonly #conversations = createNativeConversations();
  readonly #invariants = new Map<TreeId, Invariants>();
  readonly #reserved = new WeakMap<Tree, number>();
  #treeId: TreeId | null = null;
  #broken: Broken | null = null;
  /** No more faults: everything is to come to rest. */
  calm = false;
  commits = 0;
  /** The end of the event log and the agents, at the moment of the fault. */
  tail = "";

  constructor(options: WorldOptions) {
    this.options = options;
    this.scheduler = options.scheduler;
    this.store = options.store;
    this.#dice = dice(options.behaviour.seed, "faults");
  }

  get treeId(): TreeId | null {
    return this.#treeId;
  }

  get broken(): Broken | null {
    return this.#broken;
  }

  /** The process that holds the tree now and can be asked. */
  get owner(): Owner | null {
    return (
      this.owners.findLast(
        ({ process, handle }) => process.state() === "running" && handle?.owned === true,
      ) ?? null
    );
  }

  /** A look at the store from outside of every process; not from inside another look. */
  look<T>(plan: (view: StoreView) => T): T {
    let seen: { readonly value: T } | null = null;
    // A read of our own stores has run when it returns its promise.
    const read = this.store.read((view) => (seen = { value: plan(view) }));
    read.catch((error: unknown) => this.fail(`REC-3 a read failed: ${String(error)}`));
    if (seen === null) throw new Error("The store answers a read later than it is asked.");
    return (seen as { readonly value: T }).value;
  }

  /** Keeps the first fault, and how the store looked then. */
  fail(text: string, seen?: StoreView): void {
    if (this.#broken !== null) return;
    this.#broken = new Broken(text);
    const describe = (view: StoreView): string => describeStore(view, this.#treeId);
    this.tail = seen === undefined ? this.look(describe) : describe(seen);
  }

  /** Another process, which opens the tree, or makes it. */
  start(): Owner {
    const pid = this.owners.length + 1;
    const process = this.scheduler.process(`process ${pid}`);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const { behaviour, threads } = this.options;
    const natives = threads ? nativeProviders(behaviour, process.clock, this.#conversations) : {};
    const rest = { handle: null, runtime: null, natives, forks: new Map() };
    const owner: Owner = { pid, process, opened: promise, ...rest };
    this.owners.push(owner);
    this.#open(owner).then(resolve, reject);
    return owner;
  }

  /** As `kill -9`: its providers' processes are gone with it. */
  kill(owner: Owner): void {
    owner.process.kill();
    for (const native of Object.values(owner.natives)) native.kill();
  }

  /** Trees of the store but the one that all begins with. */
  forks(view: StoreView): readonly TreeId[] {
    if (!this.options.threads) return [];
    const { rows } = view.trees({ limit: 100 });
    return rows.map(({ treeId }) => treeId).filter((treeId) => treeId !== this.#treeId);
  }

  /** Whoever can be asked about this tree. */
  handleOf(treeId: TreeId): TreeHandle | null {
    if (treeId === this.#treeId) return this.owner?.handle ?? null;
    for (const { process, forks } of this.owners) {
      const handle = forks.get(treeId);
      if (process.state() === "running" && handle?.owned === true) return handle;
    }
    return null;
  }

  async #open(owner: Owner): Promise<void> {
    const { process, pid } = owner;
    const { behaviour, limits, lineage, threads, calls, faults, tree } = this.options;
    const ours = () =>
      process.wrapProvider(scripted({ "*": agentScript(behaviour) }, { clock: process.clock, recorded: 0 }));
    const natives = Object.entries(owner.natives).map(([name, native]) => [name, process.wrapNative(native)]);
    const work = defineTool({
      name: "work",
      input: z.object({ n: z.number() }),
      run: async () => {
        await process.hold("tool works");
        return { ok: true };
      },
    });
    const runtime = await createRuntime({
      store: link({
        process,
        store: this.store,
        late: faults.lateAnswers,
        fault: () => this.#fault(),
        crash: () => this.kill(owner),
        watch: (view, treeId) => this.#watch(view, treeId),
      }),
      clock: process.clock,
      random: seededRandom(behaviour.seed * 1000 + pid),
      providers: { scripted: ours(), ...(threads ? { other: ours() } : {}), ...Object.fromEntries(natives) },
      tools: [work],
      ...(calls ? { threadTools: { allow: "all" } } : {}),
      limits,
      lineage,
      logger: this.#logger(),
      identity: { host: "simulation", bootId: "boot", pid, startedAt: "1" },
      provenDead: (other) => this.owners.find((one) => one.pid === other.pid)?.process.state() === "killed",
    });
    owner.runtime = runtime;
    const handle = await runtime.openTree(this.#treeId === null ? tree : { id: this.#treeId });
    owner.handle = handle;
    this.#treeId ??= handle.id;
  }

  #watch(view: StoreView, treeId: TreeId): () => void {
    const others = this.#others(view, treeId);
    return () => {
      this.judge(view, treeId);
      const after = this.#others(view, treeId);
      // One that was not there before is made by it.
      if ([...others].some(([id, before]) => after.get(id) !== before))
        this.fail(`C5.4 a commit on ${treeId} has changed rows of another tree`, view);
    };
  }

  /** What threads of other trees are: nothing that is done here changes it. */
  #others(view: StoreView, treeId: TreeId): ReadonlyMap<TreeId, string> {
    if (!this.options.threads) return new Map();
    const others = view.trees({ limit: 100 }).rows.filter((tree) => tree.treeId !== treeId);
    return new Map(others.map(({ treeId: id }) => [id, `${view.lastEvent(id)} ${shown(view, id)}`]));
  }

  /** Looks at a tree, inside a commit or after a send. */
  judge(view: StoreView, treeId: TreeId): void {
    this.commits += 1;
    if (this.#broken !== null) return;
    const known = this.#invariants.get(treeId) ?? invariants(treeId);
    this.#invariants.set(treeId, known);
    const [first, ...others] = known.check(view);
    if (first === undefined) return;
    this.fail(
      [first, ...others.slice(0, 5)].map(({ contract, text }) => `${contract} ${text}`).join("\n"),
      view,
    );
  }

  /** What memory says of itself must fit, at any time. */
  judgeMemory(): void {
    for (const { handle, process } of this.owners) {
      if (handle === null || process.state() !== "running" || !handle.owned) continue;
      const { permits, residency } = handle.control.tree;
      this.#judgeReservations(handle.control.tree);
      const limit = permits.limit ?? Infinity;
      // The permit of a run that had lent it may be overdrawn.
      const most = permits.inUse > limit ? limit + this.#lenders(handle.id) : limit;
      if (permits.inUse < 0 || permits.inUse > most)
        this.fail(`EXE-4 ${permits.inUse} permits are in use and the limit is ${permits.limit}`);
      // A slot that was lent counts again even above the limit.
      if (residency.count > residency.limit && !this.options.calls) {
        this.fail(`RES-2 ${residency.count} sessions are resident and the limit is ${residency.limit}`);
      }
    }
  }

  /** Runs in which calls by token wait, or have waited. */
  #lenders(tree: TreeId): number {
    return this.look((view) => view.openRuns(tree).filter((run) => run.permitLent !== undefined).length);
  }

  /** What is reserved anew fits beside what is spent; one that is given back later is counted twice for a moment. */
  #judgeReservations(tree: Tree): void {
    const reserved = tree.reservations.reserved(ROOT_PATH, "tokens");
    const before = this.#reserved.get(tree) ?? 0;
    this.#reserved.set(tree, reserved);
    const limit = tree.limits.tokensPerTree;
    if (reserved <= before || limit === null) return;
    const spent = totalTokens(this.look((view) => view.usageUnder(tree.treeId, ROOT_PATH)));
    if (spent + reserved > limit)
      this.fail(`BUD-2 ${spent} tokens are spent, ${reserved} reserved, and the limit is ${limit}`);
  }

  #fault(): LinkFault {
    const { faults } = this.options;
    if (this.calm || this.#treeId === null) return "none";
    if (faults.refuse > 0 && this.#dice.chance(faults.refuse)) return this.#dice.pick(["busy", "io"]);
    if (faults.lose > 0 && this.#dice.chance(faults.lose)) return "answer_lost";
    if (faults.crash > 0 && this.#dice.chance(faults.crash))
      return this.#dice.pick(["crash_before", "crash_after"]);
    return "none";
  }

  /** The runtime's own log: a bug of the runtime shows there even when it is survived. */
  #logger(): Logger {
    const look = (fields: object, message = ""): void => {
      const error = (fields as { readonly err?: unknown }).err;
      if (error === undefined || (error instanceof Error && ANSWERS.includes(error.name))) return;
      this.fail(`ERR-1 ${message}: ${error instanceof Error ? error.stack : JSON.stringify(error)}`);
    };
    return { debug: look, info: look, warn: look, error: look };
  }
}

function shown(view: StoreView, treeId: TreeId): string {
  const { rows } = view.agents(treeId, "/root", { limit: 1000, closed: true });
  return rows.map(({ threadId, revision, runs, items }) => [threadId, revision, runs, items].join()).join();
}
