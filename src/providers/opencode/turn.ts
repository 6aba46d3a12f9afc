/**
 * The turn of a conversation of OpenCode's that is under way, as events; what it asks of us waits here for its answer.
 *
 * - T1 It is accepted when its message stands in the conversation. What is refused before that has no events.
 * - T2 It is over when its server is idle again and none of its answers is still open: a server says at once that it is idle
 *   when it is told to stop, and once more when it has.
 * - T3 A request that its model keeps failing at is made again a few times only; then the turn has failed.
 * - T4 With the turn all that it has asked for is over.
 */
import type { JsonObject } from "../../protocol/json.ts";
import type { NativeAnswer, NativeEvent, NativeRequest } from "../../protocol/native-events.ts";
import type { ProviderError } from "../json-rpc.ts";
import type { ToolRequest } from "../mcp-bridge/seat.ts";
import { NOTHING_USED, questionText, type Told } from "../turn-told.ts";
import { OpenCodeChildren, type OpenCodeChildrenOptions } from "./children.ts";
import { isNotThere, unanswered } from "./failures.ts";
import { failureOf, itemOf, refOf, retriedFailure, usageOf } from "./translate.ts";
import {
  type OpenCodeEvent,
  type OpenCodeFault,
  type OpenCodeMessage,
  type OpenCodePart,
  type OpenCodeTool,
  partOfInterest,
} from "./wire.ts";

type Asked<T extends OpenCodeEvent["type"]> = Extract<OpenCodeEvent, { type: T }>["of"];

/** What a request of OpenCode's is answered with. */
export interface OpenCodeReply {
  readonly path: string;
  readonly body: JsonObject;
}

export interface OpenCodeTurnOptions {
  readonly key: string;
  /** The name of its message. */
  readonly id: string;
  /** What stands before the names of tools of ours. */
  readonly toolPrefix: string;
  /** False where a yes would widen its policy (POL-2). */
  readonly asks: boolean;
  readonly tell: (event: NativeEvent) => void;
  readonly reply: (reply: OpenCodeReply) => Promise<void>;
  /** Has it stopped; resolves with the acknowledgement. */
  readonly stop: () => Promise<unknown>;
  readonly onEnded: () => void;
  /** Where conversations of its own agents are heard. */
  readonly server: OpenCodeChildrenOptions["server"];
}

/** As often as a request is made again; how long OpenCode waits in between doubles from two seconds on. */
const RETRIES = 2;

export class OpenCodeTurn {
  readonly #options: OpenCodeTurnOptions;
  readonly #taken = Promise.withResolvers<void>();
  /** False when it is over before. */
  readonly #beginning = Promise.withResolvers<boolean>();
  readonly #answers = new Map<string, OpenCodeMessage>();
  readonly #open = new Map<string, { readonly kind: "text" | "reasoning"; text: string }>();
  readonly #calls = new Map<string, OpenCodeTool>();
  readonly #done = new Set<string>();
  readonly #children: OpenCodeChildren;
  readonly #asked = new Map<string, (answer: NativeAnswer) => Promise<void>>();
  #sending = false;
  #sent = false;
  #accepted = false;
  #busy = false;
  #stopped = false;
  #fault: OpenCodeFault | null = null;
  #failure: ProviderError | null = null;
  /** Answers whose use was not told. */
  #untold = 0;

