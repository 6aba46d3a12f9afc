/** Names of the tools that the runtime brings, in their stable order. */
export const COLLABORATION_TOOLS = [
  "spawn_agent",
  "send_message",
  "followup_task",
  "wait_agent",
  "interrupt_agent",
  "list_agents",
] as const;
export type CollaborationTool = (typeof COLLABORATION_TOOLS)[number];
export const RESULT_TOOLS = ["report_result", "read_artifact"] as const;
/** Of every agent that is no leaf: what is to be kept of a run, word for word (lineage C3.9). */
export const CONTEXT_TOOLS = ["pin_context"] as const;
/** Between trees (XTR); an agent has them where the runtime was given `threadTools`. */
export const THREAD_TOOLS = [
  "create_thread",
  "send_message_to_thread",
  "read_thread",
  "wait_threads",
  "fork_thread",
  "merge_back",
] as const;
export type ThreadTool = (typeof THREAD_TOOLS)[number];
