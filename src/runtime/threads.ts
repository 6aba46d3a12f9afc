/**
 * The commands on threads (lineage C3). What is one commit claims a tree that nobody owns for that commit alone; what runs
 * something, or asks a provider, opens the tree, as `openTree` would, and keeps it.
 */
import type { RunId } from "../protocol/ids.ts";
import type { Pin, PinSection } from "../protocol/snapshot.ts";
import { type ForkPolicyInput, forkPolicySchema } from "../protocol/thread.ts";
import type { ContextSourcePoint, HandoffRecord, TransferRecord } from "../protocol/transfer.ts";
import type { Begin, CallOptions } from "../platform/abortable.ts";
import { check } from "../platform/check.ts";
import { once, receiptKey } from "../control/idempotency.ts";
import type { Transaction } from "../control/transaction.ts";
import type { OnBusy } from "../control/messages.ts";
import type { ForkAvailability } from "../lineage/fork-availability.ts";
import type { ForkPoint, ForkPointName } from "../lineage/fork-points.ts";
import { createThread, type ThreadOptions } from "../threads/create.ts";
import { type ForkPlan, type ForkRequest, requireTitle } from "../threads/fork.ts";
import { type ForkedThread, makeFork, planOf } from "../threads/make-fork.ts";
import { previewStart, type StartPreview } from "../threads/preview.ts";
import { editHandoff, regenerateHandoff } from "../threads/handoffs.ts";
import { inject, unknownTransfer } from "../threads/inject.ts";
import { mergeBack } from "../threads/merge-back.ts";
import { rollBack, type RollbackOptions, type RolledBack } from "../threads/rollback.ts";
import { undoRollback } from "../threads/rollback-undo.ts";
import type { ThreadPorts } from "../threads/ports.ts";
import { reconcileThread } from "../threads/reconcile.ts";
import { requireThread, type ThreadDocument } from "../threads/thread-view.ts";
import {
  archive,
  continueThread,
  pin,
  rename,
  requireOpenThread,
  requireUnarchived,
  select,
  type SelectionInput,
  selectionOf,
} from "../threads/verbs.ts";
import { portsWhile } from "./ports-while.ts";
import { type ForkChoice, THREADS } from "./thread-arguments.ts";
import { ThreadReads } from "./thread-reads.ts";
import { Work } from "./work.ts";

/** How input to a thread is taken; a provider that is left out is the one that it is on. */
export interface ContinueOptions extends CallOptions {
  readonly provider?: string;
  readonly model?: string;
  readonly effort?: string;
  /** A busy thread refuses (default), queues, or takes it in at its next step. */
  readonly onBusy?: OnBusy;
  /** The revision that this was planned on. */
  readonly expectedRevision?: number;
  readonly key?: string;
}

/** A point of a thread, to be pointed at. */
export interface ThreadReference {
  readonly point: ContextSourcePoint;
  readonly title: string | null;
  /** For the first message of another thread. */
  readonly text: string;
}

/** Where a fork begins, and how its first run gets its context. */
export interface ForkOptions extends CallOptions {
  /** Default: the latest completed run that has a checkpoint. */
  readonly at?: ForkPointName;
  readonly policy?: ForkPolicyInput;
  readonly title?: string;
}

/** What comes back of a fork. */
export interface MergeOptions extends CallOptions {
  /** Default, and all that is taken: the thread that it was forked from. */
  readonly into?: string;
  /** Up to this run of the fork; default: its latest completed one. */
  readonly run?: RunId;
}

/** What a fork would be. */
export interface PlannedFork extends Pick<ForkPoint, "point" | "draft" | "carries"> {
  readonly title: string | null;
  readonly availability: ForkAvailability;
}

const USER = { kind: "user", name: "library" } as const;

/**
 * The life of threads, from `runtime.threads`: made, continued, forked, moved to another provider, merged back, rolled back,
 * closed. What only looks is `ThreadReads`, and here too.
 */
export class Threads extends ThreadReads {
  readonly #ports: ThreadPorts;

