/**
 * A process's connection to the store. What is asked goes to the store in order and its answers come back in order; a
 * frozen process gets them when it is thawed, a killed one never. Faults are drawn for each commit; a kill between them
 * leaves undone what the store had not begun.
 */
import { TransientError } from "../../../src/protocol/errors.ts";
import type { TreeId } from "../../../src/protocol/ids.ts";
import type { Store, StoreTx, StoreView } from "../../../src/store/port.ts";
import type { SimulatedProcess } from "../../../src/testing/scheduler-process.ts";

export type LinkFault = "none" | "busy" | "io" | "answer_lost" | "crash_before" | "crash_after";

export interface LinkOptions {
  readonly process: SimulatedProcess;
  readonly store: Store;
  /** Asked for each commit. */
  readonly fault: () => LinkFault;
  /** Kills the process. */
  readonly crash: () => void;
  /** Called inside each commit before its plan; what it answers, with the plan's writes in place. */
  readonly watch: (view: StoreView, treeId: TreeId) => () => void;
  /** Answers wait for the scheduler instead of coming with the store's own. */
  readonly late: boolean;
}

class Unborn extends Error {
  override readonly message = "the process was killed before the store had begun";
}

export function link({ process, store, fault, crash, watch, late }: LinkOptions): Store {
  const answers: (() => void)[] = [];

  /** In the order in which the store gave them. */
  function answer(deliver: () => void): void {
    if (process.state() === "killed") return;
    if (!late && answers.length === 0 && process.state() === "running") return deliver();
    answers.push(deliver);
    process.offer("store answers", () => answers.shift()?.());
  }

  function through<T>(begin: () => Promise<T>): Promise<T> {
    if (process.state() === "killed") return new Promise(() => undefined);
    return new Promise<T>((resolve, reject) => {
      begin().then(
        (value) => answer(() => resolve(value)),
        (error: unknown) => answer(() => reject(error as Error)),
      );
    });
  }

  function commit<T>(lease: Parameters<Store["commit"]>[0], plan: (tx: StoreTx) => T): Promise<T> {
    const drawn = fault();
    return through(async () => {
      if (drawn === "busy")
        throw new TransientError("STORE_BUSY", "The store is locked; this was drawn. Try again.");
      if (drawn === "io") throw new TransientError("STORE_IO", "The disk failed; this was drawn.");
      if (drawn === "crash_before") {
        crash();
        throw new Unborn();
      }
      const value = await store.commit(lease, (tx) => {
        if (process.state() === "killed") throw new Unborn();
        const look = watch(tx, lease.treeId);
        const result = plan(tx);
        look();
        return result;
      });
      if (drawn === "crash_after") crash();
      if (drawn === "answer_lost")
        throw new TransientError("STORE_IO", "The answer was lost; this was drawn.");
      return value;
    });
  }

  return {
    kind: store.kind,
    name: store.name,
    send: (mail) => through(() => store.send(mail)),
    command: (record) => through(() => store.command(record)),
    claim: (request) => through(() => store.claim(request)),
    heartbeat: (leases, leaseMs) => through(() => store.heartbeat(leases, leaseMs)),
    release: (lease, options) => through(() => store.release(lease, options)),
    claimable: (limit, dead) => through(() => store.claimable(limit, dead)),
    commit,
    read: (plan) => through(() => store.read(plan)),
    changes: () => through(() => store.changes()),
    onHint: (tree, callback) => store.onHint(tree, () => void (process.state() === "running" && callback())),
    close: async () => undefined,
  };
}
