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
