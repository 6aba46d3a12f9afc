/** What a provider's step tells the run loop, and what it is asked. */
import type { RunId, ThreadId } from "./ids.ts";
import type { Json, JsonObject } from "./json.ts";
import type { AssistantPart } from "./transcript.ts";
import type { ToolSpec } from "./tool.ts";

/** A message of a conversation, as a model is sent it. */
export type PromptMessage =
  | { readonly role: "system"; readonly text: string }
  | { readonly role: "user"; readonly text: string }
  | { readonly role: "assistant"; readonly parts: readonly AssistantPart[] }
  | {
      readonly role: "tool";
      readonly callId: string;
      readonly name: string;
      readonly output: Json;
      readonly isError: boolean;
    };

/** What a model is asked with: the conversation, the tools that it is offered, and who asks. */
export interface StepRequest {
  readonly threadId: ThreadId;
  /** Groups the requests of one tree for a provider's prompt cache (agents.md 77). */
  readonly conversationKey: string;
  readonly path: string;
  readonly runId: RunId;
  readonly step: number;
  /** 1 for the first try of this step. */
  readonly attempt: number;
  /**
   * Assistant items of this thread that are not inherited: how many answers it has given in all its runs. A step that
   * failed or was aborted leaves no item; one with an empty answer leaves an item without parts.
   */
  readonly ownSteps: number;
  readonly model: string | null;
  readonly effort: string | null;
  readonly messages: readonly PromptMessage[];
  readonly tools: readonly ToolSpec[];
  readonly maxOutputTokens: number | null;
}

export interface StepUsage {
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
}

export type StepEvent =
  /** The provider has taken the request. Where it cannot say so, the first other event counts (lineage 3.2). */
  | { readonly type: "accepted" }
  | { readonly type: "text"; readonly text: string; readonly provider?: JsonObject }
  | { readonly type: "reasoning"; readonly text: string; readonly provider?: JsonObject }
  /** A part that is whole; what `text` and `reasoning` streamed is its preview. */
  | { readonly type: "part"; readonly part: AssistantPart }
  | { readonly type: "usage"; readonly usage: StepUsage }
  | {
      readonly type: "finish";
      readonly reason: "stop" | "tool_calls" | "length" | "content_filter" | "other";
    };
