/**
 * One agent's session with Codex: its thread in the tree's app-server, the turn under way, and what is asked of it.
 *
 * - X1 A turn that is started while another is under way would steer it: that is kept apart here, and queued by the runtime.
 * - X2 Forks that nobody knows of cannot be found: Codex lists no thread without a turn of its own.
 * - X3 A thread has one writer, across processes: the session leaves its thread when it is closed, and its turn is stopped
 *   before that: the server, which others may use, would go on with it.
 */
import { RejectedError, TransientError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type {
  NativeAnswer,
  NativeEvent,
  NativeHistoryPage,
  NativeThread,
} from "../../protocol/native-events.ts";
import type { ThreadCapabilities } from "../../protocol/provider-capabilities.ts";
import type { NativeRef } from "../../protocol/provider-thread.ts";
import { Feed } from "../feed.ts";
import { JsonRpcRefusal, JsonRpcFault } from "../json-rpc-message.ts";
import type { ProviderError } from "../json-rpc.ts";
import type {
  NativeForkInput,
  NativeRollbackInput,
  NativeSession,
  NativeSessionInput,
  NativeTurnInput,
} from "../port.ts";
import { cutOf, firstRemoved } from "./boundary.ts";
import { historyPage } from "./history.ts";
import { type CodexApprovals, policyOf, turnPolicy } from "./policy.ts";
import type { CodexListener, CodexServer } from "./server.ts";
import { refOf } from "./translate.ts";
import { CodexTurnUnderWay } from "./turn.ts";
import type { CodexNotification, CodexRequest, CodexThread, CodexUsage } from "./wire.ts";

/** Tools of ours stand in a namespace of their own, so that none takes the place of one of Codex's. */
const NAMESPACE = "coppice";
const TURNS_A_PAGE = 20;

export interface CodexSessionOptions {
  readonly server: CodexServer;
  readonly release: () => Promise<void>;
  readonly input: NativeSessionInput;
  readonly capabilities: ThreadCapabilities;
  readonly approvals: CodexApprovals;
  /** Settings of Codex for each thread, as in its `config.toml`. */
  readonly config: JsonObject;
}

export class CodexSession implements NativeSession, CodexListener {
  readonly negotiated: ThreadCapabilities;
  readonly #options: CodexSessionOptions;
  readonly #feed = new Feed<NativeEvent>();
  #threadId: string | null = null;
  #turn: CodexTurnUnderWay | null = null;
  #used: CodexUsage | null = null;
  #gone: ProviderError | null = null;
  #closed = false;

  constructor(options: CodexSessionOptions) {
    this.#options = options;
    this.negotiated = options.capabilities;
  }

  get #server(): CodexServer {
    return this.#options.server;
  }

  events(): AsyncIterable<NativeEvent> {
    return this.#feed;
  }

  async ensureThread(): Promise<NativeThread> {
    const { thread } = await this.#asking(
      this.#server.ask("thread/start", { ...this.#settings(), dynamicTools: this.#tools() }),
    );
    this.#take(thread.id);
    return nativeThread(thread);
  }

  async resumeThread(ref: NativeRef): Promise<NativeThread> {
    const asked = this.#server.ask("thread/resume", { threadId: ref.nativeId, ...this.#settings() });
    const { thread } = await asked.catch((error: unknown) => {
      throw resumeFailure(error, ref);
    });
    this.#take(thread.id);
    return nativeThread(thread);
  }

  async startTurn(
    input: Parameters<NativeSession["startTurn"]>[0],
  ): Promise<{ readonly turn: NativeRef | null }> {
    if (this.#gone !== null) throw this.#gone;
    if (this.#turn !== null) throw refused("a turn is under way already");
    const { thread, policy, signal } = input;
    const { approvals } = this.#options;
    const threadId = thread.nativeId;
    const turn = new CodexTurnUnderWay(input.key, this.#server, (event) => this.#feed.push(event));
    this.#turn = turn;
    try {
      await this.#inject(threadId, input);
      signal.throwIfAborted();
      if (this.#closed) throw refused("its session is closed");
      const asked = this.#server.ask("turn/start", {
        threadId,
        input: this.#words(input),
        ...(policy.model === null ? {} : { model: policy.model }),
        ...(policy.effort === null ? {} : { effort: policy.effort }),
        ...(policy.workspace === null ? {} : { cwd: policy.workspace }),
        ...turnPolicy(policy.effects, approvals),
      });
      const { turn: taken } = await this.#asking(asked);
      turn.accept(taken.id);
      return { turn: refOf(taken.id) };
    } catch (error) {
      if (this.#turn === turn) this.#turn = null;
      turn.end();
      throw error;
    }
  }

  async interruptTurn(thread: NativeRef, key: string): Promise<void> {
    const turn = this.#turn;
    if (turn?.key === key) await this.#stop(thread.nativeId, turn);
  }

  async respond(request: NativeRef, answer: NativeAnswer): Promise<void> {
    if (this.#turn?.answer(request.nativeId, answer) === true) return;
    throw new RejectedError("REQUEST_NOT_RESUMABLE", `nothing waits for an answer to ${request.nativeId}.`, {
      id: request.nativeId,
    });
  }

  async steerTurn(input: NativeTurnInput): Promise<void> {
    const turn = this.#turn;
    if (turn?.key !== input.key || turn.id === null) throw refused("there is no such turn to steer");
    const threadId = input.thread.nativeId;
    await this.#asking(
      this.#server.ask("turn/steer", { threadId, input: this.#words(input), expectedTurnId: turn.id }),
    );
  }

  async forkThread({ source, boundary, turns, signal }: NativeForkInput): Promise<NativeThread> {
    const cut = cutOf(boundary, turns);
    const asked = this.#server.ask(
      "thread/fork",
      { threadId: source.nativeId, ...cut, ...this.#settings() },
      { limit: "none", ...(signal === undefined ? {} : { signal }) },
    );
    const { thread } = await this.#asking(asked);
    this.#take(thread.id);
    return nativeThread(thread);
  }

  async rollbackThread({ thread, boundary, turns }: NativeRollbackInput): Promise<NativeThread> {
    const threadId = thread.nativeId;
    const first = firstRemoved(
      boundary,
      turns,
      (await this.#turnsOf(threadId)).map(({ ref }) => ref.nativeId),
    );
    if (first !== null)
      await this.#asking(this.#server.ask("thread/revert", { threadId, beforeTurnId: first }));
    const left = (await this.#turnsOf(threadId)).map(({ ref }) => ref);
    return { ref: thread, head: left.at(-1) ?? null, turns: left, forkedFrom: null };
  }

  async readThread(thread: NativeRef, page?: string): Promise<NativeHistoryPage> {
    const asked = this.#server.ask("thread/turns/list", {
      threadId: thread.nativeId,
      limit: TURNS_A_PAGE,
      sortDirection: "asc",
      itemsView: "full",
      ...(page === undefined ? {} : { cursor: page }),
    });
    return historyPage(await this.#asking(asked));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#feed.end();
    const turn = this.#turn;
    const threadId = this.#threadId;
    this.#threadId = null;
    if (threadId !== null && this.#gone === null) {
      if (turn !== null) await this.#server.inTime(this.#stop(threadId, turn));
      this.#server.leave(threadId, this);
      await this.#server.inTime(this.#server.ask("thread/unsubscribe", { threadId }));
    }
    this.#turn = null;
    turn?.end();
    await this.#options.release();
  }

  heard(event: CodexNotification): void {
    const turn = this.#turn;
    const of = "turn" in event ? event.turn.id : event.turnId;
    // Of a turn before, or of one that nobody here asked for.
    if (turn === null || (turn.id !== null && turn.id !== of)) return;
    if (event.method === "turn/completed") {
      this.#turn = null;
      turn.completed(event.turn);
      return;
    }
    const before = this.#used;
    if (event.method === "thread/tokenUsage/updated") this.#used = event.tokenUsage.total;
    turn.heard(event, before);
  }

  asked(request: CodexRequest): Promise<Json> {
    const turn = this.#turn;
    if (turn === null || (turn.id !== null && turn.id !== request.turnId))
      return Promise.reject(new JsonRpcFault(-32000, "no such turn is under way here"));
    return turn.asked(request);
  }

  lost(error: ProviderError): void {
    this.#gone = error;
    this.#turn?.end();
    this.#turn = null;
    this.#feed.end(error);
  }

  /** One that has not begun yet cannot be stopped: it is as soon as it has. */
  async #stop(threadId: string, turn: CodexTurnUnderWay): Promise<void> {
    const turnId = await turn.begun;
    if (turnId === null || this.#turn !== turn) return;
    await this.#asking(this.#server.ask("turn/interrupt", { threadId, turnId }));
  }

  #take(threadId: string): void {
    if (this.#threadId !== null) this.#server.leave(this.#threadId, this);
    this.#threadId = threadId;
    this.#used = null;
    this.#server.listen(threadId, this);
  }

  async #turnsOf(threadId: string): Promise<NativeHistoryPage["turns"]> {
    const turns: NativeHistoryPage["turns"][number][] = [];
    for (let page: string | undefined; ;) {
      const read: NativeHistoryPage = await this.readThread(refOf(threadId), page);
      turns.push(...read.turns);
      if (read.next === null) return turns;
      page = read.next;
    }
  }

  #settings(): JsonObject {
    const { input, approvals, config } = this.#options;
    const policy = policyOf(input.effects, approvals);
    return {
      sandbox: policy.sandbox,
      approvalPolicy: policy.approvalPolicy,
      config: { ...config, ...policy.config },
      ...(input.model === null ? {} : { model: input.model }),
      ...(input.workspace === null ? {} : { cwd: input.workspace }),
      ...(input.instructions === null ? {} : { developerInstructions: input.instructions }),
    };
  }

  #tools(): Json[] {
    const { tools } = this.#options.input;
    if (tools.length === 0) return [];
    return [
      {
        type: "namespace",
        name: NAMESPACE,
        description: "Work with other agents, and tools of the host.",
        tools: tools.map(({ name, description, parameters }) => ({
          type: "function",
          name,
          description,
          inputSchema: parameters as Json,
        })),
      },
    ];
  }

  async #inject(threadId: string, { preambles }: NativeTurnInput): Promise<void> {
    const items = preambles
      .filter(({ channel }) => channel === "developer")
      .map(({ text }): Json => ({
        type: "message",
        role: "developer",
        content: [{ type: "input_text", text }],
      }));
    if (items.length > 0) await this.#asking(this.#server.ask("thread/inject_items", { threadId, items }));
  }

  /** What cannot be injected in the middle of a turn is said there. */
  #words({ preambles, userMessage }: NativeTurnInput): Json[] {
    const steering = this.#turn?.id !== null;
    const beside = preambles.filter(({ channel }) => steering || channel !== "developer");
    return [...beside.map(({ text }) => text), userMessage].map((text) => ({
      type: "text",
      text,
      text_elements: [],
    }));
  }

  async #asking<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked;
    } catch (error) {
      throw writerBusy(error) ?? error;
    }
  }
}

function nativeThread({ id, forkedFromId, turns }: CodexThread): NativeThread {
  const named = turns.map((turn) => refOf(turn.id));
  return {
    ref: refOf(id),
    head: named.at(-1) ?? null,
    turns: named,
    forkedFrom: typeof forkedFromId === "string" ? refOf(forkedFromId) : null,
  };
}

function writerBusy(error: unknown): TransientError | null {
  if (!(error instanceof JsonRpcRefusal) || !error.message.includes("already has an active writer"))
    return null;
  return new TransientError("PROVIDER_WRITER_BUSY", `${error.message} Let the other process end first.`, {});
}

/** A conversation that is not there is no conversation that begins anew. */
function resumeFailure(error: unknown, ref: NativeRef): unknown {
  if (!(error instanceof JsonRpcRefusal)) return error;
  return (
    writerBusy(error) ??
    new TransientError("PROVIDER_RESUME_FAILED", error.message, { thread: ref.nativeId }, { cause: error })
  );
}

function refused(why: string): RejectedError {
  return new RejectedError("PROVIDER_REFUSED", `Codex refused: ${why}.`, {});
}
