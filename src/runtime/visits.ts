/**
 * Commits of a runtime on trees that it does not own: each claims the tree for as long as it lasts and gives it back.
 *
 * - V1 Of one tree one at a time, and an opening of it waits for them: a runtime is never in its own way.
 */
import type { Shared } from "../control/shared.ts";
import { type PlanContext, Transaction } from "../control/transaction.ts";
import type { Tree } from "../control/tree.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import type { TreeId } from "../protocol/ids.ts";
import type { NativeSession } from "../providers/port.ts";
import type { Lease, Store, StoreView } from "../store/port.ts";
import { withoutOwner } from "./without-owner.ts";

export interface VisitPorts {
  readonly store: Store;
  readonly context: Partial<PlanContext> & Pick<PlanContext, "ids">;
  /** @throws RejectedError `NOT_OWNER`. */
  readonly claim: (tree: TreeId) => Promise<Lease>;
}

export class Visits {
  readonly #ports: VisitPorts;
  readonly #last = new Map<TreeId, Promise<unknown>>();

  constructor(ports: VisitPorts) {
    this.#ports = ports;
  }

  /** Resolves when none is under way or waits for its turn; it never rejects. */
  async over(tree: TreeId): Promise<void> {
    for (let last; (last = this.#last.get(tree)) !== undefined;) await last;
  }

  contextOf(view: StoreView, tree: TreeId): PlanContext {
    const { context } = this.#ports;
    return withoutOwner(view, tree, context.ids, context);
  }

  commit<T>(tree: TreeId, plan: (tx: Transaction) => T): Promise<T> {
    return this.during(tree, (lease) =>
      this.#ports.store.commit(lease, (tx) => plan(new Transaction(tx, this.contextOf(tx, tree)))),
    );
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
    const { store, claim } = this.#ports;
    const lease = await claim(tree);
    try {
      return await act(lease);
    } finally {
      // Lost meanwhile, it is another's.
      await store.release(lease, { abandon: true }).catch(IGNORE);
    }
  }
}

const IGNORE = (): void => undefined;

/** What a runtime knows of any tree: its providers and its numbers. */
export function visitContext({ ids, lineage, redact, adapter }: Shared): VisitPorts["context"] {
  return {
    ids,
    lineage,
    redact,
    loop: (provider) => adapter(provider)?.loop ?? "ours",
    parksWaits: (provider) => {
      const known = adapter(provider);
      return known === undefined || (known.loop === "ours" && known.capabilities.parksWaits);
    },
  };
}

/** The session of a loaded agent with this provider. */
export function nativeSessionOf(
  tree: Tree | undefined,
  agent: AgentRecord,
  provider: string,
): NativeSession | null {
  const session = tree?.sessions.get(agent.threadId);
  if (session?.provider.loop !== "theirs" || session.agent.config.provider !== provider) return null;
  return session.provider.session;
}
