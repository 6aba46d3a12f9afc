/**
 * The waiting room before a run (EXE-2, EXE-3): one lane per tree, all lanes of a runtime under one `Admission`. It owns who
 * is asked next; what admission takes, permit and slot together or neither, is `tryReserve`'s, which control hands in.
 * What waits is also in the store (agents with pending trigger-turn mail); the bound of the queue is the caller's to check.
 *
 * - A1 Order: returns of all trees, then runs that need no permit, then new runs. Trees take turns, within a tree branches do.
 * - A2 Whoever cannot go now is passed over by those who can. Without that, an agent which is loaded and waits for a
 *   permit would keep its slot from the one before it, which waits for that slot, for ever.
 * - A3 Everything happens inside `request`, `cancel` and `pump`, synchronously. Where nobody waits, a newcomer that is not
 *   refused goes at once and p-queue never sees it.
 * - A4 A grant has one owner: the callback, once called; before, and when it throws, the lane, which disposes of it.
 */
import PQueue from "p-queue";
import { type AgentPath, branchOf } from "../protocol/agent-path.ts";
import { InvariantError } from "../protocol/errors.ts";
import type { ThreadId, TreeId } from "../protocol/ids.ts";
import { FairQueue, type FairQueueOptions } from "./fair-queue.ts";
import type { PermitPool } from "./permits.ts";

/** Who wants to run. */
export interface Applicant {
  readonly threadId: ThreadId;
  readonly path: AgentPath;
  /** `return`: its wait has ended, here or in a parked session. `new`: everything else. */
  readonly kind: "new" | "return";
  /** False for roots. */
  readonly needsPermit: boolean;
}

/**
 * Takes all that the run needs, or nothing: null lets the next in order try, `no_slot` says that only who is loaded already
 * can go now. It must not call back into the admission.
 */
export type TryReserve<Grant extends Disposable> = (applicant: Applicant) => Grant | "no_slot" | null;

interface Waiter<Grant extends Disposable> {
  readonly applicant: Applicant;
  readonly onAdmitted: (grant: Grant) => void;
}

/** All lanes of a runtime. Call `pump` whenever a permit, a slot or a rate was given back. */
export class Admission<Grant extends Disposable> {
  readonly #tryReserve: TryReserve<Grant>;
  /** In rotation: the lane that was served last is at the end. */
  readonly #lanes = new Map<TreeId, AdmissionLane<Grant>>();
  readonly #room: Room = { waiting: 0, pumping: false, pump: () => this.pump() };
  #again = false;

  constructor(tryReserve: TryReserve<Grant>) {
    this.#tryReserve = tryReserve;
  }

