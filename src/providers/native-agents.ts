/** Agents of a program's own, for adapters that show them: what they can then say, and what an agent that has them can do. */
import type { ThreadCapabilities } from "../protocol/provider-capabilities.ts";

/** `shown`: its own agents are on, and each of their starts and ends is told under its name. */
export function withNativeAgents(capabilities: ThreadCapabilities, shown: boolean): ThreadCapabilities {
  return { ...capabilities, subagents: { native: shown, childIds: shown, lifecycle: shown } };
}
