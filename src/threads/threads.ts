/**
 * The commands on threads (lineage C3), for a runtime that owns the trees they concern. Whatever needs a tree opens it, as
 * `openTree` would, and keeps it.
 */
import { z } from "zod";
import { RejectedError } from "../protocol/errors.ts";
import type { RunId, ThreadId } from "../protocol/ids.ts";
import type { Pin, PinSection } from "../protocol/snapshot.ts";
import { type ForkPolicyInput, forkPolicySchema, type ProviderSelection } from "../protocol/thread.ts";
import type { ContextSourcePoint, HandoffRecord, TransferRecord } from "../protocol/transfer.ts";
import type { WorkRecord } from "../protocol/work.ts";
import { canonicalJson } from "../platform/canonical-json.ts";
import { check } from "../platform/check.ts";
import { sha256 } from "../platform/digest.ts";
import type { AgentControl } from "../control/agent-control.ts";
import { once, receiptKey } from "../control/idempotency.ts";
import type { OnBusy } from "../control/messages.ts";
import type { ForkPointName } from "../lineage/fork-points.ts";
import type { StoreView } from "../store/port.ts";
import { type CreateOptions, createThread } from "./create.ts";
import {
  type CapabilitiesOf,
  type Forked,
  type ForkPlan,
  type ForkRequest,
  planFork,
  requireTitle,
  writeFork,
} from "./fork.ts";
import { previewStart, type StartPreview } from "./preview.ts";
import { editHandoff, regenerateHandoff } from "./handoffs.ts";
import { inject, unknownTransfer } from "./inject.ts";
import { mergeBack } from "./merge-back.ts";
import { rollBack, type RollbackOptions, type RolledBack } from "./rollback.ts";
import { undoRollback } from "./rollback-undo.ts";
import { capabilitiesOf, type ThreadPorts } from "./ports.ts";
import { ThreadReads } from "./thread-reads.ts";
import { requireThread, type ThreadDocument } from "./thread-view.ts";
import { archive, continueThread, pin, rename, requireOpenThread, select } from "./verbs.ts";

export interface ContinueOptions {
  readonly provider?: string;
  readonly model?: string;
  readonly effort?: string;
  /** A busy thread refuses (default), queues, or takes it in at its next step. */
  readonly onBusy?: OnBusy;
  /** The revision that this was planned on. */
  readonly expectedRevision?: number;
  readonly key?: string;
}

export interface ThreadReference {
  readonly point: ContextSourcePoint;
  readonly title: string | null;
  /** For the first message of another thread. */
  readonly text: string;
}

/** A choice of provider; what is left out is the provider's own default. */
export interface SelectionInput {
  readonly provider: string;
  readonly model?: string | null;
  readonly effort?: string | null;
  /** Begin a new conversation with the whole history as text (C10). */
  readonly cleanContext?: boolean;
}

function selectionOf({
  provider,
  model = null,
  effort = null,
  cleanContext = false,
}: SelectionInput): ProviderSelection {
  return { provider, model, effort, cleanContext };
}

export interface ForkOptions {
  /** Default: the latest completed run that has a checkpoint. */
  readonly at?: ForkPointName;
  readonly policy?: ForkPolicyInput;
  readonly title?: string;
}

