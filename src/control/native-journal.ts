/**
 * What the run of a provider that owns its loop asks for beside what `run-journal.ts` does: its conversation, its steps as they
 * come, and the mail that waits for it (`session/ports.ts`). What is stored of the conversation stands in the record of its
 * provider thread, from the acceptance of a run on.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { InvariantError } from "../protocol/errors.ts";
import type { NativeChildEvent } from "../protocol/native-events.ts";
import type { RequestId } from "../protocol/ids.ts";
import type { StepUsage } from "../protocol/provider-events.ts";
import type { Json } from "../protocol/json.ts";
import type { NativeRef, ProviderThreadRecord } from "../protocol/provider-thread.ts";
import type { RunRecord } from "../protocol/run.ts";
import { NO_USAGE } from "../protocol/usage.ts";
import { byteLength, headBytes, tailBytes } from "../platform/text.ts";
import { estimateRequest, priceOf } from "../policy/budget.ts";
import { senderName } from "../mailbox/render.ts";
import { named } from "../providers/native-names.ts";
import type { NativeAdapter, NativeSelection, NativeSession } from "../providers/port.ts";
import type { NativeConversation } from "../session/native-conversation.ts";
import type { AssistantBody, Call, NativePorts, NativeThreadHandle, ResultBody } from "../session/ports.ts";
import type { Session } from "../session/session.ts";
import { expireRequest } from "./requests.ts";
import { overLimit } from "./compose.ts";
import { exhaust } from "./budget.ts";
import { admitRequest } from "./budget-scopes.ts";
import { charge, pricedUsage } from "./charge.ts";
import { allWaiting } from "./collect.ts";
import { inTime } from "./close-session.ts";
import { cutOpenCalls } from "./interrupt.ts";
import { appendItems, currentRun } from "./runs.ts";
import { joinStep, recordStep } from "./steps.ts";
import type { RunStart } from "./start-run.ts";
import { doubtTurn, nameTurn, observeChild } from "./native-thread.ts";
import { processesOf } from "./processes.ts";
import type { Tree } from "./tree.ts";
import { waitsOf } from "./watchers.ts";

/** So many senders are named. */
const NAMED = 5;

export class NativeJournal implements NativePorts {
  readonly #tree: Tree;
  readonly #session: Session;
  readonly #start: () => RunStart | null;

  constructor(tree: Tree, session: Session, start: () => RunStart | null) {
    this.#tree = tree;
    this.#session = session;
    this.#start = start;
  }

