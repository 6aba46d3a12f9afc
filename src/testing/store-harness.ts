/** What every conformance case starts from: a store, a clock that is set by hand, and a tree with an owner. */
import type { Clock } from "../platform/clock.ts";
import { systemClock } from "../platform/clock.ts";
import type { AgentPath } from "../protocol/agent-path.ts";
import type { TreeRecord } from "../protocol/agent.ts";
import type { MailId, ThreadId, TreeId } from "../protocol/ids.ts";
import type { MailDraft } from "../protocol/mail.ts";
import { DEFAULT_LIMITS, type Limits } from "../protocol/limits.ts";
import type { Lease, MendableTable, SendResult, Store } from "../store/port.ts";
import { sampleAgent, sampleId, sampleMail, sampleOwner, sampleTree } from "./store-records.ts";

/** The wall clock stands until it is set; everything else is the system's. */
export interface SetClock extends Clock {
  set(now: number): void;
}

export function createSetClock(start = 1_000_000): SetClock {
  let now = start;
  return {
    ...systemClock,
    now: () => now,
    set: (value) => {
      now = value;
    },
  };
}

/** A store under test. */
export interface StoreSubject {
  readonly store: Store;
  /** Breaks the stored text of a mail, as a fault of the disk would. */
  readonly damageMail: (id: MailId) => void | Promise<void>;
  /** Breaks the stored text of another row in the same way. */
  readonly damageRow: (table: MendableTable, id: string) => void | Promise<void>;
  /** Closes the store and opens the same content again; absent where content does not outlive its object. */
  readonly reopen?: () => Promise<Store>;
  readonly cleanup: () => void | Promise<void>;
}

export interface World {
  readonly subject: StoreSubject;
  readonly store: Store;
  readonly clock: SetClock;
  readonly tree: TreeId;
  /** Root, and `/root/worker`. */
  readonly root: ThreadId;
  readonly worker: ThreadId;
  readonly lease: Lease;
  mail(name: string | number, given?: Partial<MailDraft> & { readonly text?: string }): MailDraft;
  send(...drafts: readonly MailDraft[]): Promise<readonly SendResult[]>;
}

export const LEASE_MS = 10_000;
export const WORKER_PATH: AgentPath = "/root/worker";

export async function openWorld(
  subject: StoreSubject,
  clock: SetClock,
  limits: Partial<Limits> = {},
): Promise<World> {
  const { store } = subject;
  const tree = sampleId("thread", "tree");
  const worker = sampleId("thread", "worker");
  const lease = await openTree(store, tree, { limits: { ...DEFAULT_LIMITS, ...limits } });
  await store.commit(lease, (tx) => {
    tx.putAgent(sampleAgent(tree, worker, WORKER_PATH, { parent: tree, depth: 1 }));
  });
  return {
    subject,
    store,
    clock,
    tree,
    root: tree,
    worker,
    lease,
    mail: (name, given) => sampleMail(tree, worker, name, { recipientPath: WORKER_PATH, ...given }),
    send: (...drafts) => store.send(drafts),
  };
}

/** A tree with its root, owned by process 1. */
export async function openTree(store: Store, tree: TreeId, given: Partial<TreeRecord> = {}): Promise<Lease> {
  const lease = await claimTree(store, tree, 1);
  await store.commit(lease, (tx) => {
    tx.putTree(sampleTree(tree, given));
    tx.putAgent(sampleAgent(tree, tree, "/root", { createdBy: "user" }));
  });
  return lease;
}

export function claimTree(
  store: Store,
  treeId: TreeId,
  pid: number,
  dead: readonly number[] = [],
): Promise<Lease> {
  return store.claim({
    treeId,
    token: `token ${pid}`,
    owner: sampleOwner(pid),
    leaseMs: LEASE_MS,
    provenDead: (owner) => dead.includes(owner.pid),
  });
}
