/** The request of a step, built from the transcript (pure). */
import type { AgentRecord } from "../protocol/agent.ts";
import type { PromptMessage } from "../protocol/provider-events.ts";
import type { ItemBody } from "../protocol/transcript.ts";

/**
 * Messages of a request: the agent's instructions, then the transcript in order. Mail between agents and the runtime's
 * own texts are never user turns with user authority: they carry their header (MBX-11).
 */
export function buildMessages(agent: AgentRecord, items: readonly ItemBody[]): PromptMessage[] {
  const messages: PromptMessage[] = [];
  if (agent.config.instructions !== null) messages.push({ role: "system", text: agent.config.instructions });
  for (const item of items) {
    switch (item.kind) {
      case "user":
        messages.push({ role: "user", text: item.inherited ? `[inherited]\n${item.text}` : item.text });
        break;
      case "mail":
        messages.push({ role: "user", text: item.text });
        break;
      case "context":
        messages.push({ role: "user", text: `[runtime: ${item.topic}]\n${item.text}` });
        break;
      case "assistant":
        if (item.parts.length > 0) messages.push({ role: "assistant", parts: item.parts });
        break;
      case "tool_result":
        messages.push({
          role: "tool",
          callId: item.callId,
          name: item.name,
          output: item.output,
          isError: item.isError,
        });
        break;
    }
  }
  return messages;
}

/** Whole responses of the thread itself: the position of a deterministic provider in its script. */
export function ownSteps(items: readonly ItemBody[]): number {
  let steps = 0;
  for (const item of items)
    if (item.kind === "assistant" && !item.inherited && item.phase !== "partial") steps += 1;
  return steps;
}
