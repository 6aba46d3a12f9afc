/**
 * The turn of an agent that speaks ACP that is under way, as events; what it asks of us waits here for its answer.
 *
 * - T1 Text comes in pieces without an end: what another kind of news, another message or the end of the turn cuts off is whole.
 * - T2 Acceptance is the first thing that the turn says, does or asks: nothing else tells that it was taken.
 * - T3 With the turn, or its cancellation, all that it has asked for is over.
 */
import type { Json } from "../../protocol/json.ts";
import type { NativeAnswer, NativeEvent, NativeRequest } from "../../protocol/native-events.ts";
import { RejectedError } from "../../protocol/errors.ts";
import type { ProviderError } from "../json-rpc.ts";
import type { ToolRequest } from "../mcp-bridge/seat.ts";
import type { Told } from "../turn-told.ts";
import {
  failureOf,
  inputOf,
  isOurs,
  isOver,
  itemsOf,
  merged,
  refOf,
  textOf,
  toolOf,
  usageOf,
} from "./translate.ts";
import type { AcpPermission, AcpPrompted, AcpToolCall, AcpUpdate } from "./wire.ts";

export interface AcpTurnOptions {
  readonly key: string;
  /** Names its agent in errors. */
  readonly agent: string;
  /** Names of the tools that it gets over the bridge. */
  readonly tools: readonly string[];
  /** False where a yes would widen its policy (POL-2). */
  readonly asks: boolean;
  readonly tell: (event: NativeEvent) => void;
}

interface Passage {
  readonly kind: "text" | "reasoning";
  readonly messageId: string | null;
  text: string;
}

export class AcpTurn {
  readonly #options: AcpTurnOptions;
  readonly #taken = Promise.withResolvers<void>();
  readonly #calls = new Map<string, AcpToolCall>();
  readonly #asked = new Map<string, (answer: NativeAnswer) => void>();
  #passage: Passage | null = null;
  #number = 0;
  /** It says that it is in error, and what it has said since. */
  #fault: string | null = null;
  #accepted = false;
  #cancelled = false;

  constructor(options: AcpTurnOptions) {
    this.#options = options;
  }

  get key(): string {
    return this.#options.key;
  }

  /** Resolves when it was taken. */
  get taken(): Promise<void> {
    return this.#taken.promise;
  }

  get accepted(): boolean {
    return this.#accepted;
  }

