/**
 * Waits that could never end (WAI-8). Edges: a wait to the works it still needs; an `awaiting_children` work to the open
 * works under it; an open work to the agent whose run serves it or holds its request.
 */
import type { AgentPath } from "../protocol/agent-path.ts";
import type { ThreadId, WorkId } from "../protocol/ids.ts";
import type { WaitRecord } from "../protocol/wait.ts";
import type { WorkRecord } from "../protocol/work.ts";
import type { StoreView } from "../store/port.ts";
import type { Transaction } from "./transaction.ts";
import { endWait } from "./wait-ends.ts";

/** A loop as people read it, and the waits in it. */
export interface Loop {
  readonly names: readonly string[];
  readonly waits: readonly WaitRecord[];
}

/** The loop that a wait of `waiter` on these works would close, or null. */
export function findLoop(
  view: StoreView,
  waiter: { readonly threadId: ThreadId; readonly path: AgentPath },
  works: readonly WorkId[],
  need: number,
): Loop | null {
  const isBack = (work: WorkRecord): boolean => work.executor === waiter.threadId;
  return blocked(view, works, need, isBack, new Set(), [waiter.path]);
}

/** A work that has begun to await may have closed a loop: the youngest wait in it ends with the error. */
export function breakCycles(tx: Transaction, start: WorkId): void {
  const work = tx.store.work(start);
  if (work === undefined || work.state !== "awaiting_children") return;
  const under = openUnder(tx.store, work).map((child) => child.id);
  // One work under it that comes back is enough: it needs them all.
  const loop = blocked(
    tx.store,
    under,
    under.length,
    (candidate) => candidate.id === start,
    new Set([start]),
    [start],
  );
  const youngest = loop?.waits.reduce((a, b) => (b.startedAt >= a.startedAt ? b : a));
  if (loop !== null && youngest !== undefined) endWait(tx, youngest, "cycle", loop.names);
}

/** A loop when too few of the works lie outside of one. */
function blocked(
  view: StoreView,
  works: readonly WorkId[],
  need: number,
  isBack: (work: WorkRecord) => boolean,
  seen: ReadonlySet<WorkId>,
  names: readonly string[],
): Loop | null {
  let found: Loop | null = null;
  let inside = 0;
  for (const id of works) {
    const loop = trail(view, id, isBack, seen, names);
    if (loop === null) continue;
    inside += 1;
    found ??= loop;
  }
  return found !== null && works.length - inside < need ? found : null;
}

function trail(
  view: StoreView,
  id: WorkId,
  isBack: (work: WorkRecord) => boolean,
  seen: ReadonlySet<WorkId>,
  names: readonly string[],
): Loop | null {
  const work = view.work(id);
  if (work === undefined || work.state === "ended") return null;
  const here = [...names, `${work.executorPath} (${id})`];
  if (isBack(work)) return { names: here, waits: [] };
  if (seen.has(id)) return null;
  const visited = new Set([...seen, id]);
  if (work.state === "awaiting_children") {
    const under = openUnder(view, work).map((child) => child.id);
    return under.length === 0 ? null : blocked(view, under, under.length, isBack, visited, here);
  }
  for (const wait of view.openWaitsOf(work.executor)) {
    if (wait.works.length === 0) continue;
    const loop = blocked(view, wait.works, wait.need, isBack, visited, here);
    if (loop !== null) return { names: loop.names, waits: [...loop.waits, wait] };
  }
  return null;
}

function openUnder(view: StoreView, work: WorkRecord): WorkRecord[] {
  return view.worksUnder(work.id).filter((child) => child.holds.includes(work.id) && child.state !== "ended");
}
