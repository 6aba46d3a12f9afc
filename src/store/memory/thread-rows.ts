/** What threads have beside their agents, in memory: provider threads, snapshots, compactions, history, drafts. */
import type { ProviderThreadRecord } from "../../protocol/provider-thread.ts";
import type { CompactionRecord, SnapshotRecord } from "../../protocol/snapshot.ts";
import type { ForkDraft, HistoryEntry } from "../../protocol/thread.ts";
import type { ThreadRows } from "../backend.ts";
import { compactionNumber, sequenceTaken, writtenTwice } from "../series.ts";
import type { Journal } from "./journal.ts";
import { type Freeze, Table } from "./table.ts";

export function threadRows(journal: Journal, freeze: Freeze): ThreadRows {
  const providerThreads = new Table<ProviderThreadRecord>(journal, freeze, ({ id }) => id);
  const providerThreadsOf = providerThreads.index(({ appThreadId }) => appThreadId);
  const providerThreadsNamed = providerThreads.index(({ nativeThreadRef: ref }) =>
    ref === null ? null : `${ref.driver} ${ref.nativeId}`,
  );
  const snapshots = new Table<SnapshotRecord>(journal, freeze, (one) => `${one.threadId} ${one.revision}`);
  const compactions = new Table<CompactionRecord>(journal, freeze, ({ threadId, id }) => `${threadId} ${id}`);
  const compactionsOf = compactions.paged(({ threadId }) => threadId, compactionNumber);
  const history = new Table<HistoryEntry>(journal, freeze, ({ threadId, id }) => `${threadId} ${id}`);
  const historyOf = history.paged(
    ({ threadId }) => threadId,
    ({ sequence }) => sequence,
  );
  const bySequence = history.index(({ threadId, sequence }) => `${threadId} ${sequence}`);
  const drafts = new Table<ForkDraft>(journal, freeze, ({ threadId }) => threadId);

  return {
    providerThread: (id) => providerThreads.get(id),
    providerThreadsOf: (id) => providerThreadsOf.get(id),
    providerThreadsNamed: (driver, nativeId) => providerThreadsNamed.get(`${driver} ${nativeId}`),
    snapshot: (id, revision) => snapshots.get(`${id} ${revision}`),
    compactions: (id, page) => compactionsOf.page(id, page, "oldest first"),
    history: (id, page) => historyOf.page(id, page, "oldest first"),
    historyEntry: (id, entry) => history.get(`${id} ${entry}`),
    draft: (id) => drafts.get(id),
    putProviderThread: (record) => void providerThreads.put(record),
    putSnapshot(record) {
      const { threadId, revision } = record;
      if (snapshots.get(`${threadId} ${revision}`) !== undefined)
        throw writtenTwice(`snapshot ${revision}`, threadId);
      snapshots.put(record);
    },
    putCompaction(record) {
      const { threadId, id } = record;
      if (compactions.get(`${threadId} ${id}`) !== undefined) throw writtenTwice(id, threadId);
      compactions.put(record);
    },
    addHistory(record) {
      const { threadId, id, sequence } = record;
      if (history.get(`${threadId} ${id}`) !== undefined) return false;
      if (bySequence.first(`${threadId} ${sequence}`) !== undefined) throw sequenceTaken(record);
      history.put(record);
      return true;
    },
    putDraft: (record) => void drafts.put(record),
  };
}
