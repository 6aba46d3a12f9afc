/**
 * Ownership of trees (REC-2, REC-6): leases renewed on time, or given up before another may claim; mail and commands of
 * other processes, noticed by polling.
 *
 * - K1 Everything works with hints silent: a hint only makes the next look come sooner.
 * - K2 After `leaseGiveUpMs` of the own monotonic clock without a renewal the owner stops by itself; after a freeze it looks
 *   before any further effect. The first renewal is the claim: it counts from when it was asked for.
 * - K3 A lease is renewed while its tree is recovered, and until it is given back; the inbox is read in between.
 */
import type { TreeId } from "../protocol/ids.ts";
import type { Limits } from "../protocol/limits.ts";
import type { Clock, Timer } from "../platform/clock.ts";
import type { Logger } from "../platform/logger.ts";
import type { Store } from "../store/port.ts";
import { applyCommand, comesAgain, refuseCommand, takeArrivals } from "./inbox.ts";
import { dueCommands } from "./inbox-order.ts";
import { beginLong } from "./long-commands.ts";
import type { Tree } from "./tree.ts";

interface Held {
  readonly tree: Tree;
  renewedAt: number;
  recovered: boolean;
  looking: boolean;
  again: boolean;
  readonly hint: Disposable;
}

export class Ownership {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** The runtime's: one rhythm for all its trees. */
  readonly #limits: Pick<Limits, "leaseMs" | "leaseRenewMs" | "leaseGiveUpMs" | "pollMs">;
  readonly #held = new Map<TreeId, Held>();
  #renewTimer: Timer | null = null;
  #pollTimer: Timer | null = null;
  #renewing = false;
  #polling = false;
  /** What the store had changed when it was polled last. */
  #changes = Number.NaN;

  constructor(store: Store, clock: Clock, logger: Logger, limits: Limits) {
    this.#store = store;
    this.#clock = clock;
    this.#logger = logger;
    this.#limits = limits;
  }

