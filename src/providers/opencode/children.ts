/**
 * OpenCode's own agents below the turn under way: they are shown, never gone on with here (lineage C8.1). Each is a conversation
 * that a call of its tool `task` has opened, and lasts as long as that call.
 *
 * - K1 Its words are told with the end of the call. What it uses is used by the turn, and what it asks for is asked for by it.
 */
import type { NativeEvent } from "../../protocol/native-events.ts";
import type { Told } from "../turn-told.ts";
import type { OpenCodeListener, OpenCodeServer } from "./server.ts";
import { refOf, usageOf } from "./translate.ts";
import { type OpenCodeEvent, type OpenCodeTool, partOfInterest, taskOf } from "./wire.ts";

export interface OpenCodeChildrenOptions {
  readonly server: Pick<OpenCodeServer, "leave" | "listen">;
  readonly tell: (event: Told<NativeEvent>) => void;
  /** What one of them asks for, and what comes of it. */
  readonly asks: (event: OpenCodeEvent) => void;
}

export class OpenCodeChildren implements OpenCodeListener {
  readonly #options: OpenCodeChildrenOptions;
  /** Conversations by the call that has opened them. */
  readonly #open = new Map<string, string>();
  readonly #counted = new Set<string>();

  constructor(options: OpenCodeChildrenOptions) {
    this.#options = options;
  }

  /** A call of the turn, or of one of them, as it goes on. */
  called(call: OpenCodeTool): void {
    const task = taskOf(call);
    if (task === null) return;
    if (!this.#open.has(call.id)) {
      this.#open.set(call.id, task.sessionId);
      this.#options.server.listen(task.sessionId, this);
      this.#options.tell({ type: "child.started", child: refOf(task.sessionId), prompt: task.prompt });
    }
    const { status, output, error } = call.state;
    if (status === "completed") this.#ends(call.id, "completed", resultOf(output ?? ""));
    if (status === "error") this.#ends(call.id, "failed", error ?? "");
  }

  heard(event: OpenCodeEvent): void {
    if (event.type === "message.part.updated") return this.#part(partOfInterest(event.of.part));
    if (event.type.startsWith("permission.") || event.type.startsWith("question.")) this.#options.asks(event);
  }

  /** The turn is told, and ends them. */
  lost(): void {}

  end(): void {
    for (const callId of this.#open.keys()) this.#ends(callId, "interrupted", "");
  }

  #part(part: ReturnType<typeof partOfInterest>): void {
    if (part?.type === "tool") this.called(part);
    if (part?.type !== "step-finish" || this.#counted.has(part.id)) return;
    this.#counted.add(part.id);
    this.#options.tell({ type: "usage", usage: usageOf(part.tokens) });
  }

  #ends(callId: string, outcome: "completed" | "failed" | "interrupted", text: string): void {
    const sessionId = this.#open.get(callId);
    if (sessionId === undefined) return;
    this.#open.delete(callId);
    this.#options.server.leave(sessionId, this);
    this.#options.tell({ type: "child.terminal", child: refOf(sessionId), outcome, text });
  }
}

/** What the model reads of it has a frame. */
function resultOf(output: string): string {
  return /<task_result>\s*([\s\S]*?)\s*<\/task_result>/.exec(output)?.[1] ?? output;
}
