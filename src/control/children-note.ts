/** The direct children of an agent, for its run's context: at most 8 and 1,024 bytes, loaded ones first (OBS-6). */
import type { AgentRecord } from "../protocol/agent.ts";
import { byteLength } from "../platform/text.ts";
import { statusOf } from "./status.ts";
import type { Look } from "./transaction.ts";

const CHILDREN = 8;
const BYTES = 1024;

export function childrenNote(look: Look, agent: AgentRecord): string | null {
  const children = look.store
    .childrenOf(agent.threadId, { limit: 500 })
    .rows.toSorted(
      (a, b) => Number(look.context.loaded(b.threadId)) - Number(look.context.loaded(a.threadId)),
    );
  if (children.length === 0) return null;
  const lines = ["Your agents:"];
  let bytes = byteLength(lines[0]!);
  for (const child of children.slice(0, CHILDREN)) {
    const line = `- ${child.path}: ${statusOf(look.store, child).kind}`;
    bytes += byteLength(line) + 1;
    if (bytes > BYTES) break;
    lines.push(line);
  }
  return lines.length === 1 ? null : lines.join("\n");
}
