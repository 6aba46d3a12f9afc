/**
 * Slots of loaded sessions (RES-1, RES-2): one `Residency` for a runtime, or one for each tree where the profile counts
 * residents a tree. It owns the count, the order of use and who is asked to unload; loading, flushing and the re-check of
 * the mailbox in their critical section (RES-4) are control's, in the `unload` that it hands in.
 *
 * - R1 `count` is pending loads, residents and those being unloaded. A slot counts until its session is gone.
 * - R2 Nothing is reserved unless `count` is below the limit. Only `reclaim` can take it above; then no load is admitted, and
 *   `shrink` brings it down.
 * - R3 A wait that can be parked keeps its slot and is a candidate like others, so what is loaded stays below the limit;
 *   only one that cannot be parked lends it.
 * - R4 An unload that fails leaves the agent resident and touched, and the next candidate is asked. It is not asked again
 *   before it was used, or what is known of it has changed, or `askAgain` says so.
 */
import { InvariantError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import { Lru, type LruLinks } from "./lru.ts";
import { sameFacts, type UnloadFacts, unloadRank, UNLOAD_RANKS } from "./may-unload.ts";

export interface ResidencyOptions {
  readonly limit: number;
  readonly facts: (threadId: ThreadId) => UnloadFacts;
  /** Flush, look once more, forget. False or a rejection: the session stays. */
  readonly unload: (threadId: ThreadId) => Promise<boolean>;
  /** Called each time a slot became free. */
  readonly onRoom: () => void;
  /** Called with each slot that ends. */
  readonly onReleased?: (threadId: ThreadId) => void;
}

type SlotState = "pending" | "resident" | "lent" | "unloading" | "released";

/** One session's place: reserved, committed when the session is loaded, then held until it is released. */
export class Slot implements LruLinks<Slot>, Disposable {
  readonly threadId: ThreadId;
  /** False for a root where the profile does not count roots. */
  readonly counted: boolean;
  older: Slot | null = null;
  newer: Slot | null = null;
  listed = false;
  /** Written by `Residency` alone. */
  state: SlotState = "pending";
  readonly #residency: Residency;

  constructor(residency: Residency, threadId: ThreadId, counted: boolean) {
    this.#residency = residency;
    this.threadId = threadId;
    this.counted = counted;
  }

  /** The session is loaded. */
  commit(): void {
    this.#residency.committed(this);
  }

  /** The session was used; costs no look-up. */
  touch(): void {
    this.#residency.touched(this);
  }

  /** Gives back what was not committed: a load that failed. After `commit` it changes nothing. */
  [Symbol.dispose](): void {
    if (this.state === "pending") this.#residency.release(this.threadId);
  }
}

export class Residency {
  readonly limit: number;
  readonly #facts: ResidencyOptions["facts"];
  readonly #unload: ResidencyOptions["unload"];
  readonly #onRoom: () => void;
  readonly #onReleased: ResidencyOptions["onReleased"];
  readonly #slots = new Map<ThreadId, Slot>();
  /** Residents, those in a wait that cannot be parked left out. */
  readonly #order = new Lru<Slot>();
  #count = 0;
  #unloading = 0;
  /** Room that was last asked for. */
  #wanted: { readonly need: number; readonly pinned: boolean } = { need: 0, pinned: false };
  /** Those whose unload failed, with what was known of them after it. */
  readonly #failed = new Map<Slot, UnloadFacts>();

  constructor(options: ResidencyOptions) {
    this.limit = options.limit;
    this.#facts = options.facts;
    this.#unload = options.unload;
    this.#onRoom = options.onRoom;
    this.#onReleased = options.onReleased;
  }

  /** Slots in use; above the limit only after `reclaim`. */
  get count(): number {
    return this.#count;
  }

  /** Sessions in memory or on their way there, lent and not counted ones too. */
  get loaded(): number {
    return this.#slots.size;
  }

  get unloading(): number {
    return this.#unloading;
  }

  /** Slots that could be reserved now. */
  get room(): number {
    return Math.max(0, this.limit - this.#count);
  }

  has(threadId: ThreadId): boolean {
    return this.#slots.has(threadId);
  }

  slotOf(threadId: ThreadId): Slot | null {
    return this.#slots.get(threadId) ?? null;
  }

  /**
   * A slot for a load, the one it has already when the session is loaded (and touched thereby), or null: no room, a load or
   * an unload of it under way. Never unloads anybody by itself; see `makeRoom`.
   */
  reserve(threadId: ThreadId, counted = true): Slot | null {
    const known = this.#slots.get(threadId);
    if (known !== undefined) {
      if (known.state !== "resident" && known.state !== "lent") return null;
      known.touch();
      return known;
    }
    if (counted && this.#count >= this.limit) return null;
    const slot = new Slot(this, threadId, counted);
    this.#slots.set(threadId, slot);
    this.#countSlot(slot, 1);
    return slot;
  }

  /** The session is in a wait that cannot be parked: its slot is somebody else's until `reclaim`. */
  lend(threadId: ThreadId): void {
    const slot = this.#require(threadId, "resident", "lent");
    slot.state = "lent";
    this.#order.remove(slot);
    this.#countSlot(slot, -1);
    this.#onRoom();
  }

  /** Its wait has ended: it counts again, even over the limit. */
  reclaim(threadId: ThreadId): void {
    const slot = this.#require(threadId, "lent", "reclaimed");
    slot.state = "resident";
    this.#countSlot(slot, 1);
    this.#order.touch(slot);
  }

  /** The session is gone. Unknown ids and a second release change nothing. */
  release(threadId: ThreadId): void {
    const slot = this.#slots.get(threadId);
    if (slot === undefined) return;
    this.#slots.delete(threadId);
    this.#onReleased?.(threadId);
    this.#order.remove(slot);
    this.#failed.delete(slot);
    if (slot.state === "unloading") this.#unloading -= 1;
    if (slot.state !== "lent") this.#countSlot(slot, -1);
    slot.state = "released";
    this.#onRoom();
  }

  /**
   * Who would be unloaded for so many slots, in order: without mail first, then with queue-only mail, then, where `pinned`
   * says so, those pinned by it; least recently used first within each. Fewer when no more may go.
   */
  victims(need: number, pinned = false): readonly Slot[] {
    const ranks = { no_mail: [] as Slot[], mail: [] as Slot[], pinned: [] as Slot[] };
    for (const slot of this.#order) {
      if (ranks.no_mail.length >= need) break;
      if (!slot.counted) continue;
      const facts = this.#facts(slot.threadId);
      const failed = this.#failed.get(slot);
      if (failed !== undefined && sameFacts(failed, facts)) continue;
      const rank = unloadRank(facts);
      if (rank !== null) ranks[rank].push(slot);
    }
    const allowed = UNLOAD_RANKS.filter((rank) => pinned || rank !== "pinned");
    return allowed.flatMap((rank) => ranks[rank]).slice(0, Math.max(0, need));
  }

  /**
   * Sees to it that `need` slots become free, as far as that is possible: starts the unloads that are missing. `pinned`
   * allows pinned ones (RES-3). Answers how many will be free when the unloads under way succeed; `onRoom` tells when.
   */
  makeRoom(need: number, pinned = false): number {
    this.#wanted = { need, pinned };
    this.#startUnloads();
    return this.limit - this.#count + this.#unloading;
  }

  /** What is above the limit goes as soon as it may, wanted by somebody or not. To be called when something has changed. */
  shrink(): void {
    this.#unloadSome(this.#count - this.limit, true);
  }

  /** For `Slot`. */
  committed(slot: Slot): void {
    if (slot.state !== "pending") {
      throw new InvariantError(`A slot that is ${slot.state} cannot be committed.`, {
        threadId: slot.threadId,
      });
    }
    slot.state = "resident";
    this.#order.touch(slot);
  }

  /** For `Slot`. */
  touched(slot: Slot): void {
    if (slot.state !== "resident") return;
    this.#failed.delete(slot);
    this.#order.touch(slot);
  }

  /** Its unload failed for a reason that may have passed. */
  askAgain(threadId: ThreadId): void {
    const slot = this.#slots.get(threadId);
    if (slot !== undefined) this.#failed.delete(slot);
  }

  #startUnloads(): void {
    const { need, pinned } = this.#wanted;
    this.#unloadSome(need - (this.limit - this.#count), pinned);
  }

  #unloadSome(wanted: number, pinned: boolean): void {
    const missing = wanted - this.#unloading;
    if (missing <= 0) return;
    for (const slot of this.victims(missing, pinned)) {
      slot.state = "unloading";
      this.#order.remove(slot);
      this.#unloading += 1;
      void this.#unloadOne(slot);
    }
  }

  async #unloadOne(slot: Slot): Promise<void> {
    let gone: boolean;
    try {
      gone = await this.#unload(slot.threadId);
    } catch {
      // Control reports its own failures; here a flush that failed only means that the session stays.
      gone = false;
    }
    // It may have been released meanwhile, by a close.
    if (slot.state !== "unloading") return;
    if (gone) {
      this.release(slot.threadId);
      return;
    }
    this.#unloading -= 1;
    slot.state = "resident";
    this.#order.touch(slot);
    this.#failed.set(slot, this.#facts(slot.threadId));
    this.#startUnloads();
  }

  #countSlot(slot: Slot, by: 1 | -1): void {
    if (slot.counted) this.#count += by;
  }

  #require(threadId: ThreadId, state: SlotState, wanted: string): Slot {
    const slot = this.#slots.get(threadId);
    if (slot?.state !== state) {
      throw new InvariantError(`A slot that is ${slot?.state ?? "unknown"} cannot be ${wanted}.`, {
        threadId,
      });
    }
    return slot;
  }
}
