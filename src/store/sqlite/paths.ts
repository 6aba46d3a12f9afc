/** A subtree is one range of paths: `/` sorts before every character of a segment. */
import type { AgentPath } from "../../protocol/agent-path.ts";

/** The first text after `under` and everything below it. */
export function endOf(under: AgentPath): string {
  return `${under}0`;
}
