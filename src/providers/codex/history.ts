/** Turns of a Codex thread as they are read for the history of a thread of ours (lineage C13). */
import type { NativeHistoryPage } from "../../protocol/native-events.ts";
import { refOf } from "./translate.ts";
import type { CodexItem, CodexTurn } from "./wire.ts";

type Page = NativeHistoryPage;
type Item = Page["turns"][number]["items"][number];

export function historyPage({
  data,
  nextCursor,
}: {
  readonly data: readonly CodexTurn[];
  readonly nextCursor?: string | null | undefined;
}): Page {
  return {
    turns: data.map(({ id, status, items }) => ({
      ref: refOf(id),
      status: status === "inProgress" ? "running" : status,
      items: items.flatMap(itemOf),
    })),
    next: nextCursor ?? null,
  };
}

function itemOf(item: CodexItem): Item[] {
  const ref = refOf(item.id);
  switch (item.type) {
    case "userMessage": {
      const content = Array.isArray(item["content"])
        ? (item["content"] as readonly { text?: unknown }[])
        : [];
      const text = content.flatMap((part) => (typeof part.text === "string" ? [part.text] : [])).join("\n");
      return [{ ref, role: "user", text }];
    }
    case "agentMessage":
      return [{ ref, role: "assistant", text: typeof item["text"] === "string" ? item["text"] : "" }];
    case "commandExecution":
    case "fileChange":
    case "mcpToolCall":
    case "dynamicToolCall": {
      const { id: _, type: _type, ...rest } = item;
      return [{ ref, role: "tool", text: JSON.stringify(rest) }];
    }
    default:
      return [];
  }
}
