/**
 * The simulated world: one store, the processes that own the tree one after the other or side by side, and a judge that
 * looks at the store within every commit. What happens in it is drawn elsewhere (`actors.ts`, `agent-script.ts`).
 */
import { z } from "zod";
import type { Logger } from "../../../src/platform/logger.ts";
import { seededRandom } from "../../../src/platform/ids.ts";
import type { TreeId } from "../../../src/protocol/ids.ts";
import type { LimitsInput } from "../../../src/protocol/limits.ts";
import { scripted } from "../../../src/providers/scripted/provider.ts";
import { createRuntime } from "../../../src/runtime/create-runtime.ts";
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
  readonly faults: Faults;
  readonly tree: Pick<TreeOptions, "onLostRun" | "profile">;
}

/** A process that owns the tree, or did. */
export interface Owner {
  readonly pid: number;
  readonly process: SimulatedProcess;
  /** Settles when the tree is open here, or was refused; never when the process is killed before. */
  readonly opened: Promise<void>;
  handle: TreeHandle | null;
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
  #invariants: Invariants | null = null;
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
    const owner: Owner = { pid, process, opened: promise, handle: null };
    this.owners.push(owner);
    this.#open(owner).then(resolve, reject);
    return owner;
  }

  async #open(owner: Owner): Promise<void> {
    const { process, pid } = owner;
    const { behaviour, limits, faults, tree } = this.options;
    const provider = process.wrapProvider(
      scripted({ "*": agentScript(behaviour) }, { clock: process.clock, recorded: 0 }),
    );
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
        crash: () => process.kill(),
        committed: (view) => this.judge(view),
      }),
      clock: process.clock,
      random: seededRandom(behaviour.seed * 1000 + pid),
      providers: { scripted: provider },
      tools: [work],
      limits,
      logger: this.#logger(),
      identity: { host: "simulation", bootId: "boot", pid, startedAt: "1" },
      provenDead: (other) => this.owners.find((one) => one.pid === other.pid)?.process.state() === "killed",
    });
    const handle = await runtime.openTree(this.#treeId === null ? tree : { id: this.#treeId });
    owner.handle = handle;
    this.#treeId ??= handle.id;
    this.#invariants ??= invariants(handle.id);
  }

  /** Looks at the store, inside a commit or after a send. */
  judge(view: StoreView): void {
    this.commits += 1;
    if (this.#invariants === null || this.#broken !== null) return;
    const [first, ...others] = this.#invariants.check(view);
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
      if (permits.inUse < 0 || permits.inUse > (permits.limit ?? Infinity) + permits.overdrawn) {
        this.fail(`EXE-4 ${permits.inUse} permits are in use and the limit is ${permits.limit}`);
      }
      if (residency.count > residency.limit) {
        this.fail(`RES-2 ${residency.count} sessions are resident and the limit is ${residency.limit}`);
      }
    }
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
    const logger: Logger = { debug: look, info: look, warn: look, error: look, child: () => logger };
    return logger;
  }
}
