/**
 * Dispatch: who may run now. Permit and slot are taken together or not at all (EXE-2); roots take a slot alone (EXE-1).
 *
 * - P1 A grant has one owner: the admission until it is handed over, then the run, until it waits or settles.
 * - P2 Whatever gives something back pumps; nobody polls.
 */
import type { ThreadId } from "../protocol/ids.ts";
import type { Applicant } from "../execution/admission.ts";
import { type Permit, PermitPool } from "../execution/permits.ts";
import type { Slot } from "../residency/slots.ts";
import type { Candidate, Tree } from "./tree.ts";

/** A slot, and for a child a permit; given back together when it is disposed of before the session is loaded. */
export class Grant implements Disposable {
  readonly slot: Slot;
  permit: Permit | null;
  readonly #onRelease: () => void;

  constructor(slot: Slot, permit: Permit | null, onRelease: () => void) {
    this.slot = slot;
    this.permit = permit;
    this.#onRelease = onRelease;
  }

  /** The run waits: the permit is somebody else's for so long (WAI-5). */
  giveBack(): void {
    this.permit?.[Symbol.dispose]();
    this.permit = null;
    this.#onRelease();
  }

  [Symbol.dispose](): void {
    this.permit?.[Symbol.dispose]();
    this.permit = null;
    this.slot[Symbol.dispose]();
    this.#onRelease();
  }
}

/** What an applicant is, kept while it waits. */
const applicants = new WeakMap<Applicant, { readonly tree: Tree; readonly candidate: Candidate }>();

/** Given to the runtime's one admission. Answers null when something is missing, and sees to it that a slot becomes free. */
export function tryReserve(applicant: Applicant, pump: () => void): Grant | "no_slot" | null {
  const known = applicants.get(applicant);
  if (known === undefined || known.tree.state !== "owned") return null;
  const { tree, candidate } = known;
  if (!mayStart(tree, candidate.threadId)) return null;
  const pool = poolOf(tree, candidate.runningScopes);
  if (applicant.needsPermit && !pool.available) return null;
  if (applicant.kind === "new" && tree.rateHeld) return null;
  const counted = !(candidate.root && tree.profile.residentsPerTree);
  const slot = tree.residency.reserve(candidate.threadId, counted);
  if (slot === null) {
    // A committed work may take the place even of agents that are pinned by their mail (RES-3).
    tree.residency.makeRoom(1, true);
    return tree.residency.has(candidate.threadId) ? null : "no_slot";
  }
  const permit = applicant.needsPermit ? pool.take() : null;
  if (applicant.needsPermit && permit === null) {
    slot[Symbol.dispose]();
    return null;
  }
  return new Grant(slot, permit, pump);
}

/**
 * Two starts of one agent would each act on what the other leaves open; and a run does not overlap with the capture of what
 * the one before has left.
 */
export function mayStart(tree: Tree, threadId: ThreadId): boolean {
  return !tree.starting.has(threadId) && tree.jobs.of(threadId) === undefined;
}

/** The tree's pool, or that of the nearest subtree with a budget on running children. */
export function poolOf(tree: Tree, scopes: Candidate["runningScopes"]): PermitPool {
  let pool = tree.permits;
  for (const scope of scopes.toReversed()) {
    const known = tree.runningPools.get(scope.path);
    const next: PermitPool = known?.limit === scope.limit ? known : new PermitPool(scope.limit, pool);
    tree.runningPools.set(scope.path, next);
    pool = next;
  }
  return pool;
}

/** Asks for a place; `onAdmitted` is called once, now or later. An agent that waits already goes on waiting. */
export function apply(
  tree: Tree,
  candidate: Candidate,
  kind: Applicant["kind"],
  onAdmitted: (grant: Grant) => void,
): void {
  if (tree.lane.isWaiting(candidate.threadId)) return;
  const applicant: Applicant = {
    threadId: candidate.threadId,
    path: candidate.path,
    kind,
    needsPermit: !candidate.root,
  };
  applicants.set(applicant, { tree, candidate });
  tree.lane.request(applicant, onAdmitted);
}

export function cancel(tree: Tree, threadId: ThreadId): boolean {
  return tree.lane.cancel(threadId);
}

/** A wait that cannot be parked begins: its session stays, its slot is somebody else's (RES-2). */
export function lendSlot(tree: Tree, threadId: ThreadId): void {
  if (tree.residency.slotOf(threadId)?.state === "resident") tree.residency.lend(threadId);
}

/** That wait has ended, in whatever way: it counts again, even over the limit. */
export function reclaimSlot(tree: Tree, threadId: ThreadId): void {
  if (tree.residency.slotOf(threadId)?.state === "lent") tree.residency.reclaim(threadId);
}
