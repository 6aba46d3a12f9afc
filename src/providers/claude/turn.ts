/**
 * The turn of a Claude conversation that is under way, as events; what it asks of us waits here for its answer.
 *
 * - U1 It is over when all is answered that was said in it: what was put into it after its last step is a step of its own.
 * - U2 A request is told after the call that it is for: the one comes on another way than the other.
 */
import type { NativeAnswer, NativeEvent, NativeRequest } from "../../protocol/native-events.ts";
import type { StepUsage } from "../../protocol/provider-events.ts";
import { NOTHING_USED, type Told } from "../turn-told.ts";
import { ClaudeChildren } from "./children.ts";
import { resultText } from "./history.ts";
import { TOOL_PREFIX } from "./tool-server.ts";
import { failureOf, itemOf, less, type OwnCall, plus, refOf, usageOf } from "./translate.ts";
import type { ClaudeBlock, ClaudeMessage, ClaudeResult, ClaudeStreamEvent, ClaudeUsage } from "./wire.ts";

export class ClaudeTurnUnderWay {
  readonly key: string;
  /** Of its prompt. */
  readonly id: string;
  readonly #tell: (event: NativeEvent) => void;
  /** Said in it and not answered yet. */
  readonly #said = new Set<string>();
  readonly #asked = new Map<string, (answer: NativeAnswer) => void>();
  readonly #calls = new Map<string, OwnCall>();
  readonly #children: ClaudeChildren;
  /** Calls that agents of its own have made. */
  readonly #below = new Set<string>();
  readonly #heard = new Map<string, PromiseWithResolvers<void>>();
  readonly #accepted = Promise.withResolvers<void>();
  #isAccepted = false;
  #stopped = false;
  #over = false;
  /** Of the request under way. */
  #using: ClaudeUsage = {};
  #used = NOTHING_USED;
  #toldUsed = NOTHING_USED;
  #failure: string | null = null;

  constructor(key: string, id: string, tell: (event: NativeEvent) => void) {
    this.key = key;
    this.id = id;
    this.#tell = tell;
    this.#children = new ClaudeChildren((event) => this.#say(event));
    this.#said.add(id);
    this.#accepted.promise.catch(() => undefined);
  }

  /** Resolves when Claude has begun with it, and rejects when it is over before. */
  get accepted(): Promise<void> {
    return this.#accepted.promise;
  }

  get isAccepted(): boolean {
    return this.#isAccepted;
  }

  /** What it ends as is no failure then. */
  stop(): void {
    this.#stopped = true;
  }

  steered(id: string): void {
    this.#said.add(id);
  }

  /** True when the turn is over with it. `used` is what a result has told that was used since the one before. */
  heard(message: ClaudeMessage, used: StepUsage | null): boolean {
    if (!this.#isAccepted) {
      if (!message.user_message_uuids.includes(this.id)) return false;
      this.#isAccepted = true;
      this.#accepted.resolve();
      this.#say({ type: "turn.accepted", turn: refOf(this.id) });
    }
    // Of an agent of its own.
    if (typeof message.parent_tool_use_id === "string") {
      if (message.type === "assistant") this.#calledBelow(message);
      return false;
    }
    switch (message.type) {
      case "system":
        this.#children.heard(message);
        return false;
      case "stream_event":
        this.#streamed(message.event);
        return false;
      case "assistant":
        // Words of the program itself say why it gives up.
        if (message.error !== undefined) this.#failure = message.error;
        else this.#answered(message);
        return false;
      case "user":
        this.#results(message);
        return false;
      case "result":
        return this.#result(message, used);
    }
  }