  /** The lane of a tree, made at its first use; `permits` is the tree's pool. */
  lane(
    treeId: TreeId,
    permits: PermitPool,
    loaded: () => Iterable<ThreadId> = () => [],
  ): AdmissionLane<Grant> {
    let lane = this.#lanes.get(treeId);
    if (lane === undefined) {
      lane = new AdmissionLane(permits, loaded, this.#tryReserve, this.#room);
      this.#lanes.set(treeId, lane);
    }
    return lane;
  }

  /** Forgets a tree that is given up; who waits there is cancelled. */
  close(treeId: TreeId): void {
    this.#lanes.get(treeId)?.cancelAll();
    this.#lanes.delete(treeId);
  }

  /**
   * Admits whoever can go. Called from inside itself, it asks once more when it is done.
   * @throws what callbacks threw, after all have been asked.
   */
  pump(): void {
    this.#again = true;
    if (this.#room.pumping || this.#room.waiting === 0) return;
    this.#room.pumping = true;
    const thrown: unknown[] = [];
    try {
      while (this.#again) {
        this.#again = false;
        for (const stage of STAGES) {
          while (this.#serveOne(stage, thrown));
        }
      }
    } finally {
      this.#room.pumping = false;
    }
    if (thrown.length === 1) throw thrown[0];
    if (thrown.length > 1) throw new AggregateError(thrown, "Several runs could not be started.");
  }

  #serveOne(stage: Stage, thrown: unknown[]): boolean {
    for (const [treeId, lane] of this.#lanes) {
      const admitted = lane.next(stage);
      if (admitted === null) continue;
      this.#lanes.delete(treeId);
      this.#lanes.set(treeId, lane);
      try {
        admitted();
      } catch (error) {
        thrown.push(error);
      }
      return true;
    }
    return false;
  }
}

/** What the lanes of one admission share. */
interface Room {
  /** In all lanes. */
  waiting: number;
  pumping: boolean;
  readonly pump: () => void;
}

type Stage = "returns" | "unpermitted" | "fresh";
const STAGES: readonly Stage[] = ["returns", "unpermitted", "fresh"];

/** Those of one tree who wait. */
export class AdmissionLane<Grant extends Disposable> {
  readonly #permits: PermitPool;
  /** Those of the tree that are loaded: few, where those who wait may be many. */
  readonly #loaded: () => Iterable<ThreadId>;
  readonly #tryReserve: TryReserve<Grant>;
  readonly #room: Room;
  /** Oldest first; not through p-queue. */
  readonly #returns = new Map<ThreadId, Waiter<Grant>>();
  readonly #unpermitted = new Map<ThreadId, Waiter<Grant>>();
  readonly #fresh = new Map<ThreadId, Waiter<Grant>>();
  readonly #order: FairQueue;
  readonly #queue: PQueue<FairQueue, FairQueueOptions>;

  constructor(
    permits: PermitPool,
    loaded: () => Iterable<ThreadId>,
    tryReserve: TryReserve<Grant>,
    room: Room,
  ) {
    this.#permits = permits;
    this.#loaded = loaded;
    this.#tryReserve = tryReserve;
    this.#room = room;
    const order = new FairQueue();
    this.#order = order;
    // Paused, it starts only what is promoted (`#leave`): permits bound what runs, p-queue keeps who waits.
    this.#queue = new PQueue({ autoStart: false, queueClass: orderOf(order) });
  }

  /** Who waits, returns included. */
  get size(): number {
    return this.#returns.size + this.#unpermitted.size + this.#fresh.size;
  }

  some(test: (threadId: ThreadId) => boolean): boolean {
    return [this.#returns, this.#unpermitted, this.#fresh].some((waiting) => waiting.keys().some(test));
  }

  /** Who waits for a first permit: what the bound of the queue counts. */
  get newcomers(): number {
    return this.#fresh.size;
  }

  /** 1 for the next; null when it does not wait. Exact as long as all who are ahead can go. */
  position(threadId: ThreadId): number | null {
    const back = [...this.#returns.keys()].indexOf(threadId);
    if (back !== -1) return back + 1;
    const unpermitted = [...this.#unpermitted.keys()].indexOf(threadId);
    if (unpermitted !== -1) return this.#returns.size + unpermitted + 1;
    const ahead = this.#order.ahead(threadId);
    return ahead === null ? null : this.#returns.size + this.#unpermitted.size + ahead + 1;
  }

  /** Without a kind: in whatever way. */
  isWaiting(threadId: ThreadId, kind?: Applicant["kind"]): boolean {
    if (kind === "return") return this.#returns.has(threadId);
    if (kind === "new") return this.#unpermitted.has(threadId) || this.#fresh.has(threadId);
    return this.#returns.has(threadId) || this.#unpermitted.has(threadId) || this.#fresh.has(threadId);
  }

  /**
   * Admits at once, or queues. The callback is called once, before this returns or from a later `pump`, unless the
   * applicant is cancelled first.
   * @throws InvariantError when the thread waits already. What the callback throws, when it was called at once.
   */
  request(applicant: Applicant, onAdmitted: (grant: Grant) => void): "admitted" | "waiting" {
    const { threadId } = applicant;
    if (this.isWaiting(threadId)) {
      throw new InvariantError("A thread waits for one run at a time.", { threadId });
    }
    const waiter = { applicant, onAdmitted };
    if (this.#room.waiting > 0 || this.#room.pumping) {
      // Others may not have been asked since something was given back, and go first.
      this.#enter(waiter);
      this.#room.pump();
      return this.isWaiting(threadId) ? "waiting" : "admitted";
    }
    const grant = this.#reserve(waiter);
    if (grant === null || grant === "no_slot") {
      this.#enter(waiter);
      return "waiting";
    }
    hand(waiter, grant);
    return "admitted";
  }

  /** True when it waited; its callback is not called any more. */
  cancel(threadId: ThreadId): boolean {
    const first = this.#returns.has(threadId) ? this.#returns : this.#unpermitted;
    return this.#leaveFirst(first, threadId) || this.#leave(threadId);
  }

  cancelAll(): void {
    for (const waiting of [this.#returns, this.#unpermitted, this.#fresh]) {
      for (const threadId of waiting.keys()) this.cancel(threadId);
    }
  }

  /** For `Admission`: takes the first of a stage that can go out of the lane; the answer hands the grant over. */
  next(stage: Stage): (() => void) | null {
    if (stage === "fresh") {
      if (this.#fresh.size === 0 || !this.#permits.available) return null;
      for (const threadId of this.#order.order()) {
        const waiter = this.#fresh.get(threadId as ThreadId)!;
        const grant = this.#reserve(waiter);
        if (grant === "no_slot") return this.#nextLoaded();
        if (grant !== null) return this.#admit(waiter, grant);
      }
      return null;
    }
    const waiting = stage === "returns" ? this.#returns : this.#unpermitted;
    for (const [threadId, waiter] of waiting) {
      const grant = this.#reserve(waiter);
      if (grant === null || grant === "no_slot") continue;
      this.#leaveFirst(waiting, threadId);
      return () => hand(waiter, grant);
    }
    return null;
  }

  /** Without room only those can go that have their slot already; the long queue is not asked one by one. */
  #nextLoaded(): (() => void) | null {
    for (const threadId of this.#loaded()) {
      const waiter = this.#fresh.get(threadId);
      const grant = waiter === undefined ? null : this.#reserve(waiter);
      if (grant !== null && grant !== "no_slot") return this.#admit(waiter!, grant);
    }
    return null;
  }

  #admit(waiter: Waiter<Grant>, grant: Grant): () => void {
    this.#leave(waiter.applicant.threadId);
    return () => hand(waiter, grant);
  }

  #reserve({ applicant }: Waiter<Grant>): Grant | "no_slot" | null {
    return applicant.needsPermit && !this.#permits.available ? null : this.#tryReserve(applicant);
  }

  #enter(waiter: Waiter<Grant>): void {
    const { threadId, path, kind, needsPermit } = waiter.applicant;
    this.#room.waiting += 1;
    if (kind === "return") this.#returns.set(threadId, waiter);
    else if (!needsPermit) this.#unpermitted.set(threadId, waiter);
    else {
      this.#fresh.set(threadId, waiter);
      void this.#queue.add(async () => this.#queue.pause(), { id: threadId, branch: branchOf(path) });
    }
  }

  #leaveFirst(waiting: Map<ThreadId, Waiter<Grant>>, threadId: ThreadId): boolean {
    if (!waiting.delete(threadId)) return false;
    this.#room.waiting -= 1;
    return true;
  }

  /** Lets p-queue run the waiter's task, which pauses it again before another can start. */
  #leave(threadId: ThreadId): boolean {
    if (!this.#leaveFirst(this.#fresh, threadId)) return false;
    this.#order.promote(threadId);
    this.#queue.start();
    return true;
  }
}

function hand<Grant extends Disposable>(waiter: Waiter<Grant>, grant: Grant): void {
  try {
    waiter.onAdmitted(grant);
  } catch (error) {
    grant[Symbol.dispose]();
    throw error;
  }
}

/** p-queue constructs its queue itself; this gives it the one that the lane can see. */
function orderOf(order: FairQueue): new () => FairQueue {
  return class {
    constructor() {
      return order;
    }
  } as unknown as new () => FairQueue;
}
