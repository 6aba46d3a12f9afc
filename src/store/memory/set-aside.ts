/** Rows that cannot be read, in memory: tests damage them, and what stands in for one replaces it (REC-1). */
import type { AgentRecord } from "../../protocol/agent.ts";
import type { CommandRecord } from "../../protocol/command.ts";
import type { RunRecord } from "../../protocol/run.ts";
import { isSettled } from "../../protocol/run.ts";
import type { RuntimeRequestRecord, WaitRecord } from "../../protocol/wait.ts";
import type { WorkRecord } from "../../protocol/work.ts";
import type { BackendTx } from "../backend.ts";
import { corruptRow } from "../corrupt-row.ts";
import type { BrokenAgent, BrokenRow, MendableTable } from "../port.ts";
import type { Table } from "./table.ts";

export interface Mendable {
  readonly agents: Table<AgentRecord>;
  readonly works: Table<WorkRecord>;
  readonly runs: Table<RunRecord>;
  readonly waits: Table<WaitRecord>;
  readonly requests: Table<RuntimeRequestRecord>;
  readonly commands: Table<CommandRecord>;
}

export interface SetAside {
  readonly rows: Pick<BackendTx, "setAside">;
  readonly damage: (table: MendableTable, id: string) => void;
}

export function setAsideRows(tables: Mendable): SetAside {
  const { agents, works, runs, waits, requests, commands } = tables;
  const known: Record<MendableTable, (id: string) => BrokenRow | undefined> = {
    agents(id) {
      const agent = agents.damaged(id);
      return (
        agent && {
          table: "agents",
          threadId: agent.threadId,
          open: agent.state === "open",
          agent: of(agent),
        }
      );
    },
    works(id) {
      const work = works.damaged(id);
      if (work === undefined) return undefined;
      const { requester, parents, state, begunAt } = work;
      const open = state !== "ended";
      const asked = {
        requester: requester.kind === "agent" ? requester.threadId : null,
        parents,
        begunAt: open ? begunAt : null,
      };
      return { table: "works", threadId: work.executor, open, work: asked };
    },
    runs(id) {
      const run = runs.damaged(id);
      return run && { table: "runs", threadId: run.threadId, open: !isSettled(run) };
    },
    waits(id) {
      const wait = waits.damaged(id);
      return wait && { table: "waits", threadId: wait.threadId, runId: wait.runId, open: wait.end === null };
    },
    requests(id) {
      const request = requests.damaged(id);
      return request && { table: "requests", threadId: request.threadId, open: request.status === "pending" };
    },
    commands(id) {
      const command = commands.damaged(id);
      return command && { table: "commands", threadId: command.treeId, open: command.state === "pending" };
    },
  };
  return {
    rows: { setAside: (table, id) => known[table](id) },
    damage: (table, id) => tables[table].damage(id, () => corruptRow("memory", table, id)),
  };
}

function of({ treeId, path, parent, state, config, thread, usage }: AgentRecord): BrokenAgent {
  const lineage = thread?.lineage.rootThreadId ?? null;
  return { treeId, path, parent, state, workspace: config.workspace, lineage, usage };
}