  /** Nobody answers any more. */
  end(): void {
    this.#over = true;
    this.#children.end();
    this.#accepted.reject(new Error("the turn is over"));
    for (const answered of this.#asked.values()) answered({ kind: "cancelled" });
    this.#asked.clear();
    for (const { resolve } of this.#heard.values()) resolve();
  }

  /** False when nothing waits for it. */
  answer(nativeId: string, answer: NativeAnswer): boolean {
    this.#asked.get(nativeId)?.(answer);
    return this.#asked.delete(nativeId);
  }

  /** Resolves with the answer; `signal` says that it is waited for no longer. */
  async ask(request: NativeRequest, signal?: AbortSignal): Promise<NativeAnswer> {
    const { nativeId } = request.ref;
    await this.#hearing(nativeId).promise;
    if (this.#over || signal?.aborted === true) return { kind: "cancelled" };
    if (request.kind === "tool" && this.#below.has(nativeId))
      return {
        kind: "tool",
        output: "Tools of the tree are for the agent that has called you.",
        isError: true,
      };
    return new Promise((answered) => {
      this.#asked.set(nativeId, answered);
      this.#say({ type: "request", request });
      signal?.addEventListener("abort", () => {
        if (!this.answer(nativeId, { kind: "cancelled" })) return;
        this.#say({ type: "withdrawn", request: request.ref });
      });
    });
  }

  #hearing(callId: string): PromiseWithResolvers<void> {
    const known = this.#heard.get(callId) ?? Promise.withResolvers<void>();
    this.#heard.set(callId, known);
    return known;
  }

  #streamed(event: ClaudeStreamEvent): void {
    switch (event.type) {
      case "message_start":
        this.#using = event.message?.usage ?? {};
        return;
      case "content_block_delta":
        if (event.delta?.type === "text_delta" && event.delta.text !== undefined)
          this.#say({ type: "delta", text: event.delta.text });
        return;
      case "message_delta":
        this.#using = { ...this.#using, ...event.usage };
        return;
      case "message_stop": {
        const usage = usageOf(this.#using);
        this.#using = {};
        if (usage.inputTokens + usage.outputTokens === 0) return;
        this.#toldUsed = plus(this.#toldUsed, usage);
        this.#say({ type: "usage", usage });
      }
    }
  }

  #answered({ uuid, message }: Extract<ClaudeMessage, { type: "assistant" }>): void {
    for (const block of blocksOf(message.content)) {
      const ref = refOf(uuid);
      if (block.type === "text" && typeof block["text"] === "string" && block["text"] !== "")
        this.#say({ type: "item", item: { kind: "text", text: block["text"], ref } });
      if (block.type === "thinking" && typeof block["thinking"] === "string" && block["thinking"] !== "")
        this.#say({ type: "item", item: { kind: "reasoning", text: block["thinking"], ref } });
      if (block.type === "tool_use") this.#called(block);
    }
  }

  /** What they call is none of the turn's; what they ask for is asked for by it. */
  #calledBelow({ message }: Extract<ClaudeMessage, { type: "assistant" }>): void {
    for (const { type, id } of blocksOf(message.content)) {
      if (type !== "tool_use" || typeof id !== "string") continue;
      this.#below.add(id);
      this.#hearing(id).resolve();
    }
  }

  #called({ id, name, input }: ClaudeBlock): void {
    if (typeof id !== "string" || typeof name !== "string") return;
    // Calls of ours are told as requests.
    if (!name.startsWith(TOOL_PREFIX)) this.#calls.set(id, { callId: id, name, input });
    this.#hearing(id).resolve();
  }

  #results({ uuid, message, tool_use_result: told }: Extract<ClaudeMessage, { type: "user" }>): void {
    for (const block of blocksOf(message.content)) {
      const callId = block["tool_use_id"];
      const call = typeof callId === "string" ? this.#calls.get(callId) : undefined;
      if (block.type !== "tool_result" || call === undefined) continue;
      this.#calls.delete(call.callId);
      const ref = uuid === undefined ? null : refOf(uuid);
      const output = resultText(block["content"]);
      this.#say({ type: "item", item: itemOf(call, output, block["is_error"] === true, told, ref) });
    }
  }

  #result(result: ClaudeResult, used: StepUsage | null): boolean {
    if (used !== null) this.#used = plus(this.#used, used);
    for (const id of result.user_message_uuids) this.#said.delete(id);
    const stopped = result.terminal_reason?.startsWith("aborted") ?? false;
    const ownStop = this.#stopped && result.subtype === "error_during_execution";
    const completed = result.subtype === "success" && !result.is_error;
    // What was put in too late for the last step is answered next.
    if (completed && !this.#stopped && this.#said.size > 0) return false;
    const outcome = completed ? "completed" : stopped || ownStop ? "interrupted" : "failed";
    this.end();
    this.#say({
      type: "turn.terminal",
      outcome,
      turn: refOf(this.id),
      usage: less(this.#used, this.#toldUsed),
      error: outcome === "failed" ? failureOf(result, this.#failure) : null,
    });
    return true;
  }

  #say(event: Told): void {
    this.#tell({ ...event, key: this.key } as NativeEvent);
  }
}

function blocksOf(content: string | readonly ClaudeBlock[]): readonly ClaudeBlock[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
