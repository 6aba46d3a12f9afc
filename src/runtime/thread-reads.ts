/** What can be seen of threads by anybody who can open the store; only what nobody will settle any more is settled by it. */
import { CoppiceError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { SnapshotRecord } from "../protocol/snapshot.ts";
import type { ExecutionRef, ForkDraft } from "../protocol/thread.ts";
import type { HandoffRecord, TransferRecord } from "../protocol/transfer.ts";
import { snapshotAt } from "../control/thread-context.ts";
import { abortable, type CallOptions } from "../platform/abortable.ts";
import { check } from "../platform/check.ts";
import type { Difference, Missing } from "../platform/workspace/port.ts";
import type { Page, PageRequest, StoreView } from "../store/port.ts";
import { checkpointsOf, diffCheckpoints, type WorkspaceCheckpoint } from "../threads/checkpoints.ts";
import { requireHandoff } from "../threads/handoffs.ts";
import { collectHistory, type HistoryPage, historyPage } from "../threads/history.ts";
import type { ThreadPorts } from "../threads/ports.ts";
import { reconcileThread } from "../threads/reconcile.ts";
import { settleForkIntents } from "../threads/reconcile-forks.ts";
import { type ShownThread, shownThread } from "../threads/show.ts";
import { type ThreadTranscript, transcriptOf } from "../threads/transcript.ts";
import {
  documentOf,
  executionsOf,
  requireThread,
  summaryOf,
  type ThreadDocument,
  type ThreadSummary,
} from "../threads/thread-view.ts";
import type { PageOptions } from "./agent.ts";
import { portsWhile } from "./ports-while.ts";
import { THREADS } from "./thread-arguments.ts";
import { isCorrupt } from "../store/corrupt-row.ts";

/** Which threads are listed. */
export interface ThreadFilter {
  readonly workspace?: string;
  /** Default: open ones. */
  readonly state?: ThreadSummary["status"] | "any";
}

/** A page of threads, with those at which nothing but an error is to be had. */
export interface ThreadPage extends Page<ThreadSummary> {
  /** Threads of this page whose rows cannot be read (`STORE_CORRUPT`), of any workspace and state; to show one fails so. */
  readonly unreadable: readonly ThreadId[];
}

/** Which page of a transcript; the newest hundred entries unless given. */
export interface TranscriptOptions extends CallOptions {
  /** The `before` of the page that follows it. */
  readonly before?: string | null;
  readonly limit?: number;
}

/** Which two states of a workspace are compared. */
export interface CheckpointRange extends CallOptions {
  /** Id of the run whose checkpoint is the first one. */
  readonly run: string;
  /** Default: the folder as it is. */
  readonly to?: string;
  /** Longest patch, in bytes; 200,000 by default. */
  readonly patchBytes?: number;
}

/** What can be seen of threads, whoever owns them. */
export class ThreadReads {
  readonly #ports: ThreadPorts;

  constructor(ports: ThreadPorts) {
    this.#ports = ports;
  }

  /**
   * Threads of users, newest first; subagents stand in the tree of theirs. One that cannot be read keeps none of the others from
   * being listed, and is named beside them (C19).
   */
  async list(filter: ThreadFilter = {}, page: PageOptions = {}): Promise<ThreadPage> {
    check("Threads.list", THREADS.list, { filter, page });
    const { state = "open", workspace } = filter;
    const sought = {
      ...(state === "any" ? {} : { state }),
      ...(workspace === undefined ? {} : { workspace }),
    };
    const asked = pageOf(page);
    return this.#read(page, (view) => {
      try {
        const { rows, next } = view.threads(sought, asked);
        const summaries = rows.map((agent) => summaryOf(view, agent, this.#ports.provenDead));
        return { rows: summaries, next, unreadable: [] };
      } catch (error) {
        if (!isCorrupt(error)) throw error;
        return readableOf(this.#ports, view, sought, asked);
      }
    });
  }

  /**
   * Settles what nobody will settle any more (C14): runs without an owner, and forks that were asked for before a crash, for
   * which their provider is asked (C5.19).
   * @throws RejectedError `PROVIDER_UNAVAILABLE`, `FORK_NATIVE_INDETERMINATE` for such a fork.
   */
  async reconcile(id: string, options: CallOptions = {}): Promise<ThreadDocument> {
    check("Threads.reconcile", THREADS.one, { id, options });
    await portsWhile(this.#ports, options, async (ports) => {
      await reconcileThread(ports, id);
      await settleForkIntents(ports, id);
    });
    return this.get(id, options);
  }

  /** Reconciled first, then all there is to see of it (C14.6). */
  async show(id: string, executions: PageOptions = {}): Promise<ShownThread> {
    check("Threads.show", THREADS.show, { id, executions });
    await portsWhile(this.#ports, executions, (ports) => reconcileThread(ports, id));
    return this.#read(executions, (view) =>
      shownThread(view, id, pageOf(executions), this.#ports.provenDead),
    );
  }

  /**
   * What happened, as its providers tell it, oldest first; what was not collected yet is collected, unless another process
   * owns the thread. It is no context of any run (C13.11).
   * @throws RejectedError `THREAD_CONTEXT_TAMPERED`.
   */
  async history(id: string, page: PageOptions = {}): Promise<HistoryPage> {
    check("Threads.history", THREADS.pages, { id, page });
    await this.mirror(id, { signal: page.signal });
    return this.#read(page, (view) => {
      const agent = requireThread(view, id);
      return { ...historyPage(view, agent, pageOf(page)), level: view.worstHistory(agent.threadId) };
    });
  }

  /** Collects the history of runs of which none was collected yet; for another process's thread it does nothing. */
  async mirror(id: string, options: CallOptions = {}): Promise<void> {
    check("Threads.mirror", THREADS.one, { id, options });
    try {
      await portsWhile(this.#ports, options, (ports) => collectHistory(ports, id));
    } catch (error) {
      if (!CoppiceError.is(error) || error.code !== "NOT_OWNER") throw error;
    }
  }

  /**
   * The conversation with that of its ancestors up to where each was forked, newest page first: pass the `before` of a page
   * for what lies before it (C15).
   * @throws RejectedError `LINEAGE_CYCLE`, `INVALID_ARGUMENT` for a place that is not in it.
   */
  async transcript(id: string, page: TranscriptOptions = {}): Promise<ThreadTranscript> {
    check("Threads.transcript", THREADS.transcript, { id, page });
    const { lineage } = this.#ports;
    const { before = null, limit = PAGE } = page;
    return this.#read(page, (view) =>
      transcriptOf(view, requireThread(view, id), { before, limit }, lineage.ancestorDepthMaximum),
    );
  }

  /** A thread as it is now. @throws RejectedError `THREAD_NOT_FOUND`. */
  async get(id: string, options: CallOptions = {}): Promise<ThreadDocument> {
    check("Threads.get", THREADS.one, { id, options });
    return this.#read(options, (view) => documentOf(view, requireThread(view, id), this.#ports.provenDead));
  }

  /** Its runs as records of what each was allowed and on what it opened, oldest first, paged. */
  async executions(id: string, page: PageOptions = {}): Promise<Page<ExecutionRef>> {
    check("Threads.executions", THREADS.pages, { id, page });
    return this.#read(page, (view) => executionsOf(view, requireThread(view, id).threadId, pageOf(page)));
  }

  /** The newest snapshot, verified; null at revision 0 (S1-62). @throws RejectedError `THREAD_CONTEXT_TAMPERED`. */
  async context(id: string, options: CallOptions = {}): Promise<SnapshotRecord | null> {
    check("Threads.context", THREADS.one, { id, options });
    return this.#read(options, (view) => {
      const { threadId, thread } = requireThread(view, id);
      const current = thread?.currentContext ?? null;
      return current === null ? null : snapshotAt(view, { ...current, threadId });
    });
  }

  /** What was captured of the workspace after its runs, oldest first, by pages of runs (C1.18). */
  async checkpoints(id: string, page: PageOptions = {}): Promise<Page<WorkspaceCheckpoint>> {
    check("Threads.checkpoints", THREADS.pages, { id, page });
    return this.#read(page, (view) => checkpointsOf(view, id, pageOf(page)));
  }

  /**
   * From the checkpoint of a run to that of another, or to the folder as it is.
   * @throws RejectedError `SOURCE_POINT_NOT_FOUND` for a run without one.
   */
  async diffCheckpoints(id: string, between: CheckpointRange): Promise<Difference | Missing> {
    check("Threads.diffCheckpoints", THREADS.diffCheckpoints, { id, between });
    const { signal, ...range } = between;
    return abortable(signal, () => diffCheckpoints(this.#ports, id, range));
  }

  /** The text that a fork or a message that could not be sent has left for the user; null when there is none. */
  async draft(id: string, options: CallOptions = {}): Promise<ForkDraft | null> {
    check("Threads.draft", THREADS.one, { id, options });
    return this.#read(options, (view) => {
      const draft = view.draft(requireThread(view, id).threadId);
      return draft === undefined || draft.clearedAt !== null ? null : draft;
    });
  }

  /** Why context went from here or came to here, oldest first. */
  async transfers(id: string, page: PageOptions = {}): Promise<Page<TransferRecord>> {
    check("Threads.transfers", THREADS.pages, { id, page });
    return this.#read(page, (view) => view.transfersOf(requireThread(view, id).threadId, pageOf(page)));
  }

  /** The texts that were handed over, or are to be, oldest first, paged. */
  async handoffs(id: string, page: PageOptions = {}): Promise<Page<HandoffRecord>> {
    check("Threads.handoffs", THREADS.pages, { id, page });
    return this.#read(page, (view) => view.handoffsOf(requireThread(view, id).threadId, pageOf(page)));
  }

  /** A handoff with its text. @throws RejectedError `TRANSFER_SOURCE_UNRESOLVABLE` for an unknown one. */
  async handoff(id: string, options: CallOptions = {}): Promise<HandoffRecord> {
    check("Threads.handoff", THREADS.one, { id, options });
    return this.#read(options, (view) => requireHandoff(view, id));
  }

  #read<T>({ signal }: CallOptions, plan: (view: StoreView) => T): Promise<T> {
    return abortable(signal, () => this.#ports.store.read(plan));
  }
}

/** How many rows a page has that names none. */
const PAGE = 100;

function pageOf({ after = null, limit = PAGE }: PageOptions): PageRequest {
  return { after, limit };
}

/** The same page without the threads that cannot be read: one at a time, so that each costs only itself (REC-1). */
function readableOf(
  { provenDead, logger }: ThreadPorts,
  view: StoreView,
  sought: Parameters<StoreView["threads"]>[0],
  { after = null, limit }: PageRequest,
): ThreadPage {
  const unreadable: ThreadId[] = [];
  const rows: ThreadSummary[] = [];
  let at = after;
  let more = true;
  while (more && rows.length < limit) {
    const before = at;
    try {
      const { rows: found, next } = view.threads(sought, { after: at, limit: 1 });
      more = next !== null;
      for (const agent of found) {
        at = agent.threadId;
        rows.push(summaryOf(view, agent, provenDead));
      }
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      const { table, id } = error.details;
      if (table === "agents" && typeof id === "string") at = id;
      // It is the file, and not a row of a thread.
      if (at === before) throw error;
      unreadable.push(at as ThreadId);
      logger.warn({ threadId: at, err: error }, "a thread cannot be read, and is named as such in a list");
    }
  }
  return { rows, next: more ? at : null, unreadable };
}
