/** The turn of a Codex thread that is under way, as events; what it asks of us waits here for its answer. */
import type { Json } from "../../protocol/json.ts";
import type { NativeAnswer, NativeEvent, NativeRequest } from "../../protocol/native-events.ts";
import { JsonRpcFault } from "../json-rpc-message.ts";
import { NOTHING_USED, questionText, type Told } from "../turn-told.ts";
import { CodexChildren, type CodexChildrenOptions } from "./children.ts";
import { failureOf, itemsOf, refOf, usedSince } from "./translate.ts";
import type { CodexNotification, CodexRequest, CodexTurn, CodexUsage } from "./wire.ts";

export class CodexTurnUnderWay {
  readonly key: string;
  readonly #tell: (event: NativeEvent) => void;
  readonly #children: CodexChildren;
  readonly #asked = new Map<string, (answer: NativeAnswer) => void>();
  readonly #begun = Promise.withResolvers<string | null>();
  /** Null until Codex has named it. */
  id: string | null = null;
  #accepted = false;

  constructor(key: string, server: CodexChildrenOptions["server"], tell: (event: NativeEvent) => void) {
    this.key = key;
    this.#tell = tell;
    this.#children = new CodexChildren({
      server,
      tell: (event) => this.#say(event),
      asked: (request) => this.asked(request),
    });
  }

  /** Resolves with its name when it does something: it is named before, and cannot be stopped yet. With null when it is over. */
  get begun(): Promise<string | null> {
    return this.#begun.promise;
  }

  /** Codex has taken it. */
  accept(id: string): void {
    this.id ??= id;
    if (this.#accepted) return;
    this.#accepted = true;
    this.#say({ type: "turn.accepted", turn: refOf(id) });
  }

  /** Tells what a notification comes to; `before` is what the thread had used before it. */
  heard(event: Exclude<CodexNotification, { method: "turn/completed" }>, before: CodexUsage | null): void {
    this.#begun.resolve("turn" in event ? event.turn.id : event.turnId);
    switch (event.method) {
      case "turn/started":
        this.accept(event.turn.id);
        return;
      case "item/agentMessage/delta":
        return this.#say({ type: "delta", text: event.delta });
      case "item/completed":
        for (const item of itemsOf(event.item)) this.#say({ type: "item", item });
        this.#children.found(event.item);
        return;
      case "thread/tokenUsage/updated": {
        const { total, last } = event.tokenUsage;
        const usage = before === null ? usedSince(last, null) : usedSince(total, before);
        if (usage !== null) this.#say({ type: "usage", usage });
      }
    }
  }

  completed({ id, status, error }: CodexTurn): void {
    this.accept(id);
    this.end();
    const outcome = status === "inProgress" ? "interrupted" : status;
    const failure =
      outcome !== "failed"
        ? null
        : failureOf(error ?? { message: "it does not say why", codexErrorInfo: null });
    this.#say({ type: "turn.terminal", outcome, turn: refOf(id), usage: NOTHING_USED, error: failure });
  }

  /** Nobody answers any more. */
  end(): void {
    this.#begun.resolve(null);
    this.#children.end();
    for (const answered of this.#asked.values()) answered({ kind: "cancelled" });
    this.#asked.clear();
  }

  /** False when nothing waits for it. */
  answer(nativeId: string, answer: NativeAnswer): boolean {
    this.#asked.get(nativeId)?.(answer);
    return this.#asked.delete(nativeId);
  }

  async asked(request: CodexRequest): Promise<Json> {
    this.accept(request.turnId);
    this.#begun.resolve(request.turnId);
    switch (request.method) {
      case "item/tool/call": {
        const { callId, tool } = request;
        const answer = await this.#ask({
          kind: "tool",
          ref: refOf(callId),
          callId,
          name: tool,
          input: JSON.stringify(request.arguments ?? {}),
        });
        if (answer.kind !== "tool")
          return { contentItems: [{ type: "inputText", text: "cancelled" }], success: false };
        const { output } = answer;
        const text = typeof output === "string" ? output : JSON.stringify(output);
        return { contentItems: [{ type: "inputText", text }], success: !answer.isError };
      }
      case "item/commandExecution/requestApproval": {
        const { command, cwd, reason } = request;
        const input = JSON.stringify({ command, cwd });
        return this.#approve(
          request.approvalId ?? request.itemId,
          reason ?? "May it run this command?",
          "shell",
          input,
        );
      }
      case "item/fileChange/requestApproval": {
        const input = JSON.stringify({ root: request.grantRoot ?? null });
        return this.#approve(
          request.itemId,
          request.reason ?? "May it change these files?",
          "file_change",
          input,
        );
      }
      case "item/tool/requestUserInput":
        return this.#question(request);
    }
  }

  async #approve(nativeId: string, text: string, tool: string, input: string): Promise<Json> {
    const answer = await this.#ask({ kind: "approval", ref: refOf(nativeId), text, about: { tool, input } });
    if (answer.kind !== "decision") return { decision: "cancel" };
    return { decision: answer.decision.verdict === "approved" ? "accept" : "decline" };
  }

  async #question({
    itemId,
    questions,
  }: Extract<CodexRequest, { method: "item/tool/requestUserInput" }>): Promise<Json> {
    const text = questionText(questions);
    const answer = await this.#ask({ kind: "question", ref: refOf(itemId), text, about: null });
    if (answer.kind !== "answer") throw new JsonRpcFault(-32000, "nobody answers any more");
    const said = [answer.text];
    return { answers: Object.fromEntries(questions.map(({ id }) => [id, { answers: said }])) };
  }

  #ask(request: NativeRequest): Promise<NativeAnswer> {
    return new Promise((answered) => {
      this.#asked.set(request.ref.nativeId, answered);
      this.#say({ type: "request", request });
    });
  }

  #say(event: Told): void {
    this.#tell({ ...event, key: this.key } as NativeEvent);
  }
}
