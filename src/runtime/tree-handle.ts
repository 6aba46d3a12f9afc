/** A tree and its agents as a program holds them. */
import { ROOT_PATH } from "../protocol/agent-path.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import { type Decision, decisionText } from "../protocol/decision.ts";
import type { RuntimeEvent } from "../protocol/events.ts";
import type { MailId, RequestId, ThreadId, TreeId, WorkId } from "../protocol/ids.ts";
import type { MailReceipt, MailRecord } from "../protocol/mail.ts";
import type { WorkRecord } from "../protocol/work.ts";
import type { AgentControl } from "../control/agent-control.ts";
import { agentsUnder, wholePage } from "../control/family.ts";
import {
  type AskedRequest,
  type ListRequest,
  listAgents,
  openRequests,
  runningCount,
  type Counts,
  type AgentSummary,
  snapshotOf,
  type TreeSnapshot,
} from "../control/listing.ts";
import { abortable, type CallOptions } from "../platform/abortable.ts";
import { check } from "../platform/check.ts";
import { resolveTarget } from "../control/resolve-target.ts";
import { startsRun } from "../control/status.ts";
import type { Tree } from "../control/tree.ts";
import type { Page, StoreView } from "../store/port.ts";
import { Agent, type Repeatable, type PageOptions } from "./agent.ts";
import { TREE } from "./arguments.ts";
import { followEvents, type EventOptions, type EventStream } from "./event-stream.ts";
import { Work } from "./work.ts";

/** A tree that this process owns, from `runtime.openTree`. */
export class TreeHandle implements AsyncDisposable {
  /** The id of the root's thread. */
  readonly id: TreeId;
  /** The root agent, `/root`. */
  readonly root: Agent;
  /** The verbs beneath the handles, for hosts that build tools of their own. */
  readonly control: AgentControl;
  readonly #tree: Tree;
  readonly #giveBack: () => Promise<void>;

  constructor(tree: Tree, control: AgentControl, root: AgentRecord, giveBack: () => Promise<void>) {
    this.id = tree.treeId;
    this.control = control;
    this.#tree = tree;
    this.#giveBack = giveBack;
    this.root = new Agent(control, root);
  }

  /** Whether this process still owns the tree. */
  get owned(): boolean {
    return this.#tree.state === "owned";
  }

  /**
   * An agent by its path, or by its thread id.
   * @throws RejectedError `AGENT_NOT_FOUND`, `INVALID_ARGUMENT`.
   */
  async agent(reference: string, options: CallOptions = {}): Promise<Agent> {
    check("TreeHandle.agent", TREE.agent, { reference, options });
    const found = await this.#read(options, (view) => resolveTarget(view, this.id, ROOT_PATH, reference));
    return new Agent(this.control, found);
  }

  /** A work by its id; `record` and `outcome` refuse one that is not there. @throws RejectedError `INVALID_ARGUMENT`. */
  work(id: WorkId): Work {
    check("TreeHandle.work", TREE.work, id);
    return new Work(this.control, id);
  }

  /** Agents with status, residency, last outcome, open works and unread mail, sorted by path and paged (LST-1). */
  async list(
    request: ListRequest & CallOptions = {},
  ): Promise<{ readonly agents: readonly AgentSummary[]; readonly next: string | null }> {
    check("TreeHandle.list", TREE.list, request);
    const { signal, ...asked } = request;
    return this.#read({ signal }, (view) => listAgents(view, this.id, asked, this.control));
  }

