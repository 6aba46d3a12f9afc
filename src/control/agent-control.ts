/**
 * `AgentControl`: the tree of agents as tools and surfaces see it. A thin facade: each verb is a plan of a file beside this
 * one, committed and answered.
 */
import { ROOT_PATH } from "../protocol/agent-path.ts";
import type { AgentRecord, CodexStatus } from "../protocol/agent.ts";
import type { ArtifactId, RunId, ThreadId, WaitId, WorkId } from "../protocol/ids.ts";
import type { Json, JsonObject } from "../protocol/json.ts";
import type { MailReceipt } from "../protocol/mail.ts";
import type { Caller } from "../protocol/tool.ts";
import type { WorkRecord } from "../protocol/work.ts";
import { abortable, type Begin, type CallOptions } from "../platform/abortable.ts";
import { sha256 } from "../platform/digest.ts";
import type { StoreView } from "../store/port.ts";
import { interruptedActivities } from "./activity.ts";
import { type Admission, admissionOf, commitAdmitted, joins } from "./admit-now.ts";
import { type ArtifactPart, readArtifact } from "./artifacts.ts";
import { raiseBudget } from "./budget.ts";
import { actingAs } from "./caller.ts";
import { close, closePolitely } from "./close.ts";
import { requireOpen } from "./delivery.ts";
import { acknowledge, chargeHost, handOut, type HostMail, type HostUsage, unreadNotice } from "./host.ts";
import { Hosts, type OnHostGone } from "./hosts.ts";
import { once, recall, receiptKey } from "./idempotency.ts";
import { interrupt, type InterruptInput, refuseTarget, type Touched } from "./interrupt.ts";
import type { Live } from "./listing.ts";
import {
  checkFollowUp,
  followUp,
  type FollowUpInput,
  sendMessage,
  userInput,
  type UserInput,
} from "./messages.ts";
import { reportResult, type Report } from "./report.ts";
import { answerRequest } from "./requests.ts";
import { resolveTarget } from "./resolve-target.ts";
import { prepareSchema, verdictsOn } from "./schema-checks.ts";
import { checkSpawn, spawn, type SpawnInput } from "./spawn.ts";
import { codexStatus, type Residents } from "./status.ts";
import type { Tree } from "./tree.ts";
import type { PlacedWorktree, Transaction } from "./transaction.ts";
import { judgeTimeout, resolveWait, type WaitInput } from "./wait-request.ts";
import { openWait } from "./waits.ts";
import { spawnInWorktree } from "./worktrees.ts";

export interface Options extends CallOptions {
  /** The same id and arguments again: the same receipt (SPN-6). */
  readonly commandId?: string | undefined;
}

export interface SpawnReceipt {
  readonly path: AgentRecord["path"];
  readonly threadId: ThreadId;
  readonly workId: WorkId;
}

interface SpawnCall {
  readonly worktree: PlacedWorktree | undefined;
  readonly key: string | null;
  readonly asked: unknown;
  readonly begin: Begin;
}

interface Interrupted {
  readonly touched: readonly Touched[];
  readonly previous: CodexStatus;
}

export class AgentControl implements Live, Residents {
  readonly tree: Tree;
  /** Who drives a host-driven root now. */
  readonly hosts: Hosts;
  readonly #pump: () => void;

  constructor(tree: Tree, pump: () => void, onHostGone: OnHostGone = "keep") {
    this.tree = tree;
    this.hosts = new Hosts(tree, onHostGone);
    this.#pump = pump;
  }

  loaded = (threadId: ThreadId): boolean => this.tree.sessions.has(threadId);
  position = (threadId: ThreadId): number => this.tree.position(threadId);
  resident = (threadId: ThreadId): boolean => this.tree.residency.has(threadId);
  ran = (threadId: ThreadId): boolean => this.tree.sessions.get(threadId)?.ran ?? false;

  read<T>(plan: (view: StoreView) => T): Promise<T> {
    return this.tree.read(plan);
  }

  spawn(caller: Caller, input: SpawnInput, options: Options = {}): Promise<SpawnReceipt> {
    return abortable(options.signal, async (begin) => {
      if (input.outputSchema) await prepareSchema(this.tree, input.outputSchema);
      const key = receiptKey(caller, options.commandId);
      // A call that is made again after a crash has another span.
      const asked = { verb: "spawn", ...input, trace: null } as unknown;
      const act = (worktree?: PlacedWorktree): Promise<SpawnReceipt> =>
        this.#spawn(caller, input, { worktree, key, asked, begin });
      if (input.isolation === undefined) return act();
      const done = (tx: Transaction) => recall<SpawnReceipt & JsonObject>(tx, key, asked);
      return spawnInWorktree<SpawnReceipt>(this.tree, caller, input, done, act);
    });
  }

