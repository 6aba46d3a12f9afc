/** What only grows, in memory: transcripts and event logs. */
import { InvariantError } from "../../protocol/errors.ts";
import type { RuntimeEvent } from "../../protocol/events.ts";
import type { TranscriptItem } from "../../protocol/transcript.ts";
import type { LogRows } from "../backend.ts";
import type { Journal } from "./journal.ts";
import type { Freeze } from "./table.ts";

export function logRows(journal: Journal, freeze: Freeze): LogRows {
  const transcripts = new Map<string, TranscriptItem[]>();
  const logs = new Map<string, RuntimeEvent[]>();

  function listOf<T>(lists: Map<string, T[]>, key: string): T[] {
    const list = lists.get(key) ?? [];
    lists.set(key, list);
    return list;
  }

  return {
    items: (id, from, limit) => {
      const first = Math.max(0, from);
      return transcripts.get(id)?.slice(first, first + limit) ?? [];
    },
    appendItems(id, first, items) {
      const list = listOf(transcripts, id);
      const length = list.length;
      if (first !== length) throw outOfPlace(id, first, length);
      const added = items.map((item, at) => freeze({ ...item, index: first + at }));
      journal.record(() => void (list.length = length));
      for (const item of added) list.push(item);
      return added;
    },
    events: (tree, after, limit) => logs.get(tree)?.slice(after, after + limit) ?? [],
    lastEvent: (tree) => logs.get(tree)?.length ?? 0,
    appendEvent(tree, id, at, draft) {
      const log = listOf(logs, tree);
      const event = freeze({ ...draft, id, treeId: tree, seq: log.length + 1, at });
      journal.record(() => void log.pop());
      log.push(event);
      return event;
    },
  };
}

export function outOfPlace(thread: string, first: number, length: number): InvariantError {
  return new InvariantError("Transcript items must follow the last one.", { thread, first, length });
}
