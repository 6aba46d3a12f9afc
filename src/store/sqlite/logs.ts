/** What only grows: transcripts and event logs, a row an entry. Their lengths are remembered between appends. */
import { InvariantError } from "../../protocol/errors.ts";
import type { EventDraft, RuntimeEvent } from "../../protocol/events.ts";
import type { ThreadId, TreeId } from "../../protocol/ids.ts";
import type { TranscriptItem } from "../../protocol/transcript.ts";
import type { LogRows } from "../backend.ts";
import type { Connection, Row } from "./connection.ts";
import { RecordCache } from "./record-cache.ts";
import { parseRecord } from "./table.ts";
import type { ThreadNumbers } from "./thread-numbers.ts";

export function logRows(connection: Connection, threads: ThreadNumbers): LogRows {
  const lengths = connection.join(new RecordCache<number>());
  const lastEvents = connection.join(new RecordCache<number>());
  const insertItem = connection.statement("INSERT INTO items (thread, position, body) VALUES (?, ?, ?)");
  const lastItem = connection.statement("SELECT MAX(position) FROM items WHERE thread = ?");
  const itemRows = connection.statement(
    "SELECT position, body FROM items WHERE thread = ? AND position >= ? ORDER BY position LIMIT ?",
  );
  const insertEvent = connection.statement("INSERT INTO events (tree, seq, body) VALUES (?, ?, ?)");
  const lastSeq = connection.statement("SELECT MAX(seq) FROM events WHERE tree = ?");
  const eventRows = connection.statement(
    "SELECT seq, body FROM events WHERE tree = ? AND seq > ? ORDER BY seq LIMIT ?",
  );

  function lengthOf(id: ThreadId): number {
    const length = lengths.get(id) ?? ((lastItem.get(threads.find(id))![0] as number | null) ?? -1) + 1;
    lengths.set(id, length);
    return length;
  }

  function lastEvent(tree: TreeId): number {
    const seq = lastEvents.get(tree) ?? (lastSeq.get(threads.find(tree))![0] as number | null) ?? 0;
    lastEvents.set(tree, seq);
    return seq;
  }

  const entry = <R>(table: string, log: string, row: Row): R =>
    parseRecord<R>(connection, table, `${log} ${row[0] as number}`, row[1] as string);

  return {
    items: (id, from, limit) =>
      itemRows.all(threads.find(id), from, limit).map((row) => entry<TranscriptItem>("items", id, row)),
    appendItems(id, first, items) {
      const length = lengthOf(id);
      if (first !== length) {
        throw new InvariantError("Transcript items must follow the last one.", { thread: id, first, length });
      }
      const added = items.map((item, at): TranscriptItem => ({ ...item, index: first + at }));
      const number = threads.number(id);
      for (const item of added) insertItem.run(number, item.index, JSON.stringify(item));
      lengths.set(id, length + added.length);
      return added;
    },
    events: (tree, after, limit) =>
      eventRows.all(threads.find(tree), after, limit).map((row) => entry<RuntimeEvent>("events", tree, row)),
    lastEvent,
    appendEvent(tree, id, at, draft: EventDraft) {
      const event: RuntimeEvent = { ...draft, id, treeId: tree, seq: lastEvent(tree) + 1, at };
      insertEvent.run(threads.number(tree), event.seq, JSON.stringify(event));
      lastEvents.set(tree, event.seq);
      return event;
    },
  };
}
