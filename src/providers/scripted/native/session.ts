/** The session of a scripted provider that owns its loop: one agent's, with its conversations in a store that outlives it. */
import { InterruptedError, RejectedError, TransientError } from "../../../protocol/errors.ts";
import type {
  NativeAnswer,
  NativeEvent,
  NativeHistoryPage,
  NativeThread,
} from "../../../protocol/native-events.ts";
import type { NativeRef } from "../../../protocol/provider-thread.ts";
import type {
  NativeForkInput,
  NativeRollbackInput,
  NativeSession,
  NativeSessionInput,
  NativeTurnInput,
} from "../../port.ts";
import type { Conversation, ConversationTurn } from "./conversations.ts";
import type { NativeMethod } from "./faults.ts";
import { Feed } from "../../feed.ts";
import type { Provider } from "./provider.ts";
import { threadRef, turnRef } from "./rows.ts";
import { playTurn, type Stage, takeIn } from "./turn.ts";

/** So many turns a page. */
const PAGE = 2;

interface Playing {
  readonly key: string;
  readonly abort: AbortController;
  readonly killed: AbortController;
  readonly stage: Stage;
  readonly asked: Map<string, (answer: NativeAnswer) => void>;
}

export class ScriptedNativeSession implements NativeSession {
  readonly input: NativeSessionInput;
  readonly #provider: Provider;
  readonly #feed = new Feed<NativeEvent>();
  #playing: Playing | null = null;
  #dead: TransientError | null = null;

  constructor(provider: Provider, input: NativeSessionInput) {
    this.#provider = provider;
    this.input = input;
    for (const method of ["forkThread", "rollbackThread", "readThread", "findForks", "steerTurn"] as const)
      if (!provider.offers(method)) (this as NativeSession)[method] = undefined as never;
  }

  get negotiated() {
    return this.#provider.row.capabilities;
  }

  events(): AsyncIterable<NativeEvent> {
    return this.#feed;
  }

  /** Its process is gone: what it was in the middle of stays as it was, and nobody answers any more. */
  die(): void {
    this.#dead ??= new TransientError("PROVIDER_UNREACHABLE", "The scripted provider has died.", {});
    this.#letGo();
    this.#feed.end(this.#dead);
  }

  #letGo(): void {
    const playing = this.#playing;
    this.#playing = null;
    if (playing !== null) {
      playing.stage.turn.status = "interrupted";
      const gone = new InterruptedError("RUN_INTERRUPTED", "the session is closed.");
      playing.killed.abort(gone);
      playing.abort.abort(gone);
    }
    for (const one of this.#provider.conversations.all()) if (one.writer === this) one.writer = null;
    this.#provider.gone(this);
  }

  /** Everything goes through here: recorded, refused, held up, or cut off when it has been done. */
  async #through<T>(method: NativeMethod, input: unknown, body: () => T | Promise<T>): Promise<T> {
    const fault = this.#provider.note(method, this.input.path, input);
    if (this.#dead !== null) throw this.#dead;
    if (fault?.kind === "refuse") throw fault.error;
    if (fault?.kind === "hang" && !fault.done) await this.#provider.gates.pass(fault.gate);
    const value = await body();
    if (fault?.kind === "hang" && fault.done) await this.#provider.gates.pass(fault.gate);
    if (fault?.kind === "crash") this.die();
    if (this.#dead !== null) throw this.#dead;
    return value;
  }

  #find(ref: NativeRef): Conversation {
    const found = this.#provider.knows(ref.driver)
      ? this.#provider.conversations.find(this.#provider.row.driver, ref.nativeId)
      : undefined;
    if (found === undefined || found.lost) {
      throw new TransientError(
        "PROVIDER_RESUME_FAILED",
        `The provider has no conversation ${ref.nativeId}.`,
        {
          thread: ref.nativeId,
        },
      );
    }
    return found;
  }

