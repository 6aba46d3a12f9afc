/** The whole transcript of a thread that is not in memory. */
import type { AgentRecord } from "../protocol/agent.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { StoreView } from "../store/port.ts";

const PAGE = 1000;

export function itemsOf(view: StoreView, agent: AgentRecord): readonly TranscriptItem[] {
  const items: TranscriptItem[] = [];
  while (items.length < agent.items) {
    const page = view.items(agent.threadId, items.length, PAGE);
    if (page.length === 0) break;
    items.push(...page);
  }
  return items;
}
