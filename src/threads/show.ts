/** All there is to see of a thread at one moment (lineage C14.6): its record, its runs, its context, and how much history is here. */
import type { SnapshotRecord } from "../protocol/snapshot.ts";
import type { ProvenDead } from "../protocol/process-identity.ts";
import type { ExecutionRef, HistoryLevel } from "../protocol/thread.ts";
import { contextOf } from "../control/thread-context.ts";
import type { Page, PageRequest, StoreView } from "../store/port.ts";
import { documentOf, executionsOf, requireThread, type ThreadDocument } from "./thread-view.ts";

/** All there is to see of a thread at one moment. */
export interface ShownThread {
  readonly thread: ThreadDocument;
  readonly executions: Page<ExecutionRef>;
  /** What the next run opens on, verified; null where that is nothing. */
  readonly context: SnapshotRecord | null;
  readonly history: { readonly level: HistoryLevel | null; readonly entries: number };
}

/** @throws RejectedError `THREAD_NOT_FOUND`, `THREAD_CONTEXT_TAMPERED`. */
export function shownThread(
  view: StoreView,
  id: string,
  executions: PageRequest,
  provenDead: ProvenDead,
): ShownThread {
  const agent = requireThread(view, id);
  return {
    thread: documentOf(view, agent, provenDead),
    executions: executionsOf(view, agent.threadId, executions),
    context: contextOf({ store: view }, agent),
    history: { level: view.worstHistory(agent.threadId), entries: agent.thread?.messages ?? 0 },
  };
}
