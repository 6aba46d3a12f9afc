/**
 * Ownership of trees (REC-2, REC-6): claim, renew, give back, and the fence that every commit passes. Each function runs
 * inside a transaction, so that what it reads is what it decides on.
 *
 * - L1 At most one lease of a tree is current: the one whose token and epoch the row holds.
 * - L2 A lease that has run out is current until somebody claims the tree; its owner stops by itself (REC-6).
 * - L3 A lease that lies `FARTHEST_LEASES` of its own durations ahead was given by a clock that has been set back since. Its
 *   owner, alive, would have renewed it by the right clock long ago: it counts as run out, and a tree cannot be held for ever
 *   by somebody who is dead. Nearer ones are waited for, so that clocks of hosts may differ by some.
 * - L4 A tree is not given back while trigger-turn mail or a command waits, unless its owner abandons it.
 * - L5 A lease that cannot be read is nobody's, and nobody's to claim: it costs its own tree and no other.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { TreeId } from "../protocol/ids.ts";
import type { ProvenDead } from "../protocol/process-identity.ts";
import type { BackendTx, BackendView, LeaseRow } from "./backend.ts";
import { isUnreadable } from "./corrupt-row.ts";
import type { ClaimRequest, Lease, LeaseState } from "./port.ts";

/** With the default of 10 s that is 10 minutes. */
const FARTHEST_LEASES = 60;

export function leaseState(row: LeaseRow, now: number): LeaseState {
  return {
    epoch: row.epoch,
    owner: row.owner,
    expiresAt: row.expiresAt,
    live: row.token !== null && row.expiresAt > now && row.expiresAt - now <= FARTHEST_LEASES * row.leaseMs,
  };
}

export function claim(tx: BackendTx, request: ClaimRequest): Lease {
  const { treeId, token, owner, leaseMs } = request;
  const now = tx.now();
  const row = tx.leaseRow(treeId);
  if (row !== undefined && row.token !== token && isHeld(row, now, request.provenDead))
    throw notOwner(row, now);
  const lease: LeaseRow & Lease = {
    treeId,
    token,
    epoch: (row?.epoch ?? 0) + 1,
    owner,
    expiresAt: now + leaseMs,
    leaseMs,
  };
  tx.putLease(lease);
  return { treeId, token, epoch: lease.epoch, expiresAt: lease.expiresAt };
}

/** The leases that are still current, renewed. */
export function heartbeat(tx: BackendTx, leases: readonly Lease[], leaseMs: number): readonly Lease[] {
  const expiresAt = tx.now() + leaseMs;
  return leases.flatMap((lease) => {
    const row = leaseOf(tx, lease.treeId);
    if (row === undefined || row === null || !isCurrent(row, lease)) return [];
    tx.putLease({ ...row, expiresAt, leaseMs });
    return [{ ...lease, expiresAt }];
  });
}

export function release(tx: BackendTx, lease: Lease, abandon: boolean): "released" | "kept" {
  fence(tx, lease);
  const row = tx.leaseRow(lease.treeId)!;
  if (!abandon && (tx.triggered(lease.treeId).length > 0 || tx.pendingCommands(lease.treeId).length > 0)) {
    return "kept";
  }
  tx.putLease({ ...row, token: null, expiresAt: tx.now() });
  return "released";
}

/** @throws RejectedError `FENCED` when the lease is not the current one. */
export function fence(tx: BackendTx, lease: Lease): void {
  const row = tx.leaseRow(lease.treeId);
  if (row !== undefined && isCurrent(row, lease)) return;
  throw new RejectedError(
    "FENCED",
    `This process no longer owns the tree ${lease.treeId}; nothing was stored. Claim the tree again before acting on it.`,
    { treeId: lease.treeId, epoch: lease.epoch, currentEpoch: row?.epoch ?? null },
  );
}

export function claimable(view: BackendView, limit: number, provenDead: ProvenDead): readonly TreeId[] {
  const now = view.now();
  const dead = rememberVerdicts(provenDead);
  const trees: TreeId[] = [];
  for (const tree of view.busyTrees()) {
    if (trees.length >= limit) break;
    const row = leaseOf(view, tree);
    if (row === undefined || (row !== null && !isHeld(row, now, dead))) trees.push(tree);
  }
  return trees;
}

/** Null for one that is there and cannot be read. */
function leaseOf(view: BackendView, tree: TreeId): LeaseRow | undefined | null {
  return isUnreadable(() => view.leaseRow(tree)) ? null : view.leaseRow(tree);
}

function isCurrent(row: LeaseRow, lease: Lease): boolean {
  return row.token !== null && row.token === lease.token && row.epoch === lease.epoch;
}

function isHeld(row: LeaseRow, now: number, provenDead: ProvenDead): boolean {
  return leaseState(row, now).live && !provenDead(row.owner);
}

/** Asks the platform once for each owner: one process may own thousands of trees. */
function rememberVerdicts(provenDead: ProvenDead): ProvenDead {
  const verdicts = new Map<string, boolean>();
  return (owner) => {
    const name = `${owner.host} ${owner.bootId} ${owner.pid} ${owner.startedAt}`;
    const verdict = verdicts.get(name) ?? provenDead(owner);
    verdicts.set(name, verdict);
    return verdict;
  };
}

function notOwner(row: LeaseRow, now: number): RejectedError {
  const { host, bootId, pid, startedAt } = row.owner;
  return new RejectedError(
    "NOT_OWNER",
    `The tree ${row.treeId} is owned by process ${pid} on ${host} for another ${row.expiresAt - now} ms; ` +
      "send the command through its owner, or claim it after that.",
    {
      treeId: row.treeId,
      owner: { host, bootId, pid, startedAt },
      epoch: row.epoch,
      expiresAt: row.expiresAt,
    },
  );
}