  get #run(): RunRecord {
    return this.#session.run!;
  }

  /** A conversation that was made for a run which no provider has accepted serves the next one. */
  async nativeThread(session: Session): Promise<NativeThreadHandle> {
    const native = session.provider as NativeConversation;
    const record = await this.#record();
    const { id, nativeThreadRef } = record;
    if (native.thread?.id === id) return native.thread;
    if (nativeThreadRef !== null)
      return { id, thread: named(await native.session.resumeThread(nativeThreadRef)) };
    const { model, effort } = this.#run;
    return { id, thread: await native.empty({ model, effort }) };
  }

  async #record(): Promise<ProviderThreadRecord> {
    const id = this.#run.providerThreadId;
    const starting = this.#start()?.providerThread;
    const stored = await this.#tree.read((view) =>
      (id ?? starting) === undefined ? undefined : view.providerThread(starting?.id ?? id!),
    );
    const record = stored ?? starting;
    if (record !== undefined) return record;
    throw new InvariantError("a run of a provider with its own loop has no provider thread", {
      runId: this.#run.id,
    });
  }

  restarts(opened: NativeSelection): boolean {
    const { model, effort, provider } = this.#run;
    if (opened.model === model && opened.effort === effort) return false;
    return (
      adapterOf(this.#tree, provider).classifySelectionChange(opened, { model, effort }) === "restart_session"
    );
  }

  async reopen(closing: Promise<void>): Promise<{ session: NativeSession; selection: NativeSelection }> {
    const { model, effort, provider } = this.#run;
    const { agent } = this.#session;
    // What it does at its close hinders nobody for ever; its failure was told.
    await inTime(this.#tree, closing);
    const config = { ...agent.config, model, effort };
    const session = await openNative(this.#tree, { ...agent, config }, provider);
    return { session, selection: { model, effort } };
  }

  async record(body: AssistantBody, results: readonly ResultBody[]): Promise<"on" | "over"> {
    const { id } = this.#run;
    const stored = await this.#tree.transact(
      (tx) => {
        // What it has used is told by events of its own.
        const step = recordStep(tx, id, body, NO_USAGE);
        const bodies = results.map((result) => ({ ...result, output: this.#bounded(result.output) }));
        const { agent } = appendItems(tx, step.agent, step.run, bodies);
        for (const { callId, name, isError } of results)
          tx.emit("tool.returned", agent, { runId: id }, { callId, tool: name, isError });
        return { agent, run: step.run };
      },
      (value) => this.#session.absorb(value),
    );
    const { limits, shared } = this.#tree;
    return overLimit(limits, stored.run, shared.clock.now()) === null ? "on" : "over";
  }

  async join(body: AssistantBody): Promise<void> {
    const { id } = this.#run;
    await this.#tree.transact(
      (tx) => joinStep(tx, id, body),
      (value) => this.#session.absorb(value),
    );
  }

  /** What does not fit any more is stopped in the same commit, this run too. */
  async used(usage: StepUsage): Promise<void> {
    const { id, provider, model } = this.#run;
    const { reservationsOf, prices } = this.#tree.shared;
    await this.#tree.transact(
      (tx) => {
        const run = charge(tx, currentRun(tx, id), pricedUsage(this.#tree.shared, this.#run, usage));
        const agent = tx.agent(run.threadId);
        const least = estimateRequest(1, 0, priceOf(prices, provider, model));
        const admission = admitRequest(tx.store, tx.tree(), agent, reservationsOf, least);
        if (admission.kind === "exhausted") exhaust(tx, admission.scope, this.#tree.partialText);
        return { run, agent: tx.agent(run.threadId) };
      },
      (value) => this.#session.absorb(value),
    );
  }

  async withdraw(requestId: RequestId): Promise<void> {
    const { id } = this.#run;
    await this.#tree.transact(
      (tx) => {
        const run = currentRun(tx, id);
        expireRequest(tx, requestId);
        return { run, agent: tx.agent(run.threadId) };
      },
      (value) => this.#session.absorb(value),
    );
  }

  async callEnded(calls: readonly Call[], signal: AbortSignal): Promise<void> {
    const { id } = this.#run;
    const ended = async (): Promise<true | undefined> =>
      (await this.#tree.look((look) => allWaiting(look, id, calls))) === null ? true : undefined;
    await this.#tree.watchers.until(ended, signal, [waitsOf(this.#session.agent.threadId)]);
  }

  async doubt({ id }: NativeThreadHandle): Promise<boolean> {
    try {
      return await this.#tree.transact((tx) => doubtTurn(tx, id));
    } catch {
      // The tree is another's by now, whose recovery counts it, or the store is gone.
      return false;
    }
  }

  /** No transcript holds what a tool of somebody else's brings in any length (MBX-9). */
  #bounded(output: Json): Json {
    const text = typeof output === "string" ? output : JSON.stringify(output);
    const bytes = byteLength(text);
    const { mailInlineBytes, artifactHeadBytes, artifactTailBytes } = this.#tree.limits;
    if (bytes <= mailInlineBytes) return output;
    return {
      shortened: true,
      bytes,
      head: headBytes(text, artifactHeadBytes),
      tail: tailBytes(text, artifactTailBytes),
    };
  }

  async closeCalls(text: string): Promise<void> {
    const { id } = this.#run;
    await this.#tree.transact(
      (tx) => {
        const run = currentRun(tx, id);
        const agent = tx.agent(run.threadId);
        return { ...appendItems(tx, agent, run, cutOpenCalls(tx, run, text)), run };
      },
      (value) => this.#session.absorb(value),
    );
  }

  async turnEnded({ id }: NativeThreadHandle, turn: NativeRef | null): Promise<void> {
    const { id: runId, nativeTurns } = this.#run;
    if (turn === null || nativeTurns.at(-1)?.nativeId === turn.nativeId) return;
    await this.#tree.transact(
      (tx) => {
        const run = nameTurn(tx, currentRun(tx, runId), id, turn);
        return { run, agent: tx.agent(run.threadId) };
      },
      (value) => this.#session.absorb(value),
    );
  }

  async child(event: NativeChildEvent): Promise<void> {
    const { id } = this.#run;
    await this.#tree.transact((tx) => observeChild(tx, currentRun(tx, id), event));
  }

  newestMail(): number {
    return this.#tree.mailboxes.get(this.#session.agent.threadId)?.lastSeq ?? 0;
  }

  async mailAfter(seq: number, signal: AbortSignal): Promise<void> {
    const there = async (): Promise<true | undefined> => (this.newestMail() > seq ? true : undefined);
    await this.#tree.watchers.until(there, signal, [this.#session.agent.threadId]);
  }

  async unreadNotice(): Promise<string | null> {
    const { threadId } = this.#session.agent;
    const { id } = this.#run;
    const unread = await this.#tree.read((view) =>
      view
        .unread(threadId, { limit: this.#tree.limits.mailboxMessages })
        .filter((mail) => mail.boundRunId !== id),
    );
    if (unread.length === 0) return null;
    const senders = [...new Set(unread.map((mail) => senderName(mail.author)))];
    const named = `${senders.slice(0, NAMED).join(", ")}${senders.length > NAMED ? ", …" : ""}`;
    const messages = unread.length === 1 ? "message" : "messages";
    return `[${unread.length} unread ${messages} from ${named}; you get them with your next turn]`;
  }

  wake(): void {
    const { run, agent } = this.#session;
    const { threadId } = agent;
    if (run === null || this.#tree.sessions.get(threadId) !== this.#session) return;
    this.#tree
      .transact((tx) => {
        if (tx.store.run(run.id)?.status === "waiting") tx.effects.resume.add(threadId);
      })
      .catch((error: unknown) => {
        this.#tree.shared.logger.warn({ threadId, err: error }, "a waiting run could not be woken");
      });
  }
}

/** @throws what the adapter fails with. */
export function openNative(tree: Tree, agent: AgentRecord, provider: string): Promise<NativeSession> {
  const { threadId, path, config } = agent;
  return adapterOf(tree, provider).openSession({
    treeId: tree.treeId,
    threadId,
    path,
    model: config.model,
    workspace: config.workspace,
    effects: config.effects,
    instructions: config.instructions,
    tools: tree.shared.toolHost.specs(agent, tree),
    transportWaitMs: tree.limits.transportWaitMs,
    startProcess: processesOf(tree, threadId),
  });
}

function adapterOf(tree: Tree, provider: string): NativeAdapter {
  const adapter = tree.shared.adapter(provider);
  if (adapter?.loop === "theirs") return adapter;
  throw new InvariantError("a provider without a loop of its own was opened for one", { provider });
}