  constructor(options: OpenCodeTurnOptions) {
    this.#options = options;
    this.#children = new OpenCodeChildren({
      server: options.server,
      tell: (event) => this.#say(event),
      asks: (event) => this.heard(event),
    });
    this.#taken.promise.catch(() => undefined);
  }

  get key(): string {
    return this.#options.key;
  }

  get id(): string {
    return this.#options.id;
  }

  /** The server may have its message. */
  get isSending(): boolean {
    return this.#sending;
  }

  /** Resolves when it was accepted; rejects with what refuses it. */
  get taken(): Promise<void> {
    return this.#taken.promise;
  }

  /** Its message is on its way: what goes wrong from now on is of this turn. */
  sending(): void {
    this.#sending = true;
  }

  /** The server has its message. Why it does not take it may have been told before that, on another connection. */
  sent(): void {
    this.#sent = true;
    this.#refuse();
  }

  heard(event: OpenCodeEvent): void {
    switch (event.type) {
      case "message.updated":
        return this.#message(event.of.info);
      case "message.part.updated":
        return this.#part(partOfInterest(event.of.part));
      case "message.part.delta":
        return this.#delta(event.of);
      case "session.status":
        return this.#status(event.of.status);
      case "session.error":
        return this.#erred(event.of.error ?? null);
      case "permission.asked":
        return this.#approve(event.of);
      case "question.asked":
        return this.#question(event.of);
      case "permission.replied":
      case "question.replied":
      case "question.rejected":
        return this.#withdrawn(event.of.requestID);
    }
  }

  /** A call that came over the bridge. */
  called(request: ToolRequest): void {
    this.#say({ type: "request", request });
  }

  /** False when nothing waits for it. Resolves when its asker has the answer; where it may not have it, it can be given again. */
  async answer(nativeId: string, answer: NativeAnswer): Promise<boolean> {
    const reply = this.#asked.get(nativeId);
    if (reply === undefined) return false;
    // Before the answer is on its way: that it has come is no withdrawal.
    this.#asked.delete(nativeId);
    try {
      await reply(answer);
      return true;
    } catch (error) {
      if (!isNotThere(error)) this.#asked.set(nativeId, reply);
      throw error;
    }
  }

  /** Nothing that it waits for holds it back from ending. Told to stop before it has begun, it would begin all the same. */
  async interrupt(): Promise<void> {
    this.#stopped = true;
    this.#asked.clear();
    if (await this.#beginning.promise) await this.#options.stop();
  }

  /** It is not waited for any more, and its server may have taken it or not. */
  lost(error: ProviderError): void {
    this.#taken.reject(error);
  }

  /** Nobody answers any more; OpenCode takes back by itself what it has asked. */
  end(): void {
    this.#asked.clear();
    this.#children.end();
    this.#beginning.resolve(false);
  }

  #message(info: OpenCodeMessage): void {
    if (info.id === this.id) return this.#accept();
    // Of earlier turns there may be news still. What it asks of itself meanwhile has a later name than this turn's message.
    if (info.role !== "assistant" || (info.parentID ?? info.id) < this.id) return;
    if (!this.#answers.has(info.id)) this.#untold += 1;
    this.#answers.set(info.id, info);
  }

  #part(part: OpenCodePart | null): void {
    if (part === null || this.#done.has(part.id)) return;
    const answer = this.#answers.get(part.messageID);
    // What it tells itself of what was before is no answer.
    if (answer === undefined) return;
    switch (part.type) {
      case "text":
      case "reasoning":
        if (answer.summary === true) return;
        if (part.time?.end === undefined) this.#open.set(part.id, { kind: part.type, text: part.text });
        else this.#whole(part.id, part.type, part.text);
        return;
      case "tool":
        this.#calls.set(part.id, part);
        this.#children.called(part);
        if (part.state.status === "completed" || part.state.status === "error") this.#over(part);
        return;
      case "step-finish":
        this.#done.add(part.id);
        this.#untold -= 1;
        return this.#say({ type: "usage", usage: usageOf(part.tokens) });
    }
  }

  #delta({ partID, field, delta }: Asked<"message.part.delta">): void {
    const open = this.#open.get(partID);
    if (open === undefined || field !== "text" || delta === "") return;
    open.text += delta;
    if (open.kind === "text") this.#say({ type: "delta", text: delta });
  }

  #whole(id: string, kind: "text" | "reasoning", text: string): void {
    this.#open.delete(id);
    this.#done.add(id);
    if (text !== "") this.#say({ type: "item", item: { kind, text, ref: refOf(id) } });
  }

  #over(call: OpenCodeTool): void {
    this.#calls.delete(call.id);
    this.#done.add(call.id);
    if (!call.tool.startsWith(this.#options.toolPrefix)) this.#say({ type: "item", item: itemOf(call) });
  }

  #status({ type, attempt = 0, message = "" }: Asked<"session.status">["status"]): void {
    // Of a turn before, or before this one has begun.
    if (!this.#accepted) return;
    if (type === "busy") this.#begun();
    if (type === "retry" && attempt > RETRIES && this.#failure === null) {
      this.#failure = retriedFailure(message);
      // Where it does not hear of it, its session is ended by whoever waits for the end.
      this.#options.stop().catch(() => undefined);
    }
    if (type !== "idle" || !this.#busy) return;
    if ([...this.#answers.values()].some(({ time }) => time.completed === undefined)) return;
    this.#finish();
  }

  #begun(): void {
    this.#busy = true;
    this.#beginning.resolve(true);
  }

  #finish(): void {
    for (const [id, { kind, text }] of this.#open) this.#whole(id, kind, text);
    for (const call of this.#calls.values()) this.#over(call);
    this.end();
    this.#options.onEnded();
    const { outcome, error } = this.#outcome();
    const usage = outcome === "interrupted" && this.#untold > 0 ? null : NOTHING_USED;
    this.#say({ type: "turn.terminal", outcome, turn: refOf(this.id), usage, error });
  }

  #outcome(): {
    readonly outcome: "completed" | "failed" | "interrupted";
    readonly error: ProviderError | null;
  } {
    if (this.#failure !== null) return { outcome: "failed", error: this.#failure };
    const last = [...this.#answers.values()].at(-1);
    const fault = last === undefined ? this.#fault : (last.error ?? null);
    // One that was stopped between two tries of a request has neither an error nor an end.
    const cut = this.#stopped && last?.finish === undefined;
    if (fault?.name === "MessageAbortedError" || (fault === null && cut))
      return { outcome: "interrupted", error: null };
    if (fault !== null) return { outcome: "failed", error: failureOf(fault) };
    if (last === undefined) return { outcome: "failed", error: unanswered(this.id) };
    return { outcome: "completed", error: null };
  }

  #approve({ id, permission, patterns, metadata, tool }: Asked<"permission.asked">): void {
    const path = `/permission/${id}/reply`;
    const call = [...this.#calls.values()].find(({ callID }) => callID === tool?.callID);
    const input = JSON.stringify(call?.state.input ?? metadata ?? {});
    const text = `May it do this: ${[permission, ...patterns].join(" ")}`;
    const about = { tool: call?.tool ?? permission, input };
    this.#ask({ kind: "approval", ref: refOf(id), text, about }, (answer) => {
      if (answer.kind === "decision" && answer.decision.verdict === "approved")
        return this.#options.reply({ path, body: { reply: "once" } });
      const note = answer.kind === "decision" ? answer.decision.note : null;
      // Without words a no would end the turn.
      return this.#options.reply({ path, body: { reply: "reject", message: note ?? DENIED } });
    });
  }

  #question({ id, questions }: Asked<"question.asked">): void {
    const text = questionText(questions);
    this.#ask({ kind: "question", ref: refOf(id), text, about: null }, (answer) => {
      if (answer.kind !== "answer") return this.#options.reply({ path: `/question/${id}/reject`, body: {} });
      const answers = questions.map(() => [answer.text]);
      return this.#options.reply({ path: `/question/${id}/reply`, body: { answers } });
    });
  }

  #ask(request: NativeRequest, reply: (answer: NativeAnswer) => Promise<void>): void {
    if (request.kind === "approval" && !this.#options.asks) return void this.#deny(reply);
    this.#asked.set(request.ref.nativeId, reply);
    this.#say({ type: "request", request });
  }

  /** Where no denial gets there the turn has failed: nobody else would answer, and it would wait without an end. */
  async #deny(reply: (answer: NativeAnswer) => Promise<void>, left = RETRIES): Promise<void> {
    try {
      await reply({ kind: "cancelled" });
    } catch (error) {
      if (isNotThere(error)) return;
      if (left > 0) return this.#deny(reply, left - 1);
      this.#failure ??= error as ProviderError;
      this.#options.stop().catch(() => undefined);
    }
  }

  /** Somebody else has answered, or it was taken back. */
  #withdrawn(id: string): void {
    if (this.#asked.delete(id)) this.#say({ type: "withdrawn", request: refOf(id) });
  }

  #erred(error: OpenCodeFault | null): void {
    // Of the turn before there may be one more: that it was stopped comes late.
    if (!this.#sending || (!this.#accepted && error?.name === "MessageAbortedError")) return;
    this.#fault ??= error;
    if (this.#sent) this.#refuse();
  }

  #refuse(): void {
    if (!this.#accepted && this.#fault !== null) this.#taken.reject(failureOf(this.#fault));
  }

  #accept(): void {
    if (this.#accepted) return;
    this.#accepted = true;
    this.#taken.resolve();
    this.#say({ type: "turn.accepted", turn: refOf(this.id) });
  }

  #say(event: Told): void {
    this.#options.tell({ ...event, key: this.key } as NativeEvent);
  }
}

const DENIED = "The user has denied this.";
