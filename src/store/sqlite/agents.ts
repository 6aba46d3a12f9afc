/** Trees and agents. A subtree is one range of paths: `/` sorts before every character of a segment. */
import type { AgentPath } from "../../protocol/agent-path.ts";
import type { AgentRecord, TreeRecord } from "../../protocol/agent.ts";
import type { Usage } from "../../protocol/usage.ts";
import type { AgentRows } from "../backend.ts";
import { UsageCache } from "../usage-cache.ts";
import type { Connection } from "./connection.ts";
import { Table } from "./table.ts";

/** The first text after `under` and everything below it. */
const endOf = (under: AgentPath): string => `${under}0`;

export function agentRows(connection: Connection): AgentRows {
  const trees = new Table<TreeRecord>(connection, { name: "trees", idOf: ({ treeId }) => treeId });
  const agents = new Table<AgentRecord>(connection, {
    name: "agents",
    idOf: ({ threadId }) => threadId,
    fixed: { tree_id: ({ treeId }) => treeId, path: ({ path }) => path, parent: ({ parent }) => parent },
    moving: {
      token: ({ tokenDigest }) => tokenDigest,
      open: ({ state }) => (state === "open" ? 1 : 0),
      input: ({ usage }) => usage.inputTokens,
      cached: ({ usage }) => usage.cachedInputTokens,
      output: ({ usage }) => usage.outputTokens,
      reasoning: ({ usage }) => usage.reasoningTokens,
      cost: ({ usage }) => usage.cost,
      complete: ({ usage }) => (usage.complete ? 1 : 0),
    },
  });
  const treePages = trees.pages("TRUE", "newest first");
  const at = agents.list("WHERE tree_id = ? AND path = ?");
  const byToken = agents.list("WHERE token = ? LIMIT 1");
  const children = agents.pages("parent = ?", "oldest first");
  const within = connection.statement(
    `SELECT id, body FROM agents
      WHERE tree_id = ? AND path >= ? AND path < ? AND path > ? AND open >= ? ORDER BY path LIMIT ?`,
  );
  const usageSum = connection.statement(
    `SELECT TOTAL(input), TOTAL(cached), TOTAL(output), TOTAL(reasoning),
            CASE WHEN COUNT(*) = COUNT(cost) THEN TOTAL(cost) END, COALESCE(MIN(complete), 1)
       FROM agents WHERE tree_id = ? AND path >= ? AND path < ?`,
  );
  const usage = connection.join(new UsageCache());

  return {
    tree: (id) => trees.get(id),
    trees: treePages,
    agent: (id) => agents.get(id),
    agentAt: (tree, path) => at(tree, path)[0],
    agentByToken: (digest) => byToken(digest)[0],
    agents(tree, under, { after = null, limit, closed }) {
      const rows = within.all(tree, under, endOf(under), after ?? "", closed === true ? 0 : 1, limit + 1);
      return agents.page(rows, limit, ({ path }) => path);
    },
    childrenOf: (id, page) => children(page, id),
    usageUnder: (tree, under) =>
      usage.sum(tree, under, () => {
        const row = usageSum.get(tree, under, endOf(under)) as readonly (number | null)[];
        const [inputTokens, cachedInputTokens, outputTokens, reasoningTokens] = row as readonly number[];
        return {
          inputTokens,
          cachedInputTokens,
          outputTokens,
          reasoningTokens,
          cost: row[4],
          complete: row[5] === 1,
        } as Usage;
      }),
    putTree: (record) => trees.put(record),
    putAgent(record) {
      const before = agents.get(record.threadId);
      agents.put(record);
      usage.follow(before, record);
    },
  };
}
