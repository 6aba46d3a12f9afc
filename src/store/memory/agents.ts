/** Trees and agents in memory. Paths of a tree are kept sorted, so that a subtree is one range of them. */
import { sep } from "node:path";
import { type AgentPath, isWithin } from "../../protocol/agent-path.ts";
import type { AgentRecord, ThreadState, TreeRecord } from "../../protocol/agent.ts";
import { InvariantError } from "../../protocol/errors.ts";
import type { TreeId } from "../../protocol/ids.ts";
import { requireAgent } from "../agent-rules.ts";
import type { AgentRows } from "../backend.ts";
import { unknownCursor } from "../cursor.ts";
import { totalsOf, UsageCache } from "../usage-cache.ts";
import type { Journal } from "./journal.ts";
import { type Freeze, Table } from "./table.ts";

const placeOf = (tree: TreeId, path: AgentPath): string => `${tree} ${path}`;

/** Names the list of the roots that have this workspace and this state, where these are given. */
const listOf = (workspace?: string, state?: ThreadState): string => JSON.stringify([workspace, state]);

/** Every list that a root is in. */
function listsOf({ config: { workspace }, state }: AgentRecord): readonly string[] {
  const lists = [listOf(undefined, undefined), listOf(undefined, state)];
  return workspace === null ? lists : [...lists, listOf(workspace), listOf(workspace, state)];
}

export interface MemoryAgents {
  readonly rows: AgentRows;
  readonly agents: Table<AgentRecord>;
}

export function agentRows(journal: Journal, freeze: Freeze): MemoryAgents {
  const trees = new Table<TreeRecord>(journal, freeze, (tree) => tree.treeId);
  const agents = new Table<AgentRecord>(journal, freeze, (agent) => agent.threadId);
  const byPlace = agents.index((agent) => placeOf(agent.treeId, agent.path));
  const byTree = agents.index((agent) => agent.treeId);
  const byToken = agents.index((agent) => agent.tokenDigest);
  const billed = trees.index((tree) => tree.billedTo?.treeId ?? null);
  const newestTrees = trees.paged(() => "all");
  const children = agents.paged((agent) => agent.parent);
  const openOnes = agents.paged((agent) => (agent.state === "open" ? agent.parent : null));
  const openChildren = agents.index((agent) => (agent.state === "open" ? agent.parent : null));
  const roots = agents.paged((agent) => (agent.parent === null ? listsOf(agent) : null));
  const workers = agents.index(({ state, config }) => (state === "open" ? config.workspace : null));
  const descendants = agents.paged((agent) => agent.thread?.lineage.rootThreadId ?? null);
  const sorted = new Map<TreeId, AgentPath[]>();
  const fresh = new Map<TreeId, AgentPath[]>();
  const usage = new UsageCache();

  /** Damaged ones too, as they were. */
  const standsAt = (tree: TreeId, path: AgentPath): AgentRecord | undefined =>
    byPlace.stored(placeOf(tree, path))[0];

  /** All paths of a tree, sorted; what was added since somebody asked is sorted in. */
  function pathsOf(tree: TreeId): readonly AgentPath[] {
    const known = sorted.get(tree);
    const added = fresh.get(tree);
    if (known !== undefined && added === undefined) return known;
    const paths = known === undefined ? byTree.stored(tree).map(({ path }) => path) : known.concat(added!);
    fresh.delete(tree);
    // In the second case two runs of which the first is sorted, which is soon done.
    sorted.set(tree, paths.sort());
    return paths;
  }

  /** Below `under` and behind `after`, sorted by path; damaged ones too, as they were. */
  function* within(tree: TreeId, under: AgentPath, after: string | null = null): Generator<AgentRecord> {
    const paths = pathsOf(tree);
    const from = after === null || after < under ? under : after;
    for (let at = firstFrom(paths, from); at < paths.length; at += 1) {
      const path = paths[at]!;
      if (path === after) continue;
      if (!isWithin(path, under)) return;
      yield standsAt(tree, path)!;
    }
  }

  const rows: AgentRows = {
    tree: (id) => trees.get(id),
    billed: (id) => billed.get(id),
    trees: (page) => newestTrees.page("all", page, "newest first"),
    treeIds(page) {
      const { rows, next } = newestTrees.page("all", page, "newest first");
      return { rows: rows.map(({ treeId }) => treeId), next };
    },
    agent: (id) => agents.get(id),
    agentAt: (tree, path) => byPlace.first(placeOf(tree, path)),
    agentByToken: (digest) => byToken.first(digest),
    agents(tree, under, page) {
      const { after = null } = page;
      if (
        after !== null &&
        (!isWithin(after as AgentPath, under) || standsAt(tree, after as AgentPath) === undefined)
      )
        throw unknownCursor(after);
      const found: AgentRecord[] = [];
      let next: string | null = null;
      for (const agent of within(tree, under, after)) {
        if (page.closed !== true && agent.state !== "open") continue;
        if (found.length === page.limit) {
          next = found.at(-1)?.path ?? null;
          break;
        }
        found.push(agent);
      }
      const isBroken = ({ threadId }: AgentRecord): boolean => agents.damaged(threadId) !== undefined;
      const unreadable = found.filter(isBroken).map(({ path }) => path);
      if (unreadable.length === 0) return { rows: found, next };
      return { rows: found.filter((agent) => !isBroken(agent)), unreadable, next };
    },
    childrenOf: (id, page) =>
      (page.closed === true ? children : openOnes).readablePage(id, page, "oldest first"),
    openChildren: (id) => openChildren.stored(id).length,
    usageUnder: (tree, under) =>
      usage.sum(tree, under, () => totalsOf(within(tree, under).map((agent) => agent.usage))),
    isWorkedIn: (tree, folder) =>
      [...workers.keys()].some(
        (at) =>
          (at === folder || at.startsWith(`${folder}${sep}`)) &&
          workers.stored(at).some(({ treeId, parent }) => treeId === tree || parent === null),
      ),
    threads: ({ workspace, state }, page) => roots.page(listOf(workspace, state), page, "newest first"),
    descendants: (root, page) => descendants.page(root, page, "oldest first"),
    putTree: (record) => void trees.put(record),
    putAgent(record) {
      const there = standsAt(record.treeId, record.path);
      if (there !== undefined && there.threadId !== record.threadId) {
        throw new InvariantError(`The path ${record.path} is taken by ${there.threadId}.`, {
          path: record.path,
        });
      }
      if (agents.damaged(record.threadId) === undefined) requireAgent(agents.get(record.threadId), record);
      const before = agents.put(record);
      if (before === undefined) {
        const added = fresh.get(record.treeId);
        if (added !== undefined) added.push(record.path);
        else if (sorted.has(record.treeId)) fresh.set(record.treeId, [record.path]);
        journal.record(() => {
          sorted.delete(record.treeId);
          fresh.delete(record.treeId);
        });
      }
      if (before?.usage !== record.usage) journal.record(() => usage.clear());
      usage.follow(before, record);
    },
  };
  return { rows, agents };
}

/** Where the first path at or behind `path` stands. `/` sorts before all that a name is made of. */
function firstFrom(paths: readonly AgentPath[], path: string): number {
  let low = 0;
  let high = paths.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (paths[middle]! < path) low = middle + 1;
    else high = middle;
  }
  return low;
}
