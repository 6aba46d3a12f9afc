/**
 * Trees and agents. What lists of threads look for changes seldom and is written when it does, for it stands in indexes.
 */
import { sep } from "node:path";
import { type AgentPath, isWithin } from "../../protocol/agent-path.ts";
import type { AgentRecord, TreeRecord } from "../../protocol/agent.ts";
import type { ThreadId, TreeId } from "../../protocol/ids.ts";
import { requireAgent } from "../agent-rules.ts";
import type { AgentRows } from "../backend.ts";
import { unlessCorrupt } from "../corrupt-row.ts";
import { unknownCursor } from "../cursor.ts";
import type { Page } from "../port.ts";
import { UsageCache } from "../usage-cache.ts";
import type { Connection } from "./connection.ts";
import { endOf } from "./paths.ts";
import { Table } from "./table.ts";
import type { ThreadNumbers } from "./thread-numbers.ts";

/** Enough of a digest to find its agent by; whole ones would make the index five times as large. */
const tokenEnd = (digest: string): string => digest.slice(-16);

export function agentRows(connection: Connection, threads: ThreadNumbers): AgentRows {
  const trees = new Table<TreeRecord>(connection, {
    name: "trees",
    idOf: ({ treeId }) => treeId,
    fixed: { payer: ({ billedTo }) => (billedTo === undefined ? null : threads.number(billedTo.treeId)) },
  });
  const lineageOf = ({ thread }: AgentRecord): number | null =>
    thread === null ? null : threads.number(thread.lineage.rootThreadId);
  const agents = new Table<AgentRecord>(connection, {
    name: "agents",
    idOf: ({ threadId }) => threadId,
    key: { find: (id) => threads.find(id as ThreadId), make: (id) => threads.number(id as ThreadId) },
    fixed: {
      tree: ({ treeId }) => threads.number(treeId),
      path: ({ path }) => path,
      parent: ({ parent }) => (parent === null ? null : threads.number(parent)),
      state: ({ state }) => state,
      workspace: ({ config }) => config.workspace,
      lineage: lineageOf,
    },
    moving: {
      token: ({ tokenDigest }) => tokenEnd(tokenDigest),
      open: ({ state }) => (state === "open" ? 1 : 0),
      input: ({ usage }) => usage.inputTokens,
      cached: ({ usage }) => usage.cachedInputTokens,
      output: ({ usage }) => usage.outputTokens,
      reasoning: ({ usage }) => usage.reasoningTokens,
      cost: ({ usage }) => usage.cost,
      complete: ({ usage }) => (usage.complete ? 1 : 0),
    },
  });
  const billed = trees.list("WHERE payer = ? ORDER BY rowid");
  const treePages = trees.pages("TRUE", "newest first");
  const treeIds = trees.idPages("TRUE", "newest first");
  const at = agents.list("WHERE tree = ? AND path = ?");
  const stands = connection.statement("SELECT 1 FROM agents WHERE tree = ? AND path = ?");
  const byToken = agents.list("WHERE token = ?");
  const children = agents.readablePages("parent = ?", "oldest first");
  const openOnes = agents.readablePages("parent = ? AND open = 1", "oldest first");
  const openChildren = connection.statement("SELECT COUNT(*) FROM agents WHERE parent = ? AND open = 1");
  const relist = connection.statement(
    "UPDATE agents SET state = ?, workspace = ?, lineage = ? WHERE number = ?",
  );
  const roots = agents.pages("parent IS NULL", "newest first");
  const rootsIn = agents.pages("parent IS NULL AND workspace = ?", "newest first");
  const rootsWith = agents.pages("parent IS NULL AND state = ?", "newest first");
  const rootsInWith = agents.pages("parent IS NULL AND workspace = ? AND state = ?", "newest first");
  const descendants = agents.pages("lineage = ?", "oldest first");
  // With a sign, so that who works in the folder is looked at, and not the whole tree and all roots.
  const worksIn = (folder: string) =>
    connection.statement(
      `SELECT 1 FROM agents WHERE open = 1 AND ${folder} AND (+tree = ? OR +parent IS NULL) LIMIT 1`,
    );
  const worksAt = worksIn("workspace = ?");
  const worksBelow = worksIn("workspace > ? AND workspace < ?");
  const within = connection.statement(
    `SELECT id, body, path FROM agents
      WHERE tree = ? AND path >= ? AND path < ? AND path > ? AND open >= ? ORDER BY path LIMIT ?`,
  );
  const usageSum = connection.statement(
    `SELECT TOTAL(input), TOTAL(cached), TOTAL(output), TOTAL(reasoning),
            TOTAL(cost), COUNT(*) - COUNT(cost), COUNT(*) - TOTAL(complete)
       FROM agents WHERE tree = ? AND path >= ? AND path < ?`,
  );
  const usage = connection.join(new UsageCache());

  return {
    tree: (id) => trees.get(id),
    trees: treePages,
    treeIds: (page) => treeIds(page) as Page<TreeId>,
    billed: (id) => billed(threads.find(id)),
    agent: (id) => agents.get(id),
    agentAt: (tree, path) => at(threads.find(tree), path)[0],
    agentByToken: (digest) => byToken(tokenEnd(digest)).find(({ tokenDigest }) => tokenDigest === digest),
    agents(tree, under, { after = null, limit, closed }) {
      if (
        after !== null &&
        (!isWithin(after as AgentPath, under) || stands.get(threads.find(tree), after) === undefined)
      )
        throw unknownCursor(after);
      const rows = within.all(
        threads.find(tree),
        under,
        endOf(under),
        after ?? "",
        closed === true ? 0 : 1,
        limit + 1,
      );
      return agents.readablePage(rows, limit, 2);
    },
    childrenOf: (id, page) => (page.closed === true ? children : openOnes)(page, threads.find(id)),
    openChildren: (id) => openChildren.get(threads.find(id))![0] as number,
    usageUnder: (tree, under) =>
      usage.sum(tree, under, () => {
        const row = usageSum.get(threads.find(tree), under, endOf(under)) as readonly unknown[] as SumRow;
        const [inputTokens, cachedInputTokens, outputTokens, reasoningTokens, cost, unpriced, incomplete] =
          row;
        return { inputTokens, cachedInputTokens, outputTokens, reasoningTokens, cost, unpriced, incomplete };
      }),
    threads({ workspace, state }, page) {
      if (workspace === undefined) return state === undefined ? roots(page) : rootsWith(page, state);
      return state === undefined ? rootsIn(page, workspace) : rootsInWith(page, workspace, state);
    },
    isWorkedIn(tree, folder) {
      const number = threads.find(tree);
      const below = `${folder}${sep}`;
      return (
        worksAt.get(folder, number) !== undefined ||
        worksBelow.get(below, `${below}\u{10ffff}`, number) !== undefined
      );
    },
    descendants: (root, page) => descendants(page, threads.find(root)),
    putTree: (record) => trees.put(record),
    putAgent(record) {
      const before = unlessCorrupt(() => agents.get(record.threadId), null);
      if (before !== null) requireAgent(before, record);
      agents.put(record);
      if (before === null || (before !== undefined && !isListedAlike(before, record))) {
        relist.run(record.state, record.config.workspace, lineageOf(record), threads.number(record.threadId));
      }
      // What the row had counted stands in its columns alone.
      if (before === null) usage.clear();
      else usage.follow(before, record);
    },
  };
}

function isListedAlike(a: AgentRecord, b: AgentRecord): boolean {
  return (
    a.state === b.state &&
    a.config.workspace === b.config.workspace &&
    a.thread?.lineage.rootThreadId === b.thread?.lineage.rootThreadId
  );
}

type SumRow = readonly [number, number, number, number, number, number, number];