  /** `claimedAt` is the monotonic time at which the lease was asked for. */
  add(tree: Tree, claimedAt: number): void {
    const held: Held = {
      tree,
      renewedAt: claimedAt,
      recovered: false,
      looking: false,
      again: false,
      hint: this.#store.onHint(tree.treeId, () => this.#look(held)),
    };
    this.#held.set(tree.treeId, held);
    if (this.#renewTimer === null) this.#armRenew();
    if (this.#pollTimer === null) this.#armPoll();
  }

  /** The tree is recovered: what others have left in its inbox is taken in from now on. */
  recovered(treeId: TreeId): void {
    const held = this.#held.get(treeId);
    if (held === undefined) return;
    held.recovered = true;
    this.#look(held);
  }

  /** Another owner of the same id, opened since this one was lost, is left alone. */
  remove(tree: Tree): void {
    const held = this.#held.get(tree.treeId);
    if (held?.tree !== tree) return;
    held.hint[Symbol.dispose]();
    this.#held.delete(tree.treeId);
    if (this.#held.size > 0) return;
    this.#renewTimer?.cancel();
    this.#pollTimer?.cancel();
    this.#renewTimer = null;
    this.#pollTimer = null;
  }

  #armRenew(): void {
    this.#renewTimer = this.#clock.setTimer(this.#limits.leaseRenewMs, () => {
      this.#renewTimer = null;
      if (this.#held.size === 0) return;
      this.#armRenew();
      this.#giveUpStale();
      void this.#renew();
    });
  }

  #armPoll(): void {
    this.#pollTimer = this.#clock.setTimer(this.#limits.pollMs, () => {
      this.#pollTimer = null;
      if (this.#held.size === 0) return;
      this.#armPoll();
      this.#giveUpStale();
      void this.#pollAll();
    });
  }

  /** A process that was frozen, or a store that does not answer: stop before somebody else may claim. */
  #giveUpStale(): void {
    const now = this.#clock.monotonic();
    for (const held of this.#held.values()) {
      if (now - held.renewedAt < this.#limits.leaseGiveUpMs) continue;
      this.remove(held.tree);
      held.tree.lose(`no renewal of its lease for ${Math.round(now - held.renewedAt)} ms`);
    }
  }

  async #renew(): Promise<void> {
    if (this.#renewing) return;
    this.#renewing = true;
    const asked = this.#clock.monotonic();
    try {
      const trees = [...this.#held.values()].filter((held) => held.tree.state !== "lost");
      const leases = trees.map((held) => held.tree.lease);
      const kept = await this.#store.heartbeat(leases, this.#limits.leaseMs);
      const byTree = new Map(kept.map((lease) => [lease.treeId, lease]));
      for (const held of trees) {
        if (this.#held.get(held.tree.treeId) !== held) continue;
        const lease = byTree.get(held.tree.treeId);
        if (lease === undefined) {
          this.remove(held.tree);
          held.tree.lose("its lease was taken over");
          continue;
        }
        held.tree.lease = lease;
        // From when it was asked: the store may have answered late.
        held.renewedAt = asked;
      }
    } catch (error) {
      this.#logger.warn({ err: error }, "renewing leases failed");
    } finally {
      this.#renewing = false;
    }
  }

  /** One question for all: thousands of trees may rest. */
  async #pollAll(): Promise<void> {
    if (this.#polling) return;
    this.#polling = true;
    try {
      const changes = await this.#store.changes();
      if (changes === this.#changes) return;
      // Before anybody looks: a look that fails has all asked again.
      this.#changes = changes;
      const trees = [...this.#held.keys()];
      // Others may write all the time, for trees that are not held here.
      const found = await this.#store.read((view) => view.withInbox(trees));
      for (const tree of found) {
        const held = this.#held.get(tree);
        if (held !== undefined) this.#look(held);
      }
    } catch (error) {
      this.#changes = Number.NaN;
      this.#logger.warn({ err: error }, "polling the store failed");
    } finally {
      this.#polling = false;
    }
  }

  /** One look at a time; a hint during it makes it look once more. */
  #look(held: Held): void {
    held.again = true;
    if (held.looking || !held.recovered) return;
    held.looking = true;
    void (async () => {
      try {
        while (held.again && held.tree.state === "owned") {
          held.again = false;
          await lookAtInbox(held.tree, (left) => (left ? this.#askAgain() : this.#look(held)));
        }
      } catch (error) {
        this.#logger.warn({ treeId: held.tree.treeId, err: error }, "reading the inbox failed");
        this.#askAgain();
      } finally {
        held.looking = false;
      }
    })();
  }

  /** Looked at again with the next poll. */
  #askAgain(): void {
    this.#changes = Number.NaN;
  }
}

/** Takes in what others left. Every command is applied once, each in its own commit, or beside all else: `ended` is told of its end then. */
async function lookAtInbox(tree: Tree, ended: (left: boolean) => void): Promise<void> {
  // Each on its own: a command that cannot be read keeps no mail from being noticed.
  const arrivals = await tree.read((view) => view.arrivals(tree.treeId).length);
  if (arrivals > 0) await takeIn(tree);
  const underWay = new Set(tree.commands);
  for (const command of await tree.read((view) => dueCommands(view, tree.treeId, underWay))) {
    if (beginLong(tree, command, ended)) continue;
    try {
      await tree.transact((tx) => applyCommand(tx, command, tree.partialText));
    } catch (error) {
      if (comesAgain(error)) throw error;
      await tree.transact((tx) => refuseCommand(tx, command, error));
    }
  }
}

/** All at once; where one of them is in the way of the others, each on its own. */
async function takeIn(tree: Tree): Promise<void> {
  try {
    return await tree.transact((tx) => takeArrivals(tx));
  } catch (error) {
    if (comesAgain(error)) throw error;
  }
  for (const mail of await tree.read((view) => view.arrivals(tree.treeId))) {
    try {
      await tree.transact((tx) => takeArrivals(tx, [mail]));
    } catch (error) {
      if (comesAgain(error)) throw error;
      // It stays in its mailbox, where its recipient finds it if it ever runs again.
      const { treeId, shared } = tree;
      shared.logger.warn({ treeId, mailId: mail.id, err: error }, "mail that has come could not be told");
      await tree.transact((tx) => tx.store.takeArrivals([mail.id]));
    }
  }
}