  #write(conversation: Conversation): Conversation {
    if (!this.negotiated.sessions.singleWriter) return conversation;
    if (conversation.writer !== null && conversation.writer !== this) {
      throw new TransientError(
        "PROVIDER_WRITER_BUSY",
        `${conversation.id} already has an active writer; let it end first.`,
        { thread: conversation.id },
      );
    }
    conversation.writer = this;
    return conversation;
  }

  #threadOf(conversation: Conversation): NativeThread {
    const { row } = this.#provider;
    const turns = conversation.turns.flatMap((turn) => turnRef(row, conversation, turn) ?? []);
    const { forkedFrom } = conversation;
    return {
      ref: threadRef(row, conversation),
      head: turns.at(-1) ?? null,
      turns: this.negotiated.threads.rollbackReturnsSnapshot ? turns : null,
      forkedFrom: forkedFrom === null ? null : { ...threadRef(row, conversation), nativeId: forkedFrom },
    };
  }

  ensureThread: NativeSession["ensureThread"] = (selection) =>
    this.#through("ensureThread", selection, () =>
      this.#threadOf(this.#write(this.#provider.row.translator.start(this.#provider.wire))),
    );

  resumeThread: NativeSession["resumeThread"] = (thread) =>
    this.#through("resumeThread", thread, () => this.#threadOf(this.#write(this.#find(thread))));

  startTurn: NativeSession["startTurn"] = (input) =>
    this.#through("startTurn", input, () => {
      input.signal.throwIfAborted();
      if (this.#playing !== null) throw refused("a turn is under way already");
      return this.#begin(input);
    });

  #begin(input: Parameters<NativeSession["startTurn"]>[0]): Promise<{ readonly turn: NativeRef | null }> {
    const { row, conversations, clock, gates } = this.#provider;
    const conversation = this.#find(input.thread);
    const turn: ConversationTurn = { id: conversations.mint("turn"), status: "running" };
    const taken = Promise.withResolvers<{ readonly turn: NativeRef | null }>();
    const abort = new AbortController();
    const killed = new AbortController();
    const asked = new Map<string, (answer: NativeAnswer) => void>();
    const onAbort = (): void => abort.abort(input.signal.reason);
    const stage: Stage = {
      session: this.input,
      conversations,
      conversation,
      program: this.#provider.programOf(this.input.path),
      clock,
      gates,
      input,
      turn,
      signal: abort.signal,
      killed: killed.signal,
      steered: false,
      ref: (nativeId) => ({ driver: row.driver, nativeId, strength: row.capabilities.identity.item }),
      accept: () => {
        input.signal.removeEventListener("abort", onAbort);
        conversation.turns.push(turn);
        takeIn(stage, input);
        const named = turnRef(row, conversation, turn);
        if (row.capabilities.turns.acceptedEvent) {
          stage.tell({ type: "turn.accepted", turn: named });
          stage.tell({ type: "turn.started", turn: named });
        }
        taken.resolve({ turn: named });
      },
      tell: (event) => this.#feed.push({ ...event, key: input.key }),
      ask: (request) =>
        new Promise((resolve) => {
          asked.set(request.ref.nativeId, resolve);
          stage.tell({ type: "request", request });
        }),
    };
    const playing: Playing = { key: input.key, abort, killed, stage, asked };
    this.#playing = playing;
    // Until it is accepted a turn is given up with its signal; afterwards by `interruptTurn` alone.
    input.signal.addEventListener("abort", onAbort, { once: true });
    void playTurn(stage).then(
      (end) => {
        if (this.#playing !== playing) return;
        this.#playing = null;
        turn.status = end.outcome;
        stage.tell({ type: "turn.terminal", ...end, turn: turnRef(row, conversation, turn) });
      },
      (error: unknown) => {
        input.signal.removeEventListener("abort", onAbort);
        if (this.#playing === playing) this.#playing = null;
        taken.reject(this.#dead ?? (error as Error));
      },
    );
    return taken.promise;
  }

  interruptTurn: NativeSession["interruptTurn"] = (thread, key) =>
    this.#through("interruptTurn", { thread, key }, () => {
      if (this.#playing?.key !== key) return;
      this.#playing.abort.abort(new InterruptedError("RUN_INTERRUPTED", "the turn was interrupted."));
    });

  respond: NativeSession["respond"] = (request, answer) =>
    this.#through("respond", { request, answer }, () => {
      const answered = this.#playing?.asked.get(request.nativeId);
      if (answered === undefined) {
        throw new RejectedError(
          "REQUEST_NOT_RESUMABLE",
          `nothing waits for an answer to ${request.nativeId}.`,
          {
            id: request.nativeId,
          },
        );
      }
      this.#playing!.asked.delete(request.nativeId);
      answered(answer);
    });

  steerTurn?: (input: NativeTurnInput) => Promise<void> = (input) =>
    this.#through("steerTurn", input, () => {
      const playing = this.#playing;
      if (playing?.key !== input.key || playing.stage.turn.status !== "running")
        throw refused("there is no such turn to steer");
      takeIn(playing.stage, input);
      playing.stage.steered = true;
    });

  forkThread?: (input: NativeForkInput) => Promise<NativeThread> = (input) =>
    this.#through("forkThread", input, () => {
      const source = this.#find(input.source);
      if (this.negotiated.threads.forkIdleOnly && source.turns.some(({ status }) => status === "running"))
        throw refused("the conversation is at work; fork it when it rests");
      const { wire, row } = this.#provider;
      return this.#threadOf(row.translator.fork!({ ...input, wire, id: source.id }));
    });

  rollbackThread?: (input: NativeRollbackInput) => Promise<NativeThread> = (input) =>
    this.#through("rollbackThread", input, () => {
      const thread = this.#find(input.thread);
      const { wire, row } = this.#provider;
      return this.#threadOf(this.#write(row.translator.rollback!({ ...input, wire, id: thread.id })));
    });

  readThread?: (thread: NativeRef, page?: string) => Promise<NativeHistoryPage> = (thread, page) =>
    this.#through("readThread", { thread, page: page ?? null }, () => {
      const { row } = this.#provider;
      const conversation = this.#find(thread);
      const from = Number(page ?? 0);
      const size = this.negotiated.threads.read === "paged" ? PAGE : Infinity;
      const turns = conversation.turns.slice(from, from + size);
      return {
        turns: turns.map((turn) => ({
          ref: turnRef(row, conversation, turn) ?? { ...threadRef(row, conversation), strength: "none" },
          status: turn.status,
          items: conversation.items.flatMap((item) =>
            item.turn === turn.id ? [readable(row.driver, item)] : [],
          ),
        })),
        next: from + turns.length < conversation.turns.length ? String(from + turns.length) : null,
      };
    });

  findForks?: (source: NativeRef) => Promise<readonly NativeThread[]> = (source) =>
    this.#through("findForks", source, () =>
      this.#provider.conversations
        .all()
        .filter(({ forkedFrom, lost }) => forkedFrom === source.nativeId && !lost)
        .map((conversation) => this.#threadOf(conversation)),
    );

  close(): Promise<void> {
    if (this.#dead !== null) return Promise.resolve();
    return this.#through("close", null, () => {
      this.#letGo();
      this.#feed.end();
    });
  }
}

function readable(driver: string, { id, message }: Conversation["items"][number]) {
  const role: "user" | "assistant" | "tool" = message.role === "system" ? "user" : message.role;
  const text =
    message.role === "tool"
      ? JSON.stringify(message.output)
      : message.role === "assistant"
        ? message.parts.map((part) => ("text" in part ? part.text : part.name)).join("")
        : message.text;
  return { ref: { driver, nativeId: id, strength: "strong" as const }, role, text };
}

function refused(why: string): RejectedError {
  return new RejectedError("PROVIDER_REFUSED", `The scripted provider refused: ${why}.`, {});
}
