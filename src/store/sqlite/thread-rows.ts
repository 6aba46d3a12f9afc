/** What threads have beside their agents: provider threads, snapshots, compactions, history, drafts. */
import type { ThreadId } from "../../protocol/ids.ts";
import type { ProviderThreadRecord } from "../../protocol/provider-thread.ts";
import type { CompactionRecord, SnapshotRecord } from "../../protocol/snapshot.ts";
import type { ForkDraft, HistoryEntry } from "../../protocol/thread.ts";
import type { ThreadRows } from "../backend.ts";
import { compactionNumber, sequenceTaken, writtenTwice } from "../series.ts";
import type { Connection } from "./connection.ts";
import { Series } from "./series.ts";
import { Table } from "./table.ts";
import type { ThreadNumbers } from "./thread-numbers.ts";

export function threadRows(connection: Connection, threads: ThreadNumbers): ThreadRows {
  const providerThreads = new Table<ProviderThreadRecord>(connection, {
    name: "provider_threads",
    idOf: ({ id }) => id,
    fixed: { thread: ({ appThreadId }) => threads.number(appThreadId) },
    moving: { native: ({ nativeThreadRef: ref }) => (ref === null ? null : `${ref.driver} ${ref.nativeId}`) },
  });
  const providerThreadsNamed = providerThreads.list("WHERE native = ? ORDER BY rowid");
  const providerThreadsOf = providerThreads.list("WHERE thread = ? ORDER BY rowid");
  const snapshots = new Series<SnapshotRecord>(connection, threads, "snapshots", ({ revision }) => revision);
  const compactions = new Series<CompactionRecord>(connection, threads, "compactions", compactionNumber);
  const history = new Series<HistoryEntry>(connection, threads, "history", ({ sequence }) => sequence);
  const addHistoryId = connection.statement(
    "INSERT INTO history_ids (thread, id, position) VALUES (?, ?, ?)",
  );
  const historyPosition = connection.statement(
    "SELECT position FROM history_ids WHERE thread = ? AND id = ?",
  );
  const drafts = new Table<ForkDraft>(connection, { name: "drafts", idOf: ({ threadId }) => threadId });
  const positionOf = (id: ThreadId, entry: string): number | undefined =>
    historyPosition.get(threads.find(id), entry)?.[0] as number | undefined;

  return {
    providerThread: (id) => providerThreads.get(id),
    providerThreadsOf: (id) => providerThreadsOf(threads.find(id)),
    providerThreadsNamed: (driver, nativeId) => providerThreadsNamed(`${driver} ${nativeId}`),
    snapshot: (id, revision) => snapshots.get(id, revision),
    compactions: (id, page) => compactions.page(id, page),
    history: (id, page) => history.page(id, page),
    historyEntry(id, entry) {
      const position = positionOf(id, entry);
      return position === undefined ? undefined : history.get(id, position);
    },
    draft: (id) => drafts.get(id),
    putProviderThread: (record) => providerThreads.put(record),
    putSnapshot(record) {
      const { threadId, revision } = record;
      if (!snapshots.add(record)) throw writtenTwice(`snapshot ${revision}`, threadId);
    },
    putCompaction(record) {
      if (!compactions.add(record)) throw writtenTwice(record.id, record.threadId);
    },
    addHistory(record) {
      const { threadId, id, sequence } = record;
      if (positionOf(threadId, id) !== undefined) return false;
      if (!history.add(record)) throw sequenceTaken(record);
      addHistoryId.run(threads.number(threadId), id, sequence);
      return true;
    },
    putDraft: (record) => drafts.put(record),
  };
}
