/**
 * The history mirror of a thread (lineage C13): what its runs' own sources tell is collected after they have settled, outside
 * of any commit, and stored in one small commit a run. Runs are collected in their order, so what is not collected yet is
 * the end of a thread.
 *
 * - H1 A source that fails costs completeness and nothing else: no run, no command fails by it.
 * - H2 A later reading that finds less changes nothing; one that finds more adds it.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { CoppiceError } from "../protocol/errors.ts";
import { isSettled, type RunRecord } from "../protocol/run.ts";
import {
  HISTORY_LEVELS,
  type HistoryEntry,
  type HistoryLevel,
  type HistoryState,
} from "../protocol/thread.ts";
import type { Transaction } from "../control/transaction.ts";
import {
  boundaryEntry,
  historyEntries,
  nothingRead,
  type ReadHistory,
  sealEntry,
  transcriptHistory,
  verifyEntry,
} from "../lineage/history.ts";
import { endOfRun } from "../lineage/thread-reader.ts";
import { readerOf } from "../control/thread-reader.ts";
import type { Page, PageRequest, StoreView } from "../store/port.ts";
import { readNative } from "./native-history.ts";
import { requireBound, requireRunOf } from "./run-binding.ts";
import type { ThreadPorts } from "./ports.ts";
import { requireThread } from "./thread-view.ts";

/** Reads the sources of every settled run again, or of one (C13.7). */
export async function syncHistory(ports: ThreadPorts, id: string, only?: string): Promise<void> {
  const { agent, run } = await ports.store.read((view) => {
    const found = requireThread(view, id);
    return { agent: found, run: only === undefined ? null : requireRunOf(view, found, only) };
  });
  if (agent.thread === null) return;
  if (run !== null) return collectFrom(ports, agent, run.ordinal, run.ordinal);
  await collectFrom(ports, agent, 1, agent.runs);
}

/** Collects what was not collected yet. */
export async function collectHistory(ports: ThreadPorts, id: string): Promise<void> {
  const { agent, from } = await ports.store.read((view) => {
    const found = requireThread(view, id);
    return { agent: found, from: firstUncollected(view, found) };
  });
  if (agent.thread === null) return;
  await collectFrom(ports, agent, from, agent.runs);
}

async function collectFrom(ports: ThreadPorts, agent: AgentRecord, from: number, to: number): Promise<void> {
  const stalled = new Set<string>();
  for (let ordinal = from; ordinal <= to; ordinal += 1) await collectAt(ports, agent, ordinal, stalled);
}

function firstUncollected(view: StoreView, { threadId, runs }: AgentRecord): number {
  let ordinal = runs + 1;
  while (ordinal > 1 && view.runAt(threadId, ordinal - 1)?.history === null) ordinal -= 1;
  return ordinal;
}

async function collectAt(
  ports: ThreadPorts,
  agent: AgentRecord,
  ordinal: number,
  stalled: Set<string>,
): Promise<void> {
  const run = await ports.store.read((view) => {
    const found = view.runAt(agent.threadId, ordinal);
    if (found !== undefined) requireBound(view, agent, found);
    return found;
  });
  if (run === undefined || !isSettled(run)) return;
  // An archived thread shows what was collected while it was not (C1.1).
  if (agent.state === "archived") return;
  const read = await readRun(ports, agent, run, stalled);
  if (run.history !== null && !adds(read, run.history)) return;
  await ports.apply(agent.treeId, (tx) => store(tx, run, read));
}

/** Whether it is worth a commit: more of it is there than was, or it is there for the first time. */
function adds(read: ReadHistory, known: HistoryState): boolean {
  const rank = (level: HistoryLevel): number => HISTORY_LEVELS.indexOf(level);
  return rank(read.level) < rank(known.level) || read.sources.length > known.entries;
}

async function readRun(
  ports: ThreadPorts,
  agent: AgentRecord,
  run: RunRecord,
  stalled: Set<string>,
): Promise<ReadHistory> {
  const adapter = ports.providers[run.provider];
  // Whoever asks waits the time of one answer, and not of one for each run.
  if (stalled.has(run.provider)) return nothingRead("final-only");
  try {
    if (adapter?.loop === "theirs") return await readNative(ports, agent, run, adapter);
    if (adapter === undefined) return nothingRead("unsupported");
    return await ports.store.read((view) => transcriptHistory(itemsOf(view, agent, run)));
  } catch (error) {
    const { threadId } = agent;
    if (CoppiceError.is(error) && error.code === "PROVIDER_STALLED") stalled.add(run.provider);
    ports.logger.warn({ threadId, runId: run.id, err: error }, "the history of a run is not here");
    return nothingRead("final-only");
  }
}

function itemsOf(view: StoreView, { threadId }: AgentRecord, run: RunRecord) {
  const end = endOfRun(readerOf(view, view.agent(threadId)!), run.ordinal);
  return view.items(threadId, run.firstItem, end - run.firstItem);
}

function store(tx: Transaction, { id, threadId }: RunRecord, read: ReadHistory): void {
  const run = tx.store.run(id)!;
  const agent = tx.agent(threadId);
  const { lineage: limits, redact } = tx.context;
  const { level, skipped, cursor } = read;
  let sequence = agent.thread!.messages;
  let added = 0;
  const add = (entry: Parameters<typeof sealEntry>[0]): void => {
    if (!tx.store.addHistory(sealEntry(entry, sequence + 1))) return;
    sequence += 1;
    added += 1;
  };
  for (const entry of historyEntries(run, read.sources, { limits, redact })) add(entry);
  const entries = (run.history?.entries ?? 0) + added;
  const state: HistoryState = { level, skipped, entries, cursor };
  add(boundaryEntry(run, { level, entries, skipped }, tx.now));
  tx.store.putRun({ ...run, history: state });
  if (sequence > agent.thread!.messages)
    tx.putAgent(agent, { thread: { ...agent.thread!, messages: sequence } });
}

/** A page of what happened in a thread, as its providers tell it. */
export interface HistoryPage extends Page<HistoryEntry> {
  /** Of the whole thread; null while nothing of it was collected. */
  readonly level: HistoryLevel | null;
}

/** @throws RejectedError `THREAD_CONTEXT_TAMPERED` for an entry that is not what was stored. */
export function historyPage(view: StoreView, agent: AgentRecord, page: PageRequest): Page<HistoryEntry> {
  const { rows, next } = view.history(agent.threadId, page);
  return { rows: rows.map(verifyEntry), next };
}
