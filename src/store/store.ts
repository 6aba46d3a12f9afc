/**
 * The port over an embedded backend: every verb is an operation of the group commit, every rule that all adapters share
 * is applied here. Adapters differ in their rows only.
 */
import { type Clock, delay } from "../platform/clock.ts";
import { InterruptedError, InvariantError } from "../protocol/errors.ts";
import type { TreeId } from "../protocol/ids.ts";
import type { Backend, BackendTx, BackendView } from "./backend.ts";
import { GroupCommit, isBusy } from "./group-commit.ts";
import { Hints } from "./hints.ts";
import { claim, claimable, fence, heartbeat, release } from "./leases.ts";
import type { Lease, Store, StoreTx } from "./port.ts";
import { sendMail } from "./sending.ts";

export interface StoreSettings {
  readonly clock: Clock;
  readonly busyTimeoutMs: number;
  /** A store whose content lives in its object stays usable: closing it only waits for what is under way. */
  readonly reusable: boolean;
}

const READ_TRIES = 50;

export function createStore(backend: Backend, settings: StoreSettings): Store {
  const { clock } = settings;
  const hints = new Hints(clock);
  const { told } = backend.context;
  let closed = false;

  const group = new GroupCommit(backend, clock, settings.busyTimeoutMs, () => {
    if (told.size === 0) return;
    hints.tell(told);
    told.clear();
  });

  const submit = <T>(tree: TreeId | null, run: (tx: BackendTx) => T, urgent = false): Promise<T> =>
    closed ? Promise.reject(isClosed(backend.name)) : group.submit(tree, run, urgent);

  async function read<T>(plan: (view: BackendView) => T): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      if (closed) throw isClosed(backend.name);
      try {
        return backend.read(plan);
      } catch (error) {
        // Readers are in nobody's way but while a log is recovered or a file is held for one process alone.
        if (!isBusy(error) || tries === READ_TRIES) throw error;
        await delay(clock, settings.busyTimeoutMs / READ_TRIES);
      }
    }
  }

  return {
    kind: backend.kind,
    name: backend.name,
    send: (mail) => submit(null, (tx) => mail.map((draft) => sendMail(tx, draft))),
    command: (record) =>
      submit(null, (tx) => {
        // Of two that send the same command one comes second; what its row says by then stays.
        if (tx.command(record.id) !== undefined) return;
        tx.putCommand(record);
        told.add(record.treeId);
      }),
    claim: (request) => submit(null, (tx) => claim(tx, request)),
    heartbeat: (leases, leaseMs) => submit(null, (tx) => heartbeat(tx, leases, leaseMs), true),
    release: (lease, options) => submit(null, (tx) => release(tx, lease, options?.abandon === true)),
    claimable: (limit, provenDead) => read((view) => claimable(view, limit, provenDead)),
    commit: <T>(lease: Lease, plan: (tx: StoreTx) => T) =>
      submit(lease.treeId, (tx) => {
        fence(tx, lease);
        return settled(plan(tx));
      }),
    read,
    changes: async () => {
      if (closed) throw isClosed(backend.name);
      return backend.foreignVersion() + hints.told;
    },
    onHint: (tree, callback) => hints.listen(tree, callback),
    async close() {
      if (!settings.reusable) {
        if (closed) return;
        closed = true;
      }
      await group.drained();
      backend.close();
    },
  };
}

/** A plan that waits would go on outside of its transaction. */
function settled<T>(value: T): T {
  if (typeof value === "object" && value !== null && "then" in value) {
    throw new InvariantError("A commit plan returned a promise; plans are synchronous.");
  }
  return value;
}

function isClosed(name: string): InterruptedError {
  return new InterruptedError("RUNTIME_CLOSED", `The store ${name} is closed; open it again.`);
}
