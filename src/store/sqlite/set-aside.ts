/** Rows that cannot be read: kept aside as they are, and told by the columns beside their bodies (MBX-10, REC-1). */
import type { AgentPath } from "../../protocol/agent-path.ts";
import type { ThreadState } from "../../protocol/agent.ts";
import type { RunId, ThreadId, TreeId, WorkId } from "../../protocol/ids.ts";
import type { BackendTx } from "../backend.ts";
import { isUnreadable } from "../corrupt-row.ts";
import type { BrokenRow, MendableTable } from "../port.ts";
import type { Connection, Row, Statement } from "./connection.ts";
import type { ThreadNumbers } from "./thread-numbers.ts";

type Readers = Pick<BackendTx, "agent" | "work" | "run" | "wait" | "request" | "command">;
type Key = string | number | null;

/** How a row of a table is found, kept, and told. */
interface Aside {
  readonly read: (id: string) => unknown;
  readonly keyOf: (id: string) => Key;
  readonly keep: Statement;
  readonly tell: (key: Key) => BrokenRow;
}

export function setAsideRows(
  connection: Connection,
  threads: ThreadNumbers,
  readers: Readers,
): Pick<BackendTx, "setAside"> {
  const keeping = (table: MendableTable, key: string): Statement =>
    connection.statement(
      `INSERT INTO unreadable_bodies (id, body) SELECT id, body FROM ${table} WHERE ${key} = ? ON CONFLICT DO NOTHING`,
    );
  const ofTable = <T extends Exclude<MendableTable, "agents">>(
    table: T,
    read: (id: never) => unknown,
    { thread = "thread", open = "open" } = {},
  ) => {
    const columns = connection.statement(
      `SELECT threads.id, ${open} FROM ${table} JOIN threads ON number = ${thread} WHERE ${table}.id = ?`,
    );
    return {
      read: read as (id: string) => unknown,
      keyOf: (id: string): Key => id,
      keep: keeping(table, "id"),
      tell(key: Key) {
        const [threadId, isOpen] = columns.get(key)! as unknown as [ThreadId, number];
        return { table, threadId, open: isOpen === 1 };
      },
    };
  };
  // What a wait was on, and under what a work was asked, stands in edges: the record that stands in for it puts its own.
  const unlinkWait = connection.statement("DELETE FROM wait_works WHERE wait_id = ?");
  const unlinkWork = connection.statement("DELETE FROM work_parents WHERE parent = ? AND work_id = ?");
  // Edges are found by their parents, which are works of the same tree.
  const parents = connection.statement(
    `SELECT parent FROM works JOIN work_parents ON parent = works.id AND work_id = ?1
      WHERE tree = (SELECT tree FROM works WHERE id = ?1) ORDER BY works.rowid`,
  );
  const asked = connection.statement(
    "SELECT threads.id, begun FROM works LEFT JOIN threads ON number = requester WHERE works.id = ?",
  );
  const standing = connection.statement(
    `SELECT trees.id, path, parents.id, state, open, workspace, roots.id, input, cached, output, reasoning, cost, complete
       FROM agents JOIN threads AS trees ON trees.number = tree
       LEFT JOIN threads AS parents ON parents.number = parent
       LEFT JOIN threads AS roots ON roots.number = lineage
      WHERE agents.number = ?`,
  );
  const waitingRun = connection.statement("SELECT run_id FROM waits WHERE id = ?");
  const waits = ofTable("waits", readers.wait);
  const works = ofTable("works", readers.work, { thread: "executor" });
  const tables: Readonly<Record<Exclude<MendableTable, "agents">, Aside>> = {
    runs: ofTable("runs", readers.run),
    requests: ofTable("requests", readers.request),
    commands: ofTable("commands", readers.command, { thread: "tree", open: "pending" }),
    waits: {
      ...waits,
      tell(key) {
        unlinkWait.run(key);
        return { ...waits.tell(key), runId: waitingRun.get(key)![0] as RunId };
      },
    },
    works: {
      ...works,
      tell(key) {
        const [requester, begunAt] = asked.get(key)! as unknown as [ThreadId | null, number | null];
        const under = parents.all(key).map((row) => row[0] as WorkId);
        for (const parent of under) unlinkWork.run(parent, key);
        return { ...works.tell(key), work: { requester, parents: under, begunAt } };
      },
    },
  };
  const keepAgent = keeping("agents", "number");
  const agents = (id: string): Aside => ({
    read: readers.agent as (id: string) => unknown,
    keyOf: () => threads.find(id as ThreadId),
    keep: keepAgent,
    tell: (key) => agentOf(id as ThreadId, standing.get(key)!),
  });

  return {
    setAside(table, id) {
      const { read, keyOf, keep, tell } = table === "agents" ? agents(id) : tables[table];
      if (!isUnreadable(() => read(id))) return undefined;
      const key = keyOf(id);
      keep.run(key);
      return tell(key);
    },
  };
}

function agentOf(threadId: ThreadId, row: Row): BrokenRow {
  const [treeId, path, parent, state, open, workspace, lineage] = row as unknown as [
    TreeId,
    AgentPath,
    ThreadId | null,
    ThreadState | null,
    number,
    string | null,
    ThreadId | null,
  ];
  const [inputTokens, cachedInputTokens, outputTokens, reasoningTokens, cost, complete] = row.slice(
    7,
  ) as unknown as [number, number, number, number, number | null, number];
  return {
    table: "agents",
    threadId,
    open: open === 1,
    agent: {
      treeId,
      path,
      parent,
      // Files of older versions may lack it in such a row.
      state: state ?? (open === 1 ? "open" : "closed"),
      workspace,
      lineage,
      usage: {
        inputTokens,
        cachedInputTokens,
        outputTokens,
        reasoningTokens,
        cost,
        complete: complete === 1,
      },
    },
  };
}
