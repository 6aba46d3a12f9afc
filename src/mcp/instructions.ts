/** What a client's model is told of the server, once. */
export const ROOT_INSTRUCTIONS = [
  "You are the root of a tree of agents: others work for you beside one another, and what they were asked for survives a restart.",
  "Give one a task with spawn_agent and go on with your own work; its result comes to your mailbox by itself.",
  "Read it with wait_agent, which returns at once when something is there; carry the `cursor` of its last answer, or you are told the same again. A wait that ends with `cut_short` has not failed: call it again.",
  "Results of other tools say when mail is unread. send_message tells a running agent something; followup_task gives one another task; interrupt_agent stops it and keeps what it knows.",
  "Spawn only for work that can go on beside yours; an agent sees nothing but what you write to it.",
].join("\n");

export const AGENT_INSTRUCTIONS =
  "Work with other agents of your tree: what you ask for survives a restart, and their results come to you as messages.";
