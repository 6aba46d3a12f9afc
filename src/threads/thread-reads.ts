/** What can be seen of threads by anybody who can open the store; only what nobody will settle any more is settled by it. */
import { CoppiceError } from "../protocol/errors.ts";
import type { SnapshotRecord } from "../protocol/snapshot.ts";
import type { ExecutionRef, ForkDraft } from "../protocol/thread.ts";
import type { HandoffRecord, TransferRecord } from "../protocol/transfer.ts";
import { snapshotAt } from "../control/thread-context.ts";
import type { Page, PageRequest } from "../store/port.ts";
import { requireHandoff } from "./handoffs.ts";
import { collectHistory, historyLevel, type HistoryPage, historyPage, syncHistory } from "./history.ts";
import type { ThreadPorts } from "./ports.ts";
import { reconcileThread } from "./reconcile.ts";
import { type ShownThread, shownThread } from "./show.ts";
import { type ThreadTranscript, transcriptOf } from "./transcript.ts";
import {
  documentOf,
  executionsOf,
  requireThread,
  summaryOf,
  type ThreadDocument,
  type ThreadSummary,
} from "./thread-view.ts";

export interface ThreadFilter {
  readonly workspace?: string;
  /** Default: open ones. */
  readonly state?: ThreadSummary["status"] | "any";
}

const FIRST_PAGE: PageRequest = { limit: 100 };

export class ThreadReads {
  readonly #ports: ThreadPorts;

  constructor(ports: ThreadPorts) {
    this.#ports = ports;
  }

  /** Threads of users, newest first; subagents stand in the tree of theirs. */
  list(filter: ThreadFilter = {}, page: PageRequest = FIRST_PAGE): Promise<Page<ThreadSummary>> {
    const { state = "open", workspace } = filter;
    return this.#ports.store.read((view) => {
      const { rows, next } = view.threads(
        { ...(state === "any" ? {} : { state }), ...(workspace === undefined ? {} : { workspace }) },
        page,
      );
      return { rows: rows.map((agent) => summaryOf(view, agent, this.#ports.provenDead)), next };
    });
  }

  /** Settles what nobody will settle any more (C14). */
  async reconcile(id: string): Promise<ThreadDocument> {
    await reconcileThread(this.#ports, id);
    return this.get(id);
  }

  /** Reconciled first, then all there is to see of it (C14.6). */
  async show(id: string, executions: PageRequest = { limit: 100 }): Promise<ShownThread> {
    await reconcileThread(this.#ports, id);
    return this.#ports.store.read((view) => shownThread(view, id, executions, this.#ports.provenDead));
  }

  /**
   * Reads the history of all its settled runs again, or of one of them, from their providers (C13.7).
   * @throws RejectedError `NOT_OWNER`, `SOURCE_POINT_NOT_FOUND`, `THREAD_EXECUTION_BINDING_MISMATCH` for a run that is not its
   * own, or opened on another context than its policy says (C17.5).
   */
  async sync(id: string, only: { readonly run?: string } = {}): Promise<ThreadDocument> {
    await syncHistory(this.#ports, id, only.run);
    return this.get(id);
  }

  /**
   * What happened, as its providers tell it, oldest first; what was not collected yet is collected, unless another process
   * owns the thread. It is no context of any run (C13.11).
   * @throws RejectedError `THREAD_CONTEXT_TAMPERED`.
   */
  async history(id: string, page: PageRequest = FIRST_PAGE): Promise<HistoryPage> {
    await this.mirror(id);
    return this.#ports.store.read((view) => {
      const agent = requireThread(view, id);
      return { ...historyPage(view, agent, page), level: historyLevel(view, agent) };
    });
  }

  /** Collects the history of runs of which none was collected yet; for another process's thread it does nothing. */
  async mirror(id: string): Promise<void> {
    try {
      await collectHistory(this.#ports, id);
    } catch (error) {
      if (!CoppiceError.is(error) || error.code !== "NOT_OWNER") throw error;
    }
  }

  /**
   * The conversation with that of its ancestors up to where each was forked, newest page first: pass the `before` of a page
   * for what lies before it (C15).
   * @throws RejectedError `LINEAGE_CYCLE`, `INVALID_ARGUMENT` for a place that is not in it.
   */
  transcript(
    id: string,
    page: { readonly before?: string; readonly limit: number },
  ): Promise<ThreadTranscript> {
    const { store, lineage } = this.#ports;
    return store.read((view) =>
      transcriptOf(view, requireThread(view, id), page, lineage.ancestorDepthMaximum),
    );
  }

  /** @throws RejectedError `THREAD_NOT_FOUND`. */
  get(id: string): Promise<ThreadDocument> {
    const { store, provenDead } = this.#ports;
    return store.read((view) => documentOf(view, requireThread(view, id), provenDead));
  }

  executions(id: string, page: PageRequest = FIRST_PAGE): Promise<Page<ExecutionRef>> {
    return this.#ports.store.read((view) => executionsOf(view, requireThread(view, id).threadId, page));
  }

  /** The newest snapshot, verified; null at revision 0 (S1-62). @throws RejectedError `THREAD_CONTEXT_TAMPERED`. */
  context(id: string): Promise<SnapshotRecord | null> {
    return this.#ports.store.read((view) => {
      const { threadId, thread } = requireThread(view, id);
      const current = thread?.currentContext ?? null;
      return current === null ? null : snapshotAt(view, { ...current, threadId });
    });
  }

  /** The text that a fork or a message that could not be sent has left for the user; null when there is none. */
  draft(id: string): Promise<ForkDraft | null> {
    return this.#ports.store.read((view) => {
      const draft = view.draft(requireThread(view, id).threadId);
      return draft === undefined || draft.clearedAt !== null ? null : draft;
    });
  }

  /** Why context went from here or came to here, oldest first. */
  transfers(id: string, page: PageRequest = FIRST_PAGE): Promise<Page<TransferRecord>> {
    return this.#ports.store.read((view) => view.transfersOf(requireThread(view, id).threadId, page));
  }

  handoffs(id: string, page: PageRequest = FIRST_PAGE): Promise<Page<HandoffRecord>> {
    return this.#ports.store.read((view) => view.handoffsOf(requireThread(view, id).threadId, page));
  }

  /** @throws RejectedError `TRANSFER_SOURCE_UNRESOLVABLE` for an unknown one. */
  handoff(id: string): Promise<HandoffRecord> {
    return this.#ports.store.read((view) => requireHandoff(view, id));
  }
}
