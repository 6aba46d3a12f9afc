/**
 * Looks at a tree by whoever does not own it and so mends nothing (REC-1): what cannot be read is passed over and named, and the
 * rest is seen all the same.
 */
import { type AgentPath, ROOT_PATH } from "../protocol/agent-path.ts";
import type { ThreadId, TreeId } from "../protocol/ids.ts";
import { isCorrupt, unlessCorrupt } from "../store/corrupt-row.ts";
import type { OpenRow, StoreView } from "../store/port.ts";
import { allOf } from "./family.ts";
import {
  type AgentSummary,
  type AskedRequest,
  type ListRequest,
  NOT_LIVE,
  openRequestRows,
  pageOfAgents,
  summarise,
} from "./listing.ts";

/** A row that was in the way. */
export interface UnreadableRow {
  readonly table: string;
  readonly id: string;
  /** The agent whose it is, where that is known. */
  readonly path: AgentPath | null;
}

export class PassedOver {
  readonly rows: UnreadableRow[] = [];

  /** What is read, or nothing where a row is in the way. @throws what else is. */
  list<T>(path: AgentPath | null, read: () => readonly T[]): readonly T[] {
    try {
      return read();
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      const { table, id } = error.details;
      // It is the file, and not a row.
      if (typeof table !== "string" || typeof id !== "string") throw error;
      this.add({ table, id, path });
      return [];
    }
  }

  add(row: UnreadableRow): void {
    if (this.rows.every(({ table, id }) => table !== row.table || id !== row.id)) this.rows.push(row);
  }
}

/** As `listAgents`, without those that cannot be shown. */
export function readableAgents(view: StoreView, tree: TreeId, request: ListRequest) {
  const passed = new PassedOver();
  const page = pageOfAgents(view, tree, request);
  nameThem(passed, view, tree, page.unreadable);
  const agents = page.rows.flatMap((agent): readonly AgentSummary[] =>
    passed.list(agent.path, () => [summarise(view, agent, NOT_LIVE)]),
  );
  return { agents, next: page.next, unreadable: passed.rows };
}

/** As `openRequests` of a whole tree, without those that cannot be read. */
export function readableRequests(view: StoreView, tree: TreeId, passed: PassedOver): readonly AskedRequest[] {
  return openRequestRows(view, tree).flatMap(({ threadId, read }) =>
    passed.list(pathOf(view, threadId), () => [read()]),
  );
}

/** Every row of a tree that keeps agents, works and what is under way from being seen. */
export function unreadableRows(view: StoreView, tree: TreeId): readonly UnreadableRow[] {
  const passed = new PassedOver();
  passed.list(null, () => [view.tree(tree)]);
  const agents = allOf((page) => {
    const found = view.agents(tree, ROOT_PATH, { ...page, closed: true });
    nameThem(passed, view, tree, found.unreadable);
    return found;
  });
  for (const agent of agents) passed.list(agent.path, () => [summarise(view, agent, NOT_LIVE)]);
  const works = allOf((page) => {
    const found = view.works(tree, page);
    for (const id of found.unreadable ?? []) passed.add({ table: "works", id, path: null });
    return found;
  });
  for (const _ of works);
  for (const row of view.openRows(tree)) {
    const path = row.table === "commands" ? null : pathOf(view, row.threadId);
    passed.list(path, () => [readOpen(view, row)]);
  }
  return passed.rows;
}

function readOpen(view: StoreView, row: OpenRow): unknown {
  switch (row.table) {
    case "runs":
      return view.run(row.id);
    case "waits":
      return view.wait(row.id);
    case "requests":
      return view.request(row.id);
    case "commands":
      return view.command(row.id);
  }
}

/** Null where the agent's own row is in the way. */
function pathOf(view: StoreView, threadId: ThreadId): AgentPath | null {
  return unlessCorrupt(() => view.agent(threadId)?.path ?? null, null);
}

function nameThem(
  passed: PassedOver,
  view: StoreView,
  tree: TreeId,
  paths: readonly string[] | undefined,
): void {
  for (const path of (paths ?? []) as readonly AgentPath[])
    passed.list(path, () => [view.agentAt(tree, path)]);
}
