/** Trees and agents in memory. Paths of a tree are kept sorted, rebuilt when an agent was added. */
import { type AgentPath, isWithin } from "../../protocol/agent-path.ts";
import type { AgentRecord, TreeRecord } from "../../protocol/agent.ts";
import { InvariantError } from "../../protocol/errors.ts";
import type { TreeId } from "../../protocol/ids.ts";
import type { AgentRows } from "../backend.ts";
import { totalsOf, UsageCache } from "../usage-cache.ts";
import type { Journal } from "./journal.ts";
import { type Freeze, pageOf, Table } from "./table.ts";

const placeOf = (tree: TreeId, path: AgentPath): string => `${tree} ${path}`;

export function agentRows(journal: Journal, freeze: Freeze): AgentRows {
  const trees = new Table<TreeRecord>(journal, freeze, (tree) => tree.treeId);
  const agents = new Table<AgentRecord>(journal, freeze, (agent) => agent.threadId);
  const byPlace = agents.index((agent) => placeOf(agent.treeId, agent.path));
  const byTree = agents.index((agent) => agent.treeId);
  const byToken = agents.index((agent) => agent.tokenDigest);
  const byParent = agents.index((agent) => agent.parent);
  const sorted = new Map<TreeId, readonly AgentPath[]>();
  const usage = new UsageCache();

  const agentAt = (tree: TreeId, path: AgentPath): AgentRecord | undefined =>
    byPlace.get(placeOf(tree, path))[0];

  /** Below `under`, sorted by path. */
  function within(tree: TreeId, under: AgentPath): AgentRecord[] {
    let paths = sorted.get(tree);
    if (paths === undefined) {
      paths = byTree.get(tree).map(({ path }) => path);
      paths = [...paths].sort();
      sorted.set(tree, paths);
    }
    return paths.filter((path) => isWithin(path, under)).map((path) => agentAt(tree, path)!);
  }

  return {
    tree: (id) => trees.get(id),
    trees: (page) => pageOf(trees.all().reverse(), page, ({ treeId }) => treeId),
    agent: (id) => agents.get(id),
    agentAt,
    agentByToken: (digest) => byToken.get(digest)[0],
    agents(tree, under, page) {
      const rows = within(tree, under).filter(({ state }) => page.closed === true || state === "open");
      const after = page.after ?? null;
      const rest = after === null ? rows : rows.filter(({ path }) => path > after);
      return pageOf(rest, { limit: page.limit }, ({ path }) => path);
    },
    childrenOf: (id, page) => pageOf(byParent.get(id), page, ({ threadId }) => threadId),
    usageUnder: (tree, under) =>
      usage.sum(tree, under, () => totalsOf(within(tree, under).map((agent) => agent.usage))),
    putTree: (record) => void trees.put(record),
    putAgent(record) {
      const there = agentAt(record.treeId, record.path);
      if (there !== undefined && there.threadId !== record.threadId) {
        throw new InvariantError(`The path ${record.path} is taken by ${there.threadId}.`, {
          path: record.path,
        });
      }
      const before = agents.put(record);
      if (before === undefined) {
        sorted.delete(record.treeId);
        journal.record(() => sorted.delete(record.treeId));
      }
      if (before?.usage !== record.usage) journal.record(() => usage.clear());
      usage.follow(before, record);
    },
  };
}
