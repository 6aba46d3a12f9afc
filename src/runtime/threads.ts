/**
 * The commands on threads (lineage C3). What is one commit claims a tree that nobody owns for that commit alone; what runs
 * something, or asks a provider, opens the tree, as `openTree` would, and keeps it.
 *
 * - T1 A command is carried out here as it would be out of an inbox, so that an id names the same command wherever it is given.
 *   What was done under its id before is answered before anything else is looked at.
 */
import type { CommandVerb, LongCommandVerb } from "../protocol/command.ts";
import type { HandoffId, TransferId, TreeId, WorkId } from "../protocol/ids.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { Pin, PinSection } from "../protocol/snapshot.ts";
import type { HandoffRecord, TransferRecord } from "../protocol/transfer.ts";
import type { Begin, CallOptions } from "../platform/abortable.ts";
import { check } from "../platform/check.ts";
import type { Missing } from "../platform/workspace/port.ts";
import { answerOf, answerOnce, doOnce, type Given } from "../control/inbox.ts";
import { doLong } from "../control/long-commands.ts";
import type { Transaction } from "../control/transaction.ts";
import type { Tree } from "../control/tree.ts";
import type { ForkPointName } from "../lineage/fork-points.ts";
import type { RestoreAnswer } from "../threads/checkpoints.ts";
import { createThread } from "../threads/create.ts";
import type { ForkPlan } from "../threads/fork.ts";
import { IN_PARTS } from "../threads/in-parts.ts";
import { type ForkedThread, makeFork, planOf } from "../threads/make-fork.ts";
import type { MergedBack } from "../threads/merge-back.ts";
import { previewStart, type StartPreview } from "../threads/preview.ts";
import { unknownTransfer } from "../threads/inject.ts";
import type { RollbackOptions, RolledBack } from "../threads/rollback.ts";
import type { ThreadPorts } from "../threads/ports.ts";
import { reconcileThread } from "../threads/reconcile.ts";
import { requireThread, type ThreadDocument } from "../threads/thread-view.ts";
import { requireOpenThread, type SelectionInput, selectionOf } from "../threads/verbs.ts";
import { callOf, openFor, portsWhile } from "./ports-while.ts";
import { type ForkChoice, forkRequest, THREADS } from "./thread-arguments.ts";
import type {
  ThreadCommandOptions,
  ContinueOptions,
  CreateThreadOptions,
  ForkOptions,
  MergeOptions,
  PlannedFork,
  RestoreOptions,
  SyncOptions,
  ThreadReference,
} from "./thread-options.ts";
import { ThreadReads } from "./thread-reads.ts";
import { Work } from "./work.ts";

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
  async create(options: CreateThreadOptions = {}): Promise<ThreadDocument> {
    const { signal, ...asked } = check("Threads.create", THREADS.create, options);
    const id = await this.#while({ signal }, (ports) => createThread(ports, asked));
    return this.get(id, { signal });
  }

  /** The user's own text in place of a handoff that is ready and was not delivered (C3.11). */
  async editHandoff(id: string, text: string, options: ThreadCommandOptions = {}): Promise<HandoffRecord> {
    check("Threads.editHandoff", THREADS.editHandoff, { id, text, options });
    const asked = { verb: "edit_handoff", arguments: { handoff: id, text } } as const;
    const answer = await this.#atOnce(asked, options, async () => (await this.handoff(id)).treeId);
    return this.handoff(answer["handoff_id"] as HandoffId, callOf(options));
  }

  /** Such a handoff built again from what the thread is now. */
  async regenerateHandoff(id: string, options: ThreadCommandOptions = {}): Promise<HandoffRecord> {
    check("Threads.regenerateHandoff", THREADS.command, { id, options });
    const asked = { verb: "regenerate_handoff", arguments: { handoff: id } } as const;
    const answer = await this.#atLength(asked, options, async () => (await this.handoff(id)).treeId);
    return this.handoff(answer["handoff_id"] as HandoffId, callOf(options));
  }

  /**
   * Input of the user to a thread: a work whose outcome can be awaited (C3.2, C3.3). Its tree is opened for that. One of another
   * process's tree is refused with `NOT_OWNER`, also a command that was carried out before, of which the error's details name the
   * work (`workId`); `commandTree` leaves such a message in the owner's inbox.
   * @throws RejectedError `THREAD_NOT_FOUND`, `THREAD_CLOSED`, `THREAD_ARCHIVED`, `THREAD_REVISION_CONFLICT`, `THREAD_BUSY`,
   * `THREAD_CONTEXT_TAMPERED`, `PROVIDER_UNAVAILABLE`, `NOT_OWNER`.
   */
  async continue(id: string, message: string, options: ContinueOptions = {}): Promise<Work> {
    check("Threads.continue", THREADS.continue, { id, message, options });
    const { commandId, signal, ...rest } = options;
    const given: Given = { verb: "continue", arguments: { thread: id, message, ...rest }, commandId };
    return this.#while({ signal }, async (ports, begin) => {
      const known = await this.#known(given);
      const { treeId } = known === undefined ? await this.#openThread(id) : await this.#thread(id);
      const control = await openFor(ports, treeId, known);
      const answer = known ?? (await control.tree.transact(applied(control.tree, given, begin)));
      return new Work(control, answer["work_id"] as WorkId);
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
    options: ThreadCommandOptions = {},
  ): Promise<ThreadDocument> {
    check("Threads.select", THREADS.select, { id, choice, options });
    const chosen = choice === null ? { provider: null } : selectionOf(choice);
    await this.#onThread("select", id, chosen, options);
    return this.get(id, callOf(options));
  }

  /**
   * What would happen if the next run went there: nothing is written, and no provider is asked. A summary in it is the
   * runtime's own, whoever will write that of the run.
   */
  async preview(id: string, choice: SelectionInput, options: CallOptions = {}): Promise<StartPreview> {
    check("Threads.preview", THREADS.preview, { id, choice, options });
    return this.#while(options, async (ports) =>
      previewStart(ports, await this.#openThread(id), selectionOf(choice)),
    );
  }

  /** The user does not want the text that a fork, a rollback or a refused run has left (C2.9). @throws RejectedError `THREAD_ARCHIVED`. */
  async discardDraft(id: string, options: ThreadCommandOptions = {}): Promise<void> {
    check("Threads.discardDraft", THREADS.command, { id, options });
    await this.#onThread("discard_draft", id, {}, options);
  }

  /** Gives a thread another title, or none. @throws RejectedError `THREAD_NOT_FOUND`, `INVALID_ARGUMENT`, `NOT_OWNER`. */
  async rename(
    id: string,
    title: string | null,
    options: ThreadCommandOptions = {},
  ): Promise<ThreadDocument> {
    check("Threads.rename", THREADS.rename, { id, title, options });
    await this.#onThread("rename", id, { title }, options);
    return this.get(id, callOf(options));
  }

  /** Closes a settled thread and everything below it. @throws RejectedError `THREAD_BUSY`. */
  async close(id: string, options: ThreadCommandOptions = {}): Promise<ThreadDocument> {
    check("Threads.close", THREADS.command, { id, options });
    const { commandId } = options;
    const given: Given = { verb: "close", arguments: { target: id, politely: true }, commandId };
    await this.#while(options, async (ports, begin) => {
      if ((await this.#known(given)) !== undefined) return;
      const { treeId, state } = await this.#thread(id);
      // Nothing is to be done; an id alone is worth a commit.
      if (state !== "open" && commandId === undefined) return;
      if (state !== "open") return ports.apply(treeId, (tx) => answerOnce(tx, given, { closed: [] }));
      const { tree } = await ports.open(treeId);
      await tree.transact(applied(tree, given, begin));
    });
    return this.get(id, callOf(options));
  }

  /** For good, and only what is closed (C2.1); the checkpoints of its workspace are removed. @throws RejectedError `THREAD_INVARIANT_VIOLATION`, `THREAD_NOT_FOUND`. */
  async archive(id: string, options: ThreadCommandOptions = {}): Promise<ThreadDocument> {
    check("Threads.archive", THREADS.command, { id, options });
    await this.#inParts("archive", { thread: id }, options);
    return this.get(id, callOf(options));
  }

  /**
   * Keeps a line: with the run that is under way, else with the next one (C3.9).
   * @throws RejectedError `THREAD_CLOSED`, `INVALID_ARGUMENT`.
   */
  async pin(id: string, section: PinSection, text: string, options: ThreadCommandOptions = {}): Promise<Pin> {
    check("Threads.pin", THREADS.pin, { id, section, text, options });
    const answer = await this.#onThread("pin", id, { section, text }, options);
    return { pinId: answer["pin_id"] as Pin["pinId"], section, text };
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
    return this.#while(options, (ports) => makeFork(ports, forkRequest(id, choice), choice.commandId));
  }

  /** Brings a fork back into the thread that it was forked from (C7), and says whether that thread has anything to learn from it. */
  async mergeBack(fork: string, options: MergeOptions = {}): Promise<MergedBack> {
    check("Threads.mergeBack", THREADS.mergeBack, { fork, options });
    const { commandId, run, signal } = options;
    const target = await this.#while({ signal }, ({ store }) =>
      store.read((view) => {
        const { thread, threadId } = requireThread(view, fork);
        return requireThread(view, options.into ?? thread?.lineage.parentThreadId ?? threadId);
      }),
    );
    const asked = {
      verb: "merge_back",
      arguments: { fork, into: target.threadId, ...(run === undefined ? {} : { run }) },
    } as const;
    const answer = await this.#atOnce(asked, { commandId, signal }, async () => target.treeId);
    return { ...(await this.#transfer(answer)), nothingNew: answer["nothing_new"] === true };
  }

  /**
   * Takes runs back: everything after a run, or from a message of the user on, which becomes a draft (C9).
   * @throws RejectedError `THREAD_NOT_FOUND`, `THREAD_CLOSED`, `THREAD_ARCHIVED`, `ROLLBACK_…`; with a demanded rollback of
   * the provider's own, what it fails with. Nothing is changed then.
   */
  async rollBack(id: string, options: RollbackOptions & ThreadCommandOptions): Promise<RolledBack> {
    check("Threads.rollBack", THREADS.rollBack, { id, options });
    const { commandId, signal, ...rest } = options;
    const asked = { verb: "rollback", arguments: { thread: id, ...rest } as unknown as JsonObject } as const;
    const answer = await this.#atLength(
      asked,
      { commandId, signal },
      async () => (await this.#openThread(id)).treeId,
    );
    return answer as unknown as RolledBack;
  }

  /** As long as no run has started since. @throws RejectedError `ROLLBACK_ACTIVE_RUN`, `ROLLBACK_TARGET_INVALID`. */
  async undoRollback(id: string, options: ThreadCommandOptions = {}): Promise<ThreadDocument> {
    check("Threads.undoRollback", THREADS.command, { id, options });
    // A run that nobody will settle any more is in the way of no undo.
    await this.#while(callOf(options), (ports) => reconcileThread(ports, id));
    await this.#onThread("undo_rollback", id, {}, options);
    return this.get(id, callOf(options));
  }

  /**
   * Brings in a result that was kept back because the run that had asked for it was rolled back (C8.9, C9.2).
   * @throws RejectedError `SOURCE_POINT_NOT_FOUND`, `TRANSFER_STATE_INVALID`.
   */
  async inject(transferId: string, options: ThreadCommandOptions = {}): Promise<TransferRecord> {
    check("Threads.inject", THREADS.command, { id: transferId, options });
    const asked = { verb: "inject", arguments: { transfer: transferId } } as const;
    const answer = await this.#atOnce(asked, options, async () => {
      const found = await this.#ports.store.read((view) => view.transfer(transferId as TransferId));
      if (found === undefined) throw unknownTransfer(transferId);
      return found.treeId;
    });
    return this.#transfer(answer);
  }

  /**
   * Reads the history of all its settled runs again, or of one of them, from their providers (C13.7).
   * @throws RejectedError `NOT_OWNER`, `SOURCE_POINT_NOT_FOUND`, `THREAD_EXECUTION_BINDING_MISMATCH` for a run that is not its
   * own, or opened on another context than its policy says (C17.5).
   */
  async sync(id: string, options: SyncOptions = {}): Promise<ThreadDocument> {
    check("Threads.sync", THREADS.sync, { id, options });
    const { commandId, signal, ...rest } = options;
    await this.#inParts("sync", { thread: id, ...rest }, { commandId, signal });
    return this.get(id, { signal });
  }

  /**
   * Writes the files of the workspace as a run has left them. Nothing else of the user's is touched: no index, branch or stash, and
   * what stands there now is captured first. One that was cut off is not done again: given again, it says so.
   * @throws RejectedError `THREAD_BUSY` while a run is active in the folder; `SOURCE_POINT_NOT_FOUND`, `NOT_OWNER`; `INVALID_ARGUMENT` for
   * a path that leads out of the folder, or to nothing.
   */
  async restoreCheckpoint(id: string, options: RestoreOptions): Promise<RestoreAnswer> {
    check("Threads.restoreCheckpoint", THREADS.restoreCheckpoint, { id, options });
    const { commandId, signal, ...rest } = options;
    const asked = {
      verb: "restore_checkpoint",
      arguments: { thread: id, ...rest } as unknown as JsonObject,
    } as const;
    const answer = await this.#atLength(
      asked,
      { commandId, signal },
      async () => (await this.#thread(id)).treeId,
    );
    return answer as unknown as RestoreAnswer;
  }

  /** Removes the workspace checkpoint of a run; the run says so after. @throws as `restoreCheckpoint`. */
  async removeCheckpoint(
    id: string,
    run: string,
    options: ThreadCommandOptions = {},
  ): Promise<{ readonly status: "ready" } | Missing> {
    check("Threads.removeCheckpoint", THREADS.removeCheckpoint, { id, run, options });
    const asked = { verb: "remove_checkpoint", arguments: { thread: id, run } } as const;
    const answer = await this.#atLength(asked, options, async () => (await this.#thread(id)).treeId);
    return answer as unknown as { readonly status: "ready" } | Missing;
  }

  /** A command that is one commit on a thread's tree. */
  #onThread(verb: CommandVerb, id: string, more: object, options: ThreadCommandOptions): Promise<JsonObject> {
    const asked = { verb, arguments: { thread: id, ...more } as JsonObject };
    return this.#atOnce(asked, options, async () => (await this.#thread(id)).treeId);
  }

  /** In one commit. */
  #atOnce(
    asked: Omit<Given, "commandId">,
    { commandId, signal }: ThreadCommandOptions,
    where: () => Promise<TreeId>,
  ): Promise<JsonObject> {
    const given = { ...asked, commandId };
    return this.#while(
      { signal },
      async (ports) =>
        (await this.#known(given)) ??
        ports.apply(await where(), (tx) => doOnce(tx, given, "library", NOTHING_SAID)),
    );
  }

  /** What asks a provider: the commit that ends it notes its answer. */
  #atLength(
    asked: Omit<Given, "commandId"> & { readonly verb: LongCommandVerb },
    { commandId, signal }: ThreadCommandOptions,
    where: () => Promise<TreeId>,
  ): Promise<JsonObject> {
    const given = { ...asked, commandId };
    return this.#while({ signal }, async (ports, begin) => {
      const known = await this.#known(given);
      if (known !== undefined) return known;
      const { tree } = await ports.open(await where());
      return doLong(tree, given, begin);
    });
  }

  async #inParts(
    verb: keyof typeof IN_PARTS,
    asked: JsonObject,
    { commandId, signal }: ThreadCommandOptions,
  ): Promise<void> {
    const given = { verb, arguments: asked, commandId };
    await this.#while({ signal }, async (ports) => {
      if ((await this.#known(given)) !== undefined) return;
      await IN_PARTS[verb](
        ports,
        asked,
        commandId === undefined ? null : (tx, answer) => answerOnce(tx, given, answer),
      );
    });
  }

  #while<T>(options: CallOptions, act: (ports: ThreadPorts, begin: Begin) => Promise<T>): Promise<T> {
    return portsWhile(this.#ports, options, act);
  }

  #known(given: Given): Promise<JsonObject | undefined> {
    return this.#ports.store.read((view) => answerOf(view, given));
  }

  #thread(id: string) {
    return this.#ports.store.read((view) => requireThread(view, id));
  }

  async #openThread(id: string) {
    const agent = await this.#thread(id);
    requireOpenThread(agent);
    return agent;
  }

  #transfer(answer: JsonObject): Promise<TransferRecord> {
    return this.#ports.store.read((view) => view.transfer(answer["transfer_id"] as TransferId)!);
  }
}

/** Of a command that stops nothing. */
const NOTHING_SAID = (): string => "";

const applied =
  (tree: Tree, given: Given, begin: Begin) =>
  (tx: Transaction): JsonObject => {
    begin();
    return doOnce(tx, given, "library", tree.partialText);
  };