  /** Works of the tree, oldest first, paged. */
  async works(page: PageOptions = {}): Promise<Page<WorkRecord>> {
    check("TreeHandle.works", TREE.page, page);
    return this.#read(page, (view) =>
      wholePage(view.works(this.id, { after: page.after ?? null, limit: page.limit ?? 100 }), (id) =>
        view.work(id as WorkId),
      ),
    );
  }

  /** What has become of a message, for whoever holds its receipt (MBX-7). Null for an id that is not in this tree. */
  async receipt(id: MailId, options: CallOptions = {}): Promise<MailReceipt | null> {
    check("TreeHandle.receipt", TREE.receipt, { id, options });
    return this.#read(options, (view) => {
      const mail = view.mail(id);
      if (mail === undefined || mail.treeId !== this.id) return null;
      const { recipientPath: recipient, seq, state, reason, runId } = mail;
      return { id, recipient, seq, state, reason, runId };
    });
  }

  /** Results for which there was no living agent any more: the tree's inbox, which outlives the root (WRK-6). */
  async inbox(
    page: { readonly after?: number; readonly limit?: number } & CallOptions = {},
  ): Promise<readonly MailRecord[]> {
    check("TreeHandle.inbox", TREE.inbox, page);
    return this.#read(page, (view) =>
      view.agent(this.id)?.state === "open"
        ? []
        : view.unread(this.id, { afterSeq: page.after ?? 0, limit: page.limit ?? 100 }),
    );
  }

  /** Registered, resident and running: three numbers (RES-1). */
  async counts(options: CallOptions = {}): Promise<Counts> {
    check("TreeHandle.counts", TREE.call, options);
    return this.#read(options, (view) => ({
      registered: view.tree(this.id)!.agents + 1,
      resident: this.#tree.sessions.size,
      running: runningCount(view, this.id),
      queued: this.#tree.lane.newcomers,
    }));
  }

  /** The tree at one moment; `events({ after: snapshot.cursor })` tells what follows (OBS-1). */
  async snapshot(options: CallOptions = {}): Promise<TreeSnapshot> {
    check("TreeHandle.snapshot", TREE.call, options);
    return this.#read(options, (view) => snapshotOf(view, this.id, this.control));
  }

  /** Events after a cursor (default: from this call on), then as they are committed. Ends with the tree, or the signal (OBS-1). */
  events(options?: EventOptions & { readonly progress?: false }): EventStream<RuntimeEvent>;
  events(options?: EventOptions): EventStream;
  events(options: EventOptions = {}): EventStream {
    check("TreeHandle.events", TREE.events, options);
    return followEvents(this.#tree, options);
  }

  /** Events that are committed already, oldest first. */
  async log(after = 0, limit = 500, options: CallOptions = {}): Promise<readonly RuntimeEvent[]> {
    check("TreeHandle.log", TREE.log, { after, limit, options });
    return this.#read(options, (view) => view.events(this.id, after, limit));
  }

  /**
   * Resolves when no agent runs or waits to run. An open question counts as idle, since it waits for somebody outside, and
   * so does mail in a scope whose budget is spent; an agent that lacks its provider or a tool does not (`why` names it), so
   * give a signal where that may happen.
   */
  async idle(options: CallOptions = {}): Promise<void> {
    check("TreeHandle.idle", TREE.call, options);
    await this.#tree.watchers.until(async () => {
      // Asked after each commit: while somebody waits to run the store need not be.
      if (this.#tree.lane.size > 0) return undefined;
      const busy = await this.control.read((view) => {
        const runs = view
          .openRuns(this.id)
          .some((run) => run.status !== "waiting" || view.openRequestsOf(run.threadId).length === 0);
        return runs || view.triggered(this.id).some((id) => startsRun(view, view.agent(id)!));
      });
      return busy ? undefined : true;
    }, options.signal);
  }

  /** Questions and approvals that wait for an answer, of all agents or of one (WAI-2). */
  async requests(of?: ThreadId, options: CallOptions = {}): Promise<readonly AskedRequest[]> {
    check("TreeHandle.requests", TREE.requests, { of, options });
    return this.#read(options, (view) => openRequests(view, this.id, of));
  }

  /**
   * Answers a question with a text, an approval with a decision. Of an approval that is answered with a text, `yes`, `y`, `ok`,
   * `approve`, `approved`, `allow` and `allowed` mean yes, however they are capitalized; all else means no.
   * @throws RejectedError `REQUEST_NOT_RESUMABLE`.
   */
  async answer(request: RequestId, answer: string | Decision, options: Repeatable = {}): Promise<void> {
    check("TreeHandle.answer", TREE.answer, { request, answer, options });
    return this.control.answer(request, typeof answer === "string" ? answer : decisionText(answer), options);
  }

  /** Every agent as it is stored, closed ones too. */
  async records(options: CallOptions = {}): Promise<readonly AgentRecord[]> {
    check("TreeHandle.records", TREE.call, options);
    return this.#read(options, (view) => [...agentsUnder(view, this.id, ROOT_PATH, true)]);
  }

  #read<T>({ signal }: CallOptions, plan: (view: StoreView) => T): Promise<T> {
    return abortable(signal, () => this.control.read(plan));
  }

  /** Gives the tree back: what runs ends as after a crash, and the next owner recovers it. */
  async close(options: CallOptions = {}): Promise<void> {
    check("TreeHandle.close", TREE.call, options);
    await abortable(options.signal, this.#giveBack);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