const USER = { kind: "user", name: "library" } as const;

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
  async create(options: CreateOptions = {}): Promise<ThreadDocument> {
    return this.get(await createThread(this.#ports, options));
  }

  /** The user's own text in place of a handoff that is ready and was not delivered (C3.11). */
  async editHandoff(id: string, text: string): Promise<HandoffRecord> {
    const { treeId } = await this.handoff(id);
    const { tree } = await this.#ports.open(treeId);
    return tree.transact((tx) => editHandoff(tx, id, text));
  }

  /** Such a handoff built again from what the thread is now. */
  async regenerateHandoff(id: string): Promise<HandoffRecord> {
    const { treeId } = await this.handoff(id);
    return regenerateHandoff((await this.#ports.open(treeId)).tree, id);
  }

  /**
   * Input of the user to a thread: a work whose outcome can be awaited (C3.2, C3.3).
   * @throws RejectedError `THREAD_NOT_FOUND`, `THREAD_CLOSED`, `THREAD_ARCHIVED`, `THREAD_REVISION_CONFLICT`, `THREAD_BUSY`,
   * `THREAD_CONTEXT_TAMPERED`, `PROVIDER_UNAVAILABLE`, `NOT_OWNER`.
   */
  async continue(id: string, message: string, options: ContinueOptions = {}): Promise<WorkRecord> {
    const { treeId } = await this.#openThread(id);
    const { tree } = await this.#ports.open(treeId);
    const { key, onBusy = "reject", ...rest } = options;
    const input = { message, onBusy, ...rest };
    return tree.transact((tx) => {
      const asked = { verb: "continue", thread: id, ...input };
      const { workId } = once(tx, receiptKey(USER, key), asked, () => ({
        workId: continueThread(tx, id, USER, input).id,
      }));
      return tx.store.work(workId)!;
    });
  }

  /**
   * What the next run is to use; null takes the choice back. The thread is bound to it when a provider has accepted that run
   * (C4.16).
   * @throws RejectedError `THREAD_NOT_FOUND`, `THREAD_CLOSED`, `THREAD_ARCHIVED`, `PROVIDER_UNAVAILABLE`, `NOT_OWNER`.
   */
  async select(id: string, choice: SelectionInput | null): Promise<ThreadDocument> {
    const agent = await this.#openThread(id);
    const { tree } = await this.#ports.open(agent.treeId);
    await tree.transact((tx) => select(tx, id, choice === null ? null : selectionOf(choice)));
    return this.get(id);
  }

  /** What would happen if the next run went there: nothing is written, and no provider is asked. */
  async preview(id: string, choice: SelectionInput): Promise<StartPreview> {
    const agent = await this.#openThread(id);
    const { tree } = await this.#ports.open(agent.treeId);
    return previewStart(tree, id, selectionOf(choice));
  }

  /** The user does not want the text that a fork, a rollback or a refused run has left (C2.9). */
  async discardDraft(id: string): Promise<void> {
    const { tree } = await this.#open(id);
    await tree.transact((tx) => {
      const draft = tx.store.draft(requireThread(tx.store, id).threadId);
      if (draft?.clearedAt === null) tx.store.putDraft({ ...draft, clearedAt: tx.now });
    });
  }

  /** Gives a thread another title, or none. @throws RejectedError `THREAD_NOT_FOUND`, `INVALID_ARGUMENT`, `NOT_OWNER`. */
  async rename(id: string, title: string | null): Promise<ThreadDocument> {
    const { tree } = await this.#open(id);
    await tree.transact((tx) => rename(tx, id, title));
    return this.get(id);
  }

  /** Closes a settled thread and everything below it. @throws RejectedError `THREAD_BUSY`. */
  async close(id: string): Promise<ThreadDocument> {
    const agent = await this.#ports.store.read((view) => requireThread(view, id));
    if (agent.state === "open") {
      const control = await this.#ports.open(agent.treeId);
      await control.close(agent.threadId, { politely: true });
    }
    return this.get(id);
  }

  /** For good, and only what is closed (C2.1). @throws RejectedError `THREAD_INVARIANT_VIOLATION`, `THREAD_NOT_FOUND`. */
  async archive(id: string): Promise<ThreadDocument> {
    const { tree } = await this.#open(id);
    await tree.transact((tx) => archive(tx, id));
    return this.get(id);
  }

  /** Keeps a line: with the run that is under way, else with the next one (C3.9). @throws RejectedError `THREAD_CLOSED`, `INVALID_ARGUMENT`. */
  async pin(id: string, section: PinSection, text: string): Promise<Pin> {
    const { tree } = await this.#open(id);
    return tree.transact((tx) => pin(tx, id, section, text));
  }

  /** What a fork would be, without making it (C5.12). */
  async planFork(id: string, options: ForkOptions = {}): Promise<ForkPlan> {
    const request = forkRequest(id, options);
    const capabilities = await capabilitiesOf(this.#ports.providers);
    const { lineage } = this.#ports;
    return this.#ports.store.read((view) => planFork(view, request, capabilities, lineage));
  }

  /**
   * A point of a thread as something to be pointed at, for whoever creates an ordinary thread (C5.16): context that can be
   * left out, and nothing is made.
   * @throws RejectedError of the codes of C5.
   */
  async reference(id: string, at: ForkPointName = { kind: "latest_stable" }): Promise<ThreadReference> {
    const { source, fork } = await this.planFork(id, { at });
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
   * @throws RejectedError `THREAD_NOT_FOUND`, `SOURCE_POINT_…`, `FORK_…`, `LINEAGE_…`.
   */
  async fork(id: string, options: ForkOptions = {}): Promise<Forked> {
    const request = forkRequest(id, options);
    const capabilities = await capabilitiesOf(this.#ports.providers);
    const { store, lineage } = this.#ports;
    const { requestId, strategy } = request.policy;
    if (strategy === "new_session") {
      throw new RejectedError(
        "INVALID_ARGUMENT",
        "a new session is no fork: create a thread, with the source's reference as its context where that is wanted.",
        { argument: "strategy", value: strategy },
      );
    }
    const receipt = { key: `fork:${requestId}`, argumentsDigest: sha256(canonicalJson(request)) };
    const before = (view: StoreView): ThreadId | null => {
      const source = requireThread(view, request.source);
      const known = requestId === null ? undefined : view.receipt(source.treeId, receipt.key);
      if (known === undefined) {
        planFork(view, request, capabilities, lineage);
        return null;
      }
      if (known.argumentsDigest === receipt.argumentsDigest) return known.answer as ThreadId;
      throw new RejectedError(
        "COMMAND_ID_CONFLICT",
        "this request id was used before for another fork; use a new one.",
        { requestId },
      );
    };
    const threadId =
      (await store.read(before)) ?? (await this.#makeFork(request, capabilities, before, receipt));
    return store.read((view) => {
      const agent = requireThread(view, threadId);
      const { transferId } = agent.thread!.forkedFrom!;
      return { agent, transfer: view.transfer(transferId)!, draft: view.draft(threadId) ?? null };
    });
  }

  #makeFork(
    request: ForkRequest,
    capabilities: CapabilitiesOf,
    before: (view: StoreView) => ThreadId | null,
    receipt: { readonly key: string; readonly argumentsDigest: string },
  ): Promise<ThreadId> {
    const { store, ids, lineage } = this.#ports;
    const threadId = ids.mint("thread");
    return this.#ports.withNewTree(threadId, (lease) =>
      store.commit(lease, (tx) => {
        // Whoever was faster has made it.
        const made = before(tx);
        if (made !== null) return made;
        const plan = planFork(tx, request, capabilities, lineage);
        if (request.policy.requestId !== null) {
          const { treeId } = plan.source;
          tx.putReceipt({ treeId, ...receipt, answer: threadId, createdAt: tx.now() });
        }
        const tokenDigest = sha256(ids.mint("tok"));
        writeFork(tx, plan, request, {
          threadId,
          transferId: ids.mint("xfr"),
          eventId: ids.mint("evt"),
          tokenDigest,
        });
        return threadId;
      }),
    );
  }

  /** Brings a fork back into the thread that it was forked from (C7). */
  async mergeBack(
    fork: string,
    options: { readonly into?: string; readonly run?: RunId } = {},
  ): Promise<TransferRecord> {
    const target = await this.#ports.store.read((view) => {
      const { thread, threadId } = requireThread(view, fork);
      return requireThread(view, options.into ?? thread?.lineage.parentThreadId ?? threadId);
    });
    const { tree } = await this.#ports.open(target.treeId);
    const run = options.run ?? null;
    return tree.transact((tx) => mergeBack(tx, { fork, target: target.threadId, run, createdBy: "user" }));
  }

  /**
   * Takes runs back: everything after a run, or from a message of the user on, which becomes a draft (C9).
   * @throws RejectedError `THREAD_NOT_FOUND`, `THREAD_CLOSED`, `THREAD_ARCHIVED`, `ROLLBACK_…`; with a demanded rollback of
   * the provider's own, what it fails with. Nothing is changed then.
   */
  async rollBack(id: string, options: RollbackOptions): Promise<RolledBack> {
    const agent = await this.#openThread(id);
    const { tree } = await this.#ports.open(agent.treeId);
    return rollBack(tree, agent.threadId, options);
  }

  /** As long as no run has started since. @throws RejectedError `ROLLBACK_ACTIVE_RUN`, `ROLLBACK_TARGET_INVALID`. */
  async undoRollback(id: string): Promise<ThreadDocument> {
    const { tree } = await this.#open(id);
    await tree.transact((tx) => undoRollback(tx, id));
    return this.get(id);
  }

  /**
   * Brings in a result that was kept back because the run that had asked for it was rolled back (C8.9, C9.2).
   * @throws RejectedError `SOURCE_POINT_NOT_FOUND`, `TRANSFER_STATE_INVALID`.
   */
  async inject(transferId: string): Promise<TransferRecord> {
    const treeId = await this.#ports.store.read(
      (view) => view.transfer(transferId as TransferRecord["id"])?.treeId,
    );
    if (treeId === undefined) throw unknownTransfer(transferId);
    const { tree } = await this.#ports.open(treeId);
    return tree.transact((tx) => inject(tx, transferId));
  }

  async #open(id: string): Promise<AgentControl> {
    const agent = await this.#ports.store.read((view) => requireThread(view, id));
    return this.#ports.open(agent.treeId);
  }

  async #openThread(id: string) {
    const agent = await this.#ports.store.read((view) => requireThread(view, id));
    requireOpenThread(agent);
    return agent;
  }
}

/** A message without a place is told so where points are found. */
const pointSchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("latest_stable") }),
  z.strictObject({ kind: z.literal("run"), runId: z.string() }),
  z.strictObject({ kind: z.literal("checkpoint"), checkpointId: z.string() }),
  z.strictObject({ kind: z.literal("message"), seq: z.number().nullable().catch(null) }),
  z.strictObject({ kind: z.literal("provider_thread"), providerThreadId: z.string() }),
]);

function forkRequest(
  source: string,
  { at = { kind: "latest_stable" }, policy, title }: ForkOptions,
): ForkRequest {
  const parsed = check("the fork's policy", forkPolicySchema, policy ?? {});
  return {
    source,
    at: check("the point of the fork", pointSchema, at) as ForkPointName,
    policy: parsed,
    title: title === undefined ? null : requireTitle(title),
    createdBy: "user",
  };
}