  constructor(ports: ThreadPorts) {
    super(ports);
    this.#ports = ports;
  }

  /**
   * A thread that has no run yet, always a new one; nobody owns it until it is opened or continued (C3.1).
   * @throws RejectedError `THREAD_EXISTS`, `THREAD_NOT_FOUND` for the parent, `INVALID_ARGUMENT`.
   */
  async create(options: ThreadOptions & CallOptions = {}): Promise<ThreadDocument> {
    const { signal, ...asked } = check("Threads.create", THREADS.create, options);
    const id = await this.#while({ signal }, (ports) => createThread(ports, asked));
    return this.get(id, { signal });
  }

  /** The user's own text in place of a handoff that is ready and was not delivered (C3.11). */
  async editHandoff(id: string, text: string, options: CallOptions = {}): Promise<HandoffRecord> {
    check("Threads.editHandoff", THREADS.editHandoff, { id, text, options });
    const { treeId } = await this.handoff(id, options);
    return this.#while(options, (ports) => ports.apply(treeId, (tx) => editHandoff(tx, id, text)));
  }

  /** Such a handoff built again from what the thread is now. */
  async regenerateHandoff(id: string, options: CallOptions = {}): Promise<HandoffRecord> {
    check("Threads.regenerateHandoff", THREADS.one, { id, options });
    const { treeId } = await this.handoff(id, options);
    return this.#while(options, async (ports, begin) =>
      regenerateHandoff((await ports.open(treeId)).tree, id, begin),
    );
  }

  /**
   * Input of the user to a thread: a work whose outcome can be awaited (C3.2, C3.3).
   * @throws RejectedError `THREAD_NOT_FOUND`, `THREAD_CLOSED`, `THREAD_ARCHIVED`, `THREAD_REVISION_CONFLICT`, `THREAD_BUSY`,
   * `THREAD_CONTEXT_TAMPERED`, `PROVIDER_UNAVAILABLE`, `NOT_OWNER`.
   */
  async continue(id: string, message: string, options: ContinueOptions = {}): Promise<Work> {
    check("Threads.continue", THREADS.continue, { id, message, options });
    const { key, signal, onBusy = "reject", ...rest } = options;
    const input = { message, onBusy, ...rest };
    return this.#while({ signal }, async (ports, begin) => {
      const { treeId } = await openThread(ports, id);
      const control = await ports.open(treeId);
      const { workId } = await control.tree.transact((tx) => {
        begin();
        return once(tx, receiptKey(USER, key), { verb: "continue", thread: id, ...input }, () => ({
          workId: continueThread(tx, id, USER, input).id,
        }));
      });
      return new Work(control, workId);
    });
  }

  /**
   * What the next run is to use; null takes the choice back. The thread is bound to it when a provider has accepted that run
   * (C4.16).
   * @throws RejectedError `THREAD_NOT_FOUND`, `THREAD_CLOSED`, `THREAD_ARCHIVED`, `PROVIDER_UNAVAILABLE`, `NOT_OWNER`.
   */
  async select(
    id: string,
    choice: SelectionInput | null,
    options: CallOptions = {},
  ): Promise<ThreadDocument> {
    check("Threads.select", THREADS.select, { id, choice, options });
    const chosen = choice === null ? null : selectionOf(choice);
    await this.#while(options, async (ports) => {
      const { treeId } = await openThread(ports, id);
      await ports.apply(treeId, (tx) => select(tx, id, chosen));
    });
    return this.get(id, options);
  }

  /** What would happen if the next run went there: nothing is written, and no provider is asked. */
  async preview(id: string, choice: SelectionInput, options: CallOptions = {}): Promise<StartPreview> {
    check("Threads.preview", THREADS.preview, { id, choice, options });
    return this.#while(options, async (ports) =>
      previewStart(ports, await openThread(ports, id), selectionOf(choice)),
    );
  }

  /** The user does not want the text that a fork, a rollback or a refused run has left (C2.9). @throws RejectedError `THREAD_ARCHIVED`. */
  async discardDraft(id: string, options: CallOptions = {}): Promise<void> {
    check("Threads.discardDraft", THREADS.one, { id, options });
    await this.#apply(id, options, (tx) => {
      const agent = requireThread(tx.store, id);
      requireUnarchived(agent);
      const draft = tx.store.draft(agent.threadId);
      if (draft?.clearedAt === null) tx.store.putDraft({ ...draft, clearedAt: tx.now });
    });
  }

  /** Gives a thread another title, or none. @throws RejectedError `THREAD_NOT_FOUND`, `INVALID_ARGUMENT`, `NOT_OWNER`. */
  async rename(id: string, title: string | null, options: CallOptions = {}): Promise<ThreadDocument> {
    check("Threads.rename", THREADS.rename, { id, title, options });
    await this.#apply(id, options, (tx) => rename(tx, id, title));
    return this.get(id, options);
  }

  /** Closes a settled thread and everything below it. @throws RejectedError `THREAD_BUSY`. */
  async close(id: string, options: CallOptions = {}): Promise<ThreadDocument> {
    check("Threads.close", THREADS.one, { id, options });
    await this.#while(options, async (ports) => {
      const { state, treeId, threadId } = await ports.store.read((view) => requireThread(view, id));
      if (state !== "open") return;
      const control = await ports.open(treeId);
      await control.close(threadId, { politely: true, signal: options.signal });
    });
    return this.get(id, options);
  }

  /** For good, and only what is closed (C2.1). @throws RejectedError `THREAD_INVARIANT_VIOLATION`, `THREAD_NOT_FOUND`. */
  async archive(id: string, options: CallOptions = {}): Promise<ThreadDocument> {
    check("Threads.archive", THREADS.one, { id, options });
    await this.#apply(id, options, (tx) => archive(tx, id));
    return this.get(id, options);
  }

  /**
   * Keeps a line: with the run that is under way, else with the next one (C3.9).
   * @throws RejectedError `THREAD_CLOSED`, `INVALID_ARGUMENT`.
   */
  async pin(id: string, section: PinSection, text: string, options: CallOptions = {}): Promise<Pin> {
    check("Threads.pin", THREADS.pin, { id, section, text, options });
    return this.#apply(id, options, (tx) => pin(tx, id, section, text));
  }

  /** What a fork would be, without making it (C5.12). @throws RejectedError of the codes of C5. */
  async planFork(id: string, options: ForkOptions = {}): Promise<PlannedFork> {
    const { options: choice } = check("Threads.planFork", THREADS.planFork, { id, options });
    const { fork, title, availability } = await this.#planOf(id, choice, options);
    return { point: fork.point, draft: fork.draft, carries: fork.carries, title, availability };
  }

  #planOf(id: string, choice: ForkChoice, options: CallOptions): Promise<ForkPlan> {
    return this.#while(options, (ports) => planOf(ports, forkRequest(id, choice)));
  }

  /**
   * A point of a thread as something to be pointed at, for whoever creates an ordinary thread (C5.16): context that can be
   * left out, and nothing is made.
   * @throws RejectedError of the codes of C5.
   */
  async reference(
    id: string,
    at: ForkPointName = { kind: "latest_stable" },
    options: CallOptions = {},
  ): Promise<ThreadReference> {
    check("Threads.reference", THREADS.reference, { id, at, options });
    const { source, fork } = await this.#planOf(id, { at }, options);
    const { title } = source.thread;
    const named = title === null ? source.threadId : `${source.threadId}, "${title}"`;
    const until = fork.carries ? `up to run ${fork.point.ordinal}` : "which holds nothing before this point";
    return {
      point: fork.point,
      title,
      text: `An earlier conversation may be of use: thread ${named}, ${until}. Read it with \`read_thread\`.`,
    };
  }

  /**
   * A new idle thread that begins where another one stood (C5). `new_session` makes none: see `reference`.
   * @throws RejectedError `THREAD_NOT_FOUND`, `SOURCE_POINT_…`, `FORK_…`, `LINEAGE_…`, `COMMAND_ID_CONFLICT`.
   */
  async fork(id: string, options: ForkOptions = {}): Promise<ForkedThread> {
    const { options: choice } = check("Threads.fork", THREADS.fork, { id, options });
    return this.#while(options, (ports) => makeFork(ports, forkRequest(id, choice)));
  }

  /** Brings a fork back into the thread that it was forked from (C7). */
  async mergeBack(fork: string, options: MergeOptions = {}): Promise<TransferRecord> {
    check("Threads.mergeBack", THREADS.mergeBack, { fork, options });
    const run = options.run ?? null;
    return this.#while(options, async (ports) => {
      const target = await ports.store.read((view) => {
        const { thread, threadId } = requireThread(view, fork);
        return requireThread(view, options.into ?? thread?.lineage.parentThreadId ?? threadId);
      });
      return ports.apply(target.treeId, (tx) =>
        mergeBack(tx, { fork, target: target.threadId, run, createdBy: "user" }),
      );
    });
  }

  /**
   * Takes runs back: everything after a run, or from a message of the user on, which becomes a draft (C9).
   * @throws RejectedError `THREAD_NOT_FOUND`, `THREAD_CLOSED`, `THREAD_ARCHIVED`, `ROLLBACK_…`; with a demanded rollback of
   * the provider's own, what it fails with. Nothing is changed then.
   */
  async rollBack(id: string, options: RollbackOptions & CallOptions): Promise<RolledBack> {
    check("Threads.rollBack", THREADS.rollBack, { id, options });
    return this.#while(options, async (ports, begin) => {
      const { treeId, threadId } = await openThread(ports, id);
      const { tree } = await ports.open(treeId);
      return rollBack(tree, threadId, options, begin);
    });
  }

  /** As long as no run has started since. @throws RejectedError `ROLLBACK_ACTIVE_RUN`, `ROLLBACK_TARGET_INVALID`. */
  async undoRollback(id: string, options: CallOptions = {}): Promise<ThreadDocument> {
    check("Threads.undoRollback", THREADS.one, { id, options });
    // A run that nobody will settle any more is in the way of no undo.
    await this.#while(options, (ports) => reconcileThread(ports, id));
    await this.#apply(id, options, (tx) => undoRollback(tx, id));
    return this.get(id, options);
  }

  /**
   * Brings in a result that was kept back because the run that had asked for it was rolled back (C8.9, C9.2).
   * @throws RejectedError `SOURCE_POINT_NOT_FOUND`, `TRANSFER_STATE_INVALID`.
   */
  async inject(transferId: string, options: CallOptions = {}): Promise<TransferRecord> {
    check("Threads.inject", THREADS.inject, { transferId, options });
    return this.#while(options, async (ports) => {
      const treeId = await ports.store.read(
        (view) => view.transfer(transferId as TransferRecord["id"])?.treeId,
      );
      if (treeId === undefined) throw unknownTransfer(transferId);
      return ports.apply(treeId, (tx) => inject(tx, transferId));
    });
  }

  #apply<T>(id: string, options: CallOptions, plan: (tx: Transaction) => T): Promise<T> {
    return this.#while(options, async (ports) => {
      const agent = await ports.store.read((view) => requireThread(view, id));
      return ports.apply(agent.treeId, plan);
    });
  }

  #while<T>(options: CallOptions, act: (ports: ThreadPorts, begin: Begin) => Promise<T>): Promise<T> {
    return portsWhile(this.#ports, options, act);
  }
}

async function openThread({ store }: ThreadPorts, id: string) {
  const agent = await store.read((view) => requireThread(view, id));
  requireOpenThread(agent);
  return agent;
}

const DEFAULT_POLICY = forkPolicySchema.parse({});

function forkRequest(
  source: string,
  { at = { kind: "latest_stable" }, policy = DEFAULT_POLICY, title }: ForkChoice,
): ForkRequest {
  return {
    source,
    at,
    policy,
    title: title === undefined ? null : requireTitle(title),
    createdBy: "user",
  };
}