  async #spawn(
    caller: Caller,
    input: SpawnInput,
    { worktree, key, asked, begin }: SpawnCall,
  ): Promise<SpawnReceipt> {
    const act = (tx: Transaction, admitted: ThreadId | null): SpawnReceipt => {
      begin();
      const spawned = spawn(tx, caller, input, { admitted, worktree });
      return { path: spawned.agent.path, threadId: spawned.agent.threadId, workId: spawned.work.id };
    };
    if (this.tree.profile.admission === "queue") {
      return this.tree.transact((tx) =>
        once(tx, key, asked, () => act(tx, null) as SpawnReceipt & JsonObject),
      );
    }
    // What can be said against it is said before capacity is looked at (agents.md 17); what was done already takes none.
    const looked = await this.tree.transact(
      (tx): SpawnReceipt | Admission =>
        recall<SpawnReceipt & JsonObject>(tx, key, asked) ??
        admissionOf(tx, this.tree.ids.mint("thread"), checkSpawn(tx, caller, input).parent.threadId),
    );
    if (!("scopes" in looked)) return looked;
    return commitAdmitted(this.tree, looked, this.#pump, (tx) => {
      const receipt = once(tx, key, asked, () => act(tx, looked.threadId) as SpawnReceipt & JsonObject);
      return { value: receipt, threadId: receipt.threadId };
    });
  }

  async send(caller: Caller, target: string, message: string, options: Options = {}): Promise<MailReceipt> {
    const key = receiptKey(caller, options.commandId);
    return this.#commit(options, (tx) =>
      once(tx, key, { verb: "send", target, message }, () => {
        const { agent, mail } = sendMessage(tx, caller, target, message);
        return {
          id: mail.id,
          recipient: agent.path,
          seq: mail.seq,
          state: mail.state,
          reason: null,
          runId: null,
        };
      }),
    );
  }

  followUp(caller: Caller, input: FollowUpInput, options: Options = {}): Promise<SpawnReceipt> {
    return abortable(options.signal, async (begin) => {
      if (input.outputSchema) await prepareSchema(this.tree, input.outputSchema);
      const key = receiptKey(caller, options.commandId);
      const asked = { verb: "followup", ...input, trace: null } as unknown;
      const act = (tx: Transaction, admitted: boolean): SpawnReceipt & JsonObject =>
        once(tx, key, asked, () => {
          begin();
          const { agent, work } = followUp(tx, caller, input, admitted);
          return { path: agent.path, threadId: agent.threadId, workId: work.id };
        });
      if (this.tree.profile.admission === "queue") return this.tree.transact((tx) => act(tx, false));
      const looked = await this.tree.transact((tx): SpawnReceipt | Admission => {
        const done = recall<SpawnReceipt & JsonObject>(tx, key, asked);
        if (done !== undefined) return done;
        const { agent } = checkFollowUp(tx, caller, input);
        if (!joins(tx, agent)) return admissionOf(tx, agent.threadId, agent.parent);
        return act(tx, true);
      });
      if (!("scopes" in looked)) return looked;
      return commitAdmitted(this.tree, looked, this.#pump, (tx) => ({
        value: act(tx, true),
        threadId: looked.threadId,
      }));
    });
  }

  /** Input of the user to an agent. */
  userInput(agent: ThreadId, caller: Caller, input: UserInput, how: Options = {}): Promise<WorkRecord> {
    return abortable(how.signal, async (begin) => {
      if (input.outputSchema) await prepareSchema(this.tree, input.outputSchema);
      const key = receiptKey(caller, how.commandId);
      return this.tree.transact((tx) => {
        begin();
        const receipt = once(tx, key, { verb: "input", agent, ...input, trace: null }, () => ({
          workId: userInput(tx, agent, caller, input).id,
        }));
        return tx.store.work(receipt.workId)!;
      });
    });
  }

  /** Opens a wait of a run. The call's output comes from the run loop when it has ended. */
  async wait(run: { readonly runId: RunId; readonly callId: string }, input: WaitInput): Promise<WaitId> {
    return this.tree.transact((tx) => {
      const record = tx.store.run(run.runId)!;
      const agent = tx.agent(record.threadId);
      const { timeoutMs, clampedToMs } = judgeTimeout(tx.limits, input.timeoutMs);
      const targets = resolveWait(tx.store, tx.treeId, agent, input);
      return openWait(tx, run.runId, {
        ...targets,
        callId: run.callId,
        timeoutMs,
        clampedToMs,
        cursor: input.cursor ?? null,
      }).id;
    });
  }

  async interrupt(
    caller: Caller,
    target: string,
    input: InterruptInput,
    options: Options = {},
  ): Promise<readonly Touched[]> {
    return (await this.#interrupt(caller, target, input, options)).touched;
  }

  /** The same of one agent, answered by what it was doing in the reference's words (agents.md 37). */
  async interruptForStatus(caller: Caller, target: string, options: Options = {}): Promise<CodexStatus> {
    return (await this.#interrupt(caller, target, {}, options)).previous;
  }

  #interrupt(caller: Caller, target: string, input: InterruptInput, options: Options): Promise<Interrupted> {
    const key = receiptKey(caller, options.commandId);
    return this.#commit(options, (tx) => {
      const from = caller.kind === "agent" ? tx.agent(caller.threadId).path : ROOT_PATH;
      const agent = resolveTarget(tx.store, tx.treeId, from, target);
      refuseTarget(tx, caller, agent);
      const receipt = once(tx, key, { verb: "interrupt", target, ...input }, () => {
        const previous = codexStatus(tx.store, agent, this);
        // Before: who interrupts itself has no run any more after.
        const acting = caller.kind === "agent" ? actingAs(tx, caller) : null;
        const touched = interrupt(tx, agent, input, this.tree.partialText);
        if (acting !== null) interruptedActivities(tx, acting, touched);
        return { touched, previous } as unknown as JsonObject;
      });
      return receipt as unknown as Interrupted;
    });
  }

  async close(
    agent: ThreadId,
    options: Options & { readonly politely?: boolean } = {},
  ): Promise<readonly AgentRecord["path"][]> {
    const politely = options.politely === true;
    const receipt = await this.#onceForUser(options, { verb: "close", agent, politely }, (tx) => {
      const closing = politely ? closePolitely : close;
      return { closed: closing(tx, tx.agent(agent), this.tree.partialText).map((closed) => closed.path) };
    });
    return receipt.closed;
  }

  reportResult(caller: Caller, report: Report, { signal }: CallOptions = {}): Promise<WorkRecord> {
    return abortable(signal, async (begin) => {
      const verdicts = await verdictsOn(this.tree, [report.workId as WorkId], report.text);
      return this.tree.transact((tx) => {
        begin();
        const receipt = once(tx, receiptKey(caller, undefined), { verb: "report", ...report }, () => ({
          workId: reportResult(tx, caller, report, verdicts).id,
        }));
        return tx.store.work(receipt.workId)!;
      });
    });
  }

  async answer(request: `req_${string}`, answer: string, options: Options = {}): Promise<void> {
    await this.#onceForUser(options, { verb: "answer", request, answer }, (tx) => {
      answerRequest(tx, request, answer);
      return null;
    });
  }

  async raiseBudget(
    agent: ThreadId,
    budget: "tokens" | "money" | "wallClock",
    limit: number | null,
    options: Options = {},
  ): Promise<void> {
    await this.#onceForUser(options, { verb: "raise_budget", agent, budget, limit }, (tx) => {
      raiseBudget(tx, tx.agent(agent), budget, limit);
      return null;
    });
  }

  #onceForUser<T extends Json>(options: Options, asked: Json, act: (tx: Transaction) => T): Promise<T> {
    const key = receiptKey({ kind: "user", name: "library" }, options.commandId);
    return this.#commit(options, (tx) => once(tx, key, asked, () => act(tx)));
  }

  /** What is one commit. */
  #commit<T>({ signal }: CallOptions, plan: (tx: Transaction) => T): Promise<T> {
    return abortable(signal, (begin) =>
      this.tree.transact((tx) => {
        begin();
        return plan(tx);
      }),
    );
  }

  /** Takes note of what the host of a root says it has taken in, and hands out nothing (HDR-3). */
  async hostAcknowledge(root: ThreadId, cursor: string): Promise<void> {
    await this.tree.transact((tx) => acknowledge(tx, tx.agent(root), cursor));
  }

  /**
   * Mints a new token of an agent; the one before is not valid any more (SEC-1). Only its digest is stored.
   * @throws RejectedError `AGENT_CLOSED`.
   */
  async mintToken(agent: ThreadId, options: CallOptions = {}): Promise<string> {
    const token = this.tree.ids.mint("tok");
    await this.#commit(options, (tx) => {
      const record = tx.agent(agent);
      requireOpen(record);
      tx.putAgent(record, { tokenDigest: sha256(token) });
    });
    return token;
  }

  /** What the host of a root says that its own loop has used (HDR-5). */
  async reportUsage(root: ThreadId, used: HostUsage, options: CallOptions = {}): Promise<void> {
    await this.#commit(options, (tx) => chargeHost(tx, tx.agent(root), used, this.tree.shared.prices));
  }

  /** Unread mail of a host-driven root, after taking note of what its host says it has taken in (HDR-3). */
  hostMail(root: ThreadId, cursor: string | null | undefined): Promise<HostMail> {
    return this.tree.transact((tx) => {
      acknowledge(tx, tx.agent(root), cursor);
      return handOut(tx, tx.agent(root));
    });
  }

  hostNotice(root: ThreadId): Promise<string | null> {
    return this.tree.transact((tx) => unreadNotice(tx, tx.agent(root)));
  }

  readArtifact(reader: ThreadId, id: ArtifactId, offset: number, bytes: number): Promise<ArtifactPart> {
    const { redact } = this.tree;
    return this.tree.read((view) => readArtifact(view, view.agent(reader)!, id, { offset, bytes, redact }));
  }
}