  heard(update: AcpUpdate): void {
    switch (update.kind) {
      case "agent_message_chunk":
      case "agent_thought_chunk": {
        const { content, messageId } = update.of;
        const kind = update.kind === "agent_message_chunk" ? "text" : "reasoning";
        return this.#piece(kind, messageId ?? null, textOf(content));
      }
      case "tool_call":
      case "tool_call_update":
        return this.#call(update.of);
      case "plan": {
        this.#whole();
        const callId = `plan:${(this.#number += 1)}`;
        const input = JSON.stringify({ entries: update.of.entries });
        return this.#say({
          type: "item",
          item: { kind: "tool", callId, name: "plan", input, output: null, isError: false, ref: null },
        });
      }
      case "session_info_update":
        if (saysThatItIsInError(update.of._meta)) this.#fault ??= "";
        return;
      case "current_mode_update":
    }
  }

  /** A call that came over the bridge. */
  called(request: ToolRequest): void {
    this.#whole();
    this.#say({ type: "request", request });
  }

  /** What the agent is allowed, as the answer to its question. */
  async asksFor({ toolCall, options }: AcpPermission): Promise<Json> {
    const call = merged(this.#calls.get(toolCall.toolCallId), toolCall);
    const selected = (kinds: readonly string[]): Json => {
      const option = kinds.map((kind) => options.find((one) => one.kind === kind)).find(Boolean);
      return option === undefined
        ? CANCELLED
        : { outcome: { outcome: "selected", optionId: option.optionId } };
    };
    // Calls of our tools are asked for by their own rules, when they come.
    if (isOurs(call, this.#options.tools)) return selected(YES);
    if (!this.#options.asks) return selected(NO);
    this.#whole();
    const ref = refOf(`ask:${toolCall.toolCallId}:${(this.#number += 1)}`);
    const about = { tool: toolOf(call), input: inputOf(call) };
    const answer = await this.#ask({ kind: "approval", ref, text: call.title ?? "May it do this?", about });
    if (answer.kind !== "decision") return CANCELLED;
    return selected(answer.decision.verdict === "approved" ? YES : NO);
  }

  /** False when nothing waits for it. */
  answer(nativeId: string, answer: NativeAnswer): boolean {
    this.#asked.get(nativeId)?.(answer);
    return this.#asked.delete(nativeId);
  }

  cancel(): void {
    this.#cancelled = true;
    this.end();
  }

  /** Nobody answers any more. */
  end(): void {
    for (const answered of this.#asked.values()) answered({ kind: "cancelled" });
    this.#asked.clear();
  }

  /** Its end, by its own account. */
  finished({ stopReason, usage }: AcpPrompted): void {
    const said = this.#fault;
    if (said !== null && stopReason === "end_turn")
      return this.#terminal("failed", failureOf(this.#options.agent, said));
    if (stopReason === "cancelled") return this.#terminal("interrupted", null, usage);
    if (stopReason === "end_turn") return this.#terminal("completed", null, usage);
    this.#terminal("failed", this.#stopped(stopReason), usage);
  }

  failed(error: ProviderError): void {
    // What a cancelled turn fails with is how it ends.
    if (this.#cancelled) this.#terminal("interrupted", null);
    else this.#terminal("failed", error);
  }

  #stopped(reason: string): RejectedError {
    const why = STOPPED[reason] ?? `it stopped for a reason that is not known here: ${reason}`;
    return new RejectedError("PROVIDER_REFUSED", `${this.#options.agent}: ${why}.`, { stopReason: reason });
  }

  #terminal(
    outcome: "completed" | "failed" | "interrupted",
    error: ProviderError | null,
    usage: AcpPrompted["usage"] = null,
  ): void {
    this.end();
    this.#whole();
    for (const call of this.#calls.values()) this.#done(call);
    this.#say({ type: "turn.terminal", outcome, turn: null, usage: usageOf(usage), error });
  }

  #piece(kind: Passage["kind"], messageId: string | null, text: string): void {
    if (text === "") return;
    if (this.#fault !== null && kind === "text" && messageId === null) {
      this.#fault += text;
      return;
    }
    const before = this.#passage;
    if (before?.kind !== kind || before.messageId !== messageId) {
      this.#whole();
      this.#passage = { kind, messageId, text };
    } else before.text += text;
    if (kind === "text") this.#say({ type: "delta", text });
    else this.#accept();
  }

  #whole(): void {
    const passage = this.#passage;
    this.#passage = null;
    if (passage === null) return;
    this.#say({ type: "item", item: { kind: passage.kind, text: passage.text, ref: null } });
  }

  #call(news: AcpToolCall): void {
    this.#accept();
    this.#whole();
    const call = merged(this.#calls.get(news.toolCallId), news);
    this.#calls.set(news.toolCallId, call);
    if (isOver(call)) this.#done(call);
  }

  #done(call: AcpToolCall): void {
    this.#calls.delete(call.toolCallId);
    if (isOurs(call, this.#options.tools)) return;
    for (const item of itemsOf(call)) this.#say({ type: "item", item });
  }

  #ask(request: NativeRequest): Promise<NativeAnswer> {
    if (this.#cancelled) return Promise.resolve({ kind: "cancelled" });
    return new Promise((answered) => {
      this.#asked.set(request.ref.nativeId, answered);
      this.#say({ type: "request", request });
    });
  }

  #accept(): void {
    this.#accepted = true;
    this.#taken.resolve();
  }

  #say(event: Told): void {
    this.#accept();
    this.#options.tell({ ...event, key: this.key } as NativeEvent);
  }
}

/** Once, where that is offered: what is allowed for ever is not asked for again. */
const YES = ["allow_once", "allow_always"];
const NO = ["reject_once", "reject_always"];
const CANCELLED: Json = { outcome: { outcome: "cancelled" } };

const STOPPED: Readonly<Record<string, string>> = {
  max_tokens: "it stopped at the longest answer that its model gives",
  max_turn_requests: "it stopped at the most requests that it makes in a turn",
  refusal: "it refuses to go on with this",
};

/** Codex tells by this what its answer does not: a turn that has failed ends like any other. */
function saysThatItIsInError(meta: Readonly<Record<string, unknown>> | null | undefined): boolean {
  const { codex } = (meta ?? {}) as {
    readonly codex?: { readonly threadStatus?: { readonly type?: string } };
  };
  return codex?.threadStatus?.type === "systemError";
}
