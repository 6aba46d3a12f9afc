/** Who owns a tree now, as the store and this host know it (REC-2, REC-6). */
import type { TreeId } from "../protocol/ids.ts";
import type { ProvenDead } from "../protocol/process-identity.ts";
import type { StoreView } from "../store/port.ts";

/** A process that owns a tree now. */
export interface Owner {
  readonly pid: number;
  readonly host: string;
  readonly expiresAt: number;
}

/** Null when nobody claimed the tree, its lease has ended, or its process is dead. */
export function liveOwner(view: StoreView, tree: TreeId, provenDead: ProvenDead): Owner | null {
  const lease = view.lease(tree);
  if (lease === undefined || !lease.live || provenDead(lease.owner)) return null;
  return { pid: lease.owner.pid, host: lease.owner.host, expiresAt: lease.expiresAt };
}
