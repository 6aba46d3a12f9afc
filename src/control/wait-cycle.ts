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
  return loopBehind(view, { of: null, works, need, wait: null }, isBack, waiter.path);
}

/** A work that has begun to await may have closed a loop: the youngest wait in it ends with the error. */
export function breakCycles(tx: Transaction, start: WorkId): void {
  const work = tx.store.work(start);
  if (work === undefined || work.state !== "awaiting_children") return;
  // One work under it that comes back is enough: it needs them all.
  const asked = { ...allUnder(tx.store, work), of: null };
  const loop = loopBehind(tx.store, asked, ({ id }) => id === start, start);
  const youngest = loop?.waits.reduce((a, b) => (b.startedAt >= a.startedAt ? b : a));
  if (loop !== null && youngest !== undefined) endWait(tx, youngest, "cycle", loop.names);
}

/** So many of these works have to end before a work can, or, of none, before the wait that is judged does. */
interface Need {
  readonly of: WorkId | null;
  readonly works: readonly WorkId[];
  readonly need: number;
  readonly wait: WaitRecord | null;
}

/** The need that keeps a work from its end, and the work in it that was found to be blocked before. */
interface Cause {
  readonly by: Need;
  readonly over: WorkId;
}

/**
 * The loop that keeps `asked` from ever being met, or null: too few of its works lie outside of one. It starts at the works
 * that lead back and follows who needs them, so that each work and each need is looked at once, over how many ways whatever.
 */
function loopBehind(
  view: StoreView,
  asked: Need,
  isBack: (work: WorkRecord) => boolean,
  start: string,
): Loop | null {
  const { works, neededBy } = reachable(view, asked, isBack);
  /** Works that cannot end; null for those that lead back. */
  const blocked = new Map<WorkId, Cause | null>();
  for (const work of works.values()) if (isBack(work)) blocked.set(work.id, null);
  const inside = new Map<Need, number>();
  for (const over of blocked.keys()) {
    for (const by of neededBy.get(over) ?? []) {
      inside.set(by, (inside.get(by) ?? 0) + 1);
      if (by.works.length - inside.get(by)! >= by.need) continue;
      if (by.of !== null) {
        // What is added here is come to by the loop over the keys.
        if (!blocked.has(by.of)) blocked.set(by.of, { by, over });
        continue;
      }
      const names = [start];
      const waits: WaitRecord[] = [];
      for (let at: WorkId | null = over; at !== null;) {
        names.push(`${works.get(at)!.executorPath} (${at})`);
        const cause: Cause | null = blocked.get(at)!;
        if (cause !== null && cause.by.wait !== null) waits.unshift(cause.by.wait);
        at = cause === null ? null : cause.over;
      }
      return { names, waits };
    }
  }
  return null;
}

/** Open works that `asked` leads to, and who needs each. */
function reachable(view: StoreView, asked: Need, isBack: (work: WorkRecord) => boolean) {
  const works = new Map<WorkId, WorkRecord>();
  const neededBy = new Map<WorkId, Need[]>();
  const needs: Need[] = [asked];
  for (const need of needs) {
    for (const id of need.works) {
      const known = neededBy.get(id);
      if (known !== undefined) {
        known.push(need);
        continue;
      }
      neededBy.set(id, [need]);
      const work = view.work(id);
      if (work === undefined || work.state === "ended") continue;
      works.set(id, work);
      if (!isBack(work)) needs.push(...needsOf(view, work));
    }
  }
  return { works, neededBy };
}

function needsOf(view: StoreView, work: WorkRecord): Need[] {
  if (work.state === "awaiting_children") return [allUnder(view, work)];
  return view
    .openWaitsOf(work.executor)
    .filter((wait) => wait.works.length > 0)
    .map((wait) => ({ of: work.id, works: wait.works, need: wait.need, wait }));
}

function allUnder(view: StoreView, work: WorkRecord): Need {
  const under = openUnder(view, work).map((child) => child.id);
  return { of: work.id, works: under, need: under.length, wait: null };
}

function openUnder(view: StoreView, work: WorkRecord): WorkRecord[] {
  // Who served it has asked for them: what has ended under it, over a long life, is not looked at.
  return view.openWorksAskedBy(work.executor).filter((child) => child.holds.includes(work.id));
}
