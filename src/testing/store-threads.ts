/** What the cases about threads have in common: roots, forks and subagents as their records stand in a store. */
import type { ThreadState } from "../protocol/agent.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { StoreTx } from "../store/port.ts";
import { sampleThreadFacts } from "./store-records-threads.ts";
import { sampleAgent, sampleId } from "./store-records.ts";

export const EVERYTHING = { limit: 99 };

/** A user's thread: the root of its own tree. */
export function putRoot(
  tx: StoreTx,
  name: string,
  given: { readonly workspace?: string; readonly state?: ThreadState; readonly legacy?: boolean } = {},
): ThreadId {
  const id = sampleId("thread", name);
  const agent = sampleAgent(id, id, "/root", {
    state: given.state ?? "open",
    thread: given.legacy === true ? null : sampleThreadFacts(id),
  });
  tx.putAgent({ ...agent, config: { ...agent.config, workspace: given.workspace ?? null } });
  return id;
}

/** A subagent or a fork, below or beside its parent. */
export function putChild(
  tx: StoreTx,
  name: string,
  parentThreadId: ThreadId,
  relationshipToParent: "fork" | "subagent",
): ThreadId {
  const id = sampleId("thread", name);
  const { rootThreadId } = tx.agent(parentThreadId)!.thread!.lineage;
  const thread = sampleThreadFacts(id, { lineage: { parentThreadId, relationshipToParent, rootThreadId } });
  tx.putAgent(
    relationshipToParent === "fork"
      ? sampleAgent(id, id, "/root", { thread })
      : sampleAgent(tx.agent(parentThreadId)!.treeId, id, `/root/${name}`, {
          thread,
          parent: parentThreadId,
          depth: 1,
        }),
  );
  return id;
}

export const threadIds = (rows: readonly { readonly threadId: ThreadId }[]): ThreadId[] =>
  rows.map(({ threadId }) => threadId);
