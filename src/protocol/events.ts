/** The durable event log of a tree (OBS-1). Names are noun and verb; every event stands in the commit it reports. */
import type { AgentPath } from "./agent-path.ts";
import type { EventId, RunId, ThreadId, TreeId, WorkId } from "./ids.ts";
import type { JsonObject } from "./json.ts";

export const EVENT_TYPES = [
  "tree.opened",
  "tree.claimed",
  "agent.spawned",
  "agent.loaded",
  "agent.unloaded",
  "agent.load_failed",
  "agent.closed",
  "agent.interrupted",
  "agent.blocked",
  "mail.accepted",
  "mail.delivered",
  "mail.settled",
  "mail.dead_lettered",
  "mail.redirected",
  "mail.triggered",
  "work.queued",
  "work.started",
  "work.awaiting",
  "work.detached",
  "work.ended",
  "run.reserved",
  "run.accepted",
  "run.step",
  "run.waiting",
  "run.resumed",
  "run.retrying",
  "run.settled",
  "run.captured",
  "wait.started",
  "wait.ended",
  "tool.called",
  "tool.returned",
  "request.opened",
  "request.closed",
  "child.started",
  "child.ended",
  "thread.forked",
  "thread.selected",
  "thread.renamed",
  "thread.archived",
  "thread.pinned",
  "thread.rolled_back",
  "thread.restored",
  "record.set_aside",
  "transfer.created",
  "transfer.moved",
  "worktree.ended",
  "budget.spent",
  "budget.raised",
  "command.applied",
  "activity.started",
  "activity.interacted",
  "activity.completed",
  "activity.interrupted",
] as const;
/** The types of events, noun and verb. */
export type EventType = (typeof EVENT_TYPES)[number];

export interface EventDraft {
  readonly type: EventType;
  readonly path: AgentPath | null;
  readonly threadId: ThreadId | null;
  readonly runId: RunId | null;
  readonly workId: WorkId | null;
  readonly data: JsonObject;
}

/** An event of the log: what has changed, in the commit that changed it. */
export interface RuntimeEvent extends EventDraft {
  readonly id: EventId;
  readonly treeId: TreeId;
  /** 1, 2, 3 … per tree; the cursor. */
  readonly seq: number;
  readonly at: number;
}

/** Not durable and not in the log: text as it streams, for those who watch. Secrets are taken out of it (SEC-3). */
export interface ProgressEvent {
  readonly type: "progress";
  readonly path: AgentPath;
  readonly runId: RunId;
  readonly text: string;
}
