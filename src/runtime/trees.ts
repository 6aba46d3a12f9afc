/**
 * The trees of a store, whoever owns them: which there are, and those that have something to do and nobody who does it, as
 * after a restart (REC-1).
 *
 * - T1 Opening is all that is needed: what was under way is recovered by it, and what waits to run runs.
 * - T2 A tree that cannot run here is left to a process that has what its agents run on.
 * - T3 One tree that cannot be opened, or that another process was faster to open, is in no other's way.
 */
import type { TreeRecord } from "../protocol/agent.ts";
import { CoppiceError, type RejectedError } from "../protocol/errors.ts";
import type { TreeId } from "../protocol/ids.ts";
import type { ProvenDead } from "../protocol/process-identity.ts";
import { type CallOptions, CallerLeft } from "../platform/abortable.ts";
import { liveOwner, type Owner } from "../control/live-owner.ts";
import { blockedBy, useOf } from "../control/load.ts";
import type { Shared } from "../control/shared.ts";
import type { OpenRow, Page, PageRequest, Store, StoreView } from "../store/port.ts";
import type { TreeHandle } from "./tree-handle.ts";
import { unlessCorrupt } from "../store/corrupt-row.ts";

/** What a tree has to do, counted. */
export interface TreeCounts {
  /** Agents, the root and closed ones too. */
  readonly registered: number;
  /** Runs that are not settled. */
  readonly openRuns: number;
  /** Agents with trigger-turn mail. */
  readonly triggered: number;
  /** Commands of other processes that nobody has carried out yet. */
  readonly commands: number;
}

/** A tree of the store, as a list shows it. */
export interface TreeSummary {
  readonly id: TreeId;
  /** Null for one without a title, too. */
  readonly title: string | null;
  /** Null where the tree's own row cannot be read: title and counts are not known then, and it cannot be opened. */
  readonly createdAt: number | null;
  /** Null where the tree's own row or its root's cannot be read. */
  readonly counts: TreeCounts | null;
  /** The process whose lease lives; null when nobody runs the tree, or the lease cannot be read. */
  readonly owner: Owner | null;
}

/** A page of trees, newest first. */
export function listTrees(store: Store, page: PageRequest, isDead: ProvenDead): Promise<Page<TreeSummary>> {
  return store.read((view) => {
    const { rows, next } = view.treeIds(page);
    return { rows: rows.map((id) => summaryOf(view, id, isDead)), next };
  });
}

function summaryOf(view: StoreView, id: TreeId, isDead: ProvenDead): TreeSummary {
  const record = unlessCorrupt(() => view.tree(id)!, null);
  return {
    id,
    title: record?.title ?? null,
    createdAt: record?.createdAt ?? null,
    counts: record === null ? null : unlessCorrupt(() => countsOf(view, record), null),
    owner: unlessCorrupt(() => liveOwner(view, id, isDead), null),
  };
}

function countsOf(view: StoreView, { treeId: id, agents }: TreeRecord): TreeCounts {
  // Without its root it cannot be opened (REC-1).
  view.agent(id);
  // By their names: one that cannot be read hides no other, and is set aside by the tree's owner.
  const open = view.openRows(id);
  const counted = (kind: OpenRow["table"]): number => open.filter(({ table }) => table === kind).length;
  return {
    registered: agents + 1,
    openRuns: counted("runs"),
    triggered: view.triggered(id).length,
    commands: counted("commands"),
  };
}

/** What opening needs of the runtime. */
export interface OpeningPorts {
  readonly store: Store;
  readonly shared: Pick<Shared, "adapter" | "hasTool" | "logger">;
  readonly provenDead: ProvenDead;
  readonly open: (id: TreeId) => Promise<TreeHandle>;
}

/** Opens trees without a live owner that have something to do, at most `limit`. A caller that leaves has the next ones left. */
export async function openPendingTrees(
  ports: OpeningPorts,
  limit: number,
  { signal }: CallOptions,
): Promise<readonly TreeHandle[]> {
  const { store, shared, provenDead, open } = ports;
  const { logger } = shared;
  const asked = new Set<TreeId>();
  const opened: TreeHandle[] = [];
  // Those that could not be opened are told again, before others.
  for (let left = limit; left > 0; left = limit - opened.length) {
    const claimable = await store.claimable(left + asked.size, provenDead);
    const ids = claimable.filter((id) => !asked.has(id)).slice(0, left);
    if (ids.length === 0) break;
    for (const id of ids) {
      signal?.throwIfAborted();
      asked.add(id);
      const blocked = await store.read((view) => unlessCorrupt(() => blockedIn(view, id, shared), null));
      if (blocked !== null) {
        logger.info({ treeId: id, err: blocked }, "a tree with something to do is left to who can run it");
        continue;
      }
      try {
        opened.push(await open(id));
      } catch (error) {
        if (error instanceof CallerLeft) throw error;
        const code = CoppiceError.is(error) ? error.code : null;
        if (code === "RUNTIME_CLOSED") throw error;
        if (code !== "NOT_OWNER")
          logger.warn({ treeId: id, err: error }, "a tree with something to do could not be opened");
      }
    }
  }
  return opened;
}

/** What an agent that has something to do runs on and this runtime was not given; a command is the root's. */
function blockedIn(view: StoreView, id: TreeId, shared: OpeningPorts["shared"]): RejectedError | null {
  const commanded = view.pendingCommands(id).length > 0 ? [id] : [];
  const busy = [...view.openRuns(id).map(({ threadId }) => threadId), ...view.triggered(id), ...commanded];
  for (const threadId of new Set(busy)) {
    const agent = view.agent(threadId)!;
    const blocked = agent.hostDriven ? null : blockedBy({ shared }, agent, useOf(view, agent).provider);
    if (blocked !== null) return blocked;
  }
  return null;
}
