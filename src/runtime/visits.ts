/**
 * Commits of a runtime on trees that it does not own: each claims the tree for as long as it lasts and gives it back.
 *
 * - V1 Of one tree one at a time, and an opening of it waits for them: a runtime is never in its own way.
 */
import { parksWaits, requireAdapter, type Shared, windowOf } from "../control/shared.ts";
import { processesOf } from "../control/processes.ts";
import { unregisteredProcesses } from "../platform/process-group.ts";
import { DEFAULT_LIMITS } from "../protocol/limits.ts";
import { PROFILES } from "../protocol/profile.ts";
import { Look, type PlanContext, Transaction } from "../control/transaction.ts";
import type { Tree } from "../control/tree.ts";
import { CoppiceError } from "../protocol/errors.ts";
import type { TreeId } from "../protocol/ids.ts";
import type { Lease, StoreView } from "../store/port.ts";
import type { ThreadPorts } from "../threads/ports.ts";
import { withoutOwner } from "./without-owner.ts";

export interface VisitPorts {
  readonly shared: Shared;
  /** The tree, where this runtime owns it or is just opening it. */
  readonly owned: (tree: TreeId) => Promise<Tree | undefined>;
  /** @throws RejectedError `NOT_OWNER`. */
  readonly claim: (tree: TreeId) => Promise<Lease>;
  readonly release: (lease: Lease) => Promise<void>;
  /** Whether this runtime has the tree, or is opening it or giving it back. */
  readonly isMine: (tree: TreeId) => boolean;
}

type Given = Pick<
  ThreadPorts,
  | "store"
  | "ids"
  | "logger"
  | "redact"
  | "lineage"
  | "clock"
  | "summariser"
  | "withNewTree"
  | "apply"
  | "look"
  | "isMine"
  | "forking"
  | "sessionOf"
  | "processesOf"
>;

export class Visits {
  readonly #ports: VisitPorts;
  readonly #last = new Map<TreeId, Promise<unknown>>();

  constructor(ports: VisitPorts) {
    this.#ports = ports;
  }

  /** What the commands on threads have of it. */
  ports(): Given {
    const { shared, owned, isMine } = this.#ports;
    const { store, ids, logger, redact, lineage, summariser, clock, forking } = shared;
    return {
      store,
      ids,
      logger,
      redact,
      lineage,
      clock,
      summariser,
      withNewTree: (tree, act) => this.during(tree, act),
      apply: (tree, plan) => this.#apply(tree, plan),
      look: (tree, plan) => store.read((view) => plan(new Look(view, this.#contextOf(view, tree)))),
      isMine,
      forking,
      sessionOf: async ({ treeId, threadId }, provider) => {
        const session = (await owned(treeId))?.sessions.get(threadId);
        if (session?.provider.loop !== "theirs" || session.agent.config.provider !== provider) return null;
        return session.provider.session;
      },
      processesOf: async ({ treeId, threadId }) => {
        const tree = await owned(treeId);
        return tree === undefined
          ? unregisteredProcesses(clock, DEFAULT_LIMITS.interruptGraceMs)
          : processesOf(tree, threadId);
      },
    };
  }

  /** Its providers and its numbers are known of any tree. */
  #contextOf(view: StoreView, tree: TreeId): PlanContext {
    const { ids, lineage, redact, adapter, toolHost } = this.#ports.shared;
    const { profile, limits } = view.tree(tree)!;
    return withoutOwner(view, tree, ids, {
      requireProvider: (provider, effects) => requireAdapter(this.#ports.shared, provider, effects),
      lineage,
      redact,
      toolEffects: (agent) => toolHost.specs(agent, { profile: PROFILES[profile], limits }),
      loop: (provider) => adapter(provider)?.loop ?? "ours",
      windowOf: (provider, model) => windowOf(adapter(provider), model),
      parksWaits: (provider) => parksWaits(this.#ports.shared, provider),
    });
  }

  /** What stands in the way may be this runtime itself, which has just opened the tree or is giving it back: then again. */
  async #apply<T>(tree: TreeId, plan: (tx: Transaction) => T): Promise<T> {
    for (;;) {
      const mine = await this.#ports.owned(tree);
      try {
        return await (mine === undefined ? this.#commit(tree, plan) : mine.transact(plan));
      } catch (error) {
        if (!CoppiceError.is(error)) throw error;
        const between =
          mine === undefined
            ? error.code === "NOT_OWNER" && this.#ports.isMine(tree)
            : error.code === "RUNTIME_CLOSED" && mine.state === "closing";
        if (!between) throw error;
      }
    }
  }

  #commit<T>(tree: TreeId, plan: (tx: Transaction) => T): Promise<T> {
    const { store } = this.#ports.shared;
    return this.during(tree, (lease) =>
      store.commit(lease, (tx) => plan(new Transaction(tx, this.#contextOf(tx, tree)))),
    );
  }

  /** Resolves when none is under way or waits for its turn; it never rejects. */
  async over(tree: TreeId): Promise<void> {
    for (let last; (last = this.#last.get(tree)) !== undefined;) await last;
  }

  /** As `over`, of all trees. */
  async allOver(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }

  /** For as long as `act` lasts. */
  during<T>(tree: TreeId, act: (lease: Lease) => Promise<T>): Promise<T> {
    const visit = (this.#last.get(tree) ?? Promise.resolve()).then(() => this.#visit(tree, act));
    const last = visit
      .then(IGNORE, IGNORE)
      .finally(() => (this.#last.get(tree) === last ? this.#last.delete(tree) : undefined));
    this.#last.set(tree, last);
    return visit;
  }

  async #visit<T>(tree: TreeId, act: (lease: Lease) => Promise<T>): Promise<T> {
    const { claim, release } = this.#ports;
    const lease = await claim(tree);
    try {
      return await act(lease);
    } finally {
      await release(lease).catch(IGNORE);
    }
  }
}

const IGNORE = (): void => undefined;
